"""Runs with planted failures, written straight into a run directory: no judge, no call."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import rubrics

RATES = {
    "faithfulness": "support_rate",
    "answer_correctness": "fact_match",
    "completeness": "coverage",
    "citation_accuracy": "f1",
}
GOOD = {"found": True, "support_rate": 1.0, "fact_match": 1.0, "coverage": 1.0, "f1": 1.0}
PLANTED: dict[str, dict[str, Any]] = {
    "pass": {},
    "faithful_but_wrong": {"fact_match": 0.0, "errors": ["wrong_fact"]},
    "faithful_but_incomplete": {"coverage": 0.25},
    "citation_error": {"f1": 0.2},
    "generation_hallucination": {"support_rate": 0.25, "fact_match": 0.0, "errors": ["wrong_fact"]},
    "correct_but_unfaithful": {"support_rate": 0.0},
    "label_gap_suspected": {"found": False},
    "retrieval_miss_wrong_context": {"found": False, "fact_match": 0.0},
    "retrieval_miss_memory": {"found": False, "support_rate": 0.0},
    "retrieval_miss_hallucination": {"found": False, "support_rate": 0.0, "fact_match": 0.0},
    "over_refusal": {"refused": True},
    "retrieval_miss_abstained": {"refused": True, "found": False},
    "correct_refusal": {"answerable": "no", "refused": True},
    "unanswerable_hallucination": {"answerable": "no", "support_rate": 0.0},
    "unanswerable_but_grounded": {"answerable": "no"},
    "empty_answer": {"answer": ""},
    "unlabelled": {"relevant": None},
}
NO_ANSWER = ("citation_accuracy", "completeness", "faithfulness")
AUDIT = {"agreement": {"binary": {"sensitivity": {"value": 0.98, "n": 400}, "specificity": {"value": 0.98, "n": 400}}}}


@lru_cache
def loaded(name: str) -> dict[str, Any]:
    """A bundled rubric as run.json holds it."""
    return rubrics.load(name).model_dump(mode="json")


def case(name: str, **plant: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A case with one needed passage, and its judgment lines; `plant` changes GOOD or a field of the case.

    `rank`: of how many passages given the needed one is where (rank, n). `skip`: rubrics without a line.
    """
    values = GOOD | plant
    rank, n = values.pop("rank", (1, 2))
    needed = f"{name}-needed"
    ids = [f"{name}-{i}" for i in range(1, n + 1)]
    if values["found"]:
        ids[rank - 1] = needed
    refused, empty = bool(values.get("refused")), values.get("answer") == ""
    answer = "The documents do not say." if refused else f"The {name} costs seven marks [{ids[0]}]."
    row = {
        "id": name, "question": f"What does the {name} cost?", "answer": answer, "answerable": "yes",
        "contexts": [{"id": i, "text": f"Passage {i} on the {name}."} for i in ids],
        "relevant": [needed], "reference": "Seven marks.",
    }  # fmt: skip
    fields = ("answerable", "answer", "relevant", "retrieved", "contexts", "evidence", "feedback", "latency_s",
              "cost_usd", "as_of", "system", "tags", "expected_citations", "reference")  # fmt: skip
    row |= {field: values[field] for field in fields if field in values}
    if values["answerable"] == "no" if "answerable" in values else False:
        row |= {"relevant": [], "reference": None}
    row = {field: value for field, value in row.items() if value is not None}
    lines = [_line(name, rubric, values, refused or empty, row) for rubric in (*RATES, "refusal_correctness")
             if rubric not in values.get("skip", ())]  # fmt: skip
    return row, lines


def _line(name: str, rubric: str, values: dict[str, Any], silent: bool, row: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "case_id": name, "rubric": rubric, "rubric_hash": loaded(rubric)["rubric_hash"], "prompt_hash": None,
        "judge": "planted", "repeat": 0, "mode": "full", "status": "scored", "errors": [], "flags": [], "quotes": {},
        "rationale": None, "reason": None, "error_kind": None, "holistic_score": None, "details": {}, "key": "00",
    }  # fmt: skip
    if rubric == "refusal_correctness":
        refused = bool(values.get("refused"))
        right = refused == (row.get("answerable") == "no")
        behaviour = "empty" if row.get("answer") == "" else "refused" if refused else "answered"
        return made | _scored(float(right)) | {"details": {"behaviour": behaviour}}
    if silent and rubric in NO_ANSWER:
        reason = "refusal" if values.get("refused") else "empty_answer"
        return made | {"status": "undefined", "reason": reason, "score": None, "normalized": None, "passed": None}
    if "reference" not in row and rubric in ("answer_correctness", "completeness"):
        reason = "missing_reference"
        return made | {"status": "not_applicable", "reason": reason, "score": None, "normalized": None, "passed": None}
    rate = 0.0 if silent else values[RATES[rubric]]
    made |= _scored(rate) | {"details": {RATES[rubric]: rate, "checks": []}}
    if rubric == "answer_correctness":
        made["errors"] = values.get("errors", [])
    return made


def _scored(rate: float) -> dict[str, Any]:
    return {"score": 1 + 4 * rate, "normalized": rate, "passed": rate >= 0.8}


def write_run(
    run: Path,
    plants: list[dict[str, Any]],
    *,
    calibration: str | None = None,
    audited: bool = False,
    without: tuple[str, ...] = (),
    started: float | None = None,
) -> Path:
    """A run directory of planted cases. `calibration`: the state of every rubric in summary.json, none without it."""
    run.mkdir(parents=True)
    made = [case(plant.get("name", f"c{n:03}"), **{k: v for k, v in plant.items() if k != "name"})
            for n, plant in enumerate(plants)]  # fmt: skip
    names = [name for name in (*RATES, "refusal_correctness") if name not in without]
    dumped = {name: loaded(name) for name in names}
    manifest: dict[str, Any] = {"judge": {"model": "planted", "mode": "full"}, "rubrics": dumped, "invocations": []}
    if started is not None:
        manifest["invocations"] = [{"started": started, "wall_s": 1.0}]
    (run / "run.json").write_text(json.dumps(manifest))
    _lines(run / "cases.jsonl", [row for row, _ in made])
    _lines(run / "judgments.jsonl", [line for _, lines in made for line in lines if line["rubric"] in names])
    if calibration is not None:
        states = {name: {"calibration": calibration} for name in names}
        (run / "summary.json").write_text(json.dumps({"rubrics": states}))
    if audited:
        (run / "audit").mkdir()
        for name in names:
            (run / "audit" / f"{name}.json").write_text(json.dumps(AUDIT))
    return run


def _lines(path: Path, rows: list[dict[str, Any]]) -> None:
    from judge.cases import Case

    if path.name == "cases.jsonl":
        rows = [Case.from_row(row).to_row() for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
