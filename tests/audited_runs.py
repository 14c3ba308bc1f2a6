"""Run directories written by hand: what `judge score` leaves behind, without any model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.cases import normalise
from rubrics.loading import load
from rubrics.model import Rubric

JUDGE = {
    "name": None, "model": "openai/gpt-4o-mini", "endpoint": "api.openai.com", "params": {"temperature": 0},
    "dropped": [], "output": "json_schema", "mode": "full", "layout": "rubric_first",
    "model_returned": ["gpt-4o-mini-2024-07-18"],
}  # fmt: skip


def ordinal(low: int = 1, high: int = 5, pass_at: int = 4, name: str = "plain") -> Rubric:
    """A rubric whose judge gives one level."""
    anchors = {level: f"Level {level}." for level in range(low, high + 1)}
    return Rubric.model_validate({
        "id": name, "version": "1.0.0", "title": "Plain", "requires": ("question", "answer"), "mode": "ordinal",
        "scale": {"min": low, "max": high, "pass_at": pass_at}, "anchors": anchors, "body": "Rate.", "root": name,
        "rubric_hash": "h" * 64,
    })  # fmt: skip


def case(n: int, **more: Any) -> dict[str, Any]:
    return {"id": f"c{n}", "question": f"Question {n}?", "answer": f"Answer {n}.", "contexts": ["A passage."]} | more


def line(case_id: str, rubric: Rubric, score: float | None, **more: Any) -> dict[str, Any]:
    """A judgment line of full mode; `score` None makes it an undefined one."""
    normalized = None if score is None else rubric.scale.normalize(score)
    return {
        "case_id": case_id, "rubric": rubric.id, "rubric_version": "1.0.0", "rubric_hash": rubric.rubric_hash,
        "prompt_hash": "p" * 64, "judge": "openai/gpt-4o-mini", "mode": "full", "repeat": 0,
        "status": "undefined" if score is None else "scored", "score": score, "normalized": normalized,
        "passed": None if score is None else score >= rubric.scale.pass_at, "score_source": "computed",
        "computed_score": score, "holistic_score": score, "errors": [], "flags": [], "details": {},
        "quotes": {"total": 0, "exact": 0, "near": 0, "failed": 0}, "rationale": None,
        "reason": "refusal" if score is None else None, "error_kind": None,
        "usage": {"input_tokens": 1, "output_tokens": 1, "reasoning_tokens": 0}, "cost_usd": 0.0, "cached": False,
        "http_calls": 1, "latency_s": 0.1, "key": "0" * 64,
    } | more  # fmt: skip


def quick_line(case_id: str, rubric: Rubric, p: float, overlap: float | None = None) -> dict[str, Any]:
    """A judgment line of quick mode."""
    score = rubric.scale.min + (rubric.scale.max - rubric.scale.min) * p
    details = {"p": p, "unit": "answer", "units": [{"text": "It is.", "p": p, "key": None}], "overlap": overlap}
    return line(case_id, rubric, score, normalized=p, passed=p >= 0.5, mode="quick", score_source="logit",
                computed_score=None, holistic_score=None, details=details)  # fmt: skip


def write_run(
    folder: Path,
    cases: Sequence[Mapping[str, Any]],
    lines: Sequence[Mapping[str, Any]],
    rubrics: Sequence[Rubric],
    **judge: Any,
) -> Path:
    """A finished run directory; `judge` changes JUDGE, and the lines name that judge."""
    folder.mkdir(parents=True, exist_ok=True)
    normalise([dict(one) for one in cases], folder / "cases.jsonl")
    made = {"judge": JUDGE | judge, "rubrics": {one.id: one.model_dump(mode="json") for one in rubrics},
            "invocations": [], "repeats": 1, "secret": "00"}  # fmt: skip
    (folder / "run.json").write_text(json.dumps(made))
    named = [{**one, "judge": (JUDGE | judge)["model"]} for one in lines]
    (folder / "judgments.jsonl").write_text("".join(json.dumps(one) + "\n" for one in named))
    (folder / "replies.jsonl").write_text("")
    return folder


def scored_run(folder: Path, scores: Sequence[float | None], rubric: Rubric | None = None, **more: Any) -> Path:
    """A full-mode run with one score per case c0, c1, ..."""
    rubric = rubric or ordinal()
    cases = [case(n, **more) for n in range(len(scores))]
    return write_run(folder, cases, [line(f"c{n}", rubric, score) for n, score in enumerate(scores)], [rubric])


def bundled(name: str) -> Rubric:
    return load(name)


def write_labels(path: Path, labels: Sequence[tuple[str, str, Any]], rubric: str = "plain") -> Path:
    """A long labels file from (case_id, rater, label)."""
    rows = [f"{case_id},{rater},{rubric},{label}" for case_id, rater, label in labels]
    path.write_text("\n".join(["case_id,rater,rubric,label", *rows]) + "\n")
    return path
