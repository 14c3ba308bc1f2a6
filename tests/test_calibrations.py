"""Calibration artefacts: an audit counts for the rubric, prompt and judge that it was made with, and for no other."""

from __future__ import annotations

import json

import pytest

import judge
from judge import calibrations
from judge.errors import UsageError
from judge.gates import failures
from judge.report.scores import sections
from judge.runs import manifest
from judge.summary import summarize
from tests.audited_runs import case, line, ordinal, scored_run, write_labels, write_run
from tests.test_score import MODEL, cases, rubric_dir

LEVELS = [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("state", "verdict", "said"),
    [
        ("calibrated", "usable_with_correction", "calibrated: usable with correction"),
        ("calibrated", "not_usable", "audited: not usable"),
        ("calibrated", "too_few_labels", "audited: too few labels"),
        ("calibrated", None, "calibrated"),
        ("stale", "trusted", "stale"),
    ],
)
def test_only_an_audit_that_found_the_judge_usable_is_called_calibrated(state, verdict, said):
    assert calibrations.in_short(state, verdict) == said


@pytest.fixture
def saved(tmp_path):
    """A run whose judge agrees with ann, audited and saved."""
    run = scored_run(tmp_path / "run", LEVELS * 8)
    labels = write_labels(tmp_path / "l.csv", [(f"c{n}", "ann", n % 5 + 1) for n in range(40)])
    found = judge.audit(run, labels, save=True, calibration=tmp_path / "kept", replicates=200)
    assert any("saved as" in note for note in found.notes)
    return tmp_path / "kept"


def state(folder, run):
    """The state of rubric `plain` as `judge score` would note it."""
    summary = summarize(run)
    warnings = calibrations.note(summary, manifest(run)["judge"], folder)
    return summary["rubrics"]["plain"], warnings


def other_run(tmp_path, rubric=None, prompt_hash="p" * 64, **changed):
    """Another run of the same judge with something changed."""
    rubric = rubric or ordinal()
    lines = [line(f"c{n}", rubric, 4.0, prompt_hash=prompt_hash) for n in range(3)]
    return write_run(tmp_path / "next", [case(n) for n in range(3)], lines, [rubric], **changed)


def test_the_same_judge_prompt_and_rubric_are_calibrated(saved, tmp_path):
    found, warnings = state(saved, other_run(tmp_path))
    assert (found["calibration"], found["calibration_verdict"], warnings) == ("calibrated", "trusted", [])
    assert json.loads(next(saved.glob("*.json")).read_text())["judge"]["model"] == "openai/gpt-4o-mini"


@pytest.mark.parametrize("changed, words", [
    ({"params": {"temperature": 1}}, "params of the judge"),
    ({"model_returned": ["gpt-4o-mini-2025-01-01"]}, "model_returned of the judge"),
    ({"prompt_hash": "q" * 64}, "prompt"),
    ({"rubric": ordinal().model_copy(update={"rubric_hash": "i" * 64})}, "rubric"),
    ({"layout": "item_first"}, "layout of the judge"),
])  # fmt: skip
def test_whatever_changes_the_judge_makes_it_stale_and_is_named(saved, tmp_path, changed, words):
    found, _ = state(saved, other_run(tmp_path, **changed))
    assert found["calibration"] == "stale"
    assert words in found["calibration_detail"]


def test_another_model_or_rubric_is_uncalibrated_and_mixed_versions_are_said(saved, tmp_path):
    assert state(saved, other_run(tmp_path, model="openai/gpt-4o"))[0]["calibration"] == "uncalibrated"
    mixed = state(saved, other_run(tmp_path, model_returned=["a", "b"]))[0]
    assert mixed["calibration"] == "uncalibrated: mixed versions"
    assert "a, b answered" in mixed["calibration_detail"]
    assert state(tmp_path / "nowhere", other_run(tmp_path))[0]["calibration"] == "uncalibrated"


def test_a_new_audit_of_the_same_judge_replaces_the_old_one(saved, tmp_path):
    labels = write_labels(tmp_path / "m.csv", [(f"c{n}", "ann", n % 5 + 1) for n in range(30)])
    judge.audit(tmp_path / "run", labels, save=True, calibration=saved, replicates=200)
    (kept,) = saved.glob("*.json")
    assert json.loads(kept.read_text())["n"] == 30


def test_too_few_labels_are_not_saved(tmp_path):
    run = scored_run(tmp_path / "run", LEVELS)
    labels = write_labels(tmp_path / "l.csv", [("c0", "ann", 1)])
    found = judge.audit(run, labels, save=True, calibration=tmp_path / "kept", replicates=200)
    assert found.notes == ["plain: too few labels to be saved as a calibration"]
    assert not (tmp_path / "kept").exists()


def test_a_broken_file_is_named_and_not_used(saved, tmp_path):
    (saved / "broken.json").write_text("{")
    found, warnings = state(saved, other_run(tmp_path))
    assert found["calibration"] == "calibrated"
    assert "broken.json is no calibration" in warnings[0]


@pytest.mark.parametrize("changed", [{"verdict": "excellent"}, {"verdict": None}, {"judge": None}])
def test_a_file_that_was_changed_opens_no_gate(saved, tmp_path, changed):
    (path,) = saved.glob("*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    found, warnings = state(saved, other_run(tmp_path))
    assert found["calibration"] == "uncalibrated"
    assert path.name in warnings[0]


def test_the_gate_wants_a_matching_audit_that_does_not_call_the_judge_not_usable(saved, tmp_path):
    run = other_run(tmp_path)
    summary = summarize(run)
    calibrations.note(summary, manifest(run)["judge"], saved)
    assert failures(summary, {}, {}, calibrated=True) == []
    summary["rubrics"]["plain"]["calibration_verdict"] = "not_usable"
    assert "not usable" in failures(summary, {}, {}, calibrated=True)[0]
    calibrations.note(summary, manifest(run)["judge"] | {"params": {}}, saved)
    assert "stale" in failures(summary, {}, {}, calibrated=True)[0]
    assert any("changed since the audit: params" in note for note in sections(run, summary)[0].notes)


def test_score_audit_score_goes_from_uncalibrated_to_calibrated(provider, tmp_path):
    options = {
        "rubrics": ["plain"], "model": MODEL, "rubrics_dir": [rubric_dir(tmp_path)], "cache": tmp_path / "cache",
        "api_base": provider.base_url,
    }  # fmt: skip
    first = judge.score(cases(12), out=tmp_path / "run", **options)
    assert first.summary["rubrics"]["plain"]["calibration"] == "uncalibrated"
    scores = {row["case_id"]: row["score"] for row in first.to_frame().to_dict("records")}
    labels = write_labels(tmp_path / "l.csv", [(name, "ann", f"{score:g}") for name, score in scores.items()])
    judge.audit(first.run, labels, save=True, calibration=tmp_path / "kept", thresholds={"kappa": 0.1})
    again = judge.score(cases(14), out=tmp_path / "later", calibration=tmp_path / "kept", **options)
    assert again.summary["rubrics"]["plain"]["calibration"] == "calibrated"
    assert "calibrated: " in (again.run / "summary.md").read_text()
    with pytest.raises(UsageError, match="no such folder"):
        judge.score(cases(2), calibration=tmp_path / "none", **options)
