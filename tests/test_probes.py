"""Bias probes: what each edit does to a case, and what it must leave alone."""

from __future__ import annotations

import pytest

from judge.cases import Case
from judge.probes import PROBES, reworded
from tests.audited_runs import bundled

ANSWER = "The Alder ferry takes 40 minutes. It is perhaps run by Orme Lines for Alder Council."
PASSAGES = [{"id": "d1", "text": "The crossing takes 40 minutes."}, {"id": "d2", "text": "Orme Lines runs it."}]


def case(answer: str | None = ANSWER, **more) -> Case:
    return Case.model_validate({"id": "c", "question": "How long?", "answer": answer, "contexts": PASSAGES} | more)


def edited(name: str, one: Case) -> str | None:
    found = PROBES[name].applied(one)
    return None if found is None else found.answer


@pytest.mark.parametrize(
    "name, expected",
    [
        ("verbosity", f"{ANSWER}\n\n{ANSWER}"),
        (
            "formatting",
            "- **The** Alder ferry takes 40 minutes.\n- **It** is perhaps run by Orme Lines for Alder Council.",
        ),
        ("authority", f"According to the national standards office, the{ANSWER[3:]}"),
        ("fake_citation", ANSWER[:-1] + " [d97]."),
        ("assertiveness", "The Alder ferry takes 40 minutes. It is run by Orme Lines for Alder Council."),
        ("number_damage", ANSWER.replace("40", "70")),
        ("negation", ANSWER.replace("is perhaps", "is not perhaps")),
    ],
)
def test_each_edit_changes_what_it_says_and_nothing_else(name, expected):
    assert edited(name, case()) == expected


def test_names_change_places_everywhere():
    one = case("It links Orme with Alder. From Orme it is an hour, and at Alder it stops.")
    assert edited("name_swap", one) == "It links Alder with Orme. From Alder it is an hour, and at Orme it stops."
    assert edited("name_swap", case("It links Orme with the coast.")) is None


def test_a_list_becomes_running_text_with_the_same_words():
    assert edited("formatting", case("- **One** thing.\n- Another thing.")) == "One thing. Another thing."


def test_only_a_number_that_the_sources_hold_is_damaged_and_never_a_citation():
    assert edited("number_damage", case("It takes 41 minutes [1].")) is None
    assert edited("number_damage", case("See [40]: it takes 40 minutes.")) == "See [40]: it takes 70 minutes."
    # 7 stands in the passages too: the next step is taken, 4 + 5 = 9
    both = [{"id": "d1", "text": "40 minutes in summer, 70 in winter."}]
    assert edited("number_damage", case("It takes 40 minutes.", contexts=both)) == "It takes 90 minutes."


def test_a_denial_is_turned_into_its_opposite():
    assert edited("negation", case("It does not run.")) == "It does run."
    assert edited("negation", case("It doesn't run.")) is None


def test_an_answer_without_hedges_gets_an_assurance():
    assert edited("assertiveness", case("It runs.")) == "Without any doubt: It runs."


def test_passages_are_reversed_with_their_ids():
    found = PROBES["passage_order"].applied(case())
    assert [passage.id for passage in found.contexts] == ["d2", "d1"]
    assert PROBES["passage_order"].applied(case(contexts=PASSAGES[:1])) is None


@pytest.mark.parametrize("name", sorted(set(PROBES) - {"prompt_wording", "passage_order"}))
def test_empty_answers_are_left_alone(name):
    assert PROBES[name].applied(case("")) is None
    assert PROBES[name].applied(case(None)) is None


def test_english_edits_skip_cases_in_other_languages():
    german = case("Die Fähre braucht 40 Minuten.", lang="de")
    assert edited("authority", german) is None
    assert edited("number_damage", german) == "Die Fähre braucht 70 Minuten."


def test_expectations_follow_the_rubric():
    faithful, relevant, passages = (bundled(name) for name in ("faithfulness", "answer_relevance", "context_relevance"))
    assert PROBES["number_damage"].expected(faithful) == "lower"
    assert PROBES["number_damage"].expected(relevant) == "not_higher"
    assert PROBES["verbosity"].expected(faithful) == "same"
    assert PROBES["verbosity"].expected(passages) is None
    assert PROBES["passage_order"].expected(relevant) is None
    assert PROBES["fake_citation"].expected(bundled("citation_accuracy")) == "lower"


def test_a_second_wording_keeps_the_scale_and_changes_the_order():
    rubric = bundled("faithfulness")
    other = reworded(rubric)
    assert list(other.anchors) == list(reversed(rubric.anchors))
    assert dict(other.anchors) == dict(rubric.anchors)
    assert sorted(line for line in other.body.split("\n") if line.startswith("- ")) == sorted(
        line for line in rubric.body.split("\n") if line.startswith("- ")
    )
    assert (other.scale, other.bands, other.id) == (rubric.scale, rubric.bands, rubric.id)
    assert other.rubric_hash != rubric.rubric_hash
