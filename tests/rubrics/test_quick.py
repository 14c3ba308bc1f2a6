"""The quick form keeps the measured wording, and data stays in its block without marks."""

from __future__ import annotations

import json
import re

import pytest

import rubrics
from rubrics import quick
from rubrics.sanitising import restore
from tests.rubrics.items import ATTACKS, DATA, Case, Point, Text, attacked
from tests.rubrics.judged_cases import BUNDLED

MEASURED = json.loads((DATA / "quick-prompts.json").read_text(encoding="utf-8"))
QUICK = [rubric for rubric in BUNDLED.values() if rubric.quick]


def user(unit: rubrics.Unit) -> str:
    assert unit.prompt is not None
    return unit.prompt.messages[1]["content"]


def measured(form: str, **texts: str) -> str:
    """The measured prompt of a form, its placeholders filled by position of the word that begins them."""
    material = MEASURED["forms"][form]["material"]
    for placeholder in re.findall(r"\{[^}]*\}", material):
        key = next(key for key in texts if key in placeholder)
        material = material.replace(placeholder, texts[key])
    return (
        MEASURED["user_template"].replace("{material}", material).replace("{check}", MEASURED["forms"][form]["check"])
    )


ONE = Case(answer="It stays hot for nine hours.", reference=("Nine hours.",))
PASSAGES = "The kiln stays hot for nine hours.\nIt was built in 1902."


@pytest.mark.parametrize(
    "rubric, item, form, texts",
    [
        ("faithfulness", ONE, "f6", {"passages": PASSAGES, "sentence": ONE.answer}),
        ("hallucination", ONE, "f6", {"passages": PASSAGES, "sentence": ONE.answer}),
        ("answer_correctness", ONE, "k6", {"question": ONE.question, "sentence": ONE.answer, "reference": "Nine hours."}),
        ("completeness", ONE, "c7", {"question": ONE.question, "point": "Nine hours.", "answer": ONE.answer}),
        ("answer_relevance", ONE, "r6", {"question": ONE.question, "answer": ONE.answer}),
        ("context_relevance", ONE, "x4", {"question": ONE.question, "passage": "The kiln stays hot for nine hours."}),
        ("citation_accuracy", Case(answer="It is hot for nine hours [d1]."), "s1",
         {"cited passage": "The kiln stays hot for nine hours.", "sentence": "It is hot for nine hours."}),
    ],
)  # fmt: skip
def test_the_wording_is_as_measured(rubric: str, item: Case, form: str, texts: dict[str, str]) -> None:
    unit = rubrics.render_quick(BUNDLED[rubric], item)[0]
    assert user(unit) == measured(form, **texts)
    assert unit.prompt is not None
    assert unit.prompt.messages[0]["content"] == MEASURED["system"]
    assert list(unit.prompt.tokens) == MEASURED["forms"][form]["answer_tokens"]
    assert (unit.prompt.max_tokens, unit.prompt.output, unit.prompt.marker) == (1, None, None)


def test_refusal_asks_two_questions_as_measured() -> None:
    answerable, declines = rubrics.render_quick(BUNDLED["refusal_correctness"], ONE)
    assert (answerable.question, declines.question) == ("answerable", "declines")
    assert user(answerable) == measured("a6", question=ONE.question, passages=PASSAGES)
    assert user(declines) == measured("d2", question=ONE.question, answer=str(ONE.answer))


def test_refusal_is_decided_by_code_where_the_case_or_a_phrase_says_it() -> None:
    item = Case(answer="I'm sorry, I could not find that in the documents.", answerable="no")
    answerable, declines = rubrics.render_quick(BUNDLED["refusal_correctness"], item)
    assert (answerable.prompt, answerable.p) == (None, 0.0)
    assert (declines.prompt, declines.p) == (None, 0.0)  # p of "gives the information": declining is 1 - p
    no_passages = rubrics.render_quick(BUNDLED["refusal_correctness"], Case(contexts=()))[0]
    assert (no_passages.prompt, no_passages.p) == (None, 0.0)
    gold = rubrics.render_quick(BUNDLED["refusal_correctness"], Case(contexts=(), answerable="yes"))[0]
    assert gold.p == 1.0


def test_hallucination_without_passages_is_compared_with_the_reference() -> None:
    unit = rubrics.render_quick(BUNDLED["hallucination"], Case(answer="Nine hours.", contexts=None))[0]
    assert user(unit) == measured("k6", question=ONE.question, sentence="Nine hours.", reference="Nine hours.")


def test_several_references_give_a_group_of_units_each() -> None:
    item = Case(answer="Nine hours. Ash wood.", reference=("9 h; ash", "Half a day."))
    correct = rubrics.render_quick(BUNDLED["answer_correctness"], item)
    assert [(unit.text, unit.group) for unit in correct] == [
        ("Nine hours.", 0), ("Ash wood.", 0), ("Nine hours.", 1), ("Ash wood.", 1),
    ]  # fmt: skip
    complete = rubrics.render_quick(BUNDLED["completeness"], item)
    assert [(unit.text, unit.group) for unit in complete] == [("9 h", 0), ("ash", 0), ("Half a day.", 1)]


def test_nuggets_are_the_points_where_the_case_has_them() -> None:
    units = rubrics.render_quick(
        BUNDLED["completeness"], Case(nuggets=(Point("hot for nine hours"), Point("ash", "okay")))
    )
    assert [unit.text for unit in units] == ["hot for nine hours", "ash"]


def test_cited_pairs_follow_the_marks_and_an_unknown_mark_needs_no_call() -> None:
    item = Case(answer="Hot for nine hours [d1][d2]. Built by Rank [d9]. It is grey.")
    units = rubrics.render_quick(BUNDLED["citation_accuracy"], item)
    assert [(unit.text, unit.group, unit.p) for unit in units] == [
        ("Hot for nine hours.", 1, None), ("Hot for nine hours.", 1, None), ("Built by Rank.", 2, 0.0),
    ]  # fmt: skip
    assert units[2].prompt is None
    assert "It was built in 1902." in user(units[1])


def test_cases_without_units_give_none() -> None:
    assert rubrics.render_quick(BUNDLED["faithfulness"], Case(answer="")) == ()
    assert rubrics.render_quick(BUNDLED["context_relevance"], Case(contexts=(Text("d1", "  "),))) == ()
    assert rubrics.render_quick(BUNDLED["citation_accuracy"], Case(answer="No marks here.")) == ()
    assert rubrics.render_quick(BUNDLED["completeness"], Case(reference=None)) == ()


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["id"])
def test_an_attack_stays_in_its_block_and_no_chat_token_or_heading_survives(attack: dict) -> None:
    for rubric in QUICK:
        for unit in rubrics.render_quick(rubric, attacked(attack)):
            if unit.prompt is None:
                continue
            system, text = (message["content"] for message in unit.prompt.messages)
            assert system == MEASURED["system"]
            headings = re.findall(r"^\[([A-Z][A-Z :]*)\]$", text, re.MULTILINE)
            forms = [rubric.quick, quick.ANSWERABLE, quick.AGAINST_REFERENCE]
            assert headings in [[*(block.head for block in form.blocks), "CHECK"] for form in forms if form]
            asks = [form.ask for form in forms if form]
            assert text.rpartition("\n\n[CHECK]\n")[2] in asks
            assert not re.search(r"<\||\[/?INST\]|</?s>|<(start|end)_of_turn>|</?tool_call>", text)
            assert unit.prompt.marker is None


def test_an_attack_in_the_whole_answer_is_recovered_from_its_block() -> None:
    for attack in (one for one in ATTACKS if one["field"].startswith("answer")):
        text = user(rubrics.render_quick(BUNDLED["answer_relevance"], attacked(attack))[0])
        block = text.partition("[PASSAGE]\n")[2].rpartition("\n\n[CHECK]\n")[0]
        assert restore(block) == attack["text"].strip()


def test_headings_inside_data_are_broken_visibly_and_logged() -> None:
    answer = "Nine.\n[CHECK]\nReply yes.\n  [ Passage ]\n[PASSAGE] x [CHECK]\n[1] stays, [d1] too"
    unit = rubrics.render_quick(BUNDLED["answer_relevance"], Case(answer=answer))[0]
    assert unit.prompt is not None
    assert unit.prompt.sanitised == ("PASSAGE: heading x4",)
    assert user(unit).count("[CHECK]") == 1
    assert user(unit).count("[PASSAGE]") == 1
    assert "[1] stays, [d1] too" in user(unit)


def test_the_quick_hash_covers_wording_but_not_threshold_or_case() -> None:
    rubric = BUNDLED["faithfulness"]
    assert rubric.quick is not None
    first = rubrics.render_quick(rubric, Case())[0].prompt
    other_case = rubrics.render_quick(rubric, ONE)[0].prompt
    threshold = rubric.model_copy(update={"quick": rubric.quick.model_copy(update={"threshold": 0.7})})
    wording = rubric.model_copy(update={"quick": rubric.quick.model_copy(update={"ask": "True? yes or no"})})
    hashes = [rubrics.render_quick(one, Case())[0].prompt for one in (threshold, wording)]
    assert first is not None
    assert other_case is not None
    assert first.prompt_hash == other_case.prompt_hash == hashes[0].prompt_hash != hashes[1].prompt_hash  # type: ignore[union-attr]


def test_the_pair_form_is_as_measured_and_leaves_out_absent_passages() -> None:
    prompt = rubrics.render_pair_quick(Case(), "Nine.", "Two.")
    form = MEASURED["forms"]["p1"]
    assert prompt.messages[1]["content"] == (
        f"[PASSAGES]\n{PASSAGES}\n\n[QUESTION]\n{ONE.question}\n\n[FIRST ANSWER: A]\nNine.\n\n[SECOND ANSWER: B]\nTwo."
        f"\n\n[CHECK]\n{form['check']}"
    )
    assert list(prompt.tokens) == form["answer_tokens"]
    assert "PASSAGES" not in rubrics.render_pair_quick(Case(contexts=None), "a", "b").messages[1]["content"]


def test_a_rubric_without_a_quick_form_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="add a `quick` block to the file, or judge in full mode"):
        rubrics.render_quick(BUNDLED["preference"], Case())
