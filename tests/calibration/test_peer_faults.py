"""Faults found in other packages (spec/calibration.md section 10): each shown not to be ours."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_vectors import VECTORS

from calibration.agreement import agreement
from calibration.correction import correct, ppi
from calibration.estimate import bootstrap
from calibration.kappa import kappa
from calibration.multirater import fleiss_kappa, krippendorff_alpha, label_counts
from calibration.ratings import declare_scale, ratings_of
from calibration.resampling import over_pairs, pair_tables, replicated, resampled
from calibration.rogan_gladen import rogan_gladen
from calibration.tables import cohen_kappa


def test_the_corrected_rate_carries_the_sampling_error_of_the_judged_items():
    # judgy resamples only the labels: with 10 judged items its interval is as narrow as with 10,000
    rates = {"specificity": 0.9, "m0": 500, "sensitivity": 0.9, "m1": 500}
    few, many = rogan_gladen(0.6, 10, **rates), rogan_gladen(0.6, 10_000, **rates)
    assert few.ci_high - few.ci_low > 5 * (many.ci_high - many.ci_low)


def test_perfect_labels_do_not_collapse_the_corrected_interval():
    # judgy on 9 + 1 perfect labels: (0.8, 0.8, 0.8)
    scores = {f"l{i}": float(i != 0) for i in range(10)} | {f"u{i}": float(i % 5 != 0) for i in range(100)}
    found = correct(scores, {f"l{i}": float(i != 0) for i in range(10)}, design="external").corrected
    assert found.value is None or found.ci_high - found.ci_low > 0.1
    enough = rogan_gladen(0.8, 100, specificity=1.0, m0=10, sensitivity=1.0, m1=90)
    assert enough.ci_high - enough.ci_low > 0.1


def test_nothing_draws_from_a_global_generator():
    np.random.seed(1)
    first = kappa([[40, 9], [6, 45]])
    np.random.seed(2)
    assert kappa([[40, 9], [6, 45]]) == first


def test_weights_do_not_change_from_resample_to_resample():
    # autorubric recomputes weights from the labels a resample happens to hold; the gap scale shows it
    inputs = VECTORS["label_gap_scale_1_5_missing_3_4"]["inputs"]
    judge, human = np.array(inputs["judge"]) - 1, np.array(inputs["human"]) - 1
    data = pair_tables([(judge, human)], 5)
    drawn = replicated(over_pairs(lambda t: cohen_kappa(t, "quadratic"), data), data, seed=0, replicates=500)
    totals = resampled(data.counts, 500, np.random.default_rng(0)) @ data.units
    tables = data.expand(totals)[:, 0]
    assert tables.shape == (500, 5, 5)
    assert drawn == pytest.approx([float(cohen_kappa(table, "quadratic")) for table in tables], nan_ok=True)


def test_degenerate_resamples_are_counted_not_dropped_in_silence():
    estimate = kappa([[0, 5], [0, 15]])
    assert estimate.value == 0.0
    skewed = bootstrap(lambda s: s[:, 0] / s[:, 1], [[1, 1]] + [[0, 0]] * 29, seed=0)
    assert any(warning.startswith("undefined_replicates: ") for warning in skewed.warnings)
    assert "degenerate_resamples" in skewed.warnings


def test_unequal_numbers_of_raters_have_a_reason_and_another_coefficient():
    counts = label_counts(np.array([[0, 0, -1], [1, 1, 0], [0, 1, 1]] * 5), 2)
    assert fleiss_kappa(counts).reason == "unequal_raters"
    assert krippendorff_alpha(counts).value is not None


def test_a_single_label_never_gives_a_lower_bound_above_the_upper():
    # evalproof: one label -> low 0.0 above high -0.058
    found = ppi([1.0], [0.0], [1.0, 0.0] * 20).corrected
    assert (found.ci_low, found.ci_high, found.reason) == (None, None, "one_value")


def test_eight_agreeing_labels_do_not_give_a_tight_interval():
    # evalproof: 8 agreeing labels -> [.858, .942]
    rest = np.array([1.0] * 90 + [0.0] * 10)
    found = ppi([1.0] * 7 + [0.0], [1.0] * 7 + [0.0], rest, bounds=(0, 1)).corrected
    assert found.ci_high - found.ci_low > 0.3


def test_corrected_points_are_not_clipped_to_the_scale():
    y, f, rest = np.array([1.0] * 29 + [0.0]), np.array([0.0] * 20 + [1.0] * 10), np.ones(300)
    assert ppi(y, f, rest, lam=1.0, bounds=(0, 1)).corrected.value > 1


def test_the_ppi_interval_uses_t_and_sample_variance():
    # ppi-python: z and ddof 0
    vector = VECTORS["ppi_ordinal_24_200"]
    y, f, rest = (np.array(vector["inputs"][name]) for name in ("y_labeled", "f_labeled", "f_unlabeled"))
    found, theirs = ppi(y, f, rest).corrected, vector["expected"]["ppi_pp_tuned"]["ci95_z"]
    assert found.ci_low < theirs[0]
    assert found.ci_high > theirs[1]


def test_a_judge_worse_than_chance_is_refused_not_divided_by():
    for specificity, sensitivity in ((0.5, 0.5), (0.2, 0.3), (0.0, 1.0)):
        found = rogan_gladen(0.5, 100, specificity=specificity, m0=100, sensitivity=sensitivity, m1=100)
        assert found.reason == "judge_not_better_than_chance"


def test_ordinal_alpha_has_a_metric_of_its_own():
    # rater-agreement puts the interval index in its place
    counts = label_counts(np.array([[0, 1], [0, 0], [1, 1], [4, 4], [4, 3], [0, 4]] * 3), 5)
    ordinal, interval = krippendorff_alpha(counts, "ordinal"), krippendorff_alpha(counts, "interval")
    assert abs(ordinal.value - interval.value) > 0.01


def test_the_kappa_ceiling_is_given_for_unweighted_kappa_only():
    # statsmodels prints the unweighted ceiling for weighted kappa too
    scale = declare_scale("1,2,3")
    items = [f"q{i}" for i in range(12)]
    rated = ratings_of(items * 2, ["judge"] * 12 + ["h"] * 12, [1, 2, 3] * 4 + [1, 2, 2] * 4, scale=scale)
    assert isinstance(agreement(rated).kappa_max, float)


def test_missing_ratings_are_never_filled_in():
    # judge-kappa fills gaps with the judge's mean: adding an item that nobody else rated must change nothing
    scale, labels = declare_scale("1,2,3"), [1, 2, 3, 3, 2, 1] * 2
    items = [f"q{i}" for i in range(12)]
    rows = (items * 2, ["judge"] * 12 + ["h"] * 12, labels + [1, 2, 3, 2, 2, 2] * 2)
    alone = agreement(ratings_of(*rows, scale=scale))
    more = agreement(ratings_of([*rows[0], "extra"], [*rows[1], "judge"], [*rows[2], 3], scale=scale))
    assert (more.n, more.n_dropped) == (12, 1)
    assert more.kappa["linear"].value == alone.kappa["linear"].value
    assert more.krippendorff_alpha["ordinal"].value == alone.krippendorff_alpha["ordinal"].value
