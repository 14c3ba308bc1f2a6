"""The demo: a dozen bundled cases scored by the embedded judge, its successes, its failures and what is known of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge import examples
from judge.report.audit import overview
from judge.report.page import Section, brief, figure
from judge.report.scores import weak_point
from judge.runs import rows, rubrics_of

RUBRICS = ("faithfulness", "citation_accuracy", "completeness", "answer_relevance")
SHORT = ("faithful", "cited", "complete", "relevant")
FAILURE = "ex-50"
MEASURED = (
    ("OpenQA-eval, 84 answers", "answer_correctness", "kappa .48, AUC .79", "GPT-4: kappa .64; token F1: kappa .45"),
    ("mtrag, 23 long answers, three raters", "faithfulness", "kappa .30, AUC .69", "word overlap: kappa .49, AUC .96"),
    ("mtrag, 24 answers", "answer_relevance", "kappa .34, AUC .76", "no lexical measure above chance"),
    ("FaithBench, 26 hard summaries", "faithfulness", "kappa -.15, AUC .55: chance", "word overlap: AUC .65"),
)


def demo_cases() -> list[dict[str, Any]]:
    """The dozen cases, in the order in which they are shown."""
    with examples.cases_path().open(encoding="utf-8") as file:
        found = {row["id"]: row for row in map(json.loads, file)}
    return [found[name] for name in examples.DEMO_IDS]


def sections(run: Path) -> list[Section]:
    """The page after the scores: case by case beside the lexical twin, the weakest, one failure, what was measured."""
    lines = {(row["case_id"], row["rubric"]): row for row in rows(run)}
    pass_at = {name: rubric.scale.pass_at for name, rubric in rubrics_of(run).items()}
    return [_table(lines, pass_at), _weakest(lines), _failure(lines, pass_at), _measured()]


def audit_sections(audits: Mapping[str, Mapping[str, Any]]) -> list[Section]:
    """The end of the demo: its examples audited against the authors' marks, named as the illustration it is.

    `audits` are those of the demo's run against the labels of rater `author`, by rubric.
    """
    table = overview(audits)
    because = [f"{name}: {audit['because']}" for name, audit in audits.items()]
    notes = [
        "an illustration, no evidence: a dozen cases, and the marks are those of the authors who planted the faults",
        "on your own cases: judge score, judge sheet (people label blind), judge audit",
    ]
    return [replace(table, title="Audit: can this judge be trusted? (illustration)", notes=[*because, *notes])]


def _table(lines: Mapping[tuple[str, str], Mapping[str, Any]], pass_at: Mapping[str, int]) -> Section:
    body = []
    for case in demo_cases():
        cells = [_cell(lines.get((case["id"], name)), case["labels"].get(name), pass_at[name]) for name in RUBRICS]
        body.append([case["id"], ", ".join(case["tags"]).replace("_", " "), *cells])
    notes = [
        "a cell: P(good) of the judge / overlap (the free lexical twin, no model) / the authors' mark from 1 to 5",
        "x marks a judge on the other side of its threshold than the authors; their marks are no human study",
        "relevant (answer_relevance) is marked calibrate first: the small judge is not safe there, see below",
    ]
    return Section("Case by case", ["case", "planted", *SHORT], body, notes)


def _cell(row: Mapping[str, Any] | None, label: Mapping[str, Any] | None, pass_at: int) -> str:
    if row is None:
        return "not judged"
    if row["status"] != "scored":
        return str(row["reason"] or row["status"]).replace("_", " ")
    mark = next(iter(label.values()), None) if label else None
    wrong = mark is not None and row["passed"] != (mark >= pass_at)
    twin = figure(row["details"].get("overlap"))
    return f"{row['normalized']:.2f} / {twin} / {mark or '–'}{' x' if wrong else ''}"


def _weakest(lines: Mapping[tuple[str, str], Mapping[str, Any]]) -> Section:
    faithful = [row for (_, rubric), row in lines.items() if rubric == RUBRICS[0] and row["status"] == "scored"]
    if not faithful:
        return Section("Weakest case", notes=["no case has a faithfulness score"])
    worst = min(faithful, key=lambda row: row["normalized"])
    case = next(case for case in demo_cases() if case["id"] == worst["case_id"])
    notes = [f"question: {brief(case['question'], 120)}", f"answer: {brief(case['answer'], 160)}", weak_point(worst)]
    reason = case["metadata"]["label_reasons"].get(RUBRICS[0])
    return Section(f"Weakest case: {case['id']}", notes=[*notes, *([f"the authors: {reason}"] if reason else [])])


def _failure(lines: Mapping[tuple[str, str], Mapping[str, Any]], pass_at: Mapping[str, int]) -> Section:
    case = next(case for case in demo_cases() if case["id"] == FAILURE)
    notes = [f"passage: {brief(case['contexts'][0]['text'], 220)}", f"answer: {brief(case['answer'], 160)}"]
    for name in RUBRICS[:3]:
        row, mark = lines.get((FAILURE, name)), case["labels"][name]["author"]
        if row is None or row["status"] != "scored":
            notes.append(f"{name}: not scored")
        elif row["passed"] and mark < pass_at[name]:
            notes.append(f"{name}: the judge passes it with {row['normalized']:.2f}; the right mark is {mark}")
        else:
            notes.append(f"{name}: the judge fails it with {row['normalized']:.2f}, rightly")
    notes.append("the colours are swapped; chosen on purpose among ten alterations, since small judges miss such swaps")
    return Section(f"A failure of this judge: {FAILURE}", notes=notes)


def _measured() -> Section:
    notes = [
        "embedded 1.5B judge: indicative; it replaces neither a large judge nor people. Calibrate it on your labels",
        "not safe against answers that talk to the judge: off-topic answers of that kind pass answer_relevance",
    ]
    columns = ["people's labels", "rubric", "this judge at 0.5", "beside it"]
    return Section("What was measured on labels by people", columns, MEASURED, notes)
