"""Lexical twins: hand-counted shares, and every script gives words."""

from __future__ import annotations

import pytest

from rubrics.overlap import content_words, overlap
from tests.rubrics.items import Case, Point, Text
from tests.rubrics.judged_cases import BUNDLED

KILN = (Text("d1", "The kiln burns ash wood for 9 hours."), Text("d2", "It has a tall chimney."))


def twin(rubric: str, **item: object) -> float | None:
    return overlap(BUNDLED[rubric], Case(question="What does it burn?", **({"contexts": KILN} | item)))  # type: ignore[arg-type]


def test_stems_join_word_forms_and_drop_small_words() -> None:
    assert content_words("The kilns were burning") == content_words("a kiln burns")
    assert content_words("the of and") == frozenset()


def test_scripts_without_spaces_are_read_in_pairs() -> None:
    assert content_words("火车站") == {"火车", "车站"}
    assert content_words("駅 Tokyo") == {"駅", "tokyo"}


def test_faithfulness_is_shared_words_times_known_numbers() -> None:
    # kiln, burn, oak, wood: 3 of 4 known
    assert twin("faithfulness", answer="The kiln burns oak wood.") == pytest.approx(3 / 4)
    # kiln, burn, ash, wood, 8, hour: 5 of 6; its only number is unknown
    assert twin("faithfulness", answer="The kiln burns ash wood for 8 hours.") == 0
    assert twin("faithfulness", answer="The kiln burns ash wood for 9 hours [d1].") == 1


def test_citations_compare_a_sentence_with_what_it_cites() -> None:
    # first sentence 3/3 against d1; second against d2 0/2 (kiln, big); third uncited; mean of two
    answer = "The kiln burns ash [d1]. The kiln is big [d2]. Nice."
    assert twin("citation_accuracy", answer=answer) == pytest.approx(1 / 2)
    assert twin("citation_accuracy", answer="The kiln burns ash [9].") == 0
    assert twin("citation_accuracy", answer="The kiln burns ash.") is None


def test_completeness_and_correctness_are_recall_of_the_best_reference() -> None:
    assert twin("answer_correctness", answer="Ash.", reference=("Oak wood.", "Ash wood.")) == 0.5
    assert twin("completeness", answer="Ash.", reference=("Ash wood.",), nuggets=(Point("ash"),)) == 1
    assert twin("completeness", answer="Ash.", reference=None) is None


def test_context_relevance_is_recall_of_the_question_averaged_over_passages() -> None:
    # the question's one content word "burn" stands in d1 only
    assert twin("context_relevance") == 0.5


def test_modes_without_a_twin_have_none() -> None:
    assert twin("answer_relevance") is None
    assert twin("refusal_correctness") is None
    assert twin("faithfulness", contexts=()) is None


def test_an_empty_answer_covers_nothing_though_the_question_shares_words_with_the_reference() -> None:
    assert twin("completeness", answer=" ", reference=("It burns ash wood.",)) == 0.0
    # burn, ash, wood: the question says one of three
    assert twin("completeness", answer="No idea.", reference=("It burns ash wood.",)) == pytest.approx(1 / 3)
