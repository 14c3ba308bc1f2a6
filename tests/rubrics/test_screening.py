"""The screen flags, it does not judge: attacks, degenerate answers, refusals, languages."""

from __future__ import annotations

from typing import Any

import pytest

from rubrics.screening import (
    ORDERS,
    declines,
    degenerate,
    language,
    language_mismatch,
    refusal_hint,
    screen,
    screen_all,
)
from tests.rubrics.items import ATTACKS
from tests.rubrics.judged_cases import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.row["id"])
def test_screen_flags_of_the_judged_cases(case: Any) -> None:
    item = case.item
    found = screen_all([item.question, item.answer, *(item.reference or ()), *(c.text for c in item.contexts)])
    found += ["degenerate_answer"] if degenerate(item.answer) else []
    assert found == case.row["checks"]["screen_flags"]


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a["ref_flags"]], ids=lambda attack: attack["id"])
def test_the_screen_finds_at_least_what_the_reference_screen_finds(attack: dict[str, Any]) -> None:
    found = screen(attack["text"]) + (["degenerate_answer"] if degenerate(attack["text"]) else [])
    assert set(attack["ref_flags"]) <= set(found)


def test_the_screen_misses_attacks_that_only_claim_and_never_order() -> None:
    # kept as a test so that nobody relies on the screen: these carry no word that addresses a rater
    missed = [attack["id"] for attack in ATTACKS if not screen(attack["text"]) and not degenerate(attack["text"])]
    assert {"atk-07", "atk-30", "atk-33", "atk-55"} <= set(missed)
    assert len(missed) == 12


@pytest.mark.parametrize(
    "text",
    [
        "The film scored 5 points more than its rival; critics gave it full praise.",
        "The system: a pump, a tank and a valve.",
        "Judges sit for ten years. The judge must be a citizen.".replace("The judge must", "They must"),
        "She gave the best speech and set five records.",
        "Instructions for assembly: follow the scale on page 3.",
        "می‌خواهم کتاب بخوانم.",  # Persian with a zero-width non-joiner
        "Family: 👨‍👩‍👧",
    ],
)
def test_clean_texts_raise_no_order_flag(text: str) -> None:
    assert ORDERS.isdisjoint(screen(text))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, "empty"), ("", "empty"), (" \n\t", "empty"), ("\u200b\ufeff", "empty"), (":", "punctuation"),
        (".", "punctuation"), ("--- ***", "punctuation"), ("Thought process:", "opener"), ("**Solution**", "opener"),
        ("Let's work through this carefully, step by step.", "opener"), ("Answer:", "opener"), ("解答：", "opener"),
        ("No", None), ("5", None), ("42.", None), ("Solution B", None), ("不", None),
    ],
)  # fmt: skip
def test_degenerate_answers(answer: str | None, kind: str | None) -> None:
    assert degenerate(answer) == kind


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but I could not find that information in the documents.",
        "The supplied documents do not give the attendance for 2023.",
        "There is no price for the Mint plan in the passages.",
        "Unfortunately, the passage doesn't specify that. Please contact support.",
        "Not stated.", "I don't know.", "Lo siento, no encuentro esa información.",
        "Je ne trouve pas cette information dans les documents.", "Leider enthalten die Dokumente keine Angaben dazu.",
        "I documenti non menzionano questo dato.".replace("non menzionano", "non contengono"),
        "Não encontrei essa informação.", "De documenten vermelden dit niet.", "文档中没有提到这一点。",
        "申し訳ありませんが、記載がありません。", "لا توجد معلومات حول ذلك.", "К сожалению, это не указано.",
    ],
)  # fmt: skip
def test_refusals_in_many_languages(answer: str) -> None:
    assert declines(answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ("The documents do not mention interns' leave, but it is probably 15 days.", "caveated"),
        ("It is not known to be toxic. It melts at 80 C.", "caveated"),
        ("The kiln stays hot for nine hours.", None),
        ("No, it is closed on Mondays.", None),
        ("It does not stay hot for nine hours.", None),
    ],
)
def test_a_refusal_with_content_is_caveated(answer: str, hint: str | None) -> None:
    assert refusal_hint(answer) == hint
    assert not declines(answer)


def test_language_only_when_beyond_doubt() -> None:
    assert language("Was ist das und wie wird es mit dem Holz der Esche gemacht?") == "de"
    assert language("Norling K2") is None
    assert language("这是什么？") == language("これは日本です") == "han"
    assert not language_mismatch("How long is the bridge and what did it cost?", "214 m")
    assert language_mismatch("How long is the bridge and what did it cost?", "Мост длиной 214 метров.")
