"""From judgment lines to numbers that carry their doubt: counts by status, means, pass rates, histograms, totals."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from calibration.estimate import Estimate, clustered_proportion, mean, proportion
from calibration.reliability import reliability
from judge.lines import read_lines
from judge.runs import manifest, questions_of, rows, rubrics_of
from rubrics.model import Rubric

TOTALS = ("judgments", "http_calls", "retries", "reasks", "cache_hits", "input_tokens", "output_tokens", "cost_usd",
          "unknown_price_calls", "wall_s")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """What a summary needs of a judgment line; all lines of a run are held at once, so it is small.

    `score` and `normalized` are numbers where `status` is scored, else None.
    """

    case_id: str
    status: str
    score: Any
    normalized: Any
    passed: bool | None
    holistic_score: float | None
    errors: tuple[str, ...]
    flags: tuple[str, ...]
    reason: str | None
    error_kind: str | None
    mode: str
    prompt_hash: str | None
    overlap: float | None


def summarize(run: Path) -> dict[str, Any]:
    """The summary of a run directory (CONTRACTS 3), computed from its lines alone.

    Means and pass rates are over cases with status `scored`; with repeats a case counts once (mean score, majority
    verdict, ties fail). Intervals are clustered by question where several cases share one.
    """
    questions = {case: _short(question) for case, question in questions_of(run).items()}
    kept: dict[str, list[Line]] = defaultdict(list)
    gone: set[str] = set()
    for row in rows(run):
        if row["case_id"] in questions:
            kept[row["rubric"]].append(_line(row))
        else:
            gone.add(row["case_id"])
    known = rubrics_of(run)
    per_rubric = {name: rubric_summary(lines, known[name], questions) for name, lines in kept.items()}
    return {
        "rubrics": per_rubric,
        "combined": _combined(kept, known, questions),
        "n_cases": len(questions),
        "n_cases_gone": len(gone),
        "error_rate": _error_rate(kept),
        "totals": totals(run),
    }


def rubric_summary(
    lines: list[Line], rubric: Rubric, questions: Mapping[str, str], level: float = 0.95
) -> dict[str, Any]:
    """Counts and Estimates of one rubric's lines (one line per case and repeat)."""
    by_case: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        by_case[line.case_id].append(line)
    every = {case: [line for line in group if line.status == "scored"] for case, group in by_case.items()}
    scored = {case: group for case, group in every.items() if group}
    clusters = [questions[case] for case in every]
    means = [fmean(line.score for line in group) if group else None for group in every.values()]
    passes = [majority(line.passed for line in group) if group else None for group in every.values()]
    quick = any(line.mode == "quick" for line in lines)
    summary: dict[str, Any] = {
        "n_cases": len(by_case),
        "n_scored": len(scored),
        "by_status": dict(Counter(line.status for line in lines)),
        "reasons": dict(Counter(line.error_kind or line.reason for line in lines if line.status != "scored")),
        "mean": _mean(means, clusters, level, (rubric.scale.min, rubric.scale.max)).to_dict(),
        "pass_rate": _share(passes, clusters, level).to_dict(),
        "histogram": _histogram([line for group in scored.values() for line in group], rubric, quick),
        "errors": dict(Counter(error for line in lines for error in line.errors).most_common()),
        "flags": dict(Counter(flag for line in lines for flag in line.flags).most_common()),
        "scale": [rubric.scale.min, rubric.scale.max],
        "pass_at": rubric.scale.pass_at,
        "mode": "quick" if quick else "full",
        "rubric_hash": rubric.rubric_hash,
        "prompt_hashes": sorted({line.prompt_hash for line in lines} - {None}),
    }
    for twin, bounds in (("holistic_score", (rubric.scale.min, rubric.scale.max)), ("overlap", (0, 1))):
        twins = [_fmean(getattr(line, twin) for line in group) for group in every.values()]
        known = any(value is not None for value in twins)
        summary[twin] = _mean(twins, clusters, level, bounds).to_dict() if known else None
    repeats = max((len(group) for group in scored.values()), default=1)
    summary["repeats"] = _repeats(scored) if repeats > 1 else None
    return summary


def majority(passed: Iterable[bool | None]) -> bool:
    """Whether most repeats of a case passed; a tie fails."""
    verdicts = [bool(one) for one in passed]
    return 2 * sum(verdicts) > len(verdicts)


def totals(run: Path, lines: str = "judgments.jsonl") -> dict[str, Any]:
    """Calls, tokens and money over all invocations of a run, from its archived replies."""
    counts: dict[str, Any] = dict.fromkeys(TOTALS, 0)
    counts["judgments"] = sum(1 for _ in rows(run, lines))
    for _, reply in read_lines(run / "replies.jsonl"):
        counts["cache_hits"] += reply["cached"]
        for call in reply["http_calls"]:
            usage = call.get("usage") or {}
            counts["http_calls"] += 1
            counts["retries"] += call["kind"] == "retry"
            counts["reasks"] += call["kind"] == "reask"
            counts["input_tokens"] += usage.get("input_tokens") or 0
            counts["output_tokens"] += usage.get("output_tokens") or 0
            if call["status"] == 200 and call.get("cost_usd") is None:
                counts["unknown_price_calls"] += 1
            counts["cost_usd"] += call.get("cost_usd") or 0.0
    counts["wall_s"] = round(sum(made.get("wall_s", 0.0) for made in manifest(run)["invocations"]), 3)
    counts["cost_usd"] = round(counts["cost_usd"], 10)
    if counts["unknown_price_calls"] and counts["cost_usd"] == 0:
        counts["cost_usd"] = None
    return counts


def _line(row: Mapping[str, Any]) -> Line:
    errors, flags = (tuple(map(sys.intern, row[name])) for name in ("errors", "flags"))
    return Line(
        row["case_id"], sys.intern(row["status"]), row["score"], row["normalized"], row["passed"],
        row["holistic_score"], errors, flags, row["reason"], row["error_kind"], sys.intern(row["mode"]),
        row["prompt_hash"] and sys.intern(row["prompt_hash"]), row["details"].get("overlap"),
    )  # fmt: skip


def _fmean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _short(question: str) -> str:
    return hashlib.blake2b(question.encode(), digest_size=12).hexdigest()


def _mean(
    values: Sequence[float | None], clusters: Sequence[str], level: float, bounds: tuple[float, float]
) -> Estimate:
    """None stands for a case without a score; clusters are used only where a question occurs more than once."""
    shared = len(set(clusters)) < len(clusters)
    return mean(values, clusters=clusters if shared else None, level=level, bounds=bounds)


def _share(values: Sequence[bool | None], clusters: Sequence[str], level: float) -> Estimate:
    known = [value for value in values if value is not None]
    if known and len(set(clusters)) < len(clusters):
        return clustered_proportion(values, clusters=clusters, level=level)
    return proportion(sum(known), len(known), level=level, n_dropped=len(values) - len(known))


def _histogram(lines: list[Line], rubric: Rubric, quick: bool) -> dict[str, int]:
    if quick:
        bins = Counter(min(int(line.normalized * 10), 9) for line in lines)
        return {f"{n / 10:.1f}-{(n + 1) / 10:.1f}": bins[n] for n in range(10)}
    levels = Counter(str(round(line.score)) for line in lines)
    return {str(n): levels[str(n)] for n in rubric.scale.levels}


def _repeats(scored: Mapping[str, list[Line]]) -> dict[str, Any]:
    """Repeats of the cases that have several: `flip_rate` across the pass mark, reliability of one run and of all."""
    lines = [(case, line) for case, group in scored.items() for line in group]
    found = reliability(
        [case for case, _ in lines],
        [line.score for _, line in lines],
        passed=[bool(line.passed) for _, line in lines],
    )
    groups = [group for group in scored.values() if len(group) > 1]
    return {
        "k": max(len(group) for group in groups),
        "n_cases": found.n,
        "mean_sd": fmean(pstdev(line.score for line in group) for group in groups),
        "flip_rate": found.pass_flip_rate.to_dict(),
        "changed_rate": found.flip_rate.to_dict(),
        "icc": found.icc.to_dict(),
        "icc_mean": found.icc_mean.to_dict(),
        "repeats_needed": found.repeats_needed,
        "warnings": list(found.warnings),
    }


def _error_rate(kept: Mapping[str, list[Line]]) -> float | None:
    lines = [line for group in kept.values() for line in group]
    return sum(line.status == "error" for line in lines) / len(lines) if lines else None


def _combined(
    kept: Mapping[str, list[Line]], known: Mapping[str, Rubric], questions: Mapping[str, str]
) -> dict[str, Any] | None:
    """Weighted mean of normalised scores over the rubrics that scored each case, with the share of weight covered."""
    weights = {name: known[name].weight for name in kept if known[name].weight > 0}
    if len(weights) < 2:
        return None
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name in weights:
        for line in kept[name]:
            if line.status == "scored":
                scores[line.case_id][name].append(line.normalized)
    values = {
        case: sum(weights[name] * fmean(given) for name, given in found.items()) / sum(weights[name] for name in found)
        for case, found in scores.items()
    }
    covered = sum(sum(weights[name] for name in found) for found in scores.values())
    possible = sum(weights.values()) * len(questions)
    estimate = _mean([values.get(case) for case in questions], list(questions.values()), 0.95, (0.0, 1.0))
    return {"mean": estimate.to_dict(), "coverage": covered / possible if possible else None, "weights": weights}
