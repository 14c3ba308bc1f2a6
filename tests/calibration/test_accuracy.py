"""Binary rates, shares with clusters, and the area under the curve."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_vectors import VECTORS, named, near

from calibration import CalibrationError
from calibration.accuracy import auc, binary_rates, cell_mean, cell_share
from calibration.estimate import clustered_proportion, mean, proportion
from calibration.resampling import pair_tables


@pytest.mark.parametrize("name", named("prop_ci_"))
def test_wilson_intervals_match_the_vectors(name):
    vector = VECTORS[name]
    estimate = proportion(vector["inputs"]["k"], vector["inputs"]["n"])
    assert [estimate.ci_low, estimate.ci_high] == near(vector["expected"]["wilson"], vector)


def test_rates_of_a_table_with_an_empty_margin_are_undefined_not_zero():
    rates = binary_rates([[5, 0], [15, 0]])
    assert rates["sensitivity"].reason == "empty_denominator"
    assert rates["mcc"].reason == "empty_margin"
    assert rates["balanced_accuracy"].reason == "empty_margin"
    assert rates["f1"].value == 0.0
    assert binary_rates([[20, 0], [0, 0]])["f1"].reason == "no_positives"
    with pytest.raises(CalibrationError, match="3 labels"):
        binary_rates(np.eye(3))


def test_table_shares_and_means_equal_the_clustered_ones_computed_from_rows():
    rng = np.random.default_rng(5)
    judge, human, clusters = rng.integers(0, 3, 90), rng.integers(0, 3, 90), [i // 3 for i in range(90)]
    data = pair_tables([(judge, human)], 3, clusters=clusters)
    rows = clustered_proportion((judge == human).astype(int), clusters=clusters)
    share = cell_share(data, np.eye(3))
    assert (share.value, share.se, share.ci_low, share.ci_high) == pytest.approx(
        (rows.value, rows.se, rows.ci_low, rows.ci_high)
    )
    apart = np.subtract.outer(np.arange(3), np.arange(3))
    bias, direct = cell_mean(data, apart, (-2, 2)), mean(judge - human, clusters=clusters)
    assert (bias.value, bias.se, bias.ci_low) == pytest.approx((direct.value, direct.se, direct.ci_low))


def test_auc_counts_ordered_pairs_with_ties_half():
    # good 3, 2, 2; bad 2, 1: ordered 1+1, .5+1, .5+1 of 6 pairs
    small = auc([3, 2, 2, 2, 1], [True, True, True, False, False])
    assert (small.value, small.status, small.reason) == (5 / 6, "insufficient", "n_below_10")


@pytest.mark.parametrize("seed", range(5))
def test_auc_agrees_with_scikit_learn(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    positives = rng.random(80) < 0.4
    scores = np.round(rng.normal(positives * 1.0), 1)
    estimate = auc(scores, positives)
    assert estimate.value == pytest.approx(metrics.roc_auc_score(positives, scores))
    assert 0 < estimate.ci_low < estimate.value < estimate.ci_high < 1


def test_a_perfect_auc_keeps_an_interval_and_one_class_is_undefined():
    perfect = auc(range(20), [False] * 10 + [True] * 10)
    assert (perfect.value, perfect.ci_high, perfect.method) == (1.0, 1.0, "wilson_zero_variance")
    assert perfect.ci_low == pytest.approx(0.7224672, abs=1e-7)
    assert auc([1, 2], [True, True]).reason == "single_class"
    assert auc([], []).reason == "no_data"
    assert auc([1, None, 3], [True, False, None]).n_dropped == 2
    with pytest.raises(CalibrationError, match="one per item"):
        auc([1, 2], [True])


def test_auc_standard_error_is_delongs():
    # 10 good, 10 bad, one good below all bad: V10 = (0, 1 x 9), var .1; V01 = .9 each, var 0 -> se = sqrt(.1 / 10)
    estimate = auc([-1, *range(11, 20), *range(10)], [True] * 10 + [False] * 10)
    assert (estimate.value, estimate.se) == (pytest.approx(0.9), pytest.approx(0.1))
