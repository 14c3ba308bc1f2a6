"""Recall over what the generator was given, and what happens when labels cannot be matched."""

from __future__ import annotations

from typing import Any

import pytest

from judge.cases import Case
from judge.diagnosing.found import find
from judge.diagnosing.thresholds import Threshold


def recall(evidence: str = "all", **fields: Any) -> Any:
    case = Case.from_row({"id": "a", "question": "?", **fields})
    return find([case], Threshold(0.8), evidence, {}).recalls["a"]


def passages(*ids: str) -> list[dict[str, str]]:
    return [{"id": name, "text": f"Text of {name}."} for name in ids]


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        # The ranking goes on after the passages given: d3 was found but never shown to the generator.
        ({"contexts": passages("d1", "d2"), "retrieved": ["d1", "d2", "d3"], "relevant": ["d3"]}, 0.0),
        # Passages in another order than the ranking, as after a reranker: they count themselves.
        ({"contexts": passages("d3"), "retrieved": ["d1", "d2", "d3"], "relevant": ["d3"]}, 1.0),
        # Passages without ids of their own: as many items from the head of the ranking.
        ({"contexts": ["one", "two"], "retrieved": ["d1", "d2", "d3"], "relevant": ["d2", "d3"]}, 0.5),
        # No passages recorded: the whole ranking.
        ({"retrieved": ["d1", "d2", "d3"], "relevant": ["d3"]}, 1.0),
        # Nothing retrieved.
        ({"contexts": [], "relevant": ["d3"]}, 0.0),
        # Grade 0 is judged and not relevant.
        ({"contexts": passages("d1"), "relevant": [{"doc": "d1"}, {"doc": "d2", "grade": 0}]}, 1.0),
    ],
)
def test_recall_is_over_the_passages_that_the_generator_was_given(fields, value) -> None:
    assert recall(**fields).value == value


def test_a_case_says_itself_whether_any_evidence_suffices() -> None:
    fields = {"contexts": passages("d1"), "relevant": ["d1", "d2"]}
    assert recall(**fields).value == 0.5
    assert recall("any", **fields).value == 1.0
    assert recall(evidence="all", **fields).origin == "recall over the 1 passages given (evidence all)"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"contexts": passages("d1")}, "no `relevant`"),
        ({"relevant": ["d1"]}, "no `contexts or retrieved`"),
        ({"contexts": passages("d1"), "relevant": []}, "nothing relevant"),
        ({"retrieved": ["d1"], "relevant": [{"text": "words of a passage"}]}, "has no text"),
    ],
)
def test_a_recall_that_cannot_be_known_is_missing_with_its_reason(fields, reason) -> None:
    found = recall(**fields)
    assert found.side == "missing"
    assert reason in found.reason


def test_one_case_that_cannot_be_matched_does_not_take_the_others_down() -> None:
    good = Case.from_row({"id": "good", "question": "?", "contexts": passages("d1"), "relevant": ["d1"]})
    bad = Case.from_row({"id": "bad", "question": "?", "retrieved": ["d1"], "relevant": [{"text": "words here"}]})
    found = find([good, bad], Threshold(0.8), "all", {})
    assert (found.recalls["good"].side, found.recalls["bad"].side) == ("high", "missing")
    assert found.given is None
    assert "has no text" in found.reason
