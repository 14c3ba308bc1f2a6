"""What users hand in: kinds of ids, mappings, items, DataFrames, cases, and what is refused or doubted."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from judge.cases import Case
from judge.errors import InputError
from judge.retrieval import Ranked, evaluate, from_cases


def recall(rankings: object, labels: object, **options: object) -> float | None:
    return evaluate(rankings, labels, k=5, **options).measures["recall@5"].value


@pytest.mark.parametrize("labels", [[1], ["1"], {1: 1}, {"1": 1}, (1,), {1}])
@pytest.mark.parametrize("ranking", [[2, 1], ["2", "1"], (2, 1)])
def test_the_id_1_is_the_id_of_text_1(ranking: object, labels: object) -> None:
    assert recall({"q": ranking}, {"q": labels}) == 1.0
    assert recall({7: ranking}, {"7": labels}) == 1.0


@pytest.mark.parametrize("wrong", [1.5, None, True, ""])
def test_other_kinds_of_ids_are_refused_with_their_place(wrong: object) -> None:
    with pytest.raises(InputError, match=r"ranking of query 'q'.* is no id"):
        evaluate({"q": [wrong, "a"]}, {"q": ["a"]})
    with pytest.raises(InputError, match=r"labels of query 'q'.* is no id"):
        evaluate({"q": ["a"]}, {"q": [wrong]})


@pytest.mark.parametrize("grade", [math.nan, math.inf, "2", None, "high"])
def test_a_grade_is_a_finite_number(grade: object) -> None:
    with pytest.raises(InputError, match=r"grade of 'a' is .*: give a finite number"):
        evaluate({"q": ["a"]}, {"q": {"a": grade}})


def test_only_zero_and_negative_grades_leave_nothing_to_find() -> None:
    for grades in ({"D1": 0}, {"D1": -1}, {"D1": 0, "D2": -3}):
        assert set(evaluate({"q": ["D1"]}, {"q": grades}).per_query["q"].values()) == {None}


def test_a_string_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(InputError, match="ranking of query 'q' is 'D1'"):
        evaluate({"q": "D1"}, {"q": ["D1"]})
    with pytest.raises(InputError, match="labels of query 'q' is 'D1'"):
        evaluate({"q": ["D1"]}, {"q": "D1"})
    with pytest.raises(InputError, match="one label object: put it in a list"):
        evaluate({"q": ["D1"]}, {"q": {"text": "The passage"}})
    with pytest.raises(InputError, match="rankings is a list"):
        evaluate([["D1"]], {"q": ["D1"]})


def test_the_order_of_a_list_is_the_ranking_even_with_scores() -> None:
    items = [{"id": "a", "score": 0.1}, {"id": "b", "score": 0.9}]
    assert evaluate({"q": items}, {"q": ["a"]}).per_query["q"]["rr"] == 1.0
    assert evaluate({"q": items}, {"q": ["a"]}, ties="docid_desc").per_query["q"]["rr"] == 0.5


def test_a_mapping_of_scores_is_ranked_by_them() -> None:
    assert evaluate({"q": {"a": 0.1, "b": 0.9}}, {"q": ["b"]}).per_query["q"]["rr"] == 1.0
    assert evaluate({"q": Ranked(["b", "a"], [0.9, 0.1])}, {"q": ["b"]}).per_query["q"]["rr"] == 1.0


def test_scores_of_some_items_only_are_refused() -> None:
    with pytest.raises(InputError, match="1 of 2 items have a score"):
        evaluate({"q": [{"id": "a", "score": 1.0}, {"id": "b"}]}, {"q": ["a"]})


def test_a_misspelt_item_field_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="document"):
        evaluate({"q": [{"id": "a", "document": "D1"}]}, {"q": ["a"]})


def test_the_same_label_with_two_grades_is_refused() -> None:
    labels = [{"doc": "a", "grade": 1}, {"doc": "a", "grade": 2}]
    with pytest.raises(InputError, match="'a' has two grades, 1 and 2"):
        evaluate({"q": ["a"]}, {"q": labels})


def test_frames_give_the_values_of_mappings() -> None:
    rankings = pd.DataFrame({"query_id": ["q", "q", "r"], "doc_id": ["a", "b", "c"], "rank": [2, 1, 1]})
    labels = pd.DataFrame({"query_id": ["q", "r"], "doc_id": ["a", "x"], "grade": [2, 1]})
    by_frame = evaluate(rankings, labels)
    by_mapping = evaluate({"q": ["b", "a"], "r": ["c"]}, {"q": {"a": 2}, "r": {"x": 1}})
    assert dict(by_frame.per_query) == dict(by_mapping.per_query)


def test_a_frame_with_scores_is_ranked_by_them_and_integer_ids_are_text() -> None:
    rankings = pd.DataFrame({"query_id": [1, 1], "doc_id": [10, 11], "score": [0.2, 0.8]})
    labels = pd.DataFrame({"query_id": [1], "doc_id": [11]})
    assert evaluate(rankings, labels).per_query["1"]["rr"] == 1.0


def test_a_frame_without_the_columns_says_which() -> None:
    with pytest.raises(InputError, match=r"labels: none of doc_id, .* is among the columns query_id, foo"):
        evaluate({"q": ["a"]}, pd.DataFrame({"query_id": ["q"], "foo": ["a"]}))


def test_cases_without_labels_are_extra_and_empty_labels_are_unanswerable() -> None:
    cases = [
        Case(id="1", question="?", retrieved=["a", "b"], relevant=["b"]),
        Case(id="2", question="?", contexts=[{"id": "a", "text": "words"}], relevant=["a"]),
        Case(id="3", question="?", retrieved=["a"], relevant=[]),
        Case(id="4", question="?", retrieved=["a"]),
        Case(id="5", question="?", relevant=["a"]),
    ]
    result = evaluate(*from_cases(cases))
    assert (result.n_queries, result.n_undefined, result.n_missing, result.n_extra) == (4, 1, 1, 1)
    assert [result.per_query[q]["rr"] for q in ("1", "2", "3", "5")] == [0.5, 1.0, None, 0.0]


def test_retrieved_ids_take_text_and_document_from_the_contexts() -> None:
    case = Case(
        id="1",
        question="?",
        contexts=[{"id": "c1", "text": "The warranty period is 24 months.", "doc": "D1"}],
        retrieved=["x", "c1"],
        relevant=[{"doc": "D1"}],
    )
    assert evaluate(*from_cases([case])).per_query["1"]["rr"] == 0.5


def test_suspicious_joins_are_doubted_aloud() -> None:
    assert "no labelled query has a ranking" in evaluate({"Q1": ["a"]}, {"q1": ["a"]}).warnings[0]
    assert "no labelled id occurs in any ranking" in evaluate({"q": ["D1#0"]}, {"q": ["D1"]}).warnings[0]
    assert "fractional grade" in evaluate({"q": ["a"]}, {"q": {"a": 0.5, "b": 1}}).warnings[0]
    assert "1 labels have a grade below 0" in evaluate({"q": ["a"]}, {"q": {"a": -1, "b": 1}}).warnings[-1]
    assert "changes nothing" in evaluate({"q": ["a"]}, {"q": {"a": 1}}, ties="expected").warnings[0]
    assert evaluate({"q": ["a"]}, {"q": {"a": 1}}).warnings == ()


def test_a_plain_id_that_names_a_chunk_is_doubted() -> None:
    result = evaluate({"q": [{"id": "c1", "doc": "D1"}]}, {"q": ["c1"]})
    assert result.measures["recall@5"].value == 0.0
    assert any("write {'chunk': 'c1'}" in text for text in result.warnings)
