"""Quick mode: one probability per unit becomes a score, with its weakest unit named."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from rubrics.citations import statements
from rubrics.model import Item, Outcome, Rubric, Unit
from rubrics.overlap import overlap
from rubrics.prechecks import has_passages, has_reference, is_refusal_rubric
from rubrics.screening import case_flags, declines

LEAST_MASS = 0.9


def settle_quick(
    rubric: Rubric,
    item: Item,
    units: Sequence[Unit],
    probabilities: Sequence[float | None],
    masses: Sequence[float | None],
) -> Outcome:
    """The outcome of the one-token calls of a case.

    `probabilities[i]` is P(good answer) of unit i over its answer tokens (None: code decided, `unit.p` counts), and
    `masses` the probability that those tokens hold together (below 0.9: flag low_answer_mass). A unit without either is
    an error that names it. score = min + (max - min) p. Aggregates: min and mean over the units of a group, the best
    group where several references give several; max_then_mean: the maximum within a group, the mean over groups.
    details.units[i] has a `key` for the caller to fill. Empty units: not_applicable or undefined, never a number.
    Errors: ValueError for a rubric without a quick form or lists of unequal length.
    """
    if rubric.quick is None:
        raise ValueError(f"{rubric.id} has no quick form: add a `quick` block to the file, or judge in full mode")
    if not len(units) == len(probabilities) == len(masses):
        raise ValueError(f"{len(units)} units, {len(probabilities)} probabilities, {len(masses)} masses: one each")
    values = [unit.p if value is None else value for unit, value in zip(units, probabilities, strict=True)]
    flags, details = case_flags(rubric, item, ())
    for number, (unit, value) in enumerate(zip(units, values, strict=True), start=1):
        if value is None:
            reason = f"unit {number} of {len(units)} has no probability: {unit.text[:80]!r}"
            return Outcome(status="error", error_kind="unparsable", reason=reason, flags=tuple(flags), details=details)
    known = [value for value in values if value is not None]
    details |= _unit_details(rubric, units, known, masses)
    if _low(masses):
        flags.append("low_answer_mass")
    if is_refusal_rubric(rubric):
        p, more = _refusal(item, units, known)
        details |= more
        calibrate = item.answerable is None
    elif not units:
        return _no_units(rubric, item, flags)
    else:
        p = _aggregate(rubric.quick.aggregate, units, known)
        details |= {"mean": fmean(known), **_weakest(rubric, units, known)}
        calibrate = rubric.quick.local == "calibrate" or (rubric.root == "hallucination" and not has_passages(item))
    if calibrate:
        flags.append("calibrate_first")
    if rubric.mode == "citations":
        rows = statements(item.answer or "", item.contexts or (), rubric.citation_scope)
        uncited = sum(not row.citations for row in rows)
        details["uncited"] = uncited
        flags += ["uncited_sentences"] if uncited else []
    details |= {"p": p, "overlap": overlap(rubric, item)}
    return _scored(rubric, p, details, flags)


def _scored(rubric: Rubric, p: float, details: dict[str, Any], flags: Sequence[str]) -> Outcome:
    assert rubric.quick is not None
    return Outcome(
        status="scored",
        score=rubric.scale.min + (rubric.scale.max - rubric.scale.min) * p,
        normalized=p,
        passed=p >= rubric.quick.threshold,
        score_source="logit",
        flags=tuple(flags),
        details=details,
    )


def _unit_details(
    rubric: Rubric, units: Sequence[Unit], values: Sequence[float], masses: Sequence[float | None]
) -> dict[str, Any]:
    assert rubric.quick is not None
    seen = [mass for mass in masses if mass is not None]
    rows = [
        {"text": unit.text, "p": value, "key": None, **({"question": unit.question} if unit.question else {})}
        for unit, value in zip(units, values, strict=True)
    ]
    return {"unit": rubric.quick.unit, "units": rows, "mass": min(seen, default=None)}


def _low(masses: Sequence[float | None]) -> bool:
    return any(mass is not None and mass < LEAST_MASS for mass in masses)


def _aggregate(how: str, units: Sequence[Unit], values: Sequence[float]) -> float:
    groups: dict[int, list[float]] = {}
    for unit, value in zip(units, values, strict=True):
        groups.setdefault(unit.group, []).append(value)
    if how == "max_then_mean":
        return fmean(max(group) for group in groups.values())
    return max(min(group) if how == "min" else fmean(group) for group in groups.values())


def _weakest(rubric: Rubric, units: Sequence[Unit], values: Sequence[float]) -> dict[str, Any]:
    assert rubric.quick is not None
    place = min(range(len(values)), key=values.__getitem__)
    return {"weakest": {"unit": rubric.quick.unit, "number": place + 1, "p": values[place], "text": units[place].text}}


def _refusal(item: Item, units: Sequence[Unit], values: Sequence[float]) -> tuple[float, dict[str, Any]]:
    """p = a(1-d) + (1-a)d: answering where the passages answer, declining where they do not (CONTRACTS 3).

    The unit `declines` asks whether the answer gives the information, so d = 1 - P(yes); a refusal phrase makes it 1.
    """
    found = {unit.question: value for unit, value in zip(units, values, strict=True)}
    given = 0.0 if declines(item.answer or "") else found["declines"]
    d = 1 - given
    if item.answerable in ("yes", "no"):
        a, source = float(item.answerable == "yes"), "gold"
    else:
        a, source = found["answerable"], "judge" if has_passages(item) else "no_contexts"
    return a * (1 - d) + (1 - a) * d, {
        "p_declines": d,
        "p_answerable": a,
        "answerable_source": source,
        "behaviour": "refused" if d >= 0.5 else "answered",
        "mean": None,
    }


def _no_units(rubric: Rubric, item: Item, flags: Sequence[str]) -> Outcome:
    """A case with nothing to ask about: the input that is missing, by name (most are caught before any call)."""
    if rubric.root == "hallucination" and not has_passages(item) and not has_reference(item):
        return Outcome(status="not_applicable", reason="missing_contexts", flags=tuple(flags))
    if rubric.mode in ("nuggets", "facts"):
        return Outcome(status="not_applicable", reason="missing_reference", flags=tuple(flags))
    reasons = {"citations": "no_citations", "passages": "no_contexts"}
    return Outcome(status="undefined", reason=reasons.get(rubric.mode, "no_claims"), flags=tuple(flags))
