"""The disagreements worth reading, with the evidence of both sides, and their table for labelling again.

The label is often the wrong side of a disagreement. Labels that change after reading only disagreements can only raise
the agreement: report both numbers.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judge.biases import apart
from judge.exporting import inert
from judge.pairing import Pairing, Rated
from judge.report.scores import weak_point

MOST = 50
COLUMNS = ("case_id", "rater", "rubric", "label", "question", "answer", "passages", "reference", "judge", "people",
           "evidence")  # fmt: skip


def review_list(pairing: Pairing) -> list[dict[str, Any]]:
    """Cases on which judge and people part, verdicts that differ first, then by distance; at most 50."""
    differing = [one for one in pairing.rated if _differs(pairing, one)]
    differing.sort(key=lambda one: (_same_verdict(pairing, one), -_distance(pairing, one), one.case.id))
    return [_entry(pairing, one) for one in differing[:MOST]]


def _differs(pairing: Pairing, rated: Rated) -> bool:
    return not _same_verdict(pairing, rated) or (not pairing.on_passes and abs(apart(pairing, rated)) >= 1)


def _same_verdict(pairing: Pairing, rated: Rated) -> bool:
    return pairing.people_pass(rated) in (None, rated.passed)


def _distance(pairing: Pairing, rated: Rated) -> float:
    return abs(rated.p - pairing.pass_share(rated)) if pairing.on_passes else abs(apart(pairing, rated))


def _entry(pairing: Pairing, rated: Rated) -> dict[str, Any]:
    line, case = rated.lines[0], rated.case
    return {
        "case_id": case.id,
        "judge": rated.p if pairing.quick else rated.score,
        "judge_passed": rated.passed,
        "people": dict(rated.people),
        "difference": rated.p - pairing.pass_share(rated) if pairing.quick else apart(pairing, rated),
        "question": case.question,
        "answer": case.answer or "",
        "passages": [f"[{one.id}] {one.text}" for one in case.contexts or ()],
        "reference": list(case.reference or ()),
        "evidence": {
            "weakest": weak_point(line),
            "errors": list(line["errors"]),
            "flags": list(line["flags"]),
            "quotes": dict(line["quotes"]),
            "rationale": line["rationale"],
        },
    }


def write_review(path: Path, rubric: str, review: Sequence[dict[str, Any]]) -> None:
    """The list as a CSV that is a LABELS file once `rater` and `label` are filled; formulas are made text."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for entry in review:
            people = ", ".join(f"{rater} {label}" for rater, label in entry["people"].items())
            row = {
                "case_id": entry["case_id"], "rater": "", "rubric": rubric, "label": "",
                "question": entry["question"], "answer": entry["answer"],
                "passages": "\n\n".join(entry["passages"]), "reference": "\n".join(entry["reference"]),
                "judge": f"{entry['judge']:.2f}", "people": people, "evidence": entry["evidence"]["weakest"],
            }  # fmt: skip
            writer.writerow({name: inert(text) for name, text in row.items()})
