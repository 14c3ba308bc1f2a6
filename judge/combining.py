"""What either order of a comparison said, and what both say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from calibration.verdicts import COMBINE

Side = Literal["a", "b"]
Winner = Literal["a", "b", "tie", "both_fail"]

ORDERS: tuple[Side, ...] = ("a", "b")
LEAST_DIFFERENCE = 0.5
LEANS: Mapping[tuple[str, str], Side] = {
    ("a", "tie"): "a", ("b", "tie"): "b", ("a", "both_fail"): "a", ("b", "both_fail"): "b"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """What one order said: `first` is the side shown first, `winner` the verdict mapped back to the sides.

    `ratings` (score mode) are the levels of a and b; `margin` belongs to full mode, `p_first` to quick mode.
    """

    first: Side
    status: Literal["scored", "cannot_judge", "error"]
    key: str
    verdict: str | None = None
    winner: Winner | None = None
    margin: str | None = None
    p_first: float | None = None
    ratings: Mapping[Side, int] | None = None
    reason: str | None = None
    flags: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        names = ("first", "status", "verdict", "winner", "margin", "p_first", "key")
        plain = {name: getattr(self, name) for name in names}
        return plain if self.ratings is None else {**plain, "ratings": dict(self.ratings)}


def combine(calls: Sequence[Call]) -> tuple[str, Side | None]:
    """Outcome and lean of the orders together, by the tables COMBINE and LEANS; no verdict makes it incomplete.

    A single order, where the second was left out, is taken at its word.
    """
    words = tuple(call.winner or "error" for call in calls)
    one, two = words if len(words) == len(ORDERS) else (words[0], "unasked")
    order = (one, two) if (one, two) in COMBINE else (two, one)
    return COMBINE.get(order, "incomplete"), LEANS.get(order)


def mean_p_a(calls: Sequence[Call]) -> float | None:
    """The probability of a, averaged over both orders (quick mode): (p1 + 1 - p2) / 2, else None."""
    ps = [call.p_first if call.first == "a" else 1 - call.p_first for call in calls if call.p_first is not None]
    return sum(ps) / 2 if len(ps) == len(ORDERS) else None


def mean_difference(calls: Sequence[Call]) -> float | None:
    """The rating of a minus that of b, averaged over the orders asked (score mode); None where an order has none."""
    differences = [call.ratings["a"] - call.ratings["b"] for call in calls if call.ratings is not None]
    return fmean(differences) if differences and len(differences) == len(calls) else None


def by_difference(difference: float) -> tuple[str, Side | None]:
    """Outcome and lean by a mean rating difference: less than half a level is a tie, leaning to the higher side.

    So one level in one order and none in the other is half a level, the smallest difference that wins; and orders that
    contradict each other are weighed: a level for the one and three for the other is a win for the other.
    """
    side: Side | None = "a" if difference > 0 else "b" if difference < 0 else None
    return ("tie", side) if side is None or abs(difference) < LEAST_DIFFERENCE else (side, None)


def mapped(verdict: str, first: Side) -> Winner:
    """A positional verdict as the side that won."""
    table: Mapping[str, Winner] = {"first": first, "second": other(first), "tie": "tie", "both_fail": "both_fail"}
    return table[verdict]


def other(side: Side) -> Side:
    """The other side of a pair."""
    return "b" if side == "a" else "a"
