"""Kappa's standard error and interval: published values, smoothing, small and degenerate samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from calibration_vectors import VECTORS, named, near

from calibration import CalibrationError
from calibration.kappa import kappa, kappa_null_variance, kappa_variance, smoothed_table, wilson_map
from calibration.resampling import (
    bca_acceleration,
    fisher_interval,
    jackknife_se,
    jackknifed,
    one_table,
    over_pairs,
    pair_tables,
    resampled,
    table_estimate,
)
from calibration.tables import cohen_kappa, gwet_ac, scott_pi


def quadratic(tables):
    return cohen_kappa(tables, "quadratic")


@pytest.mark.parametrize("name", named("cohen_kappa_"))
def test_large_sample_errors_match_the_printed_ones(name):
    vector = VECTORS[name]
    table, weights = np.array(vector["inputs"]["table"], float), vector["params"]["weights"] or "none"
    assert kappa(table, weights).se == near(vector["expected"]["se"], vector)
    assert math.sqrt(kappa_null_variance(table, weights)) == near(vector["expected"]["se0"], vector)


def test_jackknife_over_cells_matches_the_vector():
    vector = VECTORS["kappa_jackknife_ord24_quadratic"]
    data = one_table(vector["inputs"]["table"])
    left_out, counts = jackknifed(over_pairs(quadratic, data), data)
    assert bca_acceleration(left_out, counts) == near(vector["expected"]["bca_acceleration"], vector)
    assert jackknife_se(left_out, counts) == near(vector["expected"]["jackknife_se"], vector)


@pytest.mark.parametrize("name", named("kappa_smoothed_fisher_ci_"))
def test_smoothed_table_and_its_fisher_interval_match_the_vectors(name):
    vector = VECTORS[name]
    table, weights = np.array(vector["inputs"]["table"], float), vector["params"]["weights"] or "none"
    shares = smoothed_table(table)
    value, se = float(cohen_kappa(shares, weights)), math.sqrt(kappa_variance(shares, weights, n=table.sum() + 1))
    assert value == near(vector["expected"]["kappa_smoothed"], vector)
    assert se == near(vector["expected"]["se_smoothed"], vector)
    assert list(fisher_interval(value, se / (1 - value**2))) == near(vector["expected"]["ci95"], vector)


@pytest.mark.parametrize("name", named("kappa_po_wilson_map_"))
def test_wilson_map_matches_the_vectors(name):
    vector = VECTORS[name]
    low, high = wilson_map(np.array(vector["inputs"]["table"], float))
    assert low == near(vector["expected"]["kappa_low"], vector)
    assert high == near(vector["expected"]["kappa_high"], vector)


def test_the_interval_rule_chooses_its_method_by_disagreements_weights_and_n():
    few, many = [[24, 2], [1, 23]], [[40, 9], [6, 45]]
    assert kappa(many).method == "bootstrap_bca"
    assert kappa(few).method == "bootstrap_smoothed+wilson_map"
    assert kappa([[12, 2, 0], [1, 12, 0], [0, 0, 23]], "linear").method == "bootstrap_smoothed"
    assert kappa([[40, 9, 0], [6, 20, 0], [0, 0, 25]], "quadratic").method == "bootstrap_bca"
    assert kappa(np.array(many) * 200).method == "large_sample"


@pytest.mark.parametrize("table", [[[5, 0], [0, 7]], [[30, 0], [0, 30]], [[300, 0], [0, 300]], [[9000, 0], [0, 9000]]])
def test_perfect_agreement_never_has_an_interval_of_width_zero(table):
    for weights in ("none", "linear", "quadratic"):
        estimate = kappa(table, weights)
        assert (estimate.value, estimate.se) == (1.0, 0.0)
        assert estimate.ci_low < 1.0
    assert ("perfect_agreement_small_sample" in kappa(table).warnings) == (np.sum(table) < 100)


def test_a_constant_judge_has_kappa_zero_with_a_warning_and_an_interval():
    estimate = kappa([[0, 0], [10, 90]])
    assert estimate.value == 0.0
    assert "judge_constant" in estimate.warnings
    assert estimate.ci_low < estimate.ci_high


def test_on_two_labels_all_weights_are_one_coefficient_with_one_interval():
    for table in ([[0, 1], [0, 39]], [[24, 2], [1, 23]], [[40, 9], [6, 45]]):
        plain = kappa(table)
        assert plain.ci_low < plain.ci_high
        assert kappa(table, "linear") == kappa(table, "quadratic") == plain


def test_one_class_is_undefined_and_nine_items_have_no_interval():
    assert kappa([[12, 0], [0, 0]]).reason == "single_class"
    assert kappa([[0, 0], [0, 0]]).reason == "no_data"
    nine = kappa([[4, 1], [1, 3]])
    assert (nine.status, nine.reason, nine.ci_low) == ("insufficient", "n_below_10", None)
    assert nine.value == pytest.approx(0.55)
    assert kappa([[0, 5], [0, 0]]).value == 0.0
    assert "small_sample" in kappa([[5, 3], [2, 6]]).warnings


def test_tables_that_are_no_counts_are_refused():
    for broken in ([[1, 2, 3]], [[1.5, 0], [0, 1]], [[-1, 0], [0, 3]], [[5]], [[math.nan, 0], [0, 1]]):
        with pytest.raises(CalibrationError, match="table"):
            kappa(broken)


def test_the_same_seed_gives_the_same_interval_and_percentiles_are_honest():
    table = [[40, 9], [6, 45]]
    assert kappa(table, seed=3) == kappa(table, seed=3)
    assert kappa(table, seed=3) != kappa(table, seed=4)
    # Wald: .6995 +- 1.96 x .0714
    assert kappa(table).ci_low == pytest.approx(0.56, abs=0.03)
    assert kappa(table).ci_high == pytest.approx(0.83, abs=0.03)


def test_clusters_widen_the_interval_of_kappa():
    rng = np.random.default_rng(7)
    human = np.repeat(rng.integers(0, 2, 60), 5)
    judge = np.where(np.repeat(rng.random(60) < 0.8, 5), human, 1 - human)
    alone = kappa(pair_tables([(judge, human)], 2))
    clustered = kappa(pair_tables([(judge, human)], 2, clusters=[i // 5 for i in range(300)]))
    assert clustered.value == alone.value
    assert clustered.n_clusters == 60
    assert clustered.ci_high - clustered.ci_low > 1.7 * (alone.ci_high - alone.ci_low)
    assert (
        kappa(pair_tables([(judge, human)], 2, clusters=[i % 3 for i in range(300)])).reason == "fewer_than_5_clusters"
    )


def test_several_humans_give_the_mean_kappa_and_resample_items_once():
    vector = VECTORS["ceiling_3humans_50"]
    humans, judge = np.array(vector["inputs"]["humans"]) - 1, np.array(vector["inputs"]["judge"]) - 1
    data = pair_tables([(judge, human) for human in humans], 5)
    estimate = kappa(data, "quadratic")
    assert estimate.value == near(vector["expected"]["mean_jh"], vector)
    assert estimate.n == 50
    alone = kappa(pair_tables([(judge, humans[0])], 5), "quadratic")
    assert estimate.ci_high - estimate.ci_low < alone.ci_high - alone.ci_low


def test_missing_labels_are_dropped_pairwise_and_never_shift_the_pairs():
    judge, human = np.array([0, 1, -1, 1, 0, 1]), np.array([0, 1, 1, -1, 0, 0])
    data = pair_tables([(judge, human)], 2)
    assert data.tables.tolist() == [[[2, 0], [1, 1]]]
    assert (data.n, data.n_dropped) == (4, 2)


def test_jackknife_and_bootstrap_agree_where_one_takes_over_from_the_other():
    table = np.array([[3000, 500, 100], [400, 2500, 300], [50, 250, 2899]])
    large = np.array(table)
    large[2, 2] += 1
    for statistic in (scott_pi, gwet_ac):
        drawn, formula = table_estimate(statistic, one_table(table)), table_estimate(statistic, one_table(large))
        assert (drawn.method, formula.method) == ("bootstrap_percentile", "jackknife")
        assert formula.se == pytest.approx(drawn.se, rel=0.03)
        assert formula.ci_low == pytest.approx(drawn.ci_low, abs=0.001)


@pytest.mark.parametrize("seed", range(12))
def test_random_tables_agree_with_statsmodels(seed):
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    rng = np.random.default_rng(100 + seed)
    k = int(rng.integers(2, 7))
    table = rng.integers(0, 12, size=(k, k)) + 8 * np.eye(k, dtype=int)
    for weights, wt in (("none", None), ("linear", "linear"), ("quadratic", "quadratic")):
        theirs = inter_rater.cohens_kappa(table, wt=wt)
        ours = kappa(table, weights, replicates=99)
        assert ours.value == pytest.approx(theirs.kappa, abs=1e-12)
        assert ours.se == pytest.approx(theirs.std_kappa, abs=1e-12)
        assert math.sqrt(kappa_null_variance(table.astype(float), weights)) == pytest.approx(
            theirs.std_kappa0, abs=1e-12
        )


@pytest.mark.parametrize("counts", [[3, 0, 1, 6], [300, 0, 100, 600]], ids=["unit by unit", "multinomial"])
def test_a_resample_is_a_multinomial_draw_of_the_units(counts):
    counts = np.array(counts)
    n = counts.sum()
    drawn = resampled(counts, 20_000, np.random.default_rng(0))
    assert (drawn.sum(axis=1) == n).all()
    share = counts / n
    error = np.sqrt(n * share * (1 - share) / 20_000)
    assert (np.abs(drawn.mean(axis=0) - counts) <= 4 * error).all()
    # Var = n p (1 - p), Cov = -n p q; the variance of a sample variance is about 2 Var^2 / r
    assert drawn.var(axis=0) == pytest.approx(n * share * (1 - share), rel=0.05)
    assert np.cov(drawn[:, 0], drawn[:, 3])[0, 1] == pytest.approx(-n * share[0] * share[3], rel=0.05)
