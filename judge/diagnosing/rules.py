"""The diagnosis of one case: a table of rules, the first that matches decides.

Each input is a `Reading`, a value already compared with its threshold. Where readings are uncertain every way they
could fall is tried: one outcome decides, several send the case to a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from judge.diagnosing.outcomes import OUTCOMES
from judge.diagnosing.thresholds import Threshold, choose
from judge.errors import UsageError

Side = Literal["high", "low", "yes", "no", "uncertain", "missing"]
MEASURED = ("recall", "faithfulness", "correct", "complete", "citation")
STATED: dict[str, Side] = {"answerable": "yes", "refused": "no", "empty": "no", "contradicts_reference": "missing"}
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One input: its value (with low and high where it is an interval), the threshold, and the origin of both.

    `side`: high or low for measures, yes or no for stated facts, else uncertain, or missing with a `reason`.
    """

    side: Side
    value: float | None = None
    low: float | None = None
    high: float | None = None
    threshold: float | None = None
    threshold_origin: str | None = None
    origin: str | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {name: getattr(self, name) for name in self.__slots__}


def missing(reason: str) -> Reading:
    """An input that is not there, and why."""
    return Reading(side="missing", reason=reason)


def stated(side: bool | Side, origin: str, value: float | None = None) -> Reading:
    """A fact: yes, no or uncertain."""
    named: Side = side if isinstance(side, str) else "yes" if side else "no"
    return Reading(side=named, origin=origin, value=value)


def compare(
    values: float | Sequence[float], threshold: Threshold, *, origin: str | None = None, margin: float = 0.0
) -> Reading:
    """A number, or (low, point, high), against its threshold; exactly at it is high.

    An interval that lies on both sides is uncertain, and so is a point no further than `margin` from the threshold.
    """
    low, point, high = (values, values, values) if isinstance(values, int | float) else values
    limit = threshold.value
    if margin and abs(point - limit) <= margin + ROUNDING:
        side: Side = "uncertain"
    else:
        side = "high" if low + ROUNDING >= limit else "low" if high + ROUNDING < limit else "uncertain"
    known = {"value": point, "threshold": limit, "threshold_origin": threshold.origin, "origin": origin}
    return Reading(side=side, low=low, high=high, **known)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Rule:
    """Holds when every named input is on one of the named sides ("low missing")."""

    id: str
    when: Mapping[str, str]
    outcome: str

    def holds(self, sides: Mapping[str, str]) -> bool:
        return all(sides[name] in allowed.split() for name, allowed in self.when.items())


RULES = (
    Rule("empty", {"empty": "yes"}, "empty_answer"),
    Rule("unanswerable-refused", {"answerable": "no", "refused": "yes"}, "correct_refusal"),
    Rule("unanswerable-unsupported", {"answerable": "no", "faithfulness": "low"}, "unanswerable_hallucination"),
    Rule("unanswerable-supported", {"answerable": "no", "faithfulness": "high"}, "unanswerable_but_grounded"),
    Rule("unanswerable-unknown", {"answerable": "no"}, "unlabelled"),
    Rule("refused-found", {"refused": "yes", "recall": "high"}, "over_refusal"),
    Rule("refused-missed", {"refused": "yes", "recall": "low"}, "retrieval_miss_abstained"),
    Rule("no-recall", {"recall": "missing"}, "unlabelled"),
    Rule("no-faithfulness", {"faithfulness": "missing"}, "unlabelled"),
    Rule(
        "high-high-parts-missing",
        {"recall": "high", "faithfulness": "high", "correct": "low", "complete": "low", "contradicts_reference": "no"},
        "faithful_but_incomplete",
    ),
    Rule("high-high-wrong", {"recall": "high", "faithfulness": "high", "correct": "low"}, "faithful_but_wrong"),
    Rule(
        "high-high-incomplete",
        {"recall": "high", "faithfulness": "high", "complete": "low"},
        "faithful_but_incomplete",
    ),
    Rule("high-high-citation", {"recall": "high", "faithfulness": "high", "citation": "low"}, "citation_error"),
    Rule("high-high", {"recall": "high", "faithfulness": "high"}, "pass"),
    Rule(
        "high-low-right",
        {"recall": "high", "faithfulness": "low", "correct": "high"},
        "correct_but_unfaithful",
    ),
    Rule("high-low", {"recall": "high", "faithfulness": "low"}, "generation_hallucination"),
    Rule("low-high-right", {"recall": "low", "faithfulness": "high", "correct": "high"}, "label_gap_suspected"),
    Rule("low-high", {"recall": "low", "faithfulness": "high"}, "retrieval_miss_wrong_context"),
    Rule("low-low-right", {"recall": "low", "faithfulness": "low", "correct": "high"}, "retrieval_miss_memory"),
    Rule("low-low", {"recall": "low", "faithfulness": "low"}, "retrieval_miss_hallucination"),
)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The outcome of a case and the rule that gave it; `possible` lists the outcomes between which it is undecided."""

    outcome: str
    rule: str
    possible: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, with the stage blamed and the next experiment."""
        meaning = OUTCOMES[self.outcome]
        return {
            "outcome": self.outcome, "rule": self.rule, "stage": meaning.stage, "second_stage": meaning.second,
            "next_experiment": meaning.next_experiment, "possible": list(self.possible),
        }  # fmt: skip


def diagnose(inputs: Mapping[str, Reading]) -> Diagnosis:
    """The diagnosis of a case from its readings.

    Inputs: recall, faithfulness, correct, complete, citation (high, low, uncertain, missing); answerable (default
    yes), refused, empty (default no), contradicts_reference (yes, no, missing). An absent one is missing. Uncertain
    readings between which the outcome differs give `human_review`.
    """
    decided = {rule.outcome: rule for rule in (_first(sides) for sides in _ways(inputs))}
    if len(decided) == 1:
        rule = next(iter(decided.values()))
        return Diagnosis(rule.outcome, rule.id)
    return Diagnosis("human_review", "undecided", tuple(name for name in OUTCOMES if name in decided))


def diagnose_values(values: Mapping[str, Any], thresholds: Mapping[str, float] | None = None) -> Diagnosis:
    """The diagnosis from plain values: a number or (low, point, high) per measure, booleans for the stated facts."""
    unknown = set(values) - set(MEASURED) - set(STATED)
    if unknown:
        known = ", ".join((*MEASURED, *STATED))
        raise UsageError(f"input {min(unknown)!r} is unknown: the inputs are {known}")
    limits = choose(thresholds)
    given = {name: value for name, value in values.items() if value is not None}
    measured = {name: compare(given[name], limits[name], origin="given") for name in MEASURED if name in given}
    return diagnose(measured | {name: stated(bool(given[name]), "given") for name in STATED if name in given})


def _first(sides: Mapping[str, str]) -> Rule:
    return next(rule for rule in RULES if rule.holds(sides))


def _ways(inputs: Mapping[str, Reading]) -> Iterator[dict[str, str]]:
    """Every way the uncertain inputs could fall."""
    known: dict[str, str] = {**dict.fromkeys(MEASURED, "missing"), **STATED}
    known |= {name: reading.side for name, reading in inputs.items()}
    choices = [(("yes", "no") if name in STATED else ("high", "low")) if side == "uncertain" else (side,)
               for name, side in known.items()]  # fmt: skip
    return (dict(zip(known, way, strict=True)) for way in product(*choices))
