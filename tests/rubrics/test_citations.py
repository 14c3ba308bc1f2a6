"""Citation marks: every format, what is no mark, how ids resolve and to which sentence a mark belongs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubrics.citations import parse, statements
from tests.rubrics.items import Text
from tests.rubrics.judged_cases import CASES

TWO = (Text("d1", "One."), Text("d2", "Two."))
NUMBERED = (Text("1", "One."), Text("2", "Two."))
PAPERS = (Text("k1", "", author="Smith", year=2020), Text("k2", "", author="Ode and Lin", year=2021),
          Text("k3", "", author="Jane Smith; Bo Lee", year=2022))  # fmt: skip


def ids(answer: str, contexts: Any = TWO) -> list[str | None]:
    return [citation.id for citation in parse(answer, contexts)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.row["id"])
def test_marks_of_the_judged_cases(case: Any) -> None:
    found = parse(case.item.answer or "", case.item.contexts or ())
    assert [{"raw": mark.raw, "id": mark.id} for mark in found] == case.row["checks"]["citations"]
    assert [mark.raw for mark in found if mark.resolution == "unknown"] == case.row["checks"]["unknown_citations"]


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("x [1].", ["d1"]),
        ("x [1, 2] [1;2] [1,2].", ["d1", "d2"] * 3),
        ("x [1-2] [1–2] [d1-d2].", ["d1", "d2"] * 3),
        ("x [d1][d2] [D2].", ["d1", "d2", "d2"]),
        (
            "x [source: d2] [Source 2] [sources: 1, d2] [doc-2] [doc d2] [passage 1].",
            ["d2", "d2", "d1", "d2", "d2", "d2", "d1"],
        ),
        ("x [^1]\n\n[^1]: see [2]", ["d1"]),
        ("x 【2†source】【4:1†file.pdf】【1】", ["d2", "d1", "d1"]),
        ("x ［1］〔2〕 [２] [१]", ["d1", "d2", "d2", "d1"]),
        ("x <sup>[1]</sup> <sup>2</sup> <cite>d1</cite>", ["d1", "d2", "d1"]),
        ("The river rises.¹ It falls².", ["d1", "d2"]),
        ("Python 3.12 [2]", ["d2"]),
        ("In Paris[1].", ["d1"]),
        ("x [3] [0] [d9] [1, 7].", [None, None, None, "d1", None]),
        ("x [source: nowhere].", [None]),
    ],
)
def test_formats(answer: str, wanted: list[str | None]) -> None:
    assert ids(answer) == wanted


@pytest.mark.parametrize(
    "answer",
    [
        "`[1]` and ```\n[2]\n``` and $[1]$ and \\([2]\\)",
        "arr[0] and arr[1] = 2 and a[1].x and my_list[2]",
        "[x] [ ] [sic] [emphasis added] [Editor]",
        "[1](https://example.org) ![2](a.png) [text](b)",
        "[1]: https://example.org",
        "in [1964] [sic], on [0, 1]",
        "(June 2020) (since 2018) (2020) (see above)",
        "10 m² and x²",
    ],
)
def test_what_looks_like_a_mark_and_is_none(answer: str) -> None:
    assert ids(answer) == []


def test_an_exact_id_wins_over_a_position_and_bare_numbers_are_never_positions() -> None:
    assert ids("x [2]", NUMBERED) == ["2"]
    assert ids("x [1]", (Text("7", ""), Text("8", ""))) == [None]
    assert ids("x [1]", (Text("a", ""), Text("b", ""))) == ["a"]
    assert ids("x [sic]", (Text("sic", ""),)) == ["sic"]
    assert ids("x [d1-d2]", (Text("d1-d2", ""),)) == ["d1-d2"]


def test_author_and_year_need_metadata() -> None:
    assert ids("a (Smith 2020). b (Smith et al., 2022; Ode & Lin, 2021).", PAPERS) == ["k1", "k3", "k2"]
    assert ids("a (Smith 2019).", PAPERS) == [None]
    without = parse("a (Smith et al., 2020; Lee 2021) (Berlin 2020).", TWO)
    assert [(mark.raw, mark.resolution) for mark in without] == [
        ("Smith et al., 2020", "unresolvable"),
        ("Lee 2021", "unresolvable"),
    ]


def rows(answer: str, **options: Any) -> list[tuple[str, list[str]]]:
    return [(row.text, [mark.raw for mark in row.citations]) for row in statements(answer, TWO, **options)]


def test_a_mark_belongs_to_its_sentence_or_the_one_before_the_stop() -> None:
    assert rows("A is b [1]. C is d. [2] E is f.") == [("A is b.", ["1"]), ("C is d.", ["2"]), ("E is f.", [])]
    assert rows("A [1], who is b [2].") == [("A, who is b.", ["1", "2"])]
    assert rows("A is b.\n[1]\nC is d.") == [("A is b.", ["1"]), ("C is d.", [])]
    assert rows("A is b.[^1]\n\n[^1]: Source 9.") == [("A is b.", ["1"])]


def test_statements_are_numbered_from_one_without_gaps() -> None:
    assert [row.n for row in statements("A is b. [1]\n\n[2]\n\nC is d.", TWO)] == [1, 2]


def test_a_closing_mark_covers_its_paragraph_where_the_rubric_says_so() -> None:
    answer = "A is b. C is d [1].\n\nE is f. G is h [2] indeed."
    assert rows(answer) == [("A is b.", []), ("C is d.", ["1"]), ("E is f.", []), ("G is h indeed.", ["2"])]
    covered = rows(answer, scope="paragraph")
    assert covered == [("A is b.", ["1"]), ("C is d.", ["1"]), ("E is f.", []), ("G is h indeed.", ["2"])]


@given(st.text(alphabet="ab1290 .,;-–[]()^†【】:\n`$†²Sd", max_size=60))
def test_no_text_breaks_the_parser(answer: str) -> None:
    marks = parse(answer, TWO)
    assert all(0 <= mark.start < mark.end <= len(answer) for mark in marks)
    assert all((mark.id is not None) == (mark.resolution == "resolved") for mark in marks)
    table = statements(answer, TWO)
    assert [row.n for row in table] == list(range(1, len(table) + 1))
    if table:
        definitions = sum(line.lstrip().startswith("[") and "]:" in line for line in answer.splitlines())
        assert definitions or sum(len(row.citations) for row in table) <= len(marks)
