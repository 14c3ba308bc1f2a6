"""From rates and verdicts to a level of the rubric's scale: bands, caps and outcomes, the same for every mode.

Caps and tables are written for the default scale 1..5 and keep their relative place on any other scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor
from typing import Any

from rubrics.model import Outcome, Rubric, Scale, ScoreSource, Status

_EPSILON = 1e-9
_BANDS: Mapping[str, tuple[float, float, float, float]] = {
    # lowest rates that earn levels 2, 3, 4, 5 of five, when the rubric declares no bands (spec rubrics.md 2)
    "claims": (0.30, 0.60, 0.85, 1.0),
    "citations": (0.25, 0.55, 0.80, 0.95),
    "nuggets": (0.20, 0.50, 0.75, 0.95),
    "facts": (0.20, 0.50, 0.75, 0.95),
    "checklist": (0.20, 0.50, 0.75, 0.95),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What one mode makes of a reply, before the parts common to all modes are added."""

    status: Status = "scored"
    level: int | None = None
    source: ScoreSource = "computed"
    details: Mapping[str, Any] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    reason: str | None = None
    error_kind: str | None = None


def of_five(scale: Scale, level: int) -> int:
    """The level that holds the same relative place on this scale as `level` on 1..5, rounded down.

    On 1..3 levels 1 to 5 become 1, 1, 2, 2, 3; on 1..2 only 5 is the top.
    """
    return scale.min + floor((level - 1) * (scale.max - scale.min) / 4 + _EPSILON)


def cuts(rubric: Rubric) -> list[tuple[int, float]]:
    """(level, lowest rate) from the top down; without declared bands the default curve, interpolated to the scale."""
    if rubric.bands:
        return sorted(rubric.bands.items(), reverse=True)
    curve = (0.0, *_BANDS[rubric.mode])
    cuts = []
    for level in range(rubric.scale.max, rubric.scale.min, -1):
        place = rubric.scale.normalize(level) * 4
        low = min(floor(place + _EPSILON), 3)
        cuts.append((level, curve[low] + (place - low) * (curve[low + 1] - curve[low])))
    return cuts


def band(rubric: Rubric, rate: float) -> int:
    """The highest level whose band the rate (0..1) reaches, else the lowest level of the scale."""
    return next((level for level, cut in cuts(rubric) if rate >= cut - _EPSILON), rubric.scale.min)


def capped(rubric: Rubric, level: int, *caps: tuple[bool, int]) -> int:
    """The level, held down by each (applies, level of five) cap that applies."""
    return min([level, *(of_five(rubric.scale, cap) for applies, cap in caps if applies)])


def ratio(part: float, whole: float) -> float | None:
    """part / whole, None when there is nothing to divide by."""
    return part / whole if whole else None


def present(**lists: Sequence[Any]) -> dict[str, Any]:
    """Those of the named lists that hold anything, for details."""
    return {name: value for name, value in lists.items() if value}


def known_errors(rubric: Rubric, labels: Mapping[str, bool] | list[str | None]) -> tuple[tuple[str, ...], list[str]]:
    """Labels of the rubric's vocabulary among those given, in its order, and the labels that it does not know."""
    wanted = [name for name, applies in labels.items() if applies] if isinstance(labels, Mapping) else labels
    given = {name for name in wanted if name}
    return tuple(name for name in rubric.errors if name in given), sorted(given - set(rubric.errors))


def abstention(parsed: Mapping[str, Any]) -> str | None:
    """The judge's reason for not judging, or None; words such as "null" or "none" are read as none given."""
    words = str(parsed.get("cannot_judge") or "").strip()
    return None if words.casefold().strip(" .") in ("", "null", "none", "no", "n/a", "false") else words


def outcome(rubric: Rubric, draft: Draft, **more: Any) -> Outcome:
    """The outcome of a draft: score, its place on 0..1 and pass or fail; or a named non-answer without any score."""
    common: dict[str, Any] = {"details": draft.details, "flags": draft.flags, **more}
    if draft.status != "scored" or draft.level is None:
        return Outcome(status=draft.status, reason=draft.reason, error_kind=draft.error_kind, **common)
    score = float(draft.level)
    return Outcome(
        status="scored",
        score=score,
        normalized=rubric.scale.normalize(score),
        passed=score >= rubric.scale.pass_at,
        score_source=draft.source,
        computed_score=None if draft.source == "holistic" else score,
        errors=draft.errors,
        **common,
    )
