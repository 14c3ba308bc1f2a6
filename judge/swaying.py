"""What the probes measured: shift of the score, verdicts that flip beyond the null arm's, damage that was noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.estimate import Estimate, bootstrap_mean, clustered_proportion, proportion, undefined
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


@dataclass(frozen=True, slots=True)
class Reaction:
    """One case that was scored before and after the edit; `null_flipped`: whether an unchanged rerun flipped it.

    `question` is the cluster of cases that share one. `null_flipped` is None where the rerun gave no score.
    """

    before: Line
    after: Line
    null_flipped: bool | None
    question: str | None

    @property
    def shift(self) -> float:
        return float(self.after["score"] - self.before["score"])

    @property
    def flipped(self) -> bool:
        return bool(self.before["passed"] != self.after["passed"])


def measured(
    rubric: Rubric,
    expected: Expected,
    before: Mapping[str, Line],
    after: Mapping[str, Line],
    rerun: Mapping[str, Line],
    questions: Mapping[str, str] | None = None,
    *,
    seed: int = 0,
    replicates: int = 9999,
) -> dict[str, Any]:
    """One probe under one rubric, lines by case id: of the run, of the edited cases, of the unchanged cases again.

    `shift`: edited minus original, in marks. `flip_share` of verdicts, `null_flip_share` of the rerun, and their paired
    difference `excess_flips`; `by_level` the same for each score before the edit, rounded. Shift and difference have a
    percentile bootstrap over cases, or over `questions` that cases share; below 10 cases there is no interval.
    `detected` (where the score must fall): share of cases that lose more than 5% of the scale, of those not at its
    bottom. `kappa` between the two. `lost`: cases scored before and not after, by reason.
    """
    pairs = [(name, before[name], line) for name, line in after.items() if name in before]
    both = [
        Reaction(one, other, _flipped(one, rerun.get(name)), None if questions is None else questions[name])
        for name, one, other in pairs
        if _scored(one) and _scored(other)
    ]
    span = float(rubric.scale.max - rubric.scale.min)
    options: dict[str, Any] = {"seed": seed, "replicates": replicates}
    shift, moved = _moved(both, span, options)
    above = [one for one in both if one.before["normalized"] > 0]
    noticed = [-one.shift > MARGIN * span for one in above]
    detected = _share(above, noticed) if expected == "lower" else undefined("not_asked", n=len(above))
    lost = Counter(str(other["error_kind"] or other["reason"]) for _, one, other in pairs
                   if _scored(one) and not _scored(other))  # fmt: skip
    return {
        "expected": expected, "n": len(both), **moved, "detected": detected.to_dict(),
        "kappa": _kappa(rubric, both, options).to_dict(), "by_level": _by_level(both, span, options),
        "at_floor": len(both) - len(above), "lost": dict(lost),
        "verdict": verdict(expected, shift, detected, MARGIN * span),
    }  # fmt: skip


def _moved(both: Sequence[Reaction], span: float, options: Mapping[str, Any]) -> tuple[Estimate, dict[str, Any]]:
    """The mean shift, and it beside the flips, those of the rerun, and the paired difference of both."""
    known = [one for one in both if one.null_flipped is not None]
    excess = [None if one.null_flipped is None else float(one.flipped) - one.null_flipped for one in both]
    groups = _questions(both)
    shift = bootstrap_mean([one.shift for one in both], clusters=groups, bounds=(-span, span), **options)
    beyond = bootstrap_mean(excess, clusters=groups, bounds=(-1.0, 1.0), **options)
    return shift, {
        "shift": shift.to_dict(), "flip_share": _share(both, [one.flipped for one in both]).to_dict(),
        "null_flip_share": _share(known, [bool(one.null_flipped) for one in known]).to_dict(),
        "excess_flips": beyond.to_dict(),
    }  # fmt: skip


def _by_level(both: Sequence[Reaction], span: float, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    groups: dict[int, list[Reaction]] = {}
    for one in both:
        groups.setdefault(round(one.before["score"]), []).append(one)
    return [
        {"level": level, "n": len(found)} | _moved(found, span, options)[1] for level, found in sorted(groups.items())
    ]


def _questions(cases: Sequence[Reaction]) -> list[str] | None:
    names = [one.question for one in cases if one.question is not None]
    return names or None


def _share(cases: Sequence[Reaction], outcomes: Sequence[bool]) -> Estimate:
    """A share of cases with its Wilson interval, by questions where cases share them."""
    groups = _questions(cases)
    if groups is None:
        return proportion(sum(outcomes), len(outcomes))
    return clustered_proportion(outcomes, clusters=groups)


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


def _flipped(one: Line, other: Line | None) -> bool | None:
    """Whether a rerun of the unchanged case changed the verdict; None where it did not score."""
    if other is None or not _scored(other):
        return None
    return bool(one["passed"] != other["passed"])


def _kappa(rubric: Rubric, both: Sequence[Reaction], options: Mapping[str, Any]) -> Estimate:
    """Agreement of the two scores: on whole levels quadratic, on verdicts in quick mode and on two levels."""
    if not both:
        return undefined("no_data")
    levels = rubric.scale.levels
    sides = [[one.before for one in both], [one.after for one in both]]
    if any(one.after["mode"] == "quick" for one in both) or len(levels) == 2:
        columns = [np.array([int(line["passed"]) for line in side]) for side in sides]
        return kappa(pair_tables([(columns[0], columns[1])], 2, clusters=_questions(both)), "none", **options)
    place = {level: code for code, level in enumerate(levels)}
    columns = [np.array([place[round(line["score"])] for line in side]) for side in sides]
    tables = pair_tables([(columns[0], columns[1])], len(levels), clusters=_questions(both))
    return kappa(tables, "quadratic", **options)
