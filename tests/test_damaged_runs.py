"""Run directories that were edited by hand, mixed up or made by another version: a plain message from every reader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import judge
from judge.cli import main
from judge.diffing import diff_runs
from judge.errors import InputError, UsageError
from judge.exporting import export
from judge.runs import rows
from judge.sheet import unjudged, write_sheet
from tests.audited_runs import line, ordinal, quick_line, scored_run, write_labels


@pytest.fixture
def run(tmp_path):
    return scored_run(tmp_path / "run", [1, 2, 3, 4, 5])


def edit(path: Path, **changed) -> None:
    """Changes the fields of the second judgment; None takes a field out."""
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    lines[1] = {name: value for name, value in (lines[1] | changed).items() if value is not ...}
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))


@pytest.mark.parametrize("changed", [
    {"score": "2"}, {"score": None}, {"score": True}, {"normalized": None}, {"passed": None}, {"passed": 1},
    {"status": "done"}, {"status": ...}, {"mode": ...}, {"case_id": None}, {"repeat": "0"}, {"details": ...},
    {"rubric": 3}, {"key": ...}, {"errors": None},
])  # fmt: skip
def test_a_judgment_line_that_is_none_is_named(run, changed):
    edit(run / "judgments.jsonl", **changed)
    with pytest.raises(InputError, match=r"judgments\.jsonl:2: damaged line"):
        list(rows(run))


@pytest.mark.parametrize("pasted", [
    quick_line("c1", ordinal(), 0.5), line("c1", ordinal(name="other"), 3), line("c1", ordinal(), 3, judge="openai/x"),
])  # fmt: skip
def test_a_line_of_another_run_is_named_and_never_averaged(run, pasted):
    with (run / "judgments.jsonl").open("a") as file:
        file.write(json.dumps(pasted) + "\n")
    with pytest.raises(InputError, match=r"judgments\.jsonl:6: a line of another run"):
        list(rows(run))


def test_a_score_off_the_scale_is_named(run, tmp_path):
    edit(run / "judgments.jsonl", score=99)
    with pytest.raises(InputError, match=r"c1.*99.*1\.\.5"):
        judge.audit(run, write_labels(tmp_path / "l.csv", [("c0", "ann", 1)]))


@pytest.mark.parametrize("changed", [
    {"rubrics": []}, {"judge": None}, {"rubrics": {"plain": {"id": "plain"}}},
    {"rubrics": {"plain": ordinal().model_dump(mode="json") | {"shade": 1}}},
])  # fmt: skip
def test_a_manifest_of_another_shape_or_version_is_named_by_all_readers(run, tmp_path, changed):
    labels = write_labels(tmp_path / "l.csv", [("c0", "ann", 1)])
    other = scored_run(tmp_path / "other", [1, 2, 3, 4, 5])
    path = run / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    readers = (
        lambda: judge.audit(run, labels),
        lambda: write_sheet(run, tmp_path / "s.csv", n=2, design="random", seed=0),
        lambda: diff_runs(run, other, allow_different=True),
    )
    for read in readers:
        with pytest.raises(InputError, match=r"run\.json"):
            read()


def test_a_folder_that_is_no_run_is_not_exported(tmp_path):
    with pytest.raises(UsageError, match="not a run directory"):
        export(tmp_path, "csv", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_a_run_made_half_says_so_to_those_who_sample_or_audit_it(run, tmp_path, capsys, monkeypatch):
    path = run / "judgments.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    audited = judge.audit(run, write_labels(tmp_path / "l.csv", [("c0", "ann", 1)])).rubrics["plain"]
    assert "unfinished_run: 2 of 5 cases have no judgment yet" in audited["warnings"]
    monkeypatch.setattr("sys.argv", ["judge", "sheet", str(run), "--out", str(tmp_path / "s.csv")])
    with pytest.raises(SystemExit):
        main()
    assert "plain: 2 of 5 cases have no judgment yet" in capsys.readouterr().err


def test_a_finished_run_is_not_called_unfinished(run, tmp_path):
    assert judge.audit(run, write_labels(tmp_path / "l.csv", [("c0", "ann", 1)])).rubrics["plain"]["warnings"] == []
    assert unjudged(run, ["plain"]) == {}


@pytest.mark.parametrize(("format", "name"), [
    ("jsonl", "judgments.jsonl"), ("csv", "run.json"), ("csv", "cases.jsonl"), ("parquet", "replies.jsonl"),
    ("jsonl", "summary.json"),
])  # fmt: skip
def test_an_export_is_never_written_over_a_file_of_the_run(run, format, name):
    (run / "summary.json").write_text("{}")
    before = (run / name).read_bytes()
    with pytest.raises(UsageError, match=f"{name}.*file of the run"):
        export(run, format, run / ".." / run.name / name)
    assert (run / name).read_bytes() == before


def test_an_export_that_fails_leaves_the_earlier_one(run, tmp_path):
    out = tmp_path / "out.csv"
    export(run, "csv", out)
    before = out.read_bytes()
    edit(run / "judgments.jsonl", score="2")
    for format in ("csv", "jsonl"):
        with pytest.raises(InputError):
            export(run, format, out)
    assert out.read_bytes() == before
