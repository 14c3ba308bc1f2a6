"""trec_eval's own test suite: its printed values, and per-query values of six third-party cases. Read in place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.retrieval import evaluate
from judge.retrieval.trec import read_qrels, read_ranking

FOLDER = Path(__file__).parents[2].parent / "shared" / "public" / "trec_eval"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="trec_eval's test data is not beside this repository")

WHOLE = {"map": "ap", "recip_rank": "rr", "ndcg": "ndcg"}
AT_K = {"P": "precision", "recall": "recall", "success": "hit_rate", "map_cut": "ap", "ndcg_cut": "ndcg"}


def our_name(measure: str) -> str | None:
    family, _, cut = measure.rpartition("_")
    return f"{AT_K[family]}@{cut}" if family in AT_K else WHOLE.get(measure)


@pytest.mark.parametrize(("file", "compared"), [("out.test", 11), ("out.test.aq", 168)])
def test_every_printed_value_of_our_measures_is_reproduced(file: str, compared: int) -> None:
    result = evaluate(
        read_ranking(FOLDER / "results.test"),
        read_qrels(FOLDER / "qrels.test"),
        k=(1, 5, 10, 15, 20, 30, 100, 200, 500, 1000),
        profile="trec",
    )
    seen = []
    for line in (FOLDER / file).read_text().splitlines():
        measure, query, printed = line.split()[:3]
        name = our_name(measure)
        if name is not None:
            value = result.measures[name].value if query == "all" else result.per_query[query][name]
            seen.append((measure, query, f"{value:.4f}", printed))
    assert [(m, q, ours) for m, q, ours, _ in seen] == [(m, q, theirs) for m, q, _, theirs in seen]
    assert len(seen) == compared


def test_the_averages_file_agrees() -> None:
    result = evaluate(
        read_ranking(FOLDER / "results.test"), read_qrels(FOLDER / "qrels.test"), k=(5, 10, 1000), profile="trec"
    )
    printed = json.loads((FOLDER / "printed_averages.json").read_text())["out.test"]
    for theirs, ours in (("map", "map"), ("recip_rank", "mrr"), ("P_5", "precision@5"), ("P_1000", "precision@1000")):
        assert round(result.measures[ours].value or 0, 4) == printed[theirs]


def test_six_third_party_cases_have_their_values_to_1e_9() -> None:
    cases = [json.loads(line) for line in (FOLDER / "conformance.jsonl").read_text().splitlines()]
    assert len(cases) == 6
    for case in cases:
        result = evaluate(
            {case["qid"]: case["ranking"]},
            {case["qid"]: case["qrels"]},
            k=(1, 3, 5, 10, 20, 100),
            rel_level=case["rel_level"],
            judged_only=case["judged_only"],
            empty_labels="zero",
        )
        values = result.per_query[case["qid"]]
        assert {n: values[n] for n in case["expected"]} == pytest.approx(case["expected"], abs=1e-9), case["set"]
