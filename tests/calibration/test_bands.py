"""Bands: which share of good pieces earns which level."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from calibration import CalibrationError
from calibration.bands import bands_of, fit_bands, levels_of

LEVELS = (1, 2, 3, 4, 5)
STRICT = {5: 1.0, 4: 0.85, 3: 0.6, 2: 0.3}


def test_cuts_lie_between_the_rates_at_which_people_change_their_mind():
    # people: 1 at 0 and .2, 3 at .4 (jumping over 2), 4 at .6, 5 at .8 and 1
    rates = [0, 0.2, 0.4, 0.6, 0.8, 1.0] * 3
    labels = [1, 1, 3, 4, 5, 5] * 3
    cuts = bands_of(rates, labels, LEVELS)
    assert cuts == pytest.approx({2: 0.2 + 0.2 / 3, 3: 0.2 + 0.4 / 3, 4: 0.5, 5: 0.7}, abs=1e-4)
    assert list(levels_of(np.array(rates), cuts, LEVELS)) == labels


def test_bands_rise_strictly_whatever_people_say():
    rng = np.random.default_rng(1)
    for _ in range(50):
        rates = np.round(rng.random(40) * rng.integers(1, 5)) / 4
        cuts = bands_of(np.minimum(rates, 1), rng.integers(1, 6, size=40), LEVELS)
        ordered = [cuts[level] for level in (2, 3, 4, 5)]
        assert all(low < high for low, high in pairwise([0.0, *ordered, 1.0 + 1e-9]))


def simulated(rng, n, caps=False):
    """Lenient people: rate .5 is a 4 to them; the judge's bands are strict."""
    rates = np.round(rng.random(n) * 10) / 10
    labels = np.clip(np.round(2 + 4 * rates + rng.normal(size=n) * 0.4), 1, 5).astype(int)
    scored = levels_of(rates, STRICT, LEVELS)
    if caps:
        held = rng.random(n) < 0.2
        scored, labels = np.where(held, np.minimum(scored, 2), scored), np.where(held, np.minimum(labels, 2), labels)
    return rates, labels, scored


def test_fitted_bands_agree_better_out_of_fold_where_the_old_ones_are_too_strict():
    rates, labels, scored = simulated(np.random.default_rng(2), 200)
    found = fit_bands(rates, labels, labels, scored, STRICT, LEVELS, replicates=499)
    assert found.difference.ci_low > 0
    assert found.difference.value == pytest.approx(found.kappa_out_of_fold.value - found.kappa_before.value)
    assert found.after[5] < 0.9


def test_a_cap_that_held_the_old_level_down_holds_the_fitted_one_down():
    rates, labels, scored = simulated(np.random.default_rng(3), 300, caps=True)
    kept = fit_bands(rates, labels, labels, scored, STRICT, LEVELS, replicates=99)
    lost = fit_bands(rates, labels, labels, levels_of(rates, STRICT, LEVELS), STRICT, LEVELS, replicates=99)
    assert kept.kappa_out_of_fold.value > lost.kappa_out_of_fold.value


def test_bands_that_were_right_are_not_improved_by_noise():
    rng = np.random.default_rng(4)
    rates = np.round(rng.random(150) * 10) / 10
    scored = levels_of(rates, STRICT, LEVELS)
    labels = np.clip(scored + rng.choice([-1, 0, 0, 0, 1], size=150), 1, 5)
    found = fit_bands(rates, labels, labels, scored, STRICT, LEVELS, replicates=499)
    assert found.difference.value <= 0.02
    assert found.difference.ci_low is None or found.difference.ci_low <= 0


def test_fewer_than_a_hundred_labels_or_one_rate_fit_nothing():
    with pytest.raises(CalibrationError, match="100 or more"):
        fit_bands([0.5] * 99, [3] * 99, [3] * 99, [2] * 99, STRICT, LEVELS)
    with pytest.raises(CalibrationError, match="nothing to fit"):
        fit_bands([0.5] * 100, [3] * 100, [3] * 100, [2] * 100, STRICT, LEVELS)


def test_a_full_share_that_people_do_not_reward_is_said():
    rng = np.random.default_rng(5)
    rates = np.round(rng.random(150) * 4) / 4
    labels = np.clip(np.round(1 + 2 * rates), 1, 3).astype(int)
    found = fit_bands(rates, labels, labels, levels_of(rates, STRICT, LEVELS), STRICT, LEVELS, replicates=99)
    assert found.warnings == ("full_rate_is_worth: 3.00",)
