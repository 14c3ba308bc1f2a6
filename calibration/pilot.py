"""Whether a judge is steady enough under swapping that the second order may be left out for the pairs to come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.estimate import Estimate
from calibration.pairwise import summarize
from calibration.verdicts import ERROR, PairVerdicts

CONSISTENT = 0.9
LEAST_QUESTIONS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """What pairs judged in both orders say about asking for one order only.

    `reason` is None when one order is enough, else the first that applies of `too_few_questions` (fewer than 30 with a
    complete pair), `inconsistent` (the lower bound of the consistency is below .9) and `order_effect` (the interval of
    the preference fairness leaves out 0).
    """

    n_questions: int
    position_consistency: Estimate
    preference_fairness: Estimate
    reason: str | None


def one_order_enough(pilot: PairVerdicts, *, level: float = 0.95) -> Pilot:
    """Whether the second order may be left out for pairs that the pilot is a random sample of.

    The rule does not look at who wins, so it cannot favour a system; only how often the orders agree counts.
    """
    found = summarize(pilot, level=level)
    first, second = pilot.codes()
    n_questions = len(np.unique(pilot.questions()[(first < ERROR) & (second < ERROR)]))
    consistency, fairness = found.position_consistency, found.preference_fairness
    reason = None
    if n_questions < LEAST_QUESTIONS:
        reason = "too_few_questions"
    elif consistency.ci_low is None or consistency.ci_low < CONSISTENT:
        reason = "inconsistent"
    elif fairness.ci_low is None or fairness.ci_high is None or not fairness.ci_low <= 0 <= fairness.ci_high:
        reason = "order_effect"
    return Pilot(
        n_questions=n_questions, position_consistency=consistency, preference_fairness=fairness, reason=reason
    )  # fmt: skip
