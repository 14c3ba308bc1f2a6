"""Isotonic recalibration: the curve, out-of-fold use, and whether it holds elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_vectors import VECTORS, near

from calibration import CalibrationError
from calibration.recalibration import isotonic, recalibrate, transport_audit, transport_audits


@pytest.mark.parametrize("name", ["isotonic_ord24", "isotonic_pooling_13"])
def test_the_curve_matches_the_vectors(name):
    vector = VECTORS[name]
    curve = isotonic(vector["inputs"]["judge"], vector["inputs"]["human"])
    assert list(curve.levels) == vector["expected"]["levels"]
    assert list(curve.fitted) == near(vector["expected"]["fitted"], vector)


def test_the_estimate_is_plug_in_plus_out_of_fold_residual_as_in_the_vector():
    vector = VECTORS["isotonic_aipw_oof_ord24_200"]
    inputs, expected = vector["inputs"], vector["expected"]
    # 24 labels, below the 30 that the interval asks for: copy the data, which leaves every level mean as it is
    labels, judged = inputs["human"] * 2, inputs["judge_labeled"] * 2
    folds = [i % 4 for i in range(24)] * 2
    found = recalibrate(labels, judged, inputs["judge_unlabeled"], folds=folds)
    assert list(found.out_of_fold[:24]) == near(expected["oof_pred"], vector)
    assert float(np.mean(np.array(labels) - found.out_of_fold)) == near(expected["residual_correction"], vector)
    everything = inputs["judge_labeled"] + inputs["judge_unlabeled"]
    plug_in = float(found.curve(everything).mean())
    assert plug_in == near(expected["plug_in_all_rows"], vector)
    assert plug_in + expected["residual_correction"] == near(expected["estimate"], vector)
    with pytest.raises(CalibrationError, match="30 or more"):
        recalibrate(inputs["human"], inputs["judge_labeled"], inputs["judge_unlabeled"])


def test_the_curve_equals_scikit_learn_with_ties_and_is_flat_beyond_its_ends():
    sklearn_isotonic = pytest.importorskip("sklearn.isotonic")
    rng = np.random.default_rng(1)
    for _ in range(20):
        f, y = np.round(rng.random(60), 1), rng.integers(1, 6, size=60) * 1.0
        grid = np.linspace(-0.5, 1.5, 41)
        oracle = sklearn_isotonic.IsotonicRegression(out_of_bounds="clip").fit(f, y)
        assert isotonic(f, y)(grid) == pytest.approx(oracle.predict(grid))


def test_a_label_never_predicts_itself():
    # 40 distinct scores, labels pure noise: in sample the curve follows the noise, out of fold it cannot
    rng = np.random.default_rng(2)
    f, y = np.arange(40.0), rng.normal(size=40)
    found = recalibrate(y, f, rng.random(100) * 40)
    in_sample = float(np.mean((y - found.curve(f)) ** 2))
    assert float(np.mean((y - np.array(found.out_of_fold)) ** 2)) > in_sample
    assert found.warnings[0].startswith("few_labels_at_level")


def test_items_of_one_question_stay_in_one_fold():
    # two copies of each item: if one copy predicted the other, the residual would be 0
    rng = np.random.default_rng(3)
    f, y = np.arange(20.0), rng.normal(size=20) * 5
    twice_f, twice_y = np.repeat(f, 2), np.repeat(y, 2)
    found = recalibrate(twice_y, twice_f, f, clusters=(np.repeat(np.arange(20), 2), range(20, 40)))
    out = np.array(found.out_of_fold)
    assert (out[::2] == out[1::2]).all()
    assert found.corrected.n_clusters == 20
    with pytest.raises(CalibrationError, match="in one cluster"):
        recalibrate(twice_y, twice_f, f, clusters=([0] * 40, [1] * 20))


def test_copies_of_a_question_make_the_mean_through_the_curve_no_more_certain():
    rng = np.random.default_rng(6)
    y = rng.integers(1, 6, size=60) * 1.0
    f, rest = np.clip(y + rng.integers(0, 2, size=60), 1, 5), rng.integers(1, 6, size=200) * 1.0
    once = recalibrate(y, f, rest, folds=np.arange(60) % 5).corrected
    columns, names = (
        [np.repeat(side, 4) for side in (y, f, rest)],
        (np.repeat(range(60), 4), np.repeat(range(60, 260), 4)),
    )
    copied = recalibrate(*columns, clusters=names, folds=np.repeat(np.arange(60) % 5, 4)).corrected
    assert (copied.value, copied.se) == pytest.approx((once.value, once.se))
    assert copied.ci_high == pytest.approx(once.ci_high)
    assert recalibrate(*columns, folds=np.repeat(np.arange(60) % 5, 4)).corrected.se < 0.6 * once.se


def test_transport_passes_only_inside_the_margin_and_never_on_a_few_labels():
    rng = np.random.default_rng(4)
    curve = isotonic([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    f = rng.integers(1, 6, size=400) * 1.0
    near_truth, shifted = f + rng.normal(size=400) * 0.5, f + 0.6 + rng.normal(size=400) * 0.5
    assert transport_audit(curve, f, near_truth, delta=0.2).verdict == "pass"
    assert transport_audit(curve, f, shifted, delta=0.2).verdict == "fail"
    assert transport_audit(curve, f[:40], near_truth[:40], delta=5).verdict == "inconclusive"
    assert transport_audit(curve, f[:60], near_truth[:60], delta=0.05).verdict == "inconclusive"
    one, ten = (transport_audit(curve, f, near_truth, delta=0.2, systems=k).residual for k in (1, 10))
    assert ten.ci_high > one.ci_high
    with pytest.raises(CalibrationError, match="delta is 0"):
        transport_audit(curve, f, f, delta=0)


def test_systems_are_audited_apart_and_share_the_error():
    rng = np.random.default_rng(5)
    curve = isotonic([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    f = rng.integers(1, 6, size=300) * 1.0
    y = f + rng.normal(size=300) * 0.5 + np.repeat([0.0, 1.0, 0.0], 100)
    names = np.repeat(["same", "kinder", "same"], 100)
    found = transport_audits(curve, f, y, list(names), delta=0.2)
    assert {name: audit.verdict for name, audit in found.items()} == {"same": "pass", "kinder": "fail"}
    assert found["same"].residual == transport_audit(curve, f[names == "same"], y[names == "same"], delta=0.2,
                                                     systems=2).residual  # fmt: skip
    with pytest.raises(CalibrationError, match="1 names for 300"):
        transport_audits(curve, f, y, ["same"], delta=0.2)


def test_people_who_always_agree_with_the_curve_give_no_interval():
    f = np.repeat([1.0, 2, 3], 20)
    found = recalibrate(f, f, f)
    assert (found.corrected.ci_low, found.corrected.reason) == (None, "zero_residual_variance")


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["compressed", "step"])
def test_out_of_fold_intervals_cover_and_the_plug_in_without_residual_does_not(shape):
    rng = np.random.default_rng(5)
    levels, p = np.array([1.0, 2, 3, 4, 5]), np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    held = plug_in = 0
    for seed in range(300):
        truth = rng.choice(levels, size=1100, p=p)
        noisy = np.clip(truth + rng.integers(-1, 2, size=1100), 1, 5)
        judge = (
            np.clip(np.round(3.5 + 0.4 * (noisy - 3)), 1, 5)
            if shape == "compressed"
            else np.where(noisy >= 3, 5.0, 2.0)
        )
        found = recalibrate(truth[:100], judge[:100], judge[100:], seed=seed)
        held += found.corrected.ci_low <= levels @ p <= found.corrected.ci_high
        scores = found.curve(judge)
        plug_in += abs(scores.mean() - levels @ p) <= 1.96 * scores.std() / len(scores) ** 0.5
    # nor is the interval needlessly wide: the error of the curve counts once
    assert 0.92 * 300 <= held <= 0.985 * 300
    assert plug_in < 0.8 * 300
