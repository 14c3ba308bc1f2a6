"""The win rate where some pairs were judged in both orders and the rest in one, drawn at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray, mean, undefined
from calibration.verdicts import IDENTICAL, OUTCOMES, POINTS, UNASKED, VERDICT_POINTS, PairVerdicts


def both_share(verdicts: PairVerdicts) -> float | None:
    """The share of pairs judged in both orders among those that were judged without error; None when none was."""
    first, second = verdicts.codes()
    judged = (verdicts.outcomes() != OUTCOMES.index("incomplete")) & (first != IDENTICAL)
    both = judged & (first != UNASKED) & (second != UNASKED)
    return float(both.sum() / judged.sum()) if judged.any() else None


def win_rate_one_order(verdicts: PairVerdicts, *, share: float | None = None, level: float = 0.95) -> Estimate:
    """The win rate of a that judging every pair in both orders would give, estimated where only some were.

    Which pairs were judged twice, and which order the others got, must have been drawn at random, the orders half and
    half. One order counts (a, tie) as three quarters of a win on average, both together as one half; the pairs judged
    twice show that change, and it is added: mean of all pairs in one order + mean change, the difference estimator of
    two-phase sampling (Cochran 1977, 12.9), as a ratio to the pairs that are no both_fail. Linearised t interval, CR1
    by question where one has several pairs. `share` is the share judged twice (default that of these pairs; for a slice
    pass that of the whole). Undefined: `no_values` (no complete pair), `no_pair_in_both_orders`. Repeats are refused.
    """
    if len(verdicts.outcomes()) != len(verdicts.per_pair()[0]):
        raise CalibrationError("repeats of pairs judged in one order: give one row per pair, or judge both orders")
    share = both_share(verdicts) if share is None else share
    if share == 0:
        return undefined("no_pair_in_both_orders", method="two_phase_t")
    wins, counted = _expanded(verdicts, share or 1.0)
    complete = verdicts.outcomes() != OUTCOMES.index("incomplete")
    wins, counted, questions = wins[complete], counted[complete], verdicts.questions()[complete]
    if counted.sum() <= 0:
        return undefined("no_values", method="two_phase_t")
    rate = float(wins.sum() / counted.sum())
    values = rate + (wins - rate * counted) / counted.mean()
    clusters = questions if len(np.unique(questions)) < len(questions) else None
    found = mean(values, clusters=clusters, level=level, bounds=(0.0, 1.0))
    return replace(found, value=rate, n=round(float(counted.sum())), method=f"two_phase_{found.method}")


def _expanded(verdicts: PairVerdicts, share: float) -> tuple[FloatArray, FloatArray]:
    """Per pair: wins of a and whether it counts, by one order, plus the change by the second where it was asked."""
    orders = verdicts.codes()
    asked = sum((order != UNASKED).astype(np.float64) for order in orders)
    twice = ((asked == 2) & (orders[0] != IDENTICAL)) / share
    one, both = [VERDICT_POINTS[order] for order in orders], POINTS[verdicts.outcomes()]
    wins = sum(np.nan_to_num(points) for points in one) / asked
    counted = sum((~np.isnan(points)).astype(np.float64) for points in one) / asked
    return wins + twice * (np.nan_to_num(both) - wins), counted + twice * (~np.isnan(both) - counted)
