"""Label files as spreadsheets leave them: padding rows, a separator line, blanks in the header, old line ends."""

from __future__ import annotations

import pytest

import judge
from judge.errors import InputError, UsageError
from judge.labels import read_labels
from tests.audited_runs import case, line, ordinal, scored_run, write_labels, write_run

HEADER = "case_id,rater,rubric,label\n"
ROWS = "".join(f"c{n},ann,plain,{n + 1}\n" for n in range(5))
GIVEN = {f"c{n}": str(n + 1) for n in range(5)}


@pytest.fixture
def read(tmp_path):
    def _read(content: str | bytes):
        path = tmp_path / "l.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_labels(path, ["plain"])

    return _read


@pytest.mark.parametrize("content", [
    "\ufeff" + HEADER + ROWS,
    (HEADER + ROWS).replace("\n", "\r\n"),
    (HEADER + ROWS).replace(",", ";"),
    "sep=;\r\n" + (HEADER + ROWS).replace(",", ";"),
    "\ufeffsep=,\n" + HEADER + ROWS,
    HEADER.replace("\n", ",,\n") + ROWS.replace("\n", ",,\n"),
    HEADER + ROWS + ",,,\n,,,\n",
    HEADER.replace(",", " , ") + ROWS.replace(",", " , "),
])  # fmt: skip
def test_what_a_spreadsheet_adds_changes_no_label(read, content):
    assert {one.case_id: one.label for one in read(content).given} == GIVEN


def test_rows_without_any_content_are_left_out_and_counted(read):
    assert read(HEADER + ROWS + ",,,\n" + " , ,,\n").notes == ("l.csv: 2 rows without any content left out",)


def test_a_separator_line_keeps_the_line_numbers_of_the_file(read):
    with pytest.raises(InputError, match=r"l\.csv:4 case_id: empty"):
        read("sep=;\n" + HEADER.replace(",", ";") + "c0;ann;plain;1\n;ann;plain;2\n")


def test_line_ends_of_old_macs_are_a_plain_error(read):
    with pytest.raises(InputError, match="carriage return"):
        read((HEADER + ROWS).replace("\n", "\r"))


@pytest.mark.parametrize("head", [b"PK\x03\x04", b"\xd0\xcf\x11\xe0"])
def test_a_workbook_is_told_to_be_saved_as_csv(read, head):
    with pytest.raises(InputError, match=r"Excel workbook.*CSV"):
        read(head + bytes(100))


def test_a_missing_column_is_said_once_and_not_for_every_row(read):
    with pytest.raises(InputError) as error:
        read(HEADER.upper() + ROWS)
    assert str(error.value).count("no such column") == 1


def test_a_negative_seed_is_refused_in_words(tmp_path):
    run = scored_run(tmp_path / "run", [1, 2, 3])
    labels = write_labels(tmp_path / "l.csv", [("c0", "ann", 1)])
    with pytest.raises(UsageError, match="seed -1: must be 0 or more"):
        judge.audit(run, labels, seed=-1)


def test_a_bound_that_is_zero_but_for_rounding_is_not_printed_as_minus_zero(tmp_path):
    run = scored_run(tmp_path / "run", [5.0] * 39 + [3.0])
    audited = judge.audit(run, write_labels(tmp_path / "l.csv", [(f"c{n}", "ann", 5) for n in range(40)]))
    page = (run / "audit" / "audit.md").read_text()
    assert "between 0.00 and" in audited.rubrics["plain"]["because"]
    assert "-0.00" not in page


def test_an_id_of_any_length_leaves_the_page_readable(tmp_path):
    run, long = scored_run(tmp_path / "run", [1.0, 2.0, 3.0]), "x" * 100_000
    judge.audit(run, write_labels(tmp_path / "l.csv", [("c0", "ann", 1), (long, "ann", 2)]))
    assert len((run / "audit" / "audit.md").read_text()) < 10_000
    with pytest.raises(UsageError) as error:
        judge.audit(run, write_labels(tmp_path / "m.csv", [(long, "ann", 2)]))
    assert len(str(error.value)) < 1000


def renamed_run(folder, *ids):
    rubric = ordinal()
    cases = [case(n, id=name) for n, name in enumerate(ids)]
    return write_run(folder, cases, [line(name, rubric, 3) for name in ids], [rubric])


@pytest.mark.parametrize(("there", "given"), [
    ("001", "1"), ("1e5", "100000"), ("100000", "1E+05"), ("true", "TRUE"), ("e\u0301", "\u00e9"), (" x", "x"),
])  # fmt: skip
def test_an_id_that_a_spreadsheet_rewrote_is_named_beside_the_one_it_was(tmp_path, there, given):
    run = renamed_run(tmp_path / "run", there, "other")
    labels = write_labels(tmp_path / "l.csv", [(given, "ann", 3), ("other", "ann", 3)])
    (dropped,) = judge.audit(run, labels).rubrics["plain"]["dropped"]
    assert dropped == {"case_id": given, "reason": f"not_judged: the run has {there!r}, is that the same case?"}
    with pytest.raises(UsageError, match=r"read the id column as text") as error:
        judge.audit(run, write_labels(tmp_path / "m.csv", [(given, "ann", 3)]))
    assert repr(there) in str(error.value)


def test_a_case_with_two_chances_of_being_drawn_is_refused(tmp_path):
    run = scored_run(tmp_path / "run", [1.0, 2.0, 3.0])
    rows = [{"case_id": "c0", "rater": r, "label": 1, "propensity": p} for r, p in (("ann", 0.5), ("bob", 0.2))]
    with pytest.raises(InputError, match=r"c0.*0\.5.*0\.2"):
        judge.audit(run, rows, label_design="propensity")


def test_too_few_resamples_are_refused_in_words(tmp_path):
    run = scored_run(tmp_path / "run", [1.0, 2.0, 3.0])
    with pytest.raises(UsageError, match="replicates is 0: give 100 or more"):
        judge.audit(run, [{"case_id": "c0", "label": 1}], replicates=0)
