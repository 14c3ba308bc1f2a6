"""`--second-order auto`: a random pilot is judged in both orders and decides whether the other pairs need both.

pairs --draw--> Design (pilot, and the one order that each other pair would get) --pilot judged, decide--> Decision

The pilot is a tenth of the pairs, 60 at least. The rule on it is in `calibration.pilot`, the win rate that follows in
`calibration.one_order`. Both draws are random, so the pilot stands for the rest, and an order effect cancels over the
pairs judged once.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from calibration.agreement import as_json
from calibration.pilot import CONSISTENT, one_order_enough
from judge.combining import Side
from judge.joining import Names
from judge.pairlines import Record, points_of, verdicts

SMALLEST_PILOT = 60
PILOT_SHARE = 0.1
ASSUMES = (
    "the pilot was drawn at random from these pairs, so its judge is the judge of the rest",
    "which answer a pair judged once shows first was drawn at random, half and half: an order effect cancels over the "
    "pairs, not within one, so do not read a single one of them as settled",
    "the win rate is that of both orders: what the second order changed in the pilot is taken to change the rest alike",
)


@dataclass(frozen=True, slots=True)
class Design:
    """For each pair of systems the case ids of the pilot, all other ids, and of those which need a call the side that
    one order would show first."""

    pilot: Mapping[Names, frozenset[str]]
    others: Mapping[Names, frozenset[str]]
    once: Mapping[Names, Mapping[str, Side]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether one order is enough for the pairs outside the pilot of a pair of systems, and why not.

    `reason`: one of `calibration.pilot`, or `few_pairs` where the pilot holds all pairs. `pilot` has the numbers.
    """

    a: str
    b: str
    seed: int
    one_order: bool
    reason: str | None
    n_pilot: int
    pilot: Mapping[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def draw(pairs: Mapping[Names, Mapping[str, bool]], seed: int) -> Design:
    """The design for `pairs`: case id -> whether it needs a call. The same for the same ids and seed, whoever is a."""
    pilot, others, once = {}, {}, {}
    for (a, b), ids in pairs.items():
        low, high = sorted((a, b))
        rng = random.Random(f"second order\x1f{seed}\x1f{low}\x1f{high}")
        order = sorted(name for name, needs_call in ids.items() if needs_call)
        rng.shuffle(order)
        sides: list[Side] = ["a", "b"] if a == low else ["b", "a"]
        start = rng.randrange(2)
        size = max(SMALLEST_PILOT, math.ceil(PILOT_SHARE * len(order)))
        pilot[a, b] = frozenset(order[:size])
        others[a, b] = frozenset(ids) - pilot[a, b]
        once[a, b] = {name: sides[(n + start) % 2] for n, name in enumerate(order[size:])}
    return Design(pilot, others, once)


def decide(design: Design, records: Sequence[Record], seed: int) -> list[Decision]:
    """The decision for each pair of systems from the judged pilot; `records` are its pairs with their lines."""
    found = []
    for (a, b), ids in design.pilot.items():
        own = [one for one in records if (one.a, one.b) == (a, b) and one.case_id in ids]
        seen: dict[str, Any] | None = as_json(one_order_enough(verdicts(own))) if own else None
        reason = seen.pop("reason") if seen is not None else None
        if seen is None or not design.once[a, b]:
            reason = "few_pairs"
        found.append(
            Decision(
                a=a,
                b=b,
                seed=seed,
                one_order=reason is None,
                reason=reason,
                n_pilot=len(ids),
                pilot=seen,
            )
        )
    return found


def told(
    decision: Decision | None, records: Sequence[Record], win_rate: Mapping[str, Any], spent: Mapping[str, Any]
) -> dict[str, Any]:
    """The rule's part of a comparison summary: decision, numbers, what it saved, what it assumes.

    `decision` None: the run was stopped before the pilot was judged. Saved cost is that of as many calls at the run's
    mean price, None where that is unknown. `correction` is the win rate minus that of the outcomes as they stand.
    """
    lines = [line for one in records for line in one.lines]
    once = [line for line in lines if "second_order" in line]
    asked = sum(len(line["calls"]) for line in lines)
    points = [value for value in points_of(records) if value is not None]
    stands = sum(points) / len(points) if points else None
    known = decision.to_dict() if decision is not None else {"one_order": None, "reason": "stopped", "pilot": None}
    return {
        "rule": "auto",
        **known,
        "needed_consistency": CONSISTENT,
        "judged_twice": sum(len(line["calls"]) == 2 for line in lines),
        "judged_once": {side: sum(line["calls"][0]["first"] == side for line in once) for side in ("a", "b")},
        "saved_calls": len(once),
        "saved_share": len(once) / (asked + len(once)) if asked else None,
        "saved_usd": _price_of(len(once), spent),
        "correction": win_rate["value"] - stands
        if once and stands is not None and win_rate["value"] is not None
        else None,
        "assumes": list(ASSUMES) if once else [],
    }


def _price_of(calls: int, spent: Mapping[str, Any]) -> float | None:
    asked = spent["http_calls"] - spent["retries"] - spent["reasks"]
    if spent["cost_usd"] is None or spent["unknown_price_calls"] or not asked:
        return None
    return float(calls * spent["cost_usd"] / asked)
