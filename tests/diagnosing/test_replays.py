"""Counterfactual case files, and what the replays settle when they come back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.cases import Case, read_cases
from judge.diagnosing.counterfactuals import replayed
from judge.diagnosing.document import diagnose
from judge.diagnosing.replays import named
from judge.errors import UsageError
from tests.diagnosing.planted import PLANTED, write_run

PLANTS = [
    {"name": "h1", **PLANTED["generation_hallucination"], "rank": (2, 4)},
    {"name": "h2", **PLANTED["generation_hallucination"], "rank": (2, 4)},
    {"name": "m1", **PLANTED["correct_but_unfaithful"], "rank": (2, 4)},
    {"name": "m2", **PLANTED["correct_but_unfaithful"], "rank": (2, 4)},
    {"name": "good", "rank": (2, 4)},
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", PLANTS)


def written(run: Path, directory: Path) -> tuple[dict[str, Any], dict[str, dict[str, Case]]]:
    document = diagnose(run, counterfactuals=directory)
    files = {name: directory / f"{name}.jsonl" for name in document["counterfactuals"]}
    cases = {name: {c.id: c for c in read_cases(path)} for name, path in files.items() if path.exists()}
    return document["counterfactuals"], cases


def test_the_case_files_hold_the_cases_that_name_the_replay_and_no_answer(run: Path, tmp_path: Path) -> None:
    said, cases = written(run, tmp_path / "replays")
    assert {name: sorted(found) for name, found in cases.items()} == {
        "oracle-context": ["h1", "h2"], "no-context": ["m1", "m2"], "cut-k": ["h1", "h2"], "rerank": ["h1", "h2"],
    }  # fmt: skip
    assert {one["n"] for one in said.values()} == {2}
    h1 = {name: found["h1"] for name, found in cases.items() if "h1" in found}
    assert {name: [c.id for c in case.contexts] for name, case in h1.items()} == {
        "oracle-context": ["h1-needed"], "cut-k": ["h1-1", "h1-needed"],
        "rerank": ["h1-needed", "h1-1", "h1-3", "h1-4"],
    }  # fmt: skip
    assert cases["no-context"]["m1"].contexts == ()
    assert all(case.answer is None and case.relevant for case in h1.values())
    assert h1["cut-k"].metadata["counterfactual"] == {"replay": "cut-k", "outcome": "generation_hallucination"}


def test_existing_files_are_not_overwritten(run: Path, tmp_path: Path) -> None:
    written(run, tmp_path / "replays")
    with pytest.raises(UsageError, match="exists already"):
        written(run, tmp_path / "replays")


@pytest.mark.parametrize(
    ("relevant", "more", "expected"),
    [
        (["d1"], {}, ["c1"]),
        (["d1", "gone"], {}, "a labelled passage has no text in the case"),
        (["d1", "gone"], {"evidence": "any"}, ["c1"]),
        ([{"text": "alpha beta"}], {}, ["c1"]),
        ([{"text": "not among them"}], {}, ["label-1"]),
        ([{"chunk": "c2"}], {}, ["c2"]),
        ([{"doc": "d1", "start": 5, "end": 9}], {}, ["c1"]),
        ([{"doc": "d1", "grade": 0}], {}, "a labelled passage has no text in the case"),
    ],
)
def test_oracle_context_is_found_by_every_kind_of_label(relevant, more, expected) -> None:
    case = Case.from_row({
        "id": "a", "question": "?", "relevant": relevant, **more,
        "contexts": [{"id": "c1", "text": "alpha beta gamma", "doc": "d1", "start": 0, "end": 16},
                     {"id": "c2", "text": "delta", "doc": "d2", "start": 0, "end": 5}],
    })  # fmt: skip
    found = replayed(case, "oracle-context")
    assert (found if isinstance(found, str) else [context.id for context in found]) == expected


def read_back(run: Path, name: str, plants: list[dict[str, Any]], tmp_path: Path) -> dict[str, Any]:
    again = write_run(tmp_path / name, plants)
    return diagnose(run, replay={name: str(again)})["replays"][0]


def test_an_oracle_replay_separates_noise_from_the_generator(run: Path, tmp_path: Path) -> None:
    plants = [{"name": "h1", "rank": (1, 1)}, {"name": "h2", **PLANTED["generation_hallucination"], "rank": (1, 1)}]
    found = read_back(run, "oracle-context", plants, tmp_path)
    assert found["cases"] == {"h1": "yes", "h2": "no"}
    assert "1 of 2 pass with the labelled passages only" in found["sentence"]
    assert "noise or order of the context" in found["sentence"]
    assert "the generator" in found["sentence"]


def test_an_answer_that_stays_right_without_passages_comes_from_memory(run: Path, tmp_path: Path) -> None:
    plants = [
        {"name": "m1", "contexts": [], "found": False},
        {"name": "m2", "contexts": [], "found": False, "fact_match": 0.0},
    ]
    found = read_back(run, "no-context", plants, tmp_path)
    assert found["cases"] == {"m1": "yes", "m2": "no"}
    assert "the model answers from memory" in found["sentence"]


def test_a_replay_that_was_not_answered_says_so(run: Path, tmp_path: Path) -> None:
    found = read_back(run, "oracle-context", [{"name": "h1", "answer": "", "rank": (1, 1)}], tmp_path)
    assert (found["asked"], found["answered"], found["yes"]["n"]) == (2, 1, 0)
    assert "none is decided" in found["sentence"]
    elsewhere = diagnose(run, replay={"oracle-context": str(write_run(tmp_path / "other", [{}]))})
    assert "none of the 2 cases" in elsewhere["replays"][0]["sentence"]


def test_a_run_with_other_passages_or_questions_is_no_replay(run: Path, tmp_path: Path) -> None:
    itself = diagnose(run, replay={"oracle-context": str(run)})["replays"][0]
    assert (itself["answered"], itself["no_replay"]) == (0, ["h1", "h2"])
    assert "2 left out, their question or passages are not those of the replay's file (h1, h2)" in itself["sentence"]
    assert "the generator" not in itself["sentence"]
    path = write_run(tmp_path / "other", [{"name": "h1", "rank": (1, 1)}]) / "cases.jsonl"
    path.write_text(path.read_text().replace("cost?", "weigh?"))
    found = diagnose(run, replay={"oracle-context": str(path.parent)})["replays"][0]
    assert (found["cases"], found["no_replay"]) == ({}, ["h1"])


@pytest.mark.parametrize(("options", "said"), [
    ({"thresholds": {"min_n": float("inf")}}, "whole number from 2"), ({"feedback_scale": (0, float("inf"))}, "scale"),
    ({"retrieval": {"chunk_map": "nowhere.json"}}, "nowhere.json"),
])  # fmt: skip
def test_options_that_cannot_be_are_refused_in_words(run: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        diagnose(run, **options)


def test_a_replay_is_named_by_what_it_changes() -> None:
    assert named(["cut-k=runs/x"]) == {"cut-k": "runs/x"}
    with pytest.raises(UsageError, match="NAME one of oracle-context"):
        named(["oracle=runs/x"])


def test_the_rows_are_plain_cases(run: Path, tmp_path: Path) -> None:
    written(run, tmp_path / "replays")
    row = json.loads((tmp_path / "replays" / "oracle-context.jsonl").read_text().splitlines()[0])
    assert row["answer"] is None
    assert {"labels", "retrieved", "latency_s", "feedback"}.isdisjoint(row)
