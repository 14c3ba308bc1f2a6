"""Our own conformance vectors, to 1e-9: trec_eval-valued cases, hand-written edge cases, chunk mapping cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.errors import InputError
from judge.retrieval import evaluate

DATA = Path(__file__).parents[1] / "data" / "retrieval"
EDGE = json.loads((DATA / "edge_cases.json").read_text())
CHUNKS = json.loads((DATA / "chunk_mapping_cases.json").read_text())["cases"]

# Public contract, section 5: every measure of a query without relevant labels, dcg too, has no value.
CONTRACT_OVER_EDGE_CASES = {("only-nonrelevant", "dcg@2"): None, ("neg-only", "dcg@1"): None}


def test_all_190_cases_have_the_values_of_trec_eval() -> None:
    compared = 0
    for line in (DATA / "conformance.jsonl").read_text().splitlines():
        case = json.loads(line)
        result = evaluate(
            {case["qid"]: case["ranking"]},
            {case["qid"]: case["qrels"]},
            k=(1, 3, 5, 10, 20, 100),
            rel_level=case["rel_level"],
            judged_only=case["judged_only"],
            empty_labels="zero",
        )
        values = result.per_query[case["qid"]]
        expected = case["expected"]
        assert {name: values[name] for name in expected} == pytest.approx(expected, abs=1e-9), case["qid"]
        compared += len(expected)
    assert compared == 6270


@pytest.mark.parametrize("case", EDGE["cases"], ids=lambda case: case["id"])
def test_edge_case(case: dict[str, Any]) -> None:
    k = sorted({int(name.split("@")[1]) for name in case["value"] if "@" in name}) or [1]
    values = evaluate({"q": case["ranking"]}, {"q": case["qrels"]}, k=k, **case["options"]).per_query["q"]
    for name, given in case["value"].items():
        expected = CONTRACT_OVER_EDGE_CASES.get((case["id"], name), given)
        assert values[name] == (None if expected is None else pytest.approx(expected, abs=1e-9)), name


@pytest.mark.parametrize("case", EDGE["dataset_cases"], ids=lambda case: case["id"])
def test_dataset_case(case: dict[str, Any]) -> None:
    result = evaluate(case["run"], case["qrels"], k=(3, 5))
    for name, expected in case["expected_mean"].items():
        assert result.measures[name].value == (None if expected is None else pytest.approx(expected, abs=1e-9))
    for name in ("n_scored", "n_undefined", "n_missing", "n_extra"):
        assert getattr(result, name) == case.get(name, 0)
    for name, expected in case.get("expected_micro", {}).items():
        micro = evaluate(case["run"], case["qrels"], k=(3, 5), mean="micro")
        assert micro.measures[name].value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("case", "ties", "measure", "expected"),
    [
        ("tie-trec", "input", "rr", "input_order"),
        ("tie-trec", "docid_desc", "rr", "docid_desc (trec_eval)"),
        ("tie-trec", "expected", "rr", "expected_over_ties"),
        ("tie-float32", "docid_desc", "rr", "float64"),
        ("tie-ndcg-sklearn", "expected", "ndcg", "ndcg expected_over_ties (sklearn default)"),
    ],
)
def test_tie_case(case: str, ties: str, measure: str, expected: str) -> None:
    found = next(entry for entry in EDGE["tie_cases"] if entry["id"] == case)
    items = [{"id": i, "score": score} for i, score in found["scores"].items()]
    result = evaluate({"q": items}, {"q": [found.get("relevant", "a")]}, ties=ties)
    assert result.per_query["q"][measure] == pytest.approx(found["value"][expected], abs=1e-9)


@pytest.mark.parametrize("case", CHUNKS, ids=lambda case: case["id"])
def test_chunk_mapping_case(case: dict[str, Any]) -> None:
    k = case["k"]
    options = case["options"] | ({"stale": "zero"} if case["id"] == "chunk-labels-stale" else {})
    result = evaluate({"q": case["items"]}, {"q": case["labels"]}, k=k, **options)
    values = result.per_query["q"]
    relevant_ranks = set(result.matched.relevant.rank.tolist())
    found_at = [match.found_at for match in result.matches["q"]]
    seen = {
        "recall": values[f"recall@{k}"],
        "precision": values[f"precision@{k}"],
        "hit_rate": values[f"hit_rate@{k}"],
        "rr": values["rr"],
        "coverage": values.get(f"coverage@{k}"),
        "found_at": [rank if rank is not None and rank <= k else None for rank in found_at],
        "item_relevant": [int(rank in relevant_ranks) for rank in range(1, k + 1)],
    }
    for name, expected in case["expected"].items():
        tolerance = 5e-5 if name == "coverage" else 1e-9
        if isinstance(expected, float):
            assert seen[name] == pytest.approx(expected, abs=tolerance), name
        else:
            assert seen[name] == expected, name


def test_the_stale_chunk_label_is_an_error_that_names_it() -> None:
    case = next(entry for entry in CHUNKS if entry["id"] == "chunk-labels-stale")
    with pytest.raises(InputError, match=r"(?s)stale chunk labels.*query 'q': chunk 'c17'"):
        evaluate({"q": case["items"]}, {"q": case["labels"]}, k=2)
