"""Two systems compared by a judge in both orders: who wins, how surely, and how much the order decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibration.compare import mcnemar
from calibration.errors import CalibrationError
from calibration.estimate import Estimate, clustered_proportion, mean, normal_quantile, proportion, undefined
from calibration.kappa import kappa
from calibration.one_order import win_rate_one_order
from calibration.tables import table_of
from calibration.verdicts import ERROR, OUTCOMES, POINTS, UNASKED, A, B, Codes, PairVerdicts

INCONSISTENT = OUTCOMES.index("inconsistent")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSummary:
    """The comparison summary of the contract; field order is the order of the JSON keys."""

    n: int
    a_wins: int
    b_wins: int
    ties: int
    both_fail: int
    inconsistent: int
    incomplete: int
    win_rate_a: Estimate
    p_value: float
    position_consistency: Estimate
    inconsistent_rate: Estimate
    first_preference: Estimate
    preference_fairness: Estimate


def summarize(verdicts: PairVerdicts, *, both_share: float | None = None, level: float = 0.95) -> ComparisonSummary:
    """Counts, win rate, sign test and position measures; intervals are clustered by question.

    `win_rate_a` runs over complete pairs without both_fail, tie and inconsistent count half. `p_value` is the exact
    two-sided sign test on a and b outcomes, 1 when there are none. Position measures leave out identical answers:
    consistency (both orders the same winner), `inconsistent_rate` (by the combine table, whatever decided the pair),
    `first_preference` (share of first among single verdicts for first or second), and preference fairness (recency -
    primacy) / n. Shi et al. 2024, whose published form [rec^2 - prim^2] / [(rec + prim) n] is the same number.

    Where an order is `unasked`, the counts take the pair as the other order has it, the win rate is that of
    `win_rate_one_order` (`both_share`: see there), and consistency, inconsistent_rate and fairness are of the pairs
    judged in both orders.
    """
    outcome, question = verdicts.per_pair()
    counts = np.bincount(outcome, minlength=len(OUTCOMES))
    points = POINTS[outcome]
    scored = ~np.isnan(points)
    first, second = verdicts.codes()
    judged = (first < ERROR) & (second < ERROR)
    rows = verdicts.questions()
    decided, asked = _positions(first, second, rows)
    win_rate = _mean(points[scored], question[scored], (0.0, 1.0), level)
    if UNASKED in first or UNASKED in second:
        win_rate = win_rate_one_order(verdicts, share=both_share, level=level)
    return ComparisonSummary(
        n=len(outcome),
        a_wins=int(counts[A]),
        b_wins=int(counts[B]),
        ties=int(counts[OUTCOMES.index("tie")]),
        both_fail=int(counts[OUTCOMES.index("both_fail")]),
        inconsistent=int(counts[INCONSISTENT]),
        incomplete=int(counts[OUTCOMES.index("incomplete")]),
        win_rate_a=win_rate,
        p_value=mcnemar(int(counts[A]), int(counts[B])).p_exact,
        position_consistency=_share((first == second)[judged], rows[judged], level),
        inconsistent_rate=_share((verdicts.combined() == INCONSISTENT)[judged], rows[judged], level),
        first_preference=_share(decided, asked, level),
        preference_fairness=_mean(_tilt(first, second)[judged], rows[judged], (-1.0, 1.0), level),
    )


def _positions(first: Codes, second: Codes, rows: Codes) -> tuple[npt.NDArray[np.bool_], Codes]:
    """For every single verdict that names a position: was it the first one, and its question."""
    one, two = first <= B, second <= B
    return np.concatenate([first[one] == A, second[two] == B]), np.concatenate([rows[one], rows[two]])


def _tilt(first: Codes, second: Codes) -> npt.NDArray[np.float64]:
    """Per pair: -1 when its verdicts lean to the first position (primacy), 1 to the second (recency), else 0."""
    to_first = (first == A).astype(int) + (second == B)
    to_second = (first == B).astype(int) + (second == A)
    tilt: npt.NDArray[np.float64] = np.sign(to_second - to_first).astype(np.float64)
    return tilt


def _several(questions: Codes) -> bool:
    return len(np.unique(questions)) < len(questions)


def _mean(values: npt.NDArray[np.float64], questions: Codes, bounds: tuple[float, float], level: float) -> Estimate:
    clusters = questions if _several(questions) else None
    return mean(values, clusters=clusters, level=level, bounds=bounds)


def _share(hits: npt.NDArray[np.bool_], questions: Codes, level: float) -> Estimate:
    if _several(questions):
        return clustered_proportion(hits.astype(float), clusters=questions, level=level)
    return proportion(int(hits.sum()), len(hits), level=level)


def order_effect(verdicts: PairVerdicts, *, level: float = 0.95) -> Estimate:
    """The order effect gamma on the logit scale: logit P(first wins) = +-strength + gamma; 0 is fair, above 0 primacy.

    From pairs that name a winner in both orders and contradict themselves: half the log ratio of first-first to
    second-second, the conditional maximum likelihood whatever each pair's strength, with half a count added to both
    (Haldane 1956); the variance is clustered by question. No such pair: undefined `no_conflicts`.
    """
    first, second = verdicts.codes()
    primacy, recency = (first == A) & (second == B), (first == B) & (second == A)
    n = int(((first <= B) & (second <= B)).sum())
    if not (primacy | recency).any():
        return undefined("no_conflicts", n=n, method="conditional_logit")
    to_first, to_second = primacy.sum() + 0.5, recency.sum() + 0.5
    gamma = 0.5 * math.log(to_first / to_second)
    per_question = np.bincount(verdicts.questions(), weights=primacy / to_first - recency / to_second)
    variance = float(per_question @ per_question) + 0.5 / to_first**2 + 0.5 / to_second**2
    se = 0.5 * math.sqrt(variance)
    half = normal_quantile(level) * se
    return Estimate(
        value=gamma, se=se, ci_low=gamma - half, ci_high=gamma + half, level=level, method="conditional_logit", n=n,
        n_clusters=len(per_question),
    )  # fmt: skip


def shrunk_win_rate(fair: float, gamma: float) -> float:
    """What a judge with order effect gamma reports, averaged over both orders, where a fair one reports `fair`.

    Swapping balances the order effect but pulls the win rate towards one half: .8 becomes .66 at gamma 2.
    """
    if not 0 < fair < 1:
        raise CalibrationError(f"fair is {fair}: a win rate between 0 and 1")
    strength = math.log(fair / (1 - fair))
    return sum(1 / (1 + math.exp(-strength - side)) for side in (gamma, -gamma)) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAgreement:
    """Judge against human preferences. Dropping ties selects the easy pairs, so all of it is shown together."""

    with_ties: Estimate
    without_ties: Estimate
    kappa_linear: Estimate
    kappa_nominal: Estimate
    tie_rate_difference: Estimate
    table: list[list[int]]


def agreement_with_humans(
    outcomes: Sequence[str], humans: Sequence[str | None], *, level: float = 0.95, seed: int = 0
) -> HumanAgreement:
    """Agreement of pair outcomes with one human preference per pair (`a`, `b`, `tie`; None is missing).

    Inconsistent and both_fail count as tie, incomplete pairs and missing labels are dropped. `without_ties` leaves
    out every pair that either side calls a tie. Kappa on the scale a < tie < b; `tie_rate_difference` judge - human.
    """
    places = {"a": 0, "tie": 1, "both_fail": 1, "inconsistent": 1, "b": 2}
    missing = (None, "incomplete", "error")
    unknown = [word for word in (*outcomes, *humans) if word not in places and word not in missing]
    if unknown:
        raise CalibrationError(f"{unknown[0]!r} is no preference: use a, b, tie or both_fail")
    if len(outcomes) != len(humans):
        raise CalibrationError(f"there are {len(outcomes)} outcomes and {len(humans)} human labels: one per pair")
    pairs = [(places[o], places[h]) for o, h in zip(outcomes, humans, strict=True) if o in places and h in places]
    judge, human = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    table, dropped = table_of(judge, human, 3), len(outcomes) - len(pairs)
    decisive = int(table[0, 0] + table[0, 2] + table[2, 0] + table[2, 2])
    ties = (judge == 1).astype(float) - (human == 1)
    return HumanAgreement(
        with_ties=proportion(int(np.trace(table)), len(pairs), level=level, n_dropped=dropped),
        without_ties=proportion(
            int(table[0, 0] + table[2, 2]), decisive, level=level, n_dropped=len(outcomes) - decisive
        ),
        kappa_linear=kappa(table, "linear", level=level, seed=seed),
        kappa_nominal=kappa(table, level=level, seed=seed),
        tie_rate_difference=mean(ties, level=level, bounds=(-1.0, 1.0)),
        table=[[int(cell) for cell in row] for row in table],
    )
