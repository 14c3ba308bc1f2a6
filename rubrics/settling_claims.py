"""Claims and citations: verdicts that rest on passages, and count only as far as their quotes are found there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rubrics.citations import Citation, CitedStatement, statements
from rubrics.evidence import QuoteCheck, normalise, sentences
from rubrics.model import Item, Prompt, Rubric
from rubrics.numbers import answer_numerals, number_mismatches, unknown_numerals
from rubrics.overlap import content_words, recall
from rubrics.prechecks import checkable
from rubrics.quoting import Quotes
from rubrics.scoring import Draft, band, capped, known_errors, ratio
from rubrics.screening import refusal_hint

_LEAST_SHARED = 0.4
_CLEARLY_MORE = 0.2
_GOOD = frozenset({"supported", "reference_backed", "common_knowledge"})
_DEFAULT_ERROR = {
    "contradicted": "contradicts_context", "not_found": "unsupported_claim",
    "conflicting": "conflict_with_context", "unverified": "fabricated_fact",
}  # fmt: skip
REFERENCE = "reference"


def refused(rubric: Rubric) -> Draft:
    """An answer that only declines: undefined, or the lowest level where the rubric says so."""
    if rubric.on_refusal == "lowest":
        return Draft(level=rubric.scale.min, details={"only_declines": True})
    return Draft(status="undefined", reason="refusal")


def refusal_flags(answer: str, only_declines: bool, nothing_listed: bool) -> list[str]:
    """refusal_mismatch when the judge's word on declining and the phrase list disagree."""
    phrases = refusal_hint(answer) == "refused"
    differs = only_declines != phrases if nothing_listed else only_declines
    return ["refusal_mismatch"] if differs else []


def nothing_listed(rubric: Rubric, answer: str, only_declines: bool, reason: str) -> Draft:
    """A reply without a single claim (or sentence): a refusal, nothing to check, or an inventory not to be believed."""
    flags = tuple(refusal_flags(answer, only_declines, True))
    if only_declines:
        draft = refused(rubric)
        return Draft(status=draft.status, level=draft.level, details=draft.details, reason=draft.reason, flags=flags)
    if checkable(answer):
        return Draft(
            status="error",
            error_kind="no_inventory",
            reason="the judge listed nothing to check in an answer that makes statements",
            flags=flags,
        )
    return Draft(status="undefined", reason=reason, flags=flags)


def uncovered(answer: str, listed: Sequence[str]) -> list[str]:
    """Sentences of the answer of which no (normalised) span was listed, refusals and short courtesies left out."""
    left = []
    for sentence in sentences(answer):
        text = normalise(sentence)
        if not any(span and (span in text or text in span) for span in listed) and checkable(sentence):
            left.append(sentence)
    return left


def spans_stand_in(answer: str, listed: Sequence[str]) -> bool:
    """Whether every listed (normalised) span is part of the answer."""
    text = normalise(answer)
    return all(span and span in text for span in listed)


# --- claims ----------------------------------------------------------------------------------------------------------


def settle_claims(rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt) -> tuple[Draft, Quotes]:
    """Share of claims that stand, through bands; a wrong or unbacked main claim caps the level.

    supported needs at least one quote found and none that fails; so does reference_backed, in the reference (or,
    without a quote, words and numbers that stand there); common_knowledge never covers a number. A good verdict that
    lacks this counts as not_found (hallucination: unverified). Rates are over all claims listed, each once.
    """
    answer, five = item.answer or "", rubric.root == "hallucination"
    texts = {passage.id: passage.text for passage in item.contexts or ()}
    if five:
        texts |= {REFERENCE if n == 0 else f"{REFERENCE} {n + 1}": text for n, text in enumerate(item.reference or ())}
    quotes = Quotes.of(texts, prompt.aliases)
    claims = _distinct(parsed["claims"])
    if not claims:
        return nothing_listed(rubric, answer, parsed["only_declines"], "no_claims"), quotes
    judged = [_claim(claim, quotes, item, five) for claim in claims]
    counted = [verdict for verdict, _, _ in judged]
    good = sum(verdict in _GOOD for verdict in counted)
    bad = {(claim["role"], verdict) for claim, verdict in zip(claims, counted, strict=True) if verdict not in _GOOD}
    level = capped(rubric, band(rubric, good / len(claims)), *_claim_caps(bad, five))
    missing = unknown_numerals(answer_numerals(answer, item.contexts or ()), [item.question, *texts.values()])
    spans = [normalise(claim["span"]) for claim in claims]
    left = uncovered(answer, spans)
    given = [_label(claim, one, missing) for claim, one in zip(claims, judged, strict=True)]
    labels, unknown = known_errors(rubric, given)
    details = _claim_details(rubric, claims, judged, good) | _present(
        number_mismatches=missing, uncovered_spans=left, unknown_errors=unknown
    )
    notes = frozenset().union(*(note for _, _, note in judged))
    flags = {
        "refusal_mismatch": parsed["only_declines"],
        "number_not_in_sources": bool(missing),
        "span_failed": not spans_stand_in(answer, spans),
        "uncovered_spans": bool(left),
        "duplicate_claims": len(claims) < len(parsed["claims"]),
        "conflicting_contexts": _conflicting(claims),
        "evidence_irrelevant": "evidence_irrelevant" in notes,
        "unbacked_verdict": "unbacked" in notes,
        "common_knowledge": "common_knowledge" in counted,
    }
    return Draft(level=level, details=details, errors=labels, flags=tuple(f for f, on in flags.items() if on)), quotes


def _claim_caps(bad: set[tuple[str, str]], five: bool) -> list[tuple[bool, int]]:
    if five:
        return [(any(role == "core" for role, _ in bad), 2)]
    return [
        (("core", "contradicted") in bad, 2),
        (("core", "not_found") in bad, 3),
        (("detail", "contradicted") in bad, 3),
    ]


def _present(**lists: list[Any]) -> dict[str, Any]:
    return {name: value for name, value in lists.items() if value}


def _distinct(claims: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Claims that are word for word the same, with the same verdict, count once: repetition must not fill the rate."""
    return list({(" ".join(claim["claim"].casefold().split()), claim["verdict"]): claim for claim in claims}.values())


def _claim(
    claim: Mapping[str, Any], quotes: Quotes, item: Item, five: bool
) -> tuple[str, list[QuoteCheck], frozenset[str]]:
    """(verdict that counts, quote checks, notes) of one claim."""
    verdict, fallback = claim["verdict"], "unverified" if five else "not_found"
    checks = quotes.check_all(claim["evidence"])
    verified = [check for check in checks if check.verified]
    if verdict not in _GOOD:
        return verdict, checks, frozenset()
    if verdict == "common_knowledge":
        sound = not any(character.isdigit() for character in claim["claim"] + claim["span"])
        return (verdict if sound else fallback), checks, frozenset() if sound else frozenset({"unbacked"})
    if verdict == "reference_backed" and not checks:
        sound = _said_by(claim["claim"], item.reference or ())
        return (verdict if sound else fallback), checks, frozenset() if sound else frozenset({"unbacked"})
    if not verified or len(verified) < len(checks):
        return fallback, checks, frozenset({"unbacked"})
    quoted = " ".join(entry["quote"] for entry in claim["evidence"])
    apt = _said_by(claim["claim"], [quoted]) and not _closer_passage(claim["claim"], checks, quotes)
    return verdict, checks, frozenset() if apt else frozenset({"evidence_irrelevant"})


def _said_by(claim: str, texts: Sequence[str]) -> bool:
    """Whether a text holds the claim's numbers and at least 40 % of its content words."""
    wanted, numerals = content_words(claim), answer_numerals(claim, (), ())
    return any(
        (recall(wanted, content_words(text)) or 0.0) >= _LEAST_SHARED
        and not unknown_numerals(numerals, [text])
        for text in texts
    )


def _closer_passage(claim: str, checks: Sequence[QuoteCheck], quotes: Quotes) -> bool:
    """Whether a passage that was not quoted shares clearly more of the claim's words than those that were."""
    wanted, used = content_words(claim), {check.passage for check in checks}
    shared = {name: len(wanted & quotes.words(name)) for name in quotes.texts}
    quoted = frozenset().union(*(quotes.words(name) for name in used if name is not None))
    others = [count for name, count in shared.items() if name not in used]
    return bool(others) and max(others) - len(wanted & quoted) > _CLEARLY_MORE * len(wanted)


def _conflicting(claims: Sequence[Mapping[str, Any]]) -> bool:
    by_span: dict[str, set[str]] = {}
    for claim in claims:
        by_span.setdefault(claim["span"].strip(), set()).add(claim["verdict"])
    return any({"supported", clash} <= found for found in by_span.values() for clash in ("contradicted", "conflicting"))


def _label(
    claim: Mapping[str, Any], judged: tuple[str, list[QuoteCheck], frozenset[str]], missing: Sequence[str]
) -> str | None:
    """The judge's error label of a bad claim, or the one that its verdict and numbers suggest."""
    counted, checks, _ = judged
    if counted in _GOOD:
        return None
    if claim["error"]:
        return str(claim["error"])
    if counted == "conflicting" and any((check.passage or "").startswith(REFERENCE) for check in checks):
        return "conflict_with_reference"
    if counted == "unverified" and any(numeral in claim["claim"] for numeral in missing):
        return "fabricated_number"
    return _DEFAULT_ERROR[counted]


def _claim_details(
    rubric: Rubric,
    claims: Sequence[Mapping[str, Any]],
    judged: Sequence[tuple[str, list[QuoteCheck], frozenset[str]]],
    good: int,
) -> dict[str, Any]:
    rate = good / len(claims)
    counts = {verdict: sum(counted == verdict for counted, _, _ in judged) for verdict, _, _ in judged}
    rates: dict[str, Any] = {"support_rate": rate}
    if rubric.root == "hallucination":
        rates = {
            "hallucination_rate": 1 - rate,
            "intrinsic": counts.get("conflicting", 0),
            "extrinsic": counts.get("unverified", 0),
        }
    checks = [
        {"claim": claim["claim"], "verdict": claim["verdict"], "counted": counted, "quotes": [c.result for c in found]}
        for claim, (counted, found, _) in zip(claims, judged, strict=True)
    ]
    return {**rates, "binary": good == len(claims), "n_claims": len(claims), "verdicts": counts, "checks": checks}


# --- citations -------------------------------------------------------------------------------------------------------

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
        **_present(
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

