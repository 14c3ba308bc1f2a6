"""One judgment laid open: the exact prompt, the raw reply, the checks made, the way to the score, the labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.cases import Case
from judge.errors import UsageError
from judge.report.page import Section, figure
from judge.runs import cases_of, manifest, read_lines, rows


def opened(run: Path, case_id: str, rubrics: list[str]) -> dict[str, Any]:
    """Everything the run directory knows about a case: the case, its judgment lines, and the replies behind each.

    Raises UsageError for a case or rubric that the run does not have, with the nearest ids.
    """
    manifest(run)
    case = next((case for case in cases_of(run) if case.id == case_id), None)
    lines = [row for row in rows(run) if row["case_id"] == case_id and (not rubrics or row["rubric"] in rubrics)]
    if case is None and not lines:
        raise UsageError(f"case {case_id!r} is not in {run}{_near(run, case_id)}")
    if not lines:
        raise UsageError(f"case {case_id!r} has no judgment by {', '.join(rubrics) or 'any rubric'} in {run}")
    wanted = {key for row in lines for key in keys_of(row)}
    replies = {row["key"]: row for _, row in read_lines(run / "replies.jsonl") if row["key"] in wanted}
    return {
        "case": case.to_row() if case else None,
        "judgments": [{**row, "replies": [replies[key] for key in keys_of(row) if key in replies]} for row in lines],
    }


def keys_of(row: Mapping[str, Any]) -> list[str]:
    """The keys of the replies behind a judgment line: its own, or those of its units."""
    units = row["details"].get("units")
    return [row["key"]] if units is None else [unit["key"] for unit in units if unit.get("key")]


def sections(found: Mapping[str, Any]) -> list[Section]:
    """The page of `judge show`."""
    page = [_case(Case.from_row(found["case"]))] if found["case"] else []
    for row in found["judgments"]:
        page += [_score(row), *(_prompts(row)), *_units(row)]
    return page


def _case(case: Case) -> Section:
    notes = [f"question: {case.question}", f"answer: {case.answer!r}" if not case.answer else f"answer: {case.answer}"]
    notes += [f"[{context.id}] {context.text}" for context in case.contexts or ()]
    notes += [f"reference: {text}" for text in case.reference or ()]
    notes += [
        f"label {rubric} by {rater}: {label}" for rubric, given in case.labels.items() for rater, label in given.items()
    ]
    return Section(f"Case {case.id}", notes=notes)


def _score(row: Mapping[str, Any]) -> Section:
    verdict = "" if row["passed"] is None else (", passed" if row["passed"] else ", failed")
    notes = [f"status {row['status']}: score {figure(row['score'])}{verdict} ({row['score_source'] or row['reason']})"]
    if row["holistic_score"] is not None and row["computed_score"] is not None:
        notes.append(f"computed from verdicts: {figure(row['computed_score'])}; closing score: {row['holistic_score']}")
    if row["reason"]:
        notes.append(f"reason: {row['reason']}")
    plain = {name: value for name, value in row["details"].items() if name != "units"}
    if plain:
        notes.append("derived from: " + json.dumps(plain, ensure_ascii=False))
    for name in ("errors", "flags"):
        if row[name]:
            notes.append(f"{name}: {', '.join(row[name])}")
    if row["quotes"]["total"]:
        notes.append("quotes checked: {total} ({exact} exact, {near} near, {failed} failed)".format(**row["quotes"]))
    if row["rationale"]:
        notes.append(f"rationale: {row['rationale']}")
    cost = "unknown" if row["cost_usd"] is None else f"${row['cost_usd']:.6f}"
    cached = ", from cache" if row["cached"] else ""
    notes.append(
        f"{row['judge']} ({row['mode']}), {row['http_calls']} calls, {row['latency_s']:.2f} s, cost {cost}{cached}"
    )
    return Section(f"{row['rubric']} {row['rubric_version']}, repeat {row['repeat']}", notes=notes)


def _prompts(row: Mapping[str, Any]) -> list[Section]:
    if row["mode"] == "quick":
        first = row["replies"][:1]
        return [Section("First prompt of this judgment", notes=_said(reply)) for reply in first]
    return [Section("Prompt and reply", notes=[*_said(reply), f"reply: {reply['text']}"]) for reply in row["replies"]]


def _said(reply: Mapping[str, Any]) -> list[str]:
    return [f"{message['role']}: {message['content']}" for message in reply["messages"]]


def _units(row: Mapping[str, Any]) -> list[Section]:
    units = row["details"].get("units")
    if not units:
        return []
    lines = [[str(n), figure(unit["p"]), unit["text"]] for n, unit in enumerate(units, 1)]
    unit = row["details"].get("unit", "unit")
    note = f"aggregate {figure(row['details'].get('p'))}, mean {figure(row['details'].get('mean'))}"
    return [Section(f"By {unit}", [unit, "p(good)", "text"], lines, [note])]


def _near(run: Path, case_id: str) -> str:
    import difflib

    close = difflib.get_close_matches(case_id, [case.id for case in cases_of(run)], n=3)
    return f" (did you mean {', '.join(close)}?)" if close else ""
