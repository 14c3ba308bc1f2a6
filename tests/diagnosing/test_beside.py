"""What stands beside the diagnosis: cost, latency, age, citations, slices, estimates without labels."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

import rubrics
from judge.diagnosing.document import diagnose
from tests.diagnosing.planted import PLANTED, write_run


def test_latency_and_cost_of_the_pipeline_stand_beside_its_quality(tmp_path: Path) -> None:
    plants = [
        {**(PLANTED["citation_error"] if n == 0 else {}), "system": "old", "latency_s": 1.0 + n, "cost_usd": 0.02}
        for n in range(4)
    ] + [{"system": "new", "latency_s": 9.0}]
    old, new = diagnose(write_run(tmp_path / "run", plants))["pipeline"][::-1]
    assert (old["system"], old["passed"]["value"], old["latency_s"]["median"]) == ("old", 0.75, 2.5)
    assert old["cost_per_pass"] == pytest.approx(4 * 0.02 / 3)
    assert (new["system"], new["cost_per_pass"], new["cost_usd"]["mean"]["n"]) == ("new", None, 0)


def test_failures_are_shown_by_age_of_their_source_on_the_day_of_the_run(tmp_path: Path) -> None:
    day = datetime.datetime(2026, 6, 30, tzinfo=datetime.UTC)
    plants = [{**PLANTED["faithful_but_wrong"], "as_of": "2024-01-01"}] * 3 + [{"as_of": "2026-06-01"}] * 2
    age = diagnose(write_run(tmp_path / "run", plants, started=day.timestamp()))["age"]
    assert age["reference"] == "2026-06-30"
    assert [(g["age"], g["n"], g["failed"]["value"], g["wrong_source"]) for g in age["groups"]] == [
        ("up to 30 days", 2, 0.0, 0), ("over 365 days", 3, 1.0, 3),
    ]  # fmt: skip


def test_citation_recall_counts_the_expected_marks_that_are_there(tmp_path: Path) -> None:
    # The planted answers cite their first passage, which is the needed one: 1 of 1, and 1 of 2.
    plants = [
        {"name": "a", "expected_citations": ["a-needed"]},
        {"name": "b", "expected_citations": ["b-needed", "b-2"]},
        {"name": "c"},
    ]
    found = diagnose(write_run(tmp_path / "run", plants))["citations"]
    assert (found["n"], found["recall"]["value"], found["missed"]) == (2, 0.75, ["b"])


def test_slices_show_where_the_failures_are(tmp_path: Path) -> None:
    plants = [{"tags": ["easy"]}] * 5 + [{**PLANTED["retrieval_miss_wrong_context"], "tags": ["hard"]}] * 5
    found = {(s["slice"], s["value"]): s for s in diagnose(write_run(tmp_path / "run", plants))["slices"]}
    assert found["tag", "easy"]["passed"]["value"] == 1.0
    assert found["tag", "hard"]["retrieval"]["value"] == 1.0
    assert ("system", "(none)") not in found


def test_without_labels_the_relevance_judge_gives_estimates_and_no_outcome(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [{"name": "a", "relevant": None}, {"name": "b", "relevant": None}])
    grades = {"a": ({"a-needed": 3, "a-2": 0}, "full"), "b": ({"b-needed": 0, "b-2": 0}, "none")}
    add_relevance(run, grades)
    document = diagnose(run)
    assert [case["outcome"] for case in document["cases"]] == ["unlabelled", "unlabelled"]
    found = document["estimates_without_labels"]
    assert (found["n"], found["precision_estimate"]["value"], found["sufficiency_estimate"]["value"]) == (2, 0.25, 0.5)
    assert found["outcomes_estimate"] == {"pass": 1, "label_gap_suspected": 1}
    assert document["cases"][0]["estimated"]["outcome"] == "pass"


def test_a_suspected_label_gap_names_the_useful_passages_that_no_label_names(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [{"name": "a", **PLANTED["label_gap_suspected"]}])
    add_relevance(run, {"a": ({"a-1": 3, "a-2": 0}, "full")})
    found = diagnose(run)["cases"][0]
    assert (found["outcome"], found["candidates"]) == ("label_gap_suspected", ["a-1"])


def add_relevance(run: Path, grades: dict[str, tuple[dict[str, int], str]]) -> None:
    manifest = json.loads((run / "run.json").read_text())
    manifest["rubrics"]["context_relevance"] = rubrics.load("context_relevance").model_dump(mode="json")
    (run / "run.json").write_text(json.dumps(manifest))
    with (run / "judgments.jsonl").open("a") as file:
        for case, (given, sufficiency) in grades.items():
            line = {
                "case_id": case, "rubric": "context_relevance", "repeat": 0, "mode": "full", "status": "scored",
                "errors": [], "flags": [], "reason": None, "error_kind": None, "passed": True, "score": 3.0,
                "normalized": 0.5, "holistic_score": None, "details": {"grades": given, "sufficiency": sufficiency},
                "judge": "planted", "rubric_hash": "h" * 64, "prompt_hash": None, "quotes": {}, "rationale": None,
                "key": "00",
            }  # fmt: skip
            file.write(json.dumps(line) + "\n")
