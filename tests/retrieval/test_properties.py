"""Properties on random inputs, and agreement with trec_eval (pytrec_eval-terrier) and with brute force."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.retrieval import evaluate

K = (1, 2, 3, 5, 10)
IDS = st.sampled_from([f"d{n}" for n in range(14)])
GRADES = st.dictionaries(IDS, st.integers(-2, 4), max_size=10)
# trec_eval's C code reads uninitialised memory, and may not return, for a query with grades below 0 only.
JUDGED = st.dictionaries(IDS, st.integers(-1, 3), min_size=1).filter(lambda grades: max(grades.values()) >= 0)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "precision_denominator": st.sampled_from(["k", "retrieved"]),
        "recall_denominator": st.sampled_from(["relevant", "min_relevant_k"]),
        "ap_denominator": st.sampled_from(["relevant", "min_relevant_k", "retrieved_relevant"]),
        "duplicates": st.sampled_from(["first", "credit_once"]),
        "gain": st.sampled_from(["linear", "exponential"]),
        "rel_level": st.sampled_from([1, 2, 3]),
        "judged_only": st.booleans(),
        "empty_labels": st.sampled_from(["undefined", "zero"]),
    },
)


@settings(max_examples=60, deadline=None)
@given(st.lists(IDS, max_size=20), GRADES, OPTIONS)
def test_every_value_lies_in_0_to_1_and_recall_and_hit_rate_grow_with_k(
    ranking: list[str], grades: dict[str, int], options: dict[str, Any]
) -> None:
    values = evaluate({"q": ranking}, {"q": grades}, k=K, **options).per_query["q"]
    for name, value in values.items():
        assert value is None or (value >= 0 if name.startswith("dcg") else -1e-12 <= value <= 1 + 1e-12), name
    for family in ("hit_rate", "rr", *(["recall"] if options.get("recall_denominator") != "min_relevant_k" else [])):
        column = [values[f"{family}@{k}"] for k in K]
        assert column == sorted(column, key=lambda v: (v is not None, v)), family


@settings(max_examples=40, deadline=None)
@given(st.lists(IDS, max_size=20), GRADES, OPTIONS)
def test_items_documents_and_label_objects_give_the_values_of_bare_ids(
    ranking: list[str], grades: dict[str, int], options: dict[str, Any]
) -> None:
    plain = evaluate({"q": ranking}, {"q": grades}, k=K, **options)
    labels = [{"doc": i, "grade": grade} for i, grade in grades.items()]
    items = [{"id": i} for i in ranking]
    general = evaluate({"q": items}, {"q": labels}, k=K, **options)
    assert general.per_query["q"] == plain.per_query["q"]
    # one passage per document, beside a document of another name, goes through passage matching
    passages = [{"id": f"{i}#0", "doc": i} for i in ranking]
    matched = evaluate({"q": passages}, {"q": labels}, k=K, **options).per_query["q"]
    assert {name: matched[name] for name in plain.names} == pytest.approx(plain.per_query["q"])
    by_document = evaluate({"q": passages}, {"q": labels}, k=K, **(options | {"duplicates": "first"}), unit="doc")
    first = evaluate({"q": ranking}, {"q": grades}, k=K, **(options | {"duplicates": "first"}))
    assert by_document.per_query["q"] == first.per_query["q"]


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), st.lists(IDS, max_size=20), min_size=1),
    st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), JUDGED, min_size=1),
    st.sampled_from([1, 2]),
    st.booleans(),
)
def test_values_agree_with_trec_eval_after_compacting(
    rankings: dict[str, list[str]], labels: dict[str, dict[str, int]], rel_level: int, judged_only: bool
) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    cuts = ",".join(map(str, K))
    names = {f"{m}.{cuts}" for m in ("P", "recall", "success", "map_cut", "ndcg_cut")} | {"map", "ndcg", "recip_rank"}
    compacted = {q: list(dict.fromkeys(ranking)) for q, ranking in rankings.items()}
    run = {q: {i: float(-rank) for rank, i in enumerate(ids)} for q, ids in compacted.items() if ids}
    theirs = pytrec_eval.RelevanceEvaluator(
        labels, names, relevance_level=rel_level, judged_docs_only_flag=judged_only
    ).evaluate(run)
    ours = evaluate(rankings, labels, k=K, rel_level=rel_level, judged_only=judged_only, empty_labels="zero")
    families = {"P": "precision", "recall": "recall", "success": "hit_rate", "map_cut": "ap", "ndcg_cut": "ndcg"}
    for query, expected in theirs.items():
        values = ours.per_query[query]
        for theirs_family, family in families.items():
            for k in K:
                assert values[f"{family}@{k}"] == pytest.approx(expected[f"{theirs_family}_{k}"], abs=1e-9)
        for theirs_name, name in (("map", "ap"), ("ndcg", "ndcg"), ("recip_rank", "rr")):
            assert values[name] == pytest.approx(expected[theirs_name], abs=1e-9)
    assert set(theirs) == set(run) & set(labels)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=1, max_size=6),
    st.dictionaries(st.integers(0, 6), st.integers(0, 2), min_size=1),
    OPTIONS,
)
def test_expected_ties_are_the_mean_over_all_orders(
    scores: list[float], grades: dict[int, int], options: dict[str, Any]
) -> None:
    labels = {f"d{i}": grade for i, grade in grades.items()}
    items = [(f"d{i}", score) for i, score in enumerate(scores)]
    ours = evaluate({"q": dict(items)}, {"q": labels}, k=(1, 2, 4), ties="expected", **options).per_query["q"]
    groups = [[i for i, s in items if s == score] for score in sorted(set(scores), reverse=True)]
    orders = [list(itertools.chain(*order)) for order in itertools.product(*map(itertools.permutations, groups))]
    every = [evaluate({"q": order}, {"q": labels}, k=(1, 2, 4), **options).per_query["q"] for order in orders]
    for name, value in ours.items():
        column = [values[name] for values in every]
        expected = None if None in column else math.fsum(column) / len(column)
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-9)), name
