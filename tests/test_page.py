"""The page on a terminal: how wide columns are, and how sentences wrap."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from judge.report.columns import layout, widths
from judge.report.page import Section, show


def printed(section: Section, width: int) -> list[str]:
    out = StringIO()
    show([section], Console(file=out, width=width, color_system=None))
    return out.getvalue().splitlines()


def test_columns_get_what_they_need_where_there_is_room():
    assert layout([["case", "trust"], ["ex-01", "not usable"]], 80) == (3, [5, 10])


def test_the_widest_column_wraps_first_and_no_further_than_its_longest_word():
    rows = [["rubric", "mean", "where"], ["faithfulness", "2.70", "an unsupported claim"]]
    assert layout(rows, 42) == (3, [12, 4, 20])
    assert layout(rows, 40) == (2, [12, 4, 20])
    assert layout(rows, 36) == (3, [12, 4, 14])
    assert layout(rows, 33) == (3, [12, 4, 11])


def test_columns_move_together_before_a_word_is_folded():
    rows = [["rubric", "mean", "where"], ["faithfulness", "2.70", "an unsupported claim"]]
    assert layout(rows, 32) == (2, [12, 4, 12])
    assert layout(rows, 29) == (1, [12, 4, 11])
    assert layout(rows, 26) == (1, [10, 4, 10])


def test_without_room_for_the_longest_words_the_widest_are_folded():
    assert widths([30, 2, 10], [30, 2, 10], 20) == [9, 2, 9]


def test_what_is_left_goes_to_the_first_columns_that_need_it():
    assert widths([7, 7], [1, 1], 11) == [6, 5]


def test_more_columns_than_room_leaves_one_character_each():
    assert widths([3] * 5, [3] * 5, 3) == [1] * 5


def test_wide_characters_count_twice():
    assert layout([["雾岭"]], 80) == (3, [4])


def test_a_table_without_sentences_ends_with_one_empty_line():
    assert printed(Section("Judge", ["what"], [["mode"]]), 40) == ["Judge", "", " what", " ────", " mode", ""]


def test_a_gap_of_one_leaves_a_space_between_columns():
    assert printed(Section("t", ["aaaa", "bbbb"], [["cccc", "dddd"]]), 10)[2:] == [
        " aaaa bbbb", " ─────────", " cccc dddd", "",
    ]  # fmt: skip


def test_no_word_is_broken_at_eighty_columns():
    cells = ["faithfulness", "2.70 [2.16, 3.24] of 1-5", "40% [17%, 69%]", "calibrated: usable with correction", "0.89"]
    lines = printed(Section("Scores", ["rubric", "mean", "passed", "trust", "overlap"], [cells]), 80)
    assert max(map(len, lines)) <= 80
    words = {word for line in lines for word in line.split()}
    assert {word for cell in cells for word in cell.split()} <= words


def test_a_sentence_that_wraps_stays_indented_without_spaces_at_the_end_of_lines():
    lines = printed(Section("Mind", notes=["one two three four", "five\n\nsix"]), 12)
    assert lines == ["Mind", "  one two", "  three four", "  five", "", "  six", ""]
