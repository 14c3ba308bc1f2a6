"""Citations: support and marks of every statement, counted only as far as their quotes are found in what it cites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rubrics.citations import Citation, CitedStatement, statements
from rubrics.inventory import checkable, nothing_listed
from rubrics.model import Item, Prompt, Rubric
from rubrics.numbers import answer_numerals, number_mismatches
from rubrics.quoting import Quotes
from rubrics.scoring import Draft, band, capped, known_errors, present, ratio

_SUPPORT = {"full": 1.0, "partial": 0.5, "none": 0.0}
_MARK = {"supports": 1.0, "partial": 0.5, "irrelevant": 0.0, "contradicts": 0.0, "unknown_id": 0.0}


def settle_citations(rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt) -> tuple[Draft, Quotes]:
    """F1 of support (over checkworthy statements) and of marks, through bands; unknown ids and clashes cap the level.

    Statements and ids come from the citation parser; the reply must judge every statement, and every known mark of it,
    exactly once, or it is an error (a shorter list would move the denominator). Support and a good mark count only with
    a quote found in a passage that the statement cites, and in the mark's own passage.
    """
    answer, contexts = item.answer or "", item.contexts or ()
    table = statements(answer, contexts, rubric.citation_scope)
    quotes = Quotes.of({passage.id: passage.text for passage in contexts}, prompt.aliases)
    replies = {reply["n"]: reply for reply in parsed["statements"]}
    only_declines = parsed["only_declines"]
    if only_declines and not any(reply["checkworthy"] for reply in parsed["statements"]):
        return nothing_listed(rubric, answer, True, "no_checkworthy_statement"), quotes
    problem = _mismatch(table, parsed["statements"])
    if problem:
        return Draft(status="error", error_kind="unparsable", reason=problem), quotes
    rows = [_statement(row, replies[row.n], quotes) for row in table]
    worthy = [row for row in rows if row["checkworthy"]]
    flags = ["refusal_mismatch"] if only_declines else []
    if not worthy:
        odd = ["nothing_checkworthy"] if checkable(answer) else []
        return Draft(status="undefined", reason="no_checkworthy_statement", flags=(*flags, *odd)), quotes
    marks = [verdict for row in rows for verdict in row["marks"]]
    unresolvable = any(mark.resolution == "unresolvable" for row in table for mark in row.citations)
    if not marks and not unresolvable and not rubric.citations_required:
        return Draft(status="undefined", reason="no_citations", flags=tuple(flags)), quotes
    recall_ = sum(_SUPPORT[row["support"]] for row in worthy) / len(worthy)
    precision = ratio(sum(_MARK[mark] for mark in marks), len(marks))
    f1 = 2 * precision * recall_ / (precision + recall_) if precision and recall_ else 0.0
    level = capped(rubric, band(rubric, f1), ("unknown_id" in marks, 3), ("contradicts" in marks, 2))
    labels, _ = known_errors(rubric, _citation_errors(rows, replies))
    missing = number_mismatches(answer, contexts, item.question)
    flags += ["unresolvable_citation"] if unresolvable else []
    flags += ["number_not_in_sources"] if missing else []
    flags += ["unbacked_verdict"] if any(row["unbacked"] for row in rows) else []
    skipped = any(_skipped(row, source) for row, source in zip(rows, table, strict=True))
    flags += ["unchecked_statements"] if skipped else []
    details = {
        "precision": precision, "recall": recall_, "f1": f1, "n_statements": len(worthy), "n_marks": len(marks),
        **present(
            unknown_citations=[mark.raw for row in table for mark in row.citations if mark.resolution == "unknown"],
            uncited=[row["n"] for row in worthy if not row["marks"]], number_mismatches=missing,
        ),
        "checks": rows,
    }  # fmt: skip
    return Draft(level=level, details=details, errors=labels, flags=tuple(flags)), quotes


def _mismatch(table: Sequence[CitedStatement], replies: Sequence[Mapping[str, Any]]) -> str | None:
    """In words, how the reply's list differs from the table of statements and marks; None when it does not."""
    wanted, given = [row.n for row in table], [reply["n"] for reply in replies]
    if sorted(given) != wanted:
        return f"the reply judges statements {sorted(given)}, the table has {wanted}: each must be judged exactly once"
    by_number = {reply["n"]: reply for reply in replies}
    for row in table:
        known = [k for k, mark in enumerate(row.citations, start=1) if mark.resolution == "resolved"]
        judged = sorted(entry["k"] for entry in by_number[row.n]["citations"])
        others = set(range(1, len(row.citations) + 1)) - set(known)
        if [k for k in judged if k not in others] != known:
            return f"statement {row.n}: the reply judges marks {judged}, known marks are {known}: each exactly once"
    return None


def _statement(row: CitedStatement, reply: Mapping[str, Any], quotes: Quotes) -> dict[str, Any]:
    """What counts for one statement: support, one verdict per mark (unresolvable marks have none), quote results."""
    cited = {mark.id for mark in row.citations if mark.id is not None}
    checks = quotes.check_all(reply["quotes"])
    backed = {check.passage for check in checks if check.verified}
    failed = any(not check.verified for check in checks)
    verdicts = {entry["k"]: entry["verdict"] for entry in reply["citations"]}
    support = reply["support"] if backed & cited and not failed else "none"
    marks, unbacked = [], support != reply["support"]
    for k, mark in enumerate(row.citations, start=1):
        verdict = _mark_verdict(mark, verdicts.get(k), backed)
        if verdict:
            marks.append(verdict)
            unbacked |= mark.resolution == "resolved" and verdict != verdicts[k]
    return {
        "n": row.n, "checkworthy": reply["checkworthy"], "support": support, "marks": marks, "unbacked": unbacked,
        "quotes": [check.result for check in checks],
    }  # fmt: skip


def _mark_verdict(mark: Citation, verdict: str | None, backed: set[str | None]) -> str | None:
    if mark.resolution == "unknown":
        return "unknown_id"
    if mark.resolution == "unresolvable" or verdict is None:
        return None
    if verdict in ("supports", "partial") and mark.id not in backed:
        return "irrelevant"
    return verdict


def _skipped(row: Mapping[str, Any], source: CitedStatement) -> bool:
    return not row["checkworthy"] and (bool(row["marks"]) or bool(answer_numerals(source.text, (), ())))


def _citation_errors(rows: Sequence[Mapping[str, Any]], replies: Mapping[int, Mapping[str, Any]]) -> dict[str, bool]:
    worthy = [row for row in rows if row["checkworthy"]]
    held = [row for row in rows if any(_MARK[mark] > 0 for mark in row["marks"])]
    return {
        "unknown_source_id": any("unknown_id" in row["marks"] for row in rows),
        "unsupported_citation": any("irrelevant" in row["marks"] and row not in held for row in rows),
        "citation_padding": any("irrelevant" in row["marks"] for row in held),
        "partial_support": any("partial" in row["marks"] for row in rows),
        "contradicting_source": any("contradicts" in row["marks"] for row in rows),
        "wrong_source": any(replies[row["n"]]["better_source"] and row["support"] == "none" for row in worthy),
        "uncited_claim": any(not row["marks"] for row in worthy),
    }
