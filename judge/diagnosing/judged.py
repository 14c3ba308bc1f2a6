"""Readings from judgment lines: the rates behind the scores, or the probabilities of quick mode, never the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from judge.cases import Case
from judge.diagnosing.rules import Reading, compare, missing, stated
from judge.diagnosing.thresholds import Threshold
from rubrics.model import Rubric
from rubrics.screening import declines, degenerate

Row = Mapping[str, Any]
RATES = {
    "faithfulness": ("faithfulness", "support_rate"),
    "correct": ("answer_correctness", "fact_match"),
    "complete": ("completeness", "coverage"),
    "citation": ("citation_accuracy", "f1"),
}
REFUSALS = "refusal_correctness"
RELEVANCE = "context_relevance"
ROOTS = {name: root for name, (root, _) in RATES.items()} | {"refused": REFUSALS}
CONTRADICTIONS = frozenset({"wrong_fact", "extra_conflict"})
EVEN = Threshold(0.5, "even odds")


def rubric_for(root: str, rubrics: Mapping[str, Rubric]) -> Rubric | None:
    """The rubric of a run that measures what the bundled one of this id does: itself, else one that extends it."""
    return rubrics.get(root) or next((rubric for rubric in rubrics.values() if rubric.root == root), None)


def readings(
    case: Case,
    lines: Mapping[str, Sequence[Row]],
    rubrics: Mapping[str, Rubric],
    limits: Mapping[str, Threshold],
) -> dict[str, Reading]:
    """Everything but recall. `lines`: rubric id -> judgment lines of this case, one for each repeat."""
    found: dict[str, Reading] = {
        "answerable": stated(case.answerable != "no", "cases" if case.answerable else "default"),
        "empty": stated(degenerate(case.answer) is not None, "answer"),
        "refused": refusal(case, lines, rubrics, limits),
    }
    for name, (root, rate) in RATES.items():
        rubric = rubric_for(root, rubrics)
        if rubric is None:
            found[name] = missing(f"not judged: add {root} to --rubrics of judge score")
        else:
            found[name] = measured(lines.get(rubric.id, ()), rubric, rate, limits[name], limits["margin"].value)
    if found["faithfulness"].reason == "no_contexts" and found["refused"].side == "no":
        found["faithfulness"] = compare(0.0, limits["faithfulness"], origin="no passage was given, none can support it")
    correctness = rubric_for(RATES["correct"][0], rubrics)
    if correctness is not None:
        found["contradicts_reference"] = contradiction(lines.get(correctness.id, ()), correctness)
    return found


def measured(lines: Sequence[Row], rubric: Rubric, rate: str, threshold: Threshold, margin: float) -> Reading:
    """The rate of a case, or p in quick mode, against its threshold; several repeats give (least, mean, largest).

    Quick probabilities are compared with the rubric's quick threshold unless one was given.
    """
    scored = [line for line in lines if line["status"] == "scored"]
    if not scored:
        return missing(_why_not(lines, rubric))
    quick = [line["details"]["p"] for line in scored if line["mode"] == "quick" and "p" in line["details"]]
    rates = quick or [line["details"][rate] for line in scored if line["details"].get(rate) is not None]
    if not rates:
        return missing(f"{rubric.id} gives no {rate}, and a score is no substitute")
    if quick and threshold.origin == "default" and rubric.quick is not None:
        threshold = Threshold(rubric.quick.threshold, f"{rubric.id} quick.threshold")
    origin = f"{rubric.id} {'p' if quick else rate}"
    if len(rates) == 1:
        return compare(rates[0], threshold, origin=origin, margin=margin if quick else 0.0)
    values = (min(rates), fmean(rates), max(rates))
    return compare(values, threshold, origin=f"{origin}, {len(rates)} repeats", margin=margin if quick else 0.0)


def _why_not(lines: Sequence[Row], rubric: Rubric) -> str:
    if not lines:
        return f"not judged by {rubric.id} yet: the same judge score command resumes"
    return str(lines[-1]["error_kind"] or lines[-1]["reason"] or lines[-1]["status"])


def refusal(
    case: Case, lines: Mapping[str, Sequence[Row]], rubrics: Mapping[str, Rubric], limits: Mapping[str, Threshold]
) -> Reading:
    """Whether the answer declines: refusal_correctness, else what faithfulness found, else refusal phrases.

    Signals that disagree are uncertain, and so are repeats that do and a quick probability near even odds.
    """
    faithfulness = rubric_for("faithfulness", rubrics)
    said = [line for line in lines.get(faithfulness.id if faithfulness else "", ()) if line["status"] != "error"]
    nothing_claimed = bool(said) and all(line["reason"] == "refusal" for line in said)
    rubric = rubric_for(REFUSALS, rubrics)
    scored = [line for line in lines.get(rubric.id, ()) if line["status"] == "scored"] if rubric else []
    behaviours = {line["details"].get("behaviour") == "refused" for line in scored}
    if rubric is None or not scored:
        if nothing_claimed:
            return stated(True, "faithfulness: nothing claimed")
        return stated(declines(case.answer or ""), "refusal phrases")
    chances = [line["details"]["p_declines"] for line in scored if "p_declines" in line["details"]]
    value = fmean(chances) if chances else None
    near = value is not None and compare(value, EVEN, margin=limits["margin"].value).side == "uncertain"
    if near or len(behaviours) > 1 or (behaviours == {False} and nothing_claimed):
        return stated("uncertain", rubric.id, value)
    return stated(behaviours == {True}, rubric.id, value)


def contradiction(lines: Sequence[Row], rubric: Rubric) -> Reading:
    """Whether the answer says something against the reference; known from fact by fact judgments only."""
    judged = [line for line in lines if line["status"] == "scored" and "checks" in line["details"]]
    if not judged:
        return missing("no fact by fact judgment")
    found = {not CONTRADICTIONS.isdisjoint(line["errors"]) for line in judged}
    return stated("uncertain" if len(found) > 1 else found == {True}, rubric.id)


def relevant_passages(case: Case, lines: Sequence[Row], rubric: Rubric) -> dict[str, bool] | None:
    """Context id -> whether context_relevance found it useful (grade 2 or 3, or p at the threshold); None unscored."""
    scored = [line for line in lines if line["status"] == "scored"]
    if not scored:
        return None
    details = scored[-1]["details"]
    if "grades" in details:
        return {name: grade >= 2 for name, grade in details["grades"].items()}
    given = [context for context in case.contexts or () if context.text.strip()]
    units = details.get("units") or ()
    if rubric.quick is None or len(units) != len(given):
        return None
    return {context.id: unit["p"] >= rubric.quick.threshold for context, unit in zip(given, units, strict=True)}
