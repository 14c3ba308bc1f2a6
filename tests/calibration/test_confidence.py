"""Probabilities: Brier, log loss, AUC, calibration error with its floor."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_vectors import VECTORS, near

from calibration import CalibrationError
from calibration.confidence import bin_places, confidence, ece, ranked_probability_score


def test_the_vector():
    vector = VECTORS["ece_brier_15"]
    p, y, expected = np.array(vector["inputs"]["p"]), np.array(vector["inputs"]["y"]), vector["expected"]
    place, edges = bin_places(p, vector["params"]["bins"])
    assert ece(p, y, place, len(edges) - 1) == near(expected["ece"], vector)
    found = confidence(p, y, bins=5)
    assert found.brier.value == near(expected["brier"], vector)
    assert found.log_loss.value == near(expected["log_loss"], vector)
    assert found.auc.value == near(expected["auroc"], vector)
    assert [row.predicted for row in found.bins] == near(expected["reliability_mean_pred"], vector)
    observed = [float(y[place == k].mean()) for k in range(5)]
    assert observed == near(expected["reliability_frac_pos"], vector)
    # 15 items: ECE would mostly be sample size
    assert (found.ece.value, found.ece.reason, found.ece_if_calibrated) == (None, "n_below_100", None)
    assert [row.observed is None for row in found.bins] == [row.n < 5 for row in found.bins]


def test_bins_are_closed_on_the_right():
    place, _ = bin_places(np.array([0.0, 0.2, 0.21, 1.0]), 5)
    assert list(place) == [0, 0, 1, 4]


def test_random_probabilities_agree_with_scikit_learn():
    rng = np.random.default_rng(1)
    p = rng.random(300)
    y = (rng.random(300) < p**2) * 1.0
    found = confidence(p, y)
    assert found.brier.value == pytest.approx(pytest.importorskip("sklearn.metrics").brier_score_loss(y, p))
    observed, predicted = pytest.importorskip("sklearn.calibration").calibration_curve(y, p, n_bins=10)
    assert [row.predicted for row in found.bins] == pytest.approx(list(predicted))
    assert [row.observed.value for row in found.bins] == pytest.approx(list(observed))


def test_perfect_probabilities_show_no_more_error_than_their_floor_and_overconfident_ones_do():
    rng = np.random.default_rng(2)
    p = rng.random(400)
    y = (rng.random(400) < p) * 1.0
    honest = confidence(p, y)
    assert honest.ece.value < 1.6 * honest.ece_if_calibrated
    certain = np.where(p > 0.5, 0.98, 0.02)
    over = confidence(certain, y)
    assert over.ece.ci_low > 3 * over.ece_if_calibrated


def test_clusters_widen_the_interval():
    rng = np.random.default_rng(3)
    p = np.repeat(rng.random(40), 5)
    y = np.repeat((rng.random(40) < 0.5) * 1.0, 5)
    rows, clustered = confidence(p, y), confidence(p, y, clusters=np.repeat(np.arange(40), 5))
    assert clustered.brier.se > 1.9 * rows.brier.se
    assert clustered.ece.ci_high - clustered.ece.ci_low > rows.ece.ci_high - rows.ece.ci_low


def test_equal_mass_bins_hold_equal_counts():
    p = np.random.default_rng(4).beta(8, 1, size=200)
    place, edges = bin_places(p, 5, "mass")
    assert set(np.bincount(place)) == {40}
    assert (edges[0], edges[-1]) == (0.0, 1.0)


def test_missing_and_broken_input():
    found = confidence([0.5, None, 0.7], [True, True, None])
    assert (found.n, found.n_dropped) == (1, 2)
    assert confidence([], []).brier.reason == "no_data"
    with pytest.raises(CalibrationError, match="probabilities hold 1"):
        confidence([1.2], [True])
    with pytest.raises(CalibrationError, match="sums to 1"):
        ranked_probability_score([[0.5, 0.6]], [0])


def test_the_ranked_probability_score_rewards_near_misses():
    # cumulative (.2, .5, 1) against label 2 (0, 0, 1): (.04 + .25) / 2
    assert ranked_probability_score([[0.2, 0.3, 0.5]], [2]) == pytest.approx(0.145)
    near_miss, far_miss = ranked_probability_score([[0, 1, 0]], [0]), ranked_probability_score([[0, 0, 1]], [0])
    assert (near_miss, far_miss) == (0.5, 1.0)
