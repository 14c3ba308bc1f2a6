"""The page of a scored run: each rubric's mean and pass rate with interval and counts, weakest cases, totals."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from calibration.display import in_words
from judge.calibrations import UNCALIBRATED, in_short
from judge.report.page import Section, brief, counted, estimated, figure, markdown
from judge.runs import manifest, rows

WEAKEST = 5
STOPPED = "stopped early: what was not reached yet is in no number here; the same command resumes"


def sections(run: Path, summary: Mapping[str, Any], named: str | None = None) -> list[Section]:
    """The page as values; `summary` is the content of summary.json, `named` what the page calls the run directory."""
    made = manifest(run)
    return [
        _scores(summary, made),
        *(_rubric(name, found) for name, found in summary["rubrics"].items()),
        *_weakest(run, made, named or str(run)),
        totals_section(summary, made),
    ]


def write(run: Path, summary: Mapping[str, Any]) -> None:
    """Writes summary.md beside summary.json."""
    (run / "summary.md").write_text(markdown(f"Scores: {run.name}", sections(run, summary, run.name)), encoding="utf-8")


def _scores(summary: Mapping[str, Any], made: Mapping[str, Any]) -> Section:
    columns = ["rubric", "mean", "on", "passed", "trust", "overlap (no model)"]
    lines = []
    for name, found in summary["rubrics"].items():
        low, high = found["scale"]
        lines.append(
            [
                name,
                f"{estimated(found['mean'])} of {low}-{high}",
                f"{found['n_scored']} of {found['n_cases']}",
                f"{estimated(found['pass_rate'], percent=True)} at {_pass_mark(found)}"
                if found["mode"] == "full"
                else estimated(found["pass_rate"], percent=True),
                in_short(found.get("calibration", UNCALIBRATED), found.get("calibration_verdict")),
                figure((found["overlap"] or {}).get("value")),
            ]
        )
    notes = []
    combined = summary.get("combined")
    if combined:
        notes.append(
            f"combined (0-1, weighted by rubric): {estimated(combined['mean'])}, "
            f"covering {figure(combined['coverage'], percent=True)} of the weight"
        )
    notes += [f"{name}: {found['calibration']}, {found['calibration_detail']}" for name, found
              in summary["rubrics"].items() if found.get("calibration_detail")]  # fmt: skip
    if any(found.get("calibration", "uncalibrated") == "uncalibrated" for found in summary["rubrics"].values()):
        notes.append(
            "uncalibrated: nobody has compared this judge with people yet. Label some cases: judge sheet, judge audit"
        )
    if summary.get("stopped"):
        notes.append(STOPPED)
    if summary["n_cases_gone"]:
        notes.append(
            f"{summary['n_cases_gone']} cases of earlier invocations are no longer in the file and are left out"
        )
    notes += summary.get("warnings", [])
    judge = made["judge"]
    return Section(f"Scores by {judge['model']} ({judge['mode']} mode)", columns, lines, notes)


def _rubric(name: str, found: Mapping[str, Any]) -> Section:
    notes = [f"statuses: {counted(found['by_status'])}", f"scores: {_bars(found['histogram'])}"]
    for key, label in (("reasons", "not scored because"), ("errors", "errors found"), ("flags", "flags")):
        if found[key]:
            notes.append(f"{label}: {counted(found[key])}")
    if found["holistic_score"] and found["mode"] == "full":
        notes.append(
            f"the judge's own closing score: {estimated(found['holistic_score'])} (kept apart from the computed one)"
        )
    if found["repeats"]:
        repeats = found["repeats"]
        flips = estimated(repeats["flip_rate"], percent=True)
        notes.append(f"{repeats['k']} repeats: spread {repeats['mean_sd']:.2f}, verdict flips in {flips} of cases")
        needed = repeats["repeats_needed"]
        enough = "" if needed is None else f"; {needed} repeats to average for 0.95"
        notes.append(f"reliability of one run (ICC): {estimated(repeats['icc'])}{enough}")
        notes += [f"note: {in_words(warning)}" for warning in repeats["warnings"]]
    return Section(name, notes=notes)


def _pass_mark(found: Mapping[str, Any]) -> str:
    """The lowest passing mark, with a plus where higher ones exist."""
    return f"{found['pass_at']}+" if found["pass_at"] < found["scale"][1] else str(found["pass_at"])


def _bars(histogram: Mapping[str, int]) -> str:
    blocks = " ▁▂▃▄▅▆▇█"
    top = max(histogram.values(), default=0)
    shown = {level: n for level, n in histogram.items() if n} if len(histogram) > 7 else histogram
    return "  ".join(f"{level} {blocks[round(8 * n / top) if top else 0]} {n}" for level, n in shown.items())


def _weakest(run: Path, made: Mapping[str, Any], named: str) -> list[Section]:
    """The failed cases with the least scores, each rubric's worst repeat of a case standing for it."""
    scored = (row for row in rows(run) if row["status"] == "scored" and not row["passed"])
    least = heapq.nsmallest(WEAKEST * made.get("repeats", 1), scored, key=lambda row: row["normalized"])
    first: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in least:
        first.setdefault((row["case_id"], row["rubric"]), row)
    if not first:
        return []
    worst = list(first.values())[:WEAKEST]
    lines = [[brief(row["case_id"], 40), row["rubric"], figure(row["score"]), weak_point(row)] for row in worst]
    hint = f"look inside one: judge show {quote(named)} {quote(worst[0]['case_id'])}"
    return [Section("Weakest cases", ["case", "rubric", "score", "where"], lines, [hint])]


def weak_point(row: Mapping[str, Any]) -> str:
    """Where a judgment is weakest: its lowest unit in quick mode ("sentence 2: .18 ..."), else its errors or reason."""
    units = row["details"].get("units") or []
    if units:
        n, unit = min(enumerate(units, 1), key=lambda pair: pair[1]["p"])
        return brief(f"{row['details'].get('unit', 'unit')} {n}: {unit['p']:.2f}  {unit['text']}")
    return brief(", ".join(row["errors"]) or row["rationale"] or "")


def totals_section(summary: Mapping[str, Any], made: Mapping[str, Any], words: str = "judgments") -> Section:
    """Calls, tokens, money and time over all invocations; `words` says what was made."""
    spent = summary["totals"]
    price = "unknown" if spent["cost_usd"] is None else f"${spent['cost_usd']:.4f}"
    if spent["unknown_price_calls"]:
        price += f" ({spent['unknown_price_calls']} calls at an unknown price)"
    notes = [
        f"{spent['judgments']} {words}, {spent['http_calls']} calls "
        f"({spent['retries']} retries, {spent['reasks']} re-asks), {spent['cache_hits']} from cache",
        f"{spent['input_tokens']:,} tokens in, {spent['output_tokens']:,} out; cost {price}; {spent['wall_s']:.1f} s",
    ]
    versions = made["judge"].get("model_returned", [])
    if len(versions) > 1:
        notes.append(f"mixed model versions answered ({', '.join(versions)}): no calibration applies")
    return Section("Totals", notes=notes)
