"""Correcting the judge's mean: PPI++, Rogan-Gladen, the label-design gate and the guards."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_vectors import VECTORS, named, near

from calibration import CalibrationError
from calibration.compare import paired
from calibration.correction import correct, ppi, ppi_difference, ppi_se, tuned_lambda
from calibration.estimate import mean, normal_quantile, t_quantile
from calibration.guards import refuse_leakage, refuse_stale, stale_fields
from calibration.rogan_gladen import rogan_gladen
from calibration.sample import sample_of

PPI_VECTORS = ["ppi_binary_30_120", "ppi_ordinal_24_200", "correction_all_30_120b"]


def arrays(vector):
    return [np.array(vector["inputs"][name]) for name in ("y_labeled", "f_labeled", "f_unlabeled")]


@pytest.mark.parametrize("name", PPI_VECTORS)
@pytest.mark.parametrize("which", ["human_only_lam0", "ppi_lam1", "ppi_pp_tuned"])
def test_ppi_matches_the_vectors(name, which):
    vector = VECTORS[name]
    y, f, rest = arrays(vector)
    expected = vector["expected"][which]
    lam = tuned_lambda(y, f, rest) if which == "ppi_pp_tuned" else expected["lam"]
    found = ppi(y, f, rest, lam=lam)
    assert lam == near(expected["lam"], vector)
    assert found.corrected.value == near(expected["estimate"], vector)
    # the vectors hold population (ddof 0) errors; the product uses ddof 1, which is wider
    se0 = ppi_se(sample_of(y, f, rest), lam, ddof=0)
    assert se0 == near(expected["se_ddof0"], vector)
    half_z, half_t = normal_quantile(0.95) * se0, t_quantile(0.95, len(y) - 1) * se0
    assert [found.corrected.value - half_z, found.corrected.value + half_z] == near(expected["ci95_z"], vector)
    assert [found.corrected.value - half_t, found.corrected.value + half_t] == near(expected["ci95_t"], vector)
    assert found.corrected.se == pytest.approx(se0, rel=0.03)
    assert found.corrected.se > se0


def test_lambda_zero_is_the_mean_of_the_labels_with_its_t_interval():
    y, f, rest = arrays(VECTORS["ppi_ordinal_24_200"])
    found, alone = ppi(y, f, rest, lam=0).corrected, mean(y)
    assert (found.value, found.se, found.ci_low, found.ci_high) == pytest.approx(
        (alone.value, alone.se, alone.ci_low, alone.ci_high)
    )


def test_a_judge_that_equals_the_labels_gets_lambda_near_its_limit():
    rng = np.random.default_rng(1)
    f = rng.normal(size=200)
    # Cov(f, f) / ((1 + n / N) Var f) = N / (n + N), but for ddof
    assert tuned_lambda(f, f, np.tile(f, 5)) == pytest.approx(1000 / 1200, abs=0.001)
    assert tuned_lambda(f, np.ones(200), np.ones(1000)) == 0.0
    assert tuned_lambda(f, -f, -np.tile(f, 5)) == 0.0


def test_agreement_on_every_label_never_gives_a_tight_interval():
    # 40 labels without a disagreement leave room for 1 in 12; evalproof reports +-.04 from 8 of them
    f, rest = np.array([1.0] * 36 + [0.0] * 4), np.array([1.0] * 900 + [0.0] * 100)
    found = correct(
        {f"l{i}": v for i, v in enumerate(f)} | {f"u{i}": v for i, v in enumerate(rest)},
        {f"l{i}": v for i, v in enumerate(f)},
        design="random",
    )
    assert found.method == "human_only"
    assert "zero_residual_variance" in found.warnings
    assert found.corrected.ci_high - found.corrected.ci_low > 0.15
    assert found.corrected.ci_low < found.corrected.ci_high


def test_too_few_labels_are_not_used_to_tune_and_one_label_has_no_interval():
    y, f, rest = np.array([1.0, 0, 1, 1, 0, 1]), np.array([1.0, 1, 1, 0, 0, 1]), np.array([1.0, 0] * 50)
    found = ppi(y, f, rest, bounds=(0, 1))
    assert found.lam == 0.0
    assert "too_few_labels_to_tune: 6" in found.warnings
    single = ppi([1.0], [1.0], rest)
    assert (single.corrected.value, single.corrected.ci_low) == (1.0, None)
    with pytest.raises(CalibrationError, match="no labels"):
        ppi([], [], rest)


def test_nothing_left_to_correct_or_a_constant_judge_leaves_the_labels_alone():
    y, f = np.array([1.0, 2, 3, 4] * 10), np.array([1.0, 2, 4, 4] * 10)
    alone = ppi(y, f, [])
    assert (alone.method, alone.warnings) == ("human_only", ("no_unlabelled_items",))
    constant = ppi(y, np.full(40, 5.0), np.full(100, 5.0))
    assert (constant.method, constant.lam, constant.labels_to_halve_ci) == ("human_only", 0.0, 160)
    assert constant.corrected == mean(y)


def test_effective_size_and_labels_to_halve_follow_the_planning_formula():
    rng = np.random.default_rng(2)
    truth = rng.normal(size=2200)
    judge = truth + rng.normal(scale=0.5, size=2200)
    found = ppi(truth[:200], judge[:200], judge[200:])
    rho = np.corrcoef(truth[:200], judge[:200])[0, 1]
    assert found.effective_n == pytest.approx(200 / (1 - rho**2 / 1.1), rel=0.05)
    again = ppi(truth[: found.labels_to_halve_ci], judge[: found.labels_to_halve_ci], rng.normal(size=2000) * 1.1)
    assert again.corrected.se == pytest.approx(found.corrected.se / 2, rel=0.15)


def test_the_paired_difference_is_corrected_as_one_number():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2, 300).astype(float), rng.integers(0, 2, 300).astype(float)
    flip = rng.random(300) < 0.1
    judged_a = np.where(flip, 1 - a, a)
    labels, judged = (a[:60], b[:60]), (judged_a[:60], b[:60])
    found = ppi_difference(labels, judged, (judged_a[60:], b[60:]), bounds=(0, 1))
    direct = ppi(a[:60] - b[:60], judged_a[:60] - b[:60], judged_a[60:] - b[60:])
    assert found.corrected == direct.corrected
    assert found.human_only.value == paired(a[:60], b[:60]).difference.value
    with pytest.raises(CalibrationError, match="1 values of A and 2 of B"):
        ppi_difference(([1], [1, 0]), ([1], [0]), ([1], [0]))


@pytest.mark.parametrize("name", named("rogan_gladen_"))
def test_rogan_gladen_and_its_lee_interval_match_the_vectors(name):
    vector = VECTORS[name]
    inputs, expected = vector["inputs"], vector["expected"]
    found = rogan_gladen(
        inputs["p"], inputs["n"], specificity=inputs["q0_specificity"], m0=inputs["m0"],
        sensitivity=inputs["q1_sensitivity"], m1=inputs["m1"],
    )  # fmt: skip
    assert found.value == near(expected["theta_raw"], vector)
    assert found.se == near(expected["delta_se"], vector)
    # the published interval is clipped to 0..1; ours is not
    assert [max(found.ci_low, 0), min(found.ci_high, 1)] == near(expected["lee_ci95"], vector)
    assert ("out_of_range" in found.warnings) == (not 0 <= expected["theta_raw"] <= 1)


def test_external_labels_give_rogan_gladen_on_the_unlabelled_items():
    vector = VECTORS["correction_all_30_120b"]
    y, f, rest = arrays(vector)
    scores = {f"l{i}": v for i, v in enumerate(f)} | {f"u{i}": v for i, v in enumerate(rest)}
    found = correct(scores, {f"l{i}": v for i, v in enumerate(y)}, design="external")
    expected = vector["expected"]["rogan_gladen"]
    assert (found.method, found.lam) == ("rogan_gladen", None)
    assert found.corrected.value == near(expected["theta"], vector)
    assert [found.corrected.ci_low, min(found.corrected.ci_high, 1)] == near(expected["lee_ci95"], vector)
    assert found.naive.value == pytest.approx(rest.mean())


def test_a_judge_near_chance_or_labels_of_one_class_are_not_corrected():
    near_chance = rogan_gladen(0.5, 100, specificity=0.55, m0=20, sensitivity=0.6, m1=20)
    assert near_chance.reason == "judge_not_better_than_chance"
    assert rogan_gladen(0.5, 100, specificity=0.2, m0=50, sensitivity=0.3, m1=50).value is None
    assert rogan_gladen(0.5, 100, specificity=1, m0=0, sensitivity=0.9, m1=10).reason == "one_class_labels"
    with pytest.raises(CalibrationError, match=r"specificity is 1.2"):
        rogan_gladen(0.5, 100, specificity=1.2, m0=5, sensitivity=0.9, m1=10)


@pytest.mark.parametrize(
    "design, message",
    [
        ("unknown", "a corrected mean cannot"),
        ("stratified", "stratum"),
        ("propensity", "propensity column"),
        ("convenience", "random, stratified, propensity, external"),
    ],
)
def test_the_gate_refuses_designs_and_says_why(design, message):
    with pytest.raises(CalibrationError, match=message):
        correct({"a": 1.0}, {"a": 1.0}, design=design)


def test_external_labels_never_reach_ppi():
    with pytest.raises(CalibrationError, match="cannot correct graded scores"):
        correct({"a": 3.0, "b": 4.0}, {"a": 2.0}, design="external")
    with pytest.raises(CalibrationError, match="every judged item is labelled"):
        correct({"a": 1.0}, {"a": 1.0}, design="external")


def test_scores_and_labels_on_different_scales_are_refused():
    with pytest.raises(CalibrationError, match=r"labels hold 7, outside the scale 1\.\.5"):
        correct({"a": 3.0}, {"a": 7.0}, design="random", bounds=(1, 5))
    with pytest.raises(CalibrationError, match="different scales"):
        correct({"a": 0.8, "b": 0.4}, {"a": 4.0}, design="random")
    with pytest.raises(CalibrationError, match="check the ids"):
        correct({"a": 1.0}, {"A": 1.0}, design="random")
    with pytest.raises(CalibrationError, match="is nan"):
        correct({"a": float("nan"), "b": 1.0}, {"a": 1.0}, design="random")


def test_a_missing_score_drops_its_label_and_shifts_nothing():
    scores = {f"q{i}": (None if i == 3 else float(i % 2)) for i in range(60)}
    labels = {f"q{i}": float(i % 2) for i in range(30)}
    found = correct(scores, labels, design="random")
    assert "labels_without_score: 1" in found.warnings
    assert "zero_residual_variance" in found.warnings


def test_labels_that_the_judge_has_seen_are_refused_by_name():
    refuse_leakage(["a", "b"], ["c"])
    with pytest.raises(CalibrationError, match="1 labelled items were used for few-shot examples: b"):
        refuse_leakage(["a", "b"], ["b", "c"], "few-shot examples")


def test_a_calibration_of_another_prompt_is_stale():
    made = {"rubric_hash": "r1", "prompt_hash": "p1", "judge_fingerprint": "j1"}
    assert stale_fields(made, dict(made)) == ()
    assert stale_fields(made, made | {"prompt_hash": "p2"}) == ("prompt_hash",)
    assert stale_fields({}, made) == ("rubric_hash", "prompt_hash", "judge_fingerprint")
    with pytest.raises(CalibrationError, match="prompt_hash was p1, is p2"):
        refuse_stale(made, made | {"prompt_hash": "p2"})
