"""What the probes measured: shift of the score, verdicts that flip beyond the null arm's, damage that was noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibration.estimate import Estimate, mean, proportion, undefined
from calibration.kappa import kappa
from calibration.resampling import pair_tables
from judge.probes import Expected
from rubrics.model import Rubric

Line = Mapping[str, Any]
MARGIN = 0.05
NOTICED = 0.9
WORDS = {
    "steady": "not swayed", "swayed": "swayed", "notices": "notices the damage", "blind": "misses too much of it",
    "inconclusive": "cannot be told",
}  # fmt: skip


def measured(
    rubric: Rubric,
    expected: Expected,
    before: Mapping[str, Line],
    after: Mapping[str, Line],
    rerun: Mapping[str, Line],
    questions: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """One probe under one rubric, lines by case id: of the run, of the edited cases, of the unchanged cases again.

    `shift`: edited minus original, in marks. `flip_share` of verdicts, `null_flip_share` of the rerun, and their paired
    difference `excess_flips`. `detected` (where the score must fall): share of cases that lose more than 5% of the
    scale, of those not at its bottom. `kappa` between the two. `lost`: cases scored before and not after, by reason.
    """
    pairs = [(name, before[name], line) for name, line in after.items() if name in before]
    both = [(name, one, other) for name, one, other in pairs if _scored(one) and _scored(other)]
    span = float(rubric.scale.max - rubric.scale.min)
    shifts = [other["score"] - one["score"] for _, one, other in both]
    clusters = None if questions is None else [questions[name] for name, _, _ in both]
    shift = mean(shifts, clusters=clusters, bounds=(-span, span))
    flips = [one["passed"] != other["passed"] for _, one, other in both]
    null = [_flipped(before.get(name), rerun.get(name)) for name, _, _ in both]
    known = [flip for flip in null if flip is not None]
    excess = [None if again is None else float(flip) - float(again) for flip, again in zip(flips, null, strict=True)]
    above = [(one, other) for _, one, other in both if one["normalized"] > 0]
    noticed = sum(one["score"] - other["score"] > MARGIN * span for one, other in above)
    detected = proportion(noticed, len(above)) if expected == "lower" else undefined("not_asked", n=len(above))
    lost = Counter(str(other["error_kind"] or other["reason"]) for _, one, other in pairs
                   if _scored(one) and not _scored(other))  # fmt: skip
    return {
        "expected": expected, "n": len(both), "shift": shift.to_dict(),
        "flip_share": proportion(sum(flips), len(flips)).to_dict(),
        "null_flip_share": proportion(sum(known), len(known)).to_dict(),
        "excess_flips": mean(excess, clusters=clusters, bounds=(-1.0, 1.0)).to_dict(),
        "detected": detected.to_dict(), "kappa": _kappa(rubric, both, clusters).to_dict(),
        "by_level": _by_level(both), "at_floor": len(both) - len(above), "lost": dict(lost),
        "verdict": verdict(expected, shift, detected, MARGIN * span),
    }  # fmt: skip


def verdict(expected: Expected, shift: Estimate, detected: Estimate, margin: float) -> str:
    """steady or swayed, notices or blind, else inconclusive; decided on interval bounds.

    same: steady within +-margin, swayed when the interval leaves out 0 otherwise. not_higher: the same, upwards only.
    lower: notices when surely 90% or more are detected, blind when surely fewer.
    """
    low, high = (shift.ci_low, shift.ci_high) if expected != "lower" else (detected.ci_low, detected.ci_high)
    if low is None or high is None:
        return "inconclusive"
    if expected == "lower":
        return "notices" if low >= NOTICED else "blind" if high < NOTICED else "inconclusive"
    if high <= margin and (expected == "not_higher" or low >= -margin):
        return "steady"
    return "swayed" if low > 0 or (expected == "same" and high < 0) else "inconclusive"


def _scored(line: Line) -> bool:
    return bool(line["status"] == "scored")


def _flipped(one: Line | None, other: Line | None) -> bool | None:
    """Whether a rerun of the unchanged case changed the verdict; None where it did not score."""
    if one is None or other is None or not (_scored(one) and _scored(other)):
        return None
    return bool(one["passed"] != other["passed"])


def _by_level(both: Sequence[tuple[str, Line, Line]]) -> list[dict[str, Any]]:
    groups: dict[int, list[float]] = {}
    for _, one, other in both:
        groups.setdefault(round(one["score"]), []).append(other["score"] - one["score"])
    return [
        {"level": level, "n": len(found), "shift": float(np.mean(found))} for level, found in sorted(groups.items())
    ]


def _kappa(rubric: Rubric, both: Sequence[tuple[str, Line, Line]], clusters: Sequence[str] | None) -> Estimate:
    """Agreement of the two scores: on whole levels quadratic, on verdicts in quick mode and on two levels."""
    if not both:
        return undefined("no_data")
    quick = any(one["mode"] == "quick" for _, one, _ in both)
    levels = rubric.scale.levels
    if quick or len(levels) == 2:
        columns = [np.array([int(line["passed"]) for line in side]) for side in list(zip(*both, strict=True))[1:]]
        return kappa(pair_tables([(columns[0], columns[1])], 2, clusters=clusters), "none")
    place = {level: code for code, level in enumerate(levels)}
    columns = [np.array([place[round(line["score"])] for line in side]) for side in list(zip(*both, strict=True))[1:]]
    return kappa(pair_tables([(columns[0], columns[1])], len(levels), clusters=clusters), "quadratic")
