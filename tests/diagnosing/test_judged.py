"""Readings from judgment lines: rates, quick probabilities, repeats, refusals, and what is missing."""

from __future__ import annotations

from typing import Any

import pytest

import rubrics
from judge.cases import Case
from judge.diagnosing.judged import readings, relevant_passages
from judge.diagnosing.rules import Reading, diagnose
from judge.diagnosing.thresholds import choose
from rubrics.model import Rubric

LOADED: dict[str, Rubric] = {
    name: rubrics.load(name)
    for name in (
        "faithfulness", "answer_correctness", "completeness", "citation_accuracy", "refusal_correctness",
        "context_relevance",
    )
}  # fmt: skip
CASE = Case.from_row({
    "id": "a", "question": "What does it cost?", "answer": "Seven marks [p1].",
    "contexts": [{"id": "p1", "text": "It costs seven marks."}, {"id": "p2", "text": "It is blue."}],
})  # fmt: skip


def line(details: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    known = {"status": "scored", "mode": "full", "details": details or {}, "errors": [], "reason": None,
             "error_kind": None, "passed": True}  # fmt: skip
    return known | more


def read(lines: dict[str, list[dict[str, Any]]], case: Case = CASE, given: Any = None, **limits: float) -> dict[str, Reading]:  # fmt: skip
    return readings(case, lines, given or LOADED, choose(limits))


def test_full_mode_reads_the_rates_behind_the_scores() -> None:
    found = read({
        "faithfulness": [line({"support_rate": 0.75})], "answer_correctness": [line({"fact_match": 0.5, "checks": []})],
        "completeness": [line({"coverage": 0.9})], "citation_accuracy": [line({"f1": 0.4})],
    })  # fmt: skip
    assert {name: (found[name].value, found[name].side) for name in ("faithfulness", "correct", "complete", "citation")} == {
        "faithfulness": (0.75, "low"), "correct": (0.5, "high"), "complete": (0.9, "high"), "citation": (0.4, "low"),
    }  # fmt: skip


def test_a_judgment_with_a_score_but_no_rate_is_missing_and_the_score_is_not_used() -> None:
    found = read({"faithfulness": [line(score=5, normalized=1.0)]})["faithfulness"]
    assert (found.side, found.value) == ("missing", None)
    assert "a score is no substitute" in found.reason


def test_quick_mode_compares_p_with_the_threshold_of_the_rubric_not_with_08() -> None:
    found = read({"faithfulness": [line({"p": 0.6}, mode="quick")]})["faithfulness"]
    assert (found.side, found.threshold, found.threshold_origin) == ("high", 0.5, "faithfulness quick.threshold")


def test_quick_mode_compares_p_with_a_fitted_or_a_given_threshold() -> None:
    quick = LOADED["faithfulness"].quick.model_copy(update={"threshold": 0.7})
    fitted = {**LOADED, "faithfulness": LOADED["faithfulness"].model_copy(update={"quick": quick})}
    lines = {"faithfulness": [line({"p": 0.6}, mode="quick")]}
    assert read(lines, given=fitted)["faithfulness"].side == "low"
    assert read(lines, faithfulness=0.9)["faithfulness"].threshold_origin == "given"


def test_a_quick_probability_near_its_threshold_sends_the_case_to_a_person() -> None:
    found = read({"faithfulness": [line({"p": 0.53}, mode="quick")]})
    found["recall"] = Reading(side="high", value=1.0)
    assert diagnose(found).outcome == "human_review"


def test_a_code_decided_score_in_a_quick_run_is_read_by_its_rate() -> None:
    found = read({"answer_correctness": [line({"fact_match": 1.0}, mode="quick")]})["correct"]
    assert (found.side, found.origin) == ("high", "answer_correctness fact_match")


def test_repeats_become_an_interval_from_least_to_largest() -> None:
    split = read({"faithfulness": [line({"support_rate": rate}) for rate in (0.5, 1.0, 0.75)]})["faithfulness"]
    assert (split.low, split.value, split.high, split.side) == (0.5, 0.75, 1.0, "uncertain")
    agreed = read({"faithfulness": [line({"support_rate": rate}) for rate in (0.2, 0.4)]})["faithfulness"]
    assert agreed.side == "low"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (line(status="error", error_kind="timeout", reason="no reply in 60 s"), "timeout"),
        (line(status="cannot_judge", reason="the passage is cut off"), "the passage is cut off"),
        (line(status="undefined", reason="no_claims"), "no_claims"),
    ],
)
def test_a_judgment_without_a_score_is_missing_with_its_reason(row, reason) -> None:
    found = read({"faithfulness": [row]})["faithfulness"]
    assert (found.side, found.reason) == ("missing", reason)


def test_faithfulness_of_a_refusal_is_undefined_never_1() -> None:
    found = read({"faithfulness": [line(status="undefined", reason="refusal")]})
    assert (found["faithfulness"].side, found["refused"].side) == ("missing", "yes")


def test_an_answer_given_without_any_passage_is_supported_by_nothing() -> None:
    case = CASE.model_copy(update={"contexts": ()})
    found = read({"faithfulness": [line(status="undefined", reason="no_contexts")]}, case)
    assert (found["faithfulness"].side, found["faithfulness"].value) == ("low", 0.0)


def test_refusals_are_read_from_the_judge_else_from_phrases() -> None:
    declining = CASE.model_copy(update={"answer": "I cannot answer this from the documents."})
    assert read({}, declining)["refused"] == Reading(side="yes", origin="refusal phrases")
    judged = {"refusal_correctness": [line({"behaviour": "answered"})]}
    assert read(judged)["refused"] == Reading(side="no", origin="refusal_correctness")


def test_signals_of_refusal_that_disagree_are_uncertain() -> None:
    lines = {"refusal_correctness": [line({"behaviour": "answered"})],
             "faithfulness": [line(status="undefined", reason="refusal")]}  # fmt: skip
    assert read(lines)["refused"].side == "uncertain"
    near = [line({"behaviour": "refused", "p_declines": 0.52}, mode="quick")]
    assert read({"refusal_correctness": near})["refused"].side == "uncertain"


def test_a_contradiction_is_known_from_the_errors_of_fact_by_fact_judgments_only() -> None:
    facts = {"fact_match": 0.0, "checks": []}
    wrong = read({"answer_correctness": [line(facts, errors=["wrong_fact"])]})
    parts = read({"answer_correctness": [line(facts, errors=["missing_fact"])]})
    quick = read({"answer_correctness": [line({"p": 0.1}, mode="quick")]})
    assert [found["contradicts_reference"].side for found in (wrong, parts, quick)] == ["yes", "no", "missing"]


def test_a_rubric_that_extends_a_bundled_one_takes_its_place() -> None:
    own = LOADED["faithfulness"].model_copy(update={"id": "own", "extends": "faithfulness"})
    found = read({"own": [line({"support_rate": 1.0})]}, given={"own": own})["faithfulness"]
    assert (found.side, found.origin) == ("high", "own support_rate")


def test_useful_passages_come_from_grades_or_from_quick_units() -> None:
    rubric = LOADED["context_relevance"]
    graded = [line({"grades": {"p1": 3, "p2": 1}, "sufficiency": "full"})]
    quick = [line({"p": 0.5, "units": [{"text": "-", "p": 0.9}, {"text": "-", "p": 0.1}]}, mode="quick")]
    assert relevant_passages(CASE, graded, rubric) == {"p1": True, "p2": False}
    assert relevant_passages(CASE, quick, rubric) == {"p1": True, "p2": False}
    assert relevant_passages(CASE, [line(status="undefined", reason="no_contexts")], rubric) is None
