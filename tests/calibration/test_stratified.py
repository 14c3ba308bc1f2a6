"""PPI++ for labels that were not drawn with equal chances."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_vectors import VECTORS, near

from calibration import CalibrationError
from calibration.correction import correct, ppi_se, tuned_lambda
from calibration.sample import Sample, sample_of
from calibration.stratified import post_stratified, strata_of, stratified_ppi, weighted_ppi


def vector_strata():
    vector = VECTORS["ppi_stratified_2"]
    given = vector["inputs"]["strata"].items()
    return vector, {
        name: Sample(labels=np.array(s["y"]), judged=np.array(s["f"]), unlabelled=np.array(s["f_unlabeled"]))
        for name, s in given
    }


def test_stratified_ppi_matches_the_vector():
    vector, strata = vector_strata()
    expected = vector["expected"]
    # 8 labels per stratum: the vector tunes lam all the same and gets 1 in both; ours would say too few labels to tune
    for name, h in strata.items():
        assert tuned_lambda(h.labels, h.judged, h.unlabelled) == expected["per_stratum"][name]["lam"]
    found = stratified_ppi(strata, lam=1.0)
    assert found.corrected.value == near(expected["estimate"], vector)
    for name, part in found.per_stratum.items():
        assert part.value == near(expected["per_stratum"][name]["estimate"], vector)
    # the vector's standard errors have ddof 0, ours ddof 1 (8/7 and N/(N-1) larger)
    parts = {name: ppi_se(h, 1.0, ddof=0) for name, h in strata.items()}
    assert parts == {name: near(expected["per_stratum"][name]["se"], vector) for name in strata}
    shares = {name: h.size / 121 for name, h in strata.items()}
    assert sum((shares[name] * parts[name]) ** 2 for name in parts) ** 0.5 == near(expected["se"], vector)
    ours = {name: ppi_se(h, 1.0) for name, h in strata.items()}
    assert found.corrected.se == pytest.approx(sum((shares[name] * ours[name]) ** 2 for name in ours) ** 0.5)


def test_post_stratification_matches_the_vector():
    vector = VECTORS["poststrat_binary_30_120"]
    inputs, expected = vector["inputs"], vector["expected"]
    found = post_stratified(inputs["y_labeled"], inputs["f_labeled"], inputs["f_unlabeled"])
    assert [found.value, found.se] == near([expected["estimate"], expected["se"]], vector)
    assert [found.ci_low, found.ci_high] == near(expected["ci95_t_df_n_minus_2"], vector)


def test_one_stratum_is_plain_ppi():
    rng = np.random.default_rng(1)
    y = rng.integers(1, 6, size=40) * 1.0
    f, rest = np.clip(y + rng.integers(-1, 2, size=40), 1, 5), rng.integers(1, 6, size=200) * 1.0
    found = stratified_ppi({"all": Sample(labels=y, judged=f, unlabelled=rest)})
    lam = tuned_lambda(y, f, rest)
    assert found.lam == pytest.approx(lam)
    assert found.corrected.se == pytest.approx(ppi_se(sample_of(y, f, rest), lam))


def test_equal_propensities_are_plain_ppi_up_to_who_is_averaged():
    # with every pi equal theta is lam mean(all f) + mean(Y - lam f): the labelled items count among the judged ones
    rng = np.random.default_rng(2)
    y = rng.integers(1, 6, size=40) * 1.0
    f, rest = np.clip(y + rng.integers(-1, 2, size=40), 1, 5), rng.integers(1, 6, size=200) * 1.0
    found = weighted_ppi(y, f, np.full(40, 40 / 240), rest, lam=1.0)
    assert found.corrected.value == pytest.approx(np.concatenate([f, rest]).mean() + (y - f).mean())
    assert found.human_only.value == pytest.approx(y.mean())
    assert found.human_only.se == pytest.approx(y.std(ddof=1) / 40**0.5)


def test_weights_undo_oversampling_of_failures():
    # 90 passes and 10 failures; all failures and 10 passes are labelled, the judge is useless: 0.9 again, not 0.5
    y = np.array([1.0] * 10 + [0.0] * 10)
    found = weighted_ppi(
        y, np.tile([0.0, 1.0], 10), np.array([1 / 9] * 10 + [1.0] * 10), np.tile([0.0, 1.0], 40), lam=0.0
    )
    assert found.corrected.value == pytest.approx(0.9)


def test_a_stratum_without_two_labels_joins_its_neighbour_and_a_constant_one_is_not_certain():
    few = Sample(labels=np.array([5.0]), judged=np.array([5.0]), unlabelled=np.full(9, 5.0))
    level_four = Sample(labels=np.array([4.0, 3, 5, 4]), judged=np.full(4, 4.0), unlabelled=np.full(20, 4.0))
    level_one = Sample(labels=np.full(6, 1.0), judged=np.full(6, 1.0), unlabelled=np.full(20, 1.0))
    found = stratified_ppi({"1": level_one, "4": level_four, "5": few})
    assert list(found.per_stratum) == ["1", "4+5"]
    assert "merged_strata: 4+5" in found.corrected.warnings
    assert "zero_variance_stratum: 1" in found.corrected.warnings
    assert found.per_stratum["1"].se > 0
    certain = stratified_ppi(
        {"1": level_one, "2": Sample(labels=np.full(6, 2.0), judged=np.full(6, 2.0), unlabelled=np.full(9, 2.0))}
    )
    assert (certain.corrected.ci_low, certain.corrected.reason) == (None, "zero_residual_variance")


def test_agreement_on_every_label_falls_back_to_the_labels_alone_under_every_design():
    # 40 labels without a disagreement: lam tunes to 5/6, and the correction would claim the precision of 240 labels
    scores = {f"q{i}": float(1 + i % 5) for i in range(240)}
    labels = {item: scores[item] for item in list(scores)[:40]}
    strata = {item: "even" if i % 2 else "odd" for i, item in enumerate(scores)}
    for design, more in (
        ("stratified", {"strata": strata}),
        ("propensity", {"propensities": dict.fromkeys(labels, 1 / 6)}),
    ):
        found = correct(scores, labels, design=design, bounds=(1, 5), **more)
        assert (found.method, found.lam, found.effective_n) == ("human_only", 0.0, 40)
        assert found.corrected == found.human_only
        assert "zero_residual_variance" in found.warnings


def test_correct_takes_strata_and_propensities_of_the_items():
    rng = np.random.default_rng(3)
    scores = {f"q{i}": float(rng.integers(1, 6)) for i in range(200)}
    labelled = {item: float(np.clip(score + rng.integers(-1, 2), 1, 5)) for item, score in list(scores.items())[:60]}
    strata = {item: "high" if score >= 4 else "low" for item, score in scores.items()}
    found = correct(scores, labelled, design="stratified", strata=strata, bounds=(1, 5))
    direct = stratified_ppi(strata_of(labelled, scores, strata))
    assert (found.method, found.corrected) == ("ppi++_stratified", direct.corrected)
    weighted = correct(scores, labelled, design="propensity", propensities=dict.fromkeys(labelled, 0.3), bounds=(1, 5))
    assert weighted.method == "ppi++_weighted"
    assert weighted.corrected.ci_low < weighted.corrected.value < weighted.corrected.ci_high
    assert set(weighted.to_dict()) == set(found.to_dict())


def test_designs_without_their_record_are_refused():
    scores, labels = {"a": 1.0, "b": 0.0, "c": 1.0}, {"a": 1.0, "b": 1.0}
    with pytest.raises(CalibrationError, match="stratum"):
        correct(scores, labels, design="stratified")
    with pytest.raises(CalibrationError, match="c has no stratum"):
        correct(scores, labels, design="stratified", strata={"a": "x", "b": "x"})
    with pytest.raises(CalibrationError, match="a has none"):
        correct(scores, labels, design="propensity")
    with pytest.raises(CalibrationError, match="propensities hold 0"):
        correct(scores, labels, design="propensity", propensities={"a": 0.0, "b": 0.5})


def judged_population(rng, size=1000):
    truth = rng.choice([1.0, 2, 3, 4, 5], size=size, p=[0.1, 0.15, 0.2, 0.25, 0.3])
    return truth, np.clip(truth + rng.choice([0, 0, 1, 1, 2], size=size), 1, 5)


@pytest.mark.slow
def test_stratified_weighted_and_post_stratified_intervals_cover_and_the_unweighted_one_does_not():
    rng, target = np.random.default_rng(4), 1 * 0.1 + 2 * 0.15 + 3 * 0.2 + 4 * 0.25 + 5 * 0.3
    held = dict.fromkeys(("stratified", "weighted", "post", "ignored"), 0)
    for _ in range(300):
        truth, judge = judged_population(rng)
        strata = {f"{level:g}": np.flatnonzero(judge == level) for level in np.unique(judge)}
        # 16 labels from every judge level, however rare it is
        chosen = {name: rng.choice(rows, size=min(16, len(rows) - 2), replace=False) for name, rows in strata.items()}
        parts = {
            name: Sample(
                labels=truth[chosen[name]],
                judged=judge[chosen[name]],
                unlabelled=judge[np.setdiff1d(rows, chosen[name])],
            )
            for name, rows in strata.items()
        }
        picked = np.concatenate(list(chosen.values()))
        chances = np.concatenate(
            [np.full(len(chosen[name]), len(chosen[name]) / len(rows)) for name, rows in strata.items()]
        )
        rest = np.setdiff1d(np.arange(1000), picked)
        random = rng.permutation(1000)
        found = {
            "stratified": stratified_ppi(parts).corrected,
            "weighted": weighted_ppi(truth[picked], judge[picked], chances, judge[rest]).corrected,
            "post": post_stratified(truth[random[:80]], judge[random[:80]], judge[random[80:]]),
            "ignored": weighted_ppi(
                truth[picked], judge[picked], np.full(len(picked), 0.08), judge[rest], lam=0.0
            ).corrected,
        }
        for name, estimate in found.items():
            held[name] += estimate.ci_low <= target <= estimate.ci_high
    assert min(held["stratified"], held["weighted"], held["post"]) >= 0.92 * 300
    assert held["ignored"] < 0.8 * 300
