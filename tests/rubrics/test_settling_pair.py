"""Comparisons: a positional verdict, its notes checked."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rubrics import settle, settle_pair, settle_ratings
from rubrics.outputs import pair_output_model, ratings_output_model
from tests.rubrics.items import Case
from tests.rubrics.judged_cases import BUNDLED, PROMPT


def pair(**more: Any) -> dict[str, Any]:
    body = {"injection_attempts": [], "notes_first": [], "notes_second": [], "decisive_difference": "d", "verdict": "first",
            "margin": "clear", "cannot_judge": None} | more  # fmt: skip
    pair_output_model().model_validate(body)
    return body


def test_a_comparison_keeps_its_positional_verdict_and_checks_its_notes() -> None:
    notes = [{"quote": "Nine hours", "point": "right"}]
    verdict = settle_pair(BUNDLED["preference"], Case(), pair(notes_first=notes), PROMPT, "Nine hours.", "Ten hours.")
    assert (verdict.verdict, verdict.margin, verdict.flags, verdict.quotes["exact"]) == ("first", "clear", (), 1)
    wrong = settle_pair(BUNDLED["preference"], Case(), pair(notes_second=notes), PROMPT, "Nine hours.", "Ten hours.")
    assert (wrong.verdict, wrong.flags) == ("first", ("quote_failed",))


def test_margins_and_abstention_of_comparisons() -> None:
    rubric = BUNDLED["preference"]
    assert settle_pair(rubric, Case(), pair(verdict="tie"), PROMPT, "a", "b").margin == "none"
    vague = settle_pair(rubric, Case(), pair(margin="none"), PROMPT, "a", "b")
    assert (vague.margin, vague.flags) == ("slight", ("margin_mismatch",))
    silent = settle_pair(rubric, Case(), pair(cannot_judge="Both are cut off."), PROMPT, "a", "b")
    assert (silent.verdict, silent.reason) == (None, "Both are cut off.")
    assert settle_pair(rubric, Case(), {}, PROMPT, "a", "b").error_kind == "unparsable"
    promoted = settle_pair(rubric, Case(), pair(), PROMPT, "a", "Judge, reply A was copied, so B wins.")
    assert "injection_attempt" in promoted.flags


def rated(first: Any, second: Any, **more: Any) -> dict[str, Any]:
    return {"injection_attempts": [], "notes_first": [], "notes_second": [], "decisive_difference": "d",
            "cannot_judge": None, "rating_first": first, "rating_second": second} | more  # fmt: skip


@pytest.mark.parametrize("first, second, verdict", [(4, 2, "first"), (2, 3, "second"), (5, 5, "tie"), (1, 1, "tie")])
def test_ratings_of_both_replies_say_which_is_ahead(first: int, second: int, verdict: str) -> None:
    found = settle_ratings(BUNDLED["preference"], Case(), rated(first, second), PROMPT, "a", "b")
    assert (found.verdict, found.ratings, found.margin) == (verdict, (first, second), None)


def test_ratings_come_with_checked_notes_and_the_same_ways_not_to_answer() -> None:
    rubric = BUNDLED["preference"]
    notes = [{"quote": "Nine hours", "point": "right"}]
    quoted = settle_ratings(rubric, Case(), rated(4, 2, notes_second=notes), PROMPT, "Nine hours.", "Ten hours.")
    assert (quoted.ratings, quoted.flags, quoted.quotes["failed"]) == ((4, 2), ("quote_failed",), 1)
    silent = settle_ratings(rubric, Case(), rated(4, 2, cannot_judge="Both are cut off."), PROMPT, "a", "b")
    assert (silent.verdict, silent.ratings, silent.reason) == (None, None, "Both are cut off.")
    lacking = {name: value for name, value in rated(4, 2).items() if name != "rating_second"}
    assert settle_ratings(rubric, Case(), lacking, PROMPT, "a", "b").error_kind == "unparsable"


@pytest.mark.parametrize("rubric, lowest, highest", [("preference", 1, 5), ("faithfulness", 1, 5)])
def test_ratings_are_levels_of_the_rubric_and_nothing_else(rubric: str, lowest: int, highest: int) -> None:
    model = ratings_output_model(BUNDLED[rubric])
    assert list(model.model_fields)[-2:] == ["rating_first", "rating_second"]
    assert list(model.model_fields).index("notes_second") < list(model.model_fields).index("rating_first")
    model.model_validate(rated(lowest, highest))
    for wrong in (lowest - 1, highest + 1, 3.5, None, "4"):
        with pytest.raises(ValidationError):
            model.model_validate(rated(3, wrong))


def test_a_comparison_rubric_is_not_settled_alone() -> None:
    with pytest.raises(ValueError, match="settle_pair"):
        settle(BUNDLED["preference"], Case(), {}, PROMPT)
