"""Sentences, points, quotes and numbers: what code can check without a model."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubrics.evidence import normalise, points, sentence_spans, sentences, verify_quote
from rubrics.numbers import number_mismatches, readings
from rubrics.polarity import opposed
from tests.rubrics.items import Text
from tests.rubrics.judged_cases import CASES

# --- sentences ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Dr. Smith paid $3.50. It was fine, e.g. Tuesday.", ["Dr. Smith paid $3.50.", "It was fine, e.g. Tuesday."]),
        ("Written by J. K. Rowling. It sold well.", ["Written by J. K. Rowling.", "It sold well."]),
        ("Rich in vitamin C. It keeps.", ["Rich in vitamin C.", "It keeps."]),
        ("The U.S. Army left. So did the U.S. The end.", ["The U.S. Army left.", "So did the U.S.", "The end."]),
        ("See No. 5 first. He said no. Then he left.", ["See No. 5 first.", "He said no.", "Then he left."]),
        ("Es war am 3. Mai 2020. Danach z.B. nie.", ["Es war am 3. Mai 2020.", "Danach z.B. nie."]),
        ("It cost 18. [d2] It opened. [1][2] Done.", ["It cost 18. [d2]", "It opened. [1][2]", "Done."]),
        ('He said "Go." She left!', ['He said "Go."', "She left!"]),
        ("Version 3.12 is out.Next", ["Version 3.12 is out.Next"]),
        ("他说：「好。」然后离开了。再见！", ["他说：「好。」", "然后离开了。", "再见！"]),
        ("ما هذا؟ لا أعرف.", ["ما هذا؟", "لا أعرف."]),
        ("Steps:\n1. Open it.\n2. Close it\n- wait", ["Steps:", "1. Open it.", "2. Close it", "- wait"]),
        ("A line\nbroken in two. End", ["A line\nbroken in two.", "End"]),
        ("Title\n\nText.", ["Title", "Text."]),
        ("Run `a. B` now. Price $H = 1. X$ here.", ["Run `a. B` now.", "Price $H = 1. X$ here."]),
        ("It costs $5. Then $6. Ok.", ["It costs $5.", "Then $6.", "Ok."]),
        ("...", []),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, wanted: list[str]) -> None:
    assert sentences(text) == wanted


@given(st.text(alphabet='aB1 .!?\n。`$[]()"-:;', max_size=60))
def test_sentence_spans_are_ordered_and_lose_no_letter(text: str) -> None:
    spans = sentence_spans(text)
    assert list(spans) == sorted(spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    kept = "".join(text[start:end] for start, end in spans)
    assert [c for c in kept if c.isalnum()] == [c for c in text if c.isalnum()]


def test_points_split_at_semicolons_too() -> None:
    assert points("The bee; two thirds from members. A grant；more;") == [
        "The bee",
        "two thirds from members.",
        "A grant",
        "more",
    ]


# --- quotes ------------------------------------------------------------------------------------------------------------

PASSAGES = {
    "a": normalise("The “Alder” K2 **kettle** costs 1,160 euros — it is not water-proof in any real way, experts say."),
    "b": normalise("Norway"),
    "c": normalise("气温为零下5度，风很大。"),
    "d": normalise("It fell to -5 degrees, or 3.14 per cent."),
}


@pytest.mark.parametrize(
    ("quote", "cited", "result"),
    [
        ('the "Alder" K2 kettle', "a", "exact"),  # other quotation marks, emphasis removed
        ("costs 1,160 euros - it is not", "a", "exact"),  # another dash
        ("it is not\u200b  water-proof", "a", "exact"),  # hidden characters and blanks
        ("it is not⟦U+200B⟧ water-proof", "a", "exact"),  # hidden characters as the judge was shown them
        ("K2 kettle ... not water-proof", "a", "exact"),
        ("not water-proof … K2 kettle", "a", "failed"),  # fragments out of order
        ("costs 1,160 euros", "b", "wrong_id"),
        ("costs 1,160 euros", "nowhere", "wrong_id"),
        ("it is not waterproof in any real way", "a", "near"),
        ("it is water-proof in any real way, experts say", "a", "failed"),  # the negation is gone
        ("it is not water-proof in any legal way", "a", "failed"),  # another word
        ("160 euros - it is not", "a", "failed"),  # cuts the number in two
        ("ler K2 kettle costs", "a", "failed"),  # cuts a word in two
        ("5 degrees, or 3", "d", "failed"),  # drops a sign and a fraction
        ("Norway", "b", "exact"),  # the passage itself is that short
        ("Norw", "b", "too_short"),
        ("K2", "a", "too_short"),
        ("零下5度", "c", "exact"),  # four characters are enough here
        ("5度", "c", "too_short"),
        ("", "a", "too_short"),
        ("...", "a", "too_short"),
        ("invented words here", "a", "failed"),
    ],
)
def test_quotes_are_found_only_where_they_stand(quote: str, cited: str, result: str) -> None:
    assert verify_quote(quote, PASSAGES, cited).result == result


def test_a_wrong_id_is_corrected() -> None:
    assert verify_quote("costs 1,160 euros", PASSAGES, "b").passage == "a"
    assert verify_quote("made up entirely", PASSAGES, "b").passage is None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.row["id"])
def test_every_gold_quote_of_the_judged_cases_is_exact(case: Any) -> None:
    passages = {context.id: normalise(context.text) for context in case.item.contexts}
    for claim in case.row["gold"]["claims"]:
        if claim["quote"]:
            assert verify_quote(claim["quote"], passages, claim["context_id"]).result == "exact"


@given(st.text(max_size=40), st.text(max_size=80))
def test_any_long_enough_part_of_a_passage_is_found_and_nothing_raises(quote: str, text: str) -> None:
    verify_quote(quote, {"x": normalise(text)}, "x")
    whole = normalise(text)
    if sum(character.isalnum() for character in whole) >= 8 and "..." not in whole:
        assert verify_quote(text, {"x": whole}, "x").verified


# --- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.row["id"])
def test_number_mismatches_of_the_judged_cases(case: Any) -> None:
    found = number_mismatches(case.item.answer or "", case.item.contexts or (), case.item.question)
    assert found == case.row["checks"]["number_mismatches"]


@pytest.mark.parametrize(
    ("numeral", "values"),
    [
        ("3.100", [["3100"], ["3.1"]]),
        ("1.234,50", [["1234.5"]]),
        ("1,234,567", [["1234567"]]),
        ("0.125", [["0.125"]]),
        ("12.05.2020", [["12", "2020", "5"]]),
        ("9 850", [["9850"], ["850", "9"]]),
        ("007", [["7"]]),
    ],
)
def test_a_numeral_has_every_sensible_reading(numeral: str, values: list[list[str]]) -> None:
    assert [sorted(reading) for reading in readings(numeral)] == values


@pytest.mark.parametrize(
    ("answer", "source", "missing"),
    [
        ("Es kostet 3.100 Euro.", "It costs 3,100 euros.", []),
        ("It takes 3 years and 25 days.", "Three years and twenty-five days.", []),
        ("١٢ كيلومترا", "12 km", []),
        ("Type K2 weighs 5 kg.", "The K2 weighs 4 kg.", ["5"]),
        ("1. First\n2. Second", "Two things.", []),  # list numbers
        ("See `x[7]` and $y_8$ [1]. [^2]\n\n[^2]: page 99", "Nothing.", []),
        ("Cost 18 and again 18.", "Cost 180 or 1.8.", ["18"]),
    ],
)
def test_numbers_are_compared_by_value(answer: str, source: str, missing: list[str]) -> None:
    assert number_mismatches(answer, [Text("d1", source)], "") == missing


def test_the_question_is_a_source_too() -> None:
    assert number_mismatches("In 2023 it rained.", [Text("d1", "It rained.")], "Did it rain in 2023?") == []
    assert json.dumps(number_mismatches("In 2023.", [], "")) == '["2023"]'


# --- opposites ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "quote", "wanted"),
    [
        ("The museum is open on Mondays", "The museum is closed on Mondays.", True),
        ("The museum is open on Mondays", "The museum is not open on Mondays.", True),
        ("The museum is not open on Mondays", "The museum is closed on Mondays.", False),
        ("The museum is open on Mondays", "The museum is open on Mondays. It is closed on Tuesdays.", False),
        ("The museum is open on Mondays", "Dogs are not admitted.", False),
        ("El museo está abierto los lunes", "El museo está cerrado los lunes.", True),
        ("", "", False),
    ],
)
def test_a_quote_that_reverses_the_claim_is_opposed(claim: str, quote: str, wanted: bool) -> None:
    assert opposed(claim, quote) is wanted
