"""Rank correlation and AUC of scores without levels; pass marks fitted and tested apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from calibration.accuracy import auc
from calibration.errors import CalibrationError
from calibration.ranking import clustered_auc, rank_correlation
from calibration.threshold import best_threshold, fitted_threshold


@pytest.mark.parametrize("seed", range(4))
def test_rank_correlation_equals_scipy_with_and_without_ties(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 8, 60) / 8 if seed % 2 else rng.random(60)
    y = np.round(3 * x + rng.random(60))
    found = rank_correlation(x, y, replicates=200)
    assert found.value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert found.ci_low < found.value < found.ci_high


def test_the_bootstrap_interval_is_near_that_of_bonett_and_wright():
    # z +- 1.96 sqrt((1 + r^2 / 2) / (n - 3))
    rng = np.random.default_rng(7)
    x = rng.random(300)
    y = x + rng.normal(0, 0.4, 300)
    found = rank_correlation(x, y)
    half = 1.96 * np.sqrt((1 + found.value**2 / 2) / 297)
    assert found.ci_low == pytest.approx(np.tanh(np.arctanh(found.value) - half), abs=0.02)
    assert found.ci_high == pytest.approx(np.tanh(np.arctanh(found.value) + half), abs=0.02)


def test_missing_scores_are_dropped_without_shifting_the_pairs():
    x = [0.1, None, 0.3, 0.4, 0.5]
    found = rank_correlation(x, [1, 9, 2, 3, None])
    assert (found.value, found.n, found.n_dropped, found.status) == (1.0, 3, 2, "insufficient")


def test_a_constant_side_is_undefined_and_no_items_too():
    assert rank_correlation([0.5] * 20, list(range(20))).reason == "constant_input"
    assert rank_correlation([None], [1]).reason == "no_data"


def test_clusters_are_resampled_whole_and_copies_add_no_certainty():
    rng = np.random.default_rng(3)
    x = rng.random(30)
    y = x + rng.normal(0, 0.5, 30) > 0.5
    once = clustered_auc(x, y, clusters=list(range(30)))
    thrice = clustered_auc(np.repeat(x, 3), np.repeat(y, 3), clusters=np.repeat(np.arange(30), 3).tolist())
    assert once.value == auc(x, y).value
    assert thrice.value == pytest.approx(once.value, abs=1e-12)
    assert thrice.n_clusters == 30
    assert thrice.ci_high - thrice.ci_low == pytest.approx(once.ci_high - once.ci_low, abs=1e-9)
    rho = rank_correlation(np.repeat(x, 3), np.repeat(y, 3), clusters=np.repeat(np.arange(30), 3).tolist())
    assert rho.n_clusters == 30


def test_the_mark_with_the_best_kappa_is_found():
    # cut between .4 and .6: 3 of 3 positives above, 2 of 3 negatives below; any other cut is worse
    scores = np.array([0.1, 0.2, 0.7, 0.6, 0.8, 0.9])
    positives = np.array([False, False, False, True, True, True])
    assert best_threshold(scores, positives) == pytest.approx(0.4)
    assert best_threshold(scores, np.ones(6, dtype=bool)) is None
    assert best_threshold(np.ones(6), positives) is None


def test_noise_fits_a_mark_but_its_out_of_fold_agreement_is_none():
    rng = np.random.default_rng(11)
    scores, positives = rng.random(400), rng.random(400) < 0.5
    fit = fitted_threshold(scores, positives)
    in_sample = np.corrcoef(scores >= fit.value, positives)[0, 1]
    out_of_fold = np.corrcoef(fit.passed, positives)[0, 1]
    assert out_of_fold < in_sample - 0.03


def test_questions_stay_in_one_fold_and_too_few_give_no_mark():
    scores, positives = [0.1, 0.9] * 10, [False, True] * 10
    assert fitted_threshold(scores, positives, clusters=["q"] * 20) is None
    assert fitted_threshold(scores, positives, clusters=[i // 2 for i in range(20)]).passed == positives
    with pytest.raises(CalibrationError, match="one per item"):
        fitted_threshold([0.1], [True, False])
