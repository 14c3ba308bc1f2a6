"""What code decides before any call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from rubrics import precheck
from rubrics.model import Outcome
from tests.rubrics.items import Case, Point, Text
from tests.rubrics.judged_cases import BUNDLED


def before(rubric: str, mode: Literal["full", "quick"] = "full", **item: Any) -> Outcome | None:
    return precheck(BUNDLED[rubric], Case(**item), mode)


def why(*arguments: Any, **item: Any) -> tuple[str, str | None] | None:
    outcome = before(*arguments, **item)
    return outcome and (outcome.status, outcome.reason)


@pytest.mark.parametrize("answer", [None, "", "  \n", "\u200b"])
@pytest.mark.parametrize("rubric", ["faithfulness", "hallucination", "answer_relevance", "citation_accuracy"])
def test_an_empty_answer_is_undefined(rubric: str, answer: str | None) -> None:
    assert why(rubric, answer=answer) == ("undefined", "empty_answer")


@pytest.mark.parametrize("answer", [":", "Thought process:", "Solution"])
def test_a_degenerate_answer_is_undefined_and_flagged(answer: str) -> None:
    outcome = before("faithfulness", answer=answer)
    assert outcome is not None
    assert (outcome.status, outcome.reason, outcome.flags) == ("undefined", "degenerate_answer", ("degenerate_answer",))


def test_an_empty_answer_scores_lowest_where_something_was_wanted() -> None:
    for rubric, rate in (("answer_correctness", "fact_match"), ("completeness", "coverage")):
        outcome = before(rubric, answer="")
        assert outcome is not None
        assert (outcome.score, outcome.score_source, outcome.details[rate]) == (1, "precheck", 0.0)
    assert why("completeness", answer="", reference=None) == ("undefined", "empty_answer")


@pytest.mark.parametrize(("answerable", "score"), [("yes", 1), ("partly", 1), ("no", 2), (None, 1)])
def test_an_empty_answer_has_a_column_in_the_refusal_table(answerable: str | None, score: int) -> None:
    outcome = before("refusal_correctness", answer="", answerable=answerable)
    assert outcome is not None
    assert (outcome.score, outcome.details["label"]) == (score, "silent_empty")
    assert ("answerable_unknown" in outcome.flags) == (answerable is None)


@pytest.mark.parametrize("rubric", ["faithfulness", "citation_accuracy", "context_relevance", "refusal_correctness"])
def test_absent_contexts_are_not_applicable(rubric: str) -> None:
    assert why(rubric, contexts=None) == ("not_applicable", "missing_contexts")


@pytest.mark.parametrize("contexts", [(), (Text("d1", ""), Text("d2", " \n"))])
def test_blank_contexts_are_undefined_but_hallucination_and_refusal_go_on(contexts: tuple[Text, ...]) -> None:
    for rubric in ("faithfulness", "citation_accuracy", "context_relevance"):
        assert why(rubric, contexts=contexts) == ("undefined", "no_contexts")
    assert before("hallucination", contexts=contexts) is None
    assert before("refusal_correctness", contexts=contexts) is None


def test_context_relevance_does_not_look_at_the_answer() -> None:
    assert before("context_relevance", answer="") is None


def test_rubrics_of_single_passages_refuse_glued_ones() -> None:
    @dataclass(frozen=True)
    class Glued(Text):
        joined: bool = True

    for rubric in ("citation_accuracy", "context_relevance"):
        status, reason = why(rubric, contexts=(Glued("c1", "One. Two."),)) or ("", "")
        assert status == "not_applicable"
        assert "joined" in (reason or "")
    assert before("faithfulness", contexts=(Glued("c1", "One. Two."),)) is None


def test_missing_references() -> None:
    assert why("answer_correctness", reference=None) == ("not_applicable", "missing_reference")
    assert why("answer_correctness", reference=(" ",)) == ("not_applicable", "missing_reference")
    assert before("completeness", reference=None) is None  # from the passages
    assert why("completeness", "quick", reference=None) == ("not_applicable", "missing_reference")
    assert why("completeness", reference=None, contexts=None) == ("not_applicable", "missing_reference")
    assert before("completeness", "quick", reference=None, nuggets=(Point("x"),)) is None


def test_no_nuggets() -> None:
    assert why("completeness", nuggets=()) == ("undefined", "no_nuggets")
    assert why("completeness", reference=None, answerable="no") == ("undefined", "no_nuggets")


def test_quick_needs_something_to_compare_with() -> None:
    assert why("hallucination", "quick", contexts=(), reference=None) == ("not_applicable", "missing_contexts")
    assert before("hallucination", "quick", contexts=()) is None
    assert why("refusal_correctness", "quick", answerable="partly") == ("not_applicable", "answerable_partly")
    assert before("refusal_correctness", answerable="partly") is None


def test_quick_scores_an_uncited_answer_without_a_call_as_full_mode_would() -> None:
    outcome = before("citation_accuracy", "quick", answer="It stays hot for 9 hours.")
    assert outcome is not None
    assert (outcome.score, outcome.details["uncited"], outcome.flags) == (1, 1, ("uncited_sentences",))
    assert why("citation_accuracy", "quick", answer="I do not know.") == ("undefined", "refusal")
    assert before("citation_accuracy", answer="It stays hot for nine hours.") is None
    lenient = BUNDLED["citation_accuracy"].model_copy(update={"citations_required": False})
    assert precheck(lenient, Case(answer="It is hot."), "full").reason == "no_citations"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Nine hours.", "nine hours"), ("The nine hours", "Nine hours."), ("1964 [d1].", "1964"),
        ("The dam was completed in 1964 [d2].", "1964"), ("It holds 850 kg.", "850 kg"),
    ],
)  # fmt: skip
def test_an_answer_that_equals_a_short_reference_is_right_without_a_call(answer: str, reference: str) -> None:
    outcome = before("answer_correctness", answer=answer, reference=("something else", reference))
    assert outcome is not None
    assert (outcome.score, outcome.score_source, outcome.details["fact_match"]) == (5, "precheck", 1.0)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("It was not completed in 1964.", "1964"), ("It was begun in 1960 and completed in 1964.", "1964"),
        ("It was completed before 1964.", "1964"), ("It holds 850 g.", "850 kg"), ("5", "-5"), ("€5", "$5"), ("<5", "5"),
        ("It was Mary Shelley.", "Mary Shelley"), ("1964. It fell down.", "1964"),
        ("The answer is one two three four five six", "one two three four five six"), ("1964", "Not 1965"),
    ],
)  # fmt: skip
def test_anything_less_plain_goes_to_the_judge(answer: str, reference: str) -> None:
    assert before("answer_correctness", answer=answer, reference=(reference,)) is None


def test_comparisons_are_not_prechecked() -> None:
    assert before("preference", answer="", contexts=None) is None
