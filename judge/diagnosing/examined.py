"""A run, examined: every case with its readings and its diagnosis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judge.cases import Case
from judge.diagnosing.found import Found, find
from judge.diagnosing.judged import RELEVANCE, ROOTS, Row, readings, relevant_passages, rubric_for
from judge.diagnosing.outcomes import UNDECIDED
from judge.diagnosing.rules import Diagnosis, Reading, compare, diagnose
from judge.diagnosing.thresholds import Threshold
from judge.runs import cases_of, rows, rubrics_of
from judge.summary import majority
from rubrics.model import Rubric

KEPT = ("status", "mode", "details", "errors", "reason", "error_kind", "passed", "repeat")
DETAILS = ("p", "p_declines", "behaviour", "support_rate", "fact_match", "coverage", "f1", "checks", "grades",
           "sufficiency", "passage_precision", "units")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """One case. `passed`: input name -> the judge's pass or fail, where scored.

    `useful`: context id -> whether the judge of context relevance found it useful. `estimated`: the diagnosis with
    recall estimated from that, for cases without recall; an estimate, never counted as an outcome.
    """

    case: Case
    inputs: Mapping[str, Reading]
    diagnosis: Diagnosis
    passed: Mapping[str, bool] = field(default_factory=dict)
    useful: Mapping[str, bool] | None = None
    sufficiency: str | None = None
    estimated: Diagnosis | None = None

    @property
    def outcome(self) -> str:
        return self.diagnosis.outcome

    @property
    def decided(self) -> bool:
        return self.outcome not in UNDECIDED

    def side(self, name: str) -> str:
        """The side of an input; missing when there is none."""
        return self.inputs[name].side if name in self.inputs else "missing"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types: the case id, its diagnosis, and every input with threshold and origin."""
        made = {"case_id": self.case.id, **self.diagnosis.to_dict()}
        made["inputs"] = {name: reading.to_dict() for name, reading in self.inputs.items()}
        made["estimated"] = self.estimated.to_dict() if self.estimated else None
        if self.outcome == "label_gap_suspected" and self.useful is not None:
            made["candidates"] = self.candidates()
        return made

    def candidates(self) -> list[str]:
        """Passages given that the judge found useful and no label names."""
        named = {name for label in self.case.relevant or () for name in (label.doc, label.chunk)}
        documents = {context.id: context.doc for context in self.case.contexts or ()}
        useful = [name for name, good in (self.useful or {}).items() if good]
        return [name for name in useful if name not in named and documents.get(name) not in named - {None}]


def examine(
    run: Path, limits: Mapping[str, Threshold], *, evidence: str = "all", retrieval: Mapping[str, Any] | None = None
) -> tuple[list[Examined], Found]:
    """Every case of a run in order, and what retrieval found. `retrieval`: options of `judge.retrieval.evaluate`."""
    cases, rubrics = list(cases_of(run)), rubrics_of(run)
    found = find(cases, limits["recall"], evidence, retrieval or {})
    lines = _lines(run)
    return [_examine(case, lines.get(case.id, {}), rubrics, limits, found.recalls[case.id]) for case in cases], found


def _lines(run: Path) -> dict[str, dict[str, list[Row]]]:
    kept: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows(run):
        slim = {name: row[name] for name in KEPT}
        slim["details"] = {name: row["details"][name] for name in DETAILS if name in row["details"]}
        kept[row["case_id"]][row["rubric"]].append(slim)
    return kept


def _examine(
    case: Case,
    lines: Mapping[str, Sequence[Row]],
    rubrics: Mapping[str, Rubric],
    limits: Mapping[str, Threshold],
    recall: Reading,
) -> Examined:
    inputs = {"recall": recall, **readings(case, lines, rubrics, limits)}
    made = Examined(case=case, inputs=inputs, diagnosis=diagnose(inputs), passed=_passes(lines, rubrics))
    relevance = rubric_for(RELEVANCE, rubrics)
    if relevance is None:
        return made
    useful = relevant_passages(case, lines.get(relevance.id, ()), relevance)
    scored = [line for line in lines.get(relevance.id, ()) if line["status"] == "scored"]
    sufficiency = scored[-1]["details"].get("sufficiency") if scored else None
    made = replace(made, useful=useful, sufficiency=sufficiency)
    guess = _estimated_recall(useful, sufficiency, limits["recall"])
    if made.outcome == "unlabelled" and recall.side == "missing" and guess is not None:
        return replace(made, estimated=diagnose({**inputs, "recall": guess}))
    return made


def _passes(lines: Mapping[str, Sequence[Row]], rubrics: Mapping[str, Rubric]) -> dict[str, bool]:
    passed = {}
    for name, root in ROOTS.items():
        rubric = rubric_for(root, rubrics)
        scored = [line for line in lines.get(rubric.id if rubric else "", ()) if line["status"] == "scored"]
        if scored:
            passed[name] = majority(row["passed"] for row in scored)
    return passed


def _estimated_recall(
    useful: Mapping[str, bool] | None, sufficiency: str | None, threshold: Threshold
) -> Reading | None:
    """Full mode says whether the passages suffice; quick mode only whether any of them helps."""
    if sufficiency is not None:
        return compare(float(sufficiency == "full"), threshold, origin="estimate: context_relevance sufficiency")
    if useful is not None:
        return compare(float(any(useful.values())), threshold, origin="estimate: context_relevance, any passage useful")
    return None
