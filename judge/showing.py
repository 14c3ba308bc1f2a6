"""One judgment laid open: the exact prompt, the raw reply, the checks made, the way to the score, the labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.cases import Case
from judge.combining import ORDERS
from judge.errors import UsageError
from judge.lines import read_lines
from judge.report.page import Section, figure
from judge.runs import cases_of, manifest, rows


def opened(run: Path, case_id: str, rubrics: list[str]) -> dict[str, Any]:
    """Everything the run directory knows about a case: the case, its judgment lines, and the replies behind each.

    Raises UsageError for a case or rubric that the run does not have, with the nearest ids.
    """
    manifest(run)
    cases = [case for case in cases_of(run) if case.id == case_id]
    file = "comparisons.jsonl" if (run / "comparisons.jsonl").exists() else "judgments.jsonl"
    lines = [row for row in rows(run, file) if row["case_id"] == case_id and (not rubrics or row["rubric"] in rubrics)]
    if not cases and not lines:
        raise UsageError(f"case {case_id!r} is not in {run}{_near(run, case_id)}")
    if not lines:
        raise UsageError(f"case {case_id!r} has no judgment by {', '.join(rubrics) or 'any rubric'} in {run}")
    wanted = {key for row in lines for key in keys_of(row)}
    replies = {row["key"]: row for _, row in read_lines(run / "replies.jsonl") if row["key"] in wanted}
    return {
        "case": cases[0].to_row() if cases else None,
        **({"cases": [case.to_row() for case in cases]} if len(cases) > 1 else {}),
        "judgments": [{**row, "replies": [replies[key] for key in keys_of(row) if key in replies]} for row in lines],
    }


def keys_of(row: Mapping[str, Any]) -> list[str]:
    """The keys of the replies behind a line: its own, those of its units, or of the calls of a comparison."""
    if "calls" in row:
        return [call["key"] for call in row["calls"]]
    units = row["details"].get("units")
    return [row["key"]] if units is None else [unit["key"] for unit in units if unit.get("key")]


def sections(found: Mapping[str, Any]) -> list[Section]:
    """The page of `judge show`."""
    cases = found.get("cases") or ([found["case"]] if found["case"] else [])
    page = [_case(Case.from_row(case)) for case in cases]
    for row in found["judgments"]:
        page += one_comparison(row) if "calls" in row else [_score(row), *(_prompts(row)), *_units(row)]
    return page


def _case(case: Case) -> Section:
    notes = [f"question: {case.question}", f"answer: {case.answer!r}" if not case.answer else f"answer: {case.answer}"]
    notes += [f"[{context.id}] {context.text}" for context in case.contexts or ()]
    notes += [f"reference: {text}" for text in case.reference or ()]
    notes += [
        f"label {rubric} by {rater}: {label}" for rubric, given in case.labels.items() for rater, label in given.items()
    ]
    return Section(f"Case {case.id}" + (f", answered by {case.system}" if case.system else ""), notes=notes)


def _score(row: Mapping[str, Any]) -> Section:
    verdict = "" if row["passed"] is None else (", passed" if row["passed"] else ", failed")
    notes = [f"status {row['status']}: score {figure(row['score'])}{verdict} ({row['score_source'] or row['reason']})"]
    if row["holistic_score"] is not None and row["computed_score"] is not None:
        notes.append(f"computed from verdicts: {figure(row['computed_score'])}; closing score: {row['holistic_score']}")
    if row["reason"]:
        notes.append(f"reason: {row['reason']}")
    plain = {name: value for name, value in row["details"].items() if name != "units"}
    if plain:
        rounded = json.loads(json.dumps(plain), parse_float=lambda digits: round(float(digits), 4))
        notes.append("derived from: " + json.dumps(rounded, ensure_ascii=False))
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


def one_comparison(row: Mapping[str, Any]) -> list[Section]:
    """A comparison line laid open: how the two orders were combined, then the prompt and reply of each."""
    notes = [f"outcome: {row[row['outcome']] if row['outcome'] in ('a', 'b') else row['outcome']}"]
    if row["lean"]:
        notes.append(f"leaning to {row[row['lean']]}")
    for call in row["calls"]:
        winner = row[call["winner"]] if call["winner"] in ("a", "b") else call["winner"] or call["status"]
        order = f"order {ORDERS.index(call['first']) + 1}, {row[call['first']]} shown first"
        notes.append(f"{order}: {call['verdict']} = {winner}{_detail(row, call)}")
    if "second_order" in row:
        notes.append("the other order was left out by --second-order auto: this one stands alone")
    if row["p_a"] is not None:
        notes.append(f"mean probability of {row['a']} over both orders: {row['p_a']:.3f}")
    if row.get("difference") is not None and row["calls"]:
        notes.append(f"mean rating of {row['a']} minus {row['b']}: {row['difference']:+.2f} (half a level decides)")
    notes += [f"reason: {row['reason']}"] if row["reason"] else []
    notes += [f"flags: {', '.join(row['flags'])}"] if row["flags"] else []
    head = Section(f"{row['rubric']}: {row['a']} against {row['b']}, repeat {row['repeat']}", notes=notes)
    return [head, *_prompts({**row, "mode": "full"})]


def _detail(row: Mapping[str, Any], call: Mapping[str, Any]) -> str:
    if call["p_first"] is not None:
        return f", P(first) {call['p_first']:.3f}"
    if call.get("ratings"):
        return ", " + ", ".join(f"{row[side]} rated {call['ratings'][side]}" for side in ORDERS)
    return f", margin {call['margin']}" if call["margin"] else ""


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
    return f" (did you mean {', '.join(close)}?)" if close else f"; its ids are in {run / 'cases.jsonl'}"
