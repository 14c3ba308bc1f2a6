"""How the judge behaved when the answers changed places, and what a rule for the second order made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge.report.page import estimated, figure

WHY_BOTH = {
    "few_pairs": "the pilot holds all of them",
    "too_few_questions": "the pilot has too few questions with a complete pair",
    "inconsistent": "the judge is not shown to be steady enough when the answers change places",
    "order_effect": "the judge leans to a position",
}


def swapping(one: Mapping[str, Any]) -> Iterator[str]:
    """How consistent the judge was, how much the position decided, and what that does to the win rate."""
    asked = "complete pairs"
    if one.get("second_order") and one["second_order"]["saved_calls"]:
        asked = f"{one['position_consistency']['n']} pairs judged in both"
    yield f"same verdict in both orders: {estimated(one['position_consistency'], percent=True)} of the {asked}"
    if one["mode"] == "score":
        yield (
            f"the orders name different winners: {estimated(one['inconsistent_rate'], percent=True)} of the {asked}; "
            "the winner of an order is the reply rated higher there"
        )
        yield (
            f"being shown first is worth {estimated(one['first_bonus'])} levels; that cancels in the difference of "
            "ratings, but for ratings at the ends of the scale"
        )
    yield f"picks the answer shown first: {estimated(one['first_preference'], percent=True)} of its choices; fair: 50%"
    fairness = one["preference_fairness"]
    yield f"preference fairness (-1 always the first, 0 fair, 1 always the second): {estimated(fairness)}"
    effect, shown = one["order_effect"]["gamma"], one["order_effect"]["seventy_shows_as"]
    yield f"order effect (logit, 0 is none, above 0 favours the first): {estimated(effect)}"
    if shown is not None and shown < 0.685 and one["mode"] != "score":
        yield (
            "showing both orders balances this effect but does not undo it: 70% without it show as "
            f"{shown:.0%} here, so its win rate without the effect lies further from 50% than the one above"
        )
    if one.get("mean_p_a"):
        yield (
            f"mean probability of {one['a']} over both orders: {estimated(one['mean_p_a'])}. "
            "Calibrate first: nobody has compared this judge with people"
        )
    if one.get("pointwise"):
        twin = one["pointwise"]
        yield (
            f"beside it, the two answers scored one by one ({twin['rubric']}, 0-1): {one['a']} minus {one['b']} "
            f"{estimated(twin['difference'])} on {twin['difference']['n']} of {one['n']} pairs; "
            f"names the same winner in {estimated(twin['agreement'], percent=True)} of the pairs where both choose"
        )


def second_order(one: Mapping[str, Any]) -> Iterator[str]:
    """What the rule for the second order decided and on which numbers, what it saved, and what it assumes."""
    rule = one["second_order"]
    if rule["reason"] == "stopped":
        yield "the run was stopped before the pilot was judged: nothing is decided, the same command goes on"
        return
    if rule["pilot"] is not None:
        pilot = rule["pilot"]
        yield (
            f"a pilot of {rule['n_pilot']} pairs on {pilot['n_questions']} questions, drawn at random (seed "
            f"{rule['seed']}), was judged in both orders: same verdict in "
            f"{estimated(pilot['position_consistency'], percent=True)}, preference fairness "
            f"{estimated(pilot['preference_fairness'])}"
        )
    yield (
        f"one order is enough where the lower bound of the consistency is at least {rule['needed_consistency']:.0%}, "
        "the interval of the fairness holds 0, and there are 30 questions or more"
    )
    if not rule["one_order"]:
        yield f"decision: both orders for all pairs, because {WHY_BOTH[rule['reason']]}; nothing was saved"
        return
    first = rule["judged_once"]
    price = "at an unknown price" if rule["saved_usd"] is None else f"about ${rule['saved_usd']:.4f}"
    yield (
        f"decision: one order for the others, drawn at random: {first['a']} with {one['a']} first, {first['b']} with "
        f"{one['b']} first"
    )
    yield f"saved: {rule['saved_calls']} calls, {figure(rule['saved_share'], percent=True)} of all, {price}"
    if rule["correction"] == 0:
        yield "no win rate of the pilot was changed by the second order, so that of the whole is not corrected"
    elif rule["correction"] is not None:
        yield (
            f"the win rate of {one['a']} is corrected by {100 * rule['correction']:+.1f} points: one order counts wins "
            "that the other would have called ties, and the pilot shows how many"
        )
    yield from (f"assumed: {text}" for text in rule["assumes"])
