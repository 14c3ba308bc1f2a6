"""From comparison lines to what may be said: the comparison summary, slices, length, people, and a conclusion."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibration.agreement import as_json
from calibration.compare import holm, minimal_detectable_effect
from calibration.correction import correct
from calibration.errors import CalibrationError
from calibration.estimate import Estimate, mean, proportion, undefined
from calibration.length import length_control
from calibration.one_order import both_share
from calibration.pairwise import agreement_with_humans, order_effect, shrunk_win_rate, summarize
from calibration.strength import ratings
from judge.concluding import conclusion
from judge.joining import Names
from judge.pairlines import LINES, POINTS, Record, difference_of, outcomes_of, points_of, read_records, verdicts
from judge.pointwise import PairMode
from judge.preferences import Preferences
from judge.second_order import Decision, told
from judge.summary import totals
from rubrics.model import Scale

SMALLEST_SLICE = 5
COUNTS = ("n", "a_wins", "b_wins", "ties", "both_fail", "inconsistent", "incomplete")
SINGLE = ("position_consistency", "inconsistent_rate", "first_preference", "preference_fairness")
GATED = ("win_rate_a", *SINGLE, "mean_p_a", "mean_difference", "mean_rating_a", "mean_rating_b", "first_bonus")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the summary needs beside the lines. `label_design` says how the labelled questions were chosen.

    `decisions`: what `--second-order auto` decided for each pair of systems; None where both orders are the rule.
    """

    pairs: tuple[Names, ...]
    scale: Scale
    mode: PairMode
    chosen: Mapping[Names, frozenset[str]] | None = None
    seed: int = 0
    slice_by: tuple[str, ...] = ()
    humans: Preferences = field(default_factory=dict)
    label_design: str = "unknown"
    decisions: Mapping[Names, Decision] | None = None


def summarize_pairs(run: Path, settings: Settings, wanted: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The summary of a comparison run (CONTRACTS 3) from its lines; `wanted` are the identities that count now.

    Two systems: the flat comparison summary. More: the judge's behaviour over all pairs at the top, `comparisons` with
    one flat summary each (p adjusted by Holm), and `ratings`. Lines of other pairs are left out and counted. Quick mode
    adds `mean_p_a` and `pointwise`, score mode what `_rated` gives, a second-order rule `second_order`.
    """
    records, gone = read_records(run, settings.pairs, wanted, chosen=settings.chosen, slice_by=settings.slice_by)
    spent = totals(run, LINES)
    parts = []
    for pair in settings.pairs:
        own = [one for one in records if (one.a, one.b) == pair]
        part = _comparison(pair, own, settings)
        if settings.decisions is not None:
            part["second_order"] = told(settings.decisions.get(pair), own, part["win_rate_a"], spent)
        parts.append(part)
    adjusted = holm([part["p_value"] for part in parts])
    for part, p in zip(parts, adjusted, strict=True):
        part["p_holm"] = p
        part["conclusion"] = conclusion(part, several=len(parts) > 1)
    lines = [line for one in records for line in one.lines]
    incomplete = sum(line["outcome"] == "incomplete" for line in lines)
    whole = parts[0] if len(parts) == 1 else _several(records, parts, settings)
    return whole | {
        "n_lines_gone": gone,
        "error_rate": incomplete / len(lines) if lines else None,
        "totals": spent,
    }


def _comparison(pair: Names, records: list[Record], settings: Settings) -> dict[str, Any]:
    lines = [line for one in records for line in one.lines]
    mode, outcomes = settings.mode, outcomes_of(records)
    summary, wins = _counted(records), points_of(records)
    return {
        "a": pair[0],
        "b": pair[1],
        **summary,
        **({"mean_p_a": _mean_p(records).to_dict(), "pointwise": _pointwise(records)} if mode == "quick" else {}),
        **(_rated(records, settings.scale) if mode == "score" else {}),
        "mode": mode,
        "n_repeats": max((len(one.lines) for one in records), default=0),
        "identical": sum(one.lines[0]["reason"] == "identical_answers" for one in records),
        "mde": minimal_detectable_effect(summary["win_rate_a"]["se"]) if summary["win_rate_a"]["se"] else None,
        "order_effect": _order_effect(records),
        "leans": dict(Counter(line["lean"] for line in lines if line["lean"])),
        "length": _length(wins, records),
        "slices": _sliced(records),
        **_people(outcomes, records, settings.humans.get(pair, {}), settings),
        "reasons": dict(Counter(_reason(line) for line in lines if line["outcome"] == "incomplete")),
        "flags": dict(Counter(flag for line in lines for flag in line["flags"]).most_common()),
    }


def _counted(records: Sequence[Record], both: float | None = None) -> dict[str, Any]:
    """The contract's counts and estimates; `both` is the share judged in both orders of what `records` are a part."""
    if not records:
        nothing = undefined("no_values").to_dict()
        return dict.fromkeys(COUNTS, 0) | {"win_rate_a": nothing, "p_value": 1.0} | dict.fromkeys(SINGLE, nothing)
    return dict(as_json(summarize(verdicts(records), both_share=both)))


def _rated(records: Sequence[Record], scale: Scale) -> dict[str, Any]:
    """Score mode, in levels: the mean difference a - b, a pair counting once; mean ratings and `first_bonus` of calls.

    Identical answers differ by 0 and have no ratings of their own; incomplete repeats are left out. `first_bonus` is
    how much higher the reply shown first is rated than the other: it cancels in the difference of both orders.
    """
    width = float(scale.max - scale.min)
    known = [(difference_of(one), one.question) for one in records]
    calls = [(call, one.question) for one in records for line in one.lines for call in line["calls"]
             if line["difference"] is not None]  # fmt: skip
    bonus = [(call["ratings"]["a"] - call["ratings"]["b"]) * (1 if call["first"] == "a" else -1) for call, _ in calls]
    questions = [question for _, question in calls]
    ends = (float(scale.min), float(scale.max))
    return {
        "mean_difference": _clustered(*_defined(known), (-width, width)).to_dict(),
        "mean_rating_a": _clustered([float(call["ratings"]["a"]) for call, _ in calls], questions, ends).to_dict(),
        "mean_rating_b": _clustered([float(call["ratings"]["b"]) for call, _ in calls], questions, ends).to_dict(),
        "first_bonus": _clustered([float(value) for value in bonus], questions, (-width, width)).to_dict(),
        "scale": [scale.min, scale.max],
    }


def _defined(known: Iterable[tuple[float | None, str]]) -> tuple[list[float], list[str]]:
    kept = [(value, question) for value, question in known if value is not None]
    return [value for value, _ in kept], [question for _, question in kept]


def _clustered(values: list[float], questions: list[str], bounds: tuple[float, float]) -> Estimate:
    return mean(values, clusters=_shared(questions), bounds=bounds)


def _order_effect(records: Sequence[Record]) -> dict[str, Any]:
    """gamma, and what an effect of that size makes of a win rate of 70 %."""
    gamma = order_effect(verdicts(records)) if records else undefined("no_values")
    shown = None if gamma.value is None else shrunk_win_rate(0.7, gamma.value)
    return {"gamma": gamma.to_dict(), "seventy_shows_as": shown}


def _mean_p(records: Sequence[Record]) -> Estimate:
    known = [(line["p_a"], one.question) for one in records for line in one.lines]
    return _clustered(*_defined(known), (0.0, 1.0))


def _pointwise(records: Sequence[Record]) -> dict[str, Any] | None:
    """The difference of the two pointwise quick scores, and how often it names the same winner."""
    twins = [(line["pointwise"], line["outcome"], one) for one in records for line in one.lines if "pointwise" in line]
    scored = [twin for twin in twins if twin[0]["a"] is not None and twin[0]["b"] is not None]
    if not twins:
        return None
    changes = [twin["a"] - twin["b"] for twin, _, _ in scored]
    groups = _shared([one.question for _, _, one in scored])
    both = [(change > 0) == (outcome == "a") for change, (_, outcome, _) in zip(changes, scored, strict=True)
            if change != 0 and outcome in ("a", "b")]  # fmt: skip
    return {
        "rubric": twins[0][0]["rubric"],
        "difference": mean(changes, clusters=groups, bounds=(-1.0, 1.0)).to_dict(),
        "agreement": proportion(sum(both), len(both)).to_dict(),
    }


def _length(wins: Sequence[float | None], records: Sequence[Record]) -> dict[str, Any]:
    groups = _shared([one.question for one in records])
    found = length_control(wins, [float(one.longer) for one in records], clusters=groups)
    longer = [(win == 1) == (one.longer > 0) for win, one in zip(wins, records, strict=True)
              if win in (0, 1) and one.longer != 0]  # fmt: skip
    return {
        "coefficient": found.effect.to_dict(),
        "win_rate_a": found.win_rate.to_dict(),
        "longer_wins": proportion(sum(longer), len(longer)).to_dict(),
        "unit": "words",
    }


def _sliced(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Slices of at least five pairs that are not everything, with p after Holm over them."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for one in records:
        for name in dict.fromkeys(one.slices):
            groups[name].append(one)
    kept = {name: found for name, found in groups.items() if SMALLEST_SLICE <= len(found) < len(records)}
    counts = (*COUNTS, "win_rate_a", "p_value")
    both = both_share(verdicts(records)) if kept else None
    parts = []
    for name, found in sorted(kept.items()):
        summary = _counted(found, both)
        parts.append({"slice": name, **{count: summary[count] for count in counts}})
    for part, p in zip(parts, holm([part["p_value"] for part in parts]), strict=True):
        part["p_holm"] = p
    return parts


def _people(
    outcomes: Sequence[str], records: Sequence[Record], humans: Mapping[str, str], settings: Settings
) -> dict[str, Any]:
    """Agreement with people, and the win rate that people would give where the labels are a random sample."""
    labels = [humans.get(one.case_id) for one in records]
    if not any(labels):
        return {"human": None, "corrected": None}
    agreement = as_json(agreement_with_humans(outcomes, labels, seed=settings.seed))
    scores = {one.case_id: POINTS.get(outcome) for one, outcome in zip(records, outcomes, strict=True)}
    given = {one.case_id: POINTS.get(label) for one, label in zip(records, labels, strict=True) if label}
    corrected = None
    if settings.label_design != "unknown":
        try:
            corrected = correct(
                scores, given, design=settings.label_design, bounds=(0.0, 1.0),
                clusters={one.case_id: one.question for one in records},
            ).to_dict()  # fmt: skip
        except CalibrationError as error:
            corrected = {"method": "none", "reason": str(error)}
    return {"human": {**agreement, "n_labels": len(humans)}, "corrected": corrected}


def _shared(questions: Sequence[str]) -> Sequence[str] | None:
    """The questions as clusters, or None where each occurs once."""
    return questions if len(set(questions)) < len(questions) else None


def _reason(line: Mapping[str, Any]) -> str:
    """An incomplete line's reason without its details: the first failed call's kind."""
    words = (line["reason"] or "").split("; ")[0]
    return words.partition("): ")[2].partition(": ")[0] or words


def _several(records: list[Record], parts: list[dict[str, Any]], settings: Settings) -> dict[str, Any]:
    """More than two systems: the judge's behaviour over all pairs, each comparison, and ratings of the systems."""
    whole = _counted(records)
    rated = ratings(verdicts(records, named=True), seed=settings.seed) if records else []
    return {
        "systems": list(dict.fromkeys(name for pair in settings.pairs for name in pair)),
        "n": whole["n"],
        "incomplete": sum(part["incomplete"] for part in parts),
        **{name: whole[name] for name in SINGLE},
        "comparisons": parts,
        "ratings": as_json(rated),
    }
