"""judge sheet: drawn by a stated design, blind, and a LABELS file once it is filled."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter

import pytest

import judge
from judge.errors import UsageError
from judge.sheet import allocation, draw, write_sheet
from tests.audited_runs import case, line, ordinal, scored_run, write_run


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def run(tmp_path):
    """200 cases, 180 of them judged 5, and one that the judge did not score."""
    scores = [1.0] * 4 + [3.0] * 16 + [5.0] * 180
    return scored_run(tmp_path / "run", [*scores, None], system="ours", tags=["planted"], reference="A reference.")


def sheet(run, out, **options):
    write_sheet(run, out, **{"n": 40, "design": "random", "seed": 1} | options)
    return read(out)


def test_a_random_sheet_holds_n_scored_cases_each_with_its_chance(run, tmp_path):
    rows = sheet(run, tmp_path / "s.csv")
    assert len({row["case_id"] for row in rows}) == 40
    assert "c200" not in {row["case_id"] for row in rows}
    assert {row["propensity"] for row in rows} == {"0.2"}
    assert {row["label"] for row in rows} == {""}


def test_the_sheet_is_blind(run, tmp_path):
    rows = sheet(run, tmp_path / "s.csv")
    assert set(rows[0]) == {
        "case_id", "rater", "rubric", "label", "question", "passages", "answer", "reference", "marks", "propensity",
    }  # fmt: skip
    text = (tmp_path / "s.csv").read_text()
    assert "planted" not in text
    assert "ours" not in text
    assert rows[0]["marks"].startswith("5 = Level 5.")


def test_a_stratified_sheet_takes_all_of_a_rare_level_and_says_how_likely_each_was(run, tmp_path):
    # 40 over strata of 4, 16 and 180: shares of 13, 13, 14 become 4, 16, 20
    rows = sheet(run, tmp_path / "s.csv", design="stratified")
    assert Counter(row["propensity"] for row in rows) == {"1": 20, "0.111111": 20}
    assert [row["propensity"] for row in rows] != sorted(row["propensity"] for row in rows)


def test_chances_add_up_to_the_size_of_the_stratum(run, tmp_path):
    # sum of 1 / propensity estimates how many cases there are: 4 + 16 + 180
    rows = sheet(run, tmp_path / "s.csv", design="stratified", n=30)
    assert sum(1 / float(row["propensity"]) for row in rows) == pytest.approx(200, abs=0.01)


@pytest.mark.parametrize("sizes, n, given", [
    ({"a": 4, "b": 16, "c": 180}, 40, {"a": 4, "b": 16, "c": 20}),
    ({"a": 10, "b": 10, "c": 10}, 10, {"a": 4, "b": 3, "c": 3}),
    ({"a": 1, "b": 1}, 50, {"a": 1, "b": 1}),
    ({"a": 9}, 1, {"a": 1}),
])  # fmt: skip
def test_allocation_is_equal_where_there_is_room(sizes, n, given):
    assert allocation(sizes, n) == given


def test_every_case_is_as_likely_as_the_design_says():
    ids = [f"c{n}" for n in range(20)]
    drawn = Counter(
        one.case_id for seed in range(2000) for one in draw("plain", {"5": ids}, n=5, design="random", seed=seed)
    )
    # 2000 draws at p = .25: 500 with standard deviation 19.4; five of them is 97
    assert all(abs(drawn[name] - 500) < 97 for name in ids)


def test_the_same_seed_gives_the_same_sheet_and_another_seed_another(run, tmp_path):
    first = sheet(run, tmp_path / "a.csv")
    assert sheet(run, tmp_path / "b.csv") == first
    assert sheet(run, tmp_path / "c.csv", seed=2) != first


def test_rubrics_with_the_same_cases_are_labelled_on_the_same_ones_in_a_row(tmp_path):
    rubrics = [ordinal(), ordinal(name="second")]
    lines = [line(f"c{n}", rubric, 4.0) for n in range(30) for rubric in rubrics]
    run = write_run(tmp_path / "run", [case(n) for n in range(30)], lines, rubrics)
    rows = sheet(run, tmp_path / "s.csv", n=10)
    assert [row["rubric"] for row in rows[:4]] == ["plain", "second"] * 2
    assert rows[0]["case_id"] == rows[1]["case_id"]
    assert len({row["case_id"] for row in rows}) == 10


def test_cells_are_no_formulas_and_the_filled_sheet_is_audited(tmp_path):
    rubric = ordinal()
    cases = [case(n, id=f"={n}", answer="=HYPERLINK(1)", question="@SUM(1)?", contexts=["-1+1"]) for n in range(12)]
    run = write_run(tmp_path / "run", cases, [line(f"={n}", rubric, 1.0 + n % 5) for n in range(12)], [rubric])
    rows = sheet(run, tmp_path / "s.csv", n=100)
    assert all(cell[:1] not in tuple("=+-@") for row in rows for cell in row.values())
    for row in rows:
        row["label"] = str(1 + int(row["case_id"].removeprefix("'=")) % 5)
    with (tmp_path / "filled.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    found = judge.audit(run, tmp_path / "filled.csv", rater="carol", replicates=200).rubrics["plain"]
    assert found["raters"] == {"carol": 12}
    assert found["dropped"] == []
    assert found["agreement"]["percent_agreement"]["value"] == 1


def test_what_cannot_be_drawn_is_said(run, tmp_path):
    with pytest.raises(UsageError, match="draw one case or more"):
        sheet(run, tmp_path / "s.csv", n=0)
    with pytest.raises(UsageError, match="it has: plain"):
        sheet(run, tmp_path / "s.csv", rubrics=["faith"])
    empty = scored_run(tmp_path / "empty", [None, None])
    with pytest.raises(UsageError, match="nothing to be labelled"):
        sheet(empty, tmp_path / "s.csv")


def test_the_command_says_what_to_do_next(run, tmp_path):
    arguments = ["sheet", str(run), "--n", "5", "--design", "random", "--seed", "3", "--out", str(tmp_path / "s.csv")]
    done = subprocess.run([sys.executable, "-m", "judge", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "5 cases for plain" in done.stdout
    assert "--label-design random" in done.stdout
    assert "fewer than" not in done.stdout


def test_the_command_says_when_there_are_fewer_cases_than_asked_for(run, tmp_path):
    arguments = ["sheet", str(run), "--n", "5000", "--out", str(tmp_path / "s.csv")]
    done = subprocess.run([sys.executable, "-m", "judge", *arguments], capture_output=True, text=True)
    assert "fewer than 5000: all that have a score for plain" in done.stdout


def test_a_sheet_that_holds_labels_is_never_written_over(run, tmp_path):
    out = tmp_path / "s.csv"
    sheet(run, out)
    assert len(sheet(run, out, n=10)) == 10, "an unfilled sheet gives way"
    rows = read(out)
    rows[3]["label"] = "4"
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    before = out.read_bytes()
    with pytest.raises(UsageError, match="it may hold labels"):
        sheet(run, out)
    assert out.read_bytes() == before
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="no unfilled sheet"):
        sheet(run, tmp_path / "notes.txt")
