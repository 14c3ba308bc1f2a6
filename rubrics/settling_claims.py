"""Claims: verdicts that rest on passages, and count only as far as their quotes are found there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rubrics.evidence import QuoteCheck, normalise
from rubrics.inventory import nothing_listed, spans_stand_in, uncovered
from rubrics.model import Item, Prompt, Rubric
from rubrics.numbers import answer_numerals, unknown_numerals
from rubrics.overlap import content_words, recall
from rubrics.polarity import opposed
from rubrics.quoting import Quotes
from rubrics.scoring import Draft, band, capped, known_errors, present

_LEAST_SHARED = 0.4
_CLEARLY_MORE = 0.2
_GOOD = frozenset({"supported", "reference_backed", "common_knowledge"})
_DEFAULT_ERROR = {
    "contradicted": "contradicts_context", "not_found": "unsupported_claim",
    "conflicting": "conflict_with_context", "unverified": "fabricated_fact",
}  # fmt: skip
REFERENCE = "reference"


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
    details = _claim_details(rubric, claims, judged, good) | present(
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
        "evidence_opposed": "evidence_opposed" in notes,
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
    odd = {"evidence_irrelevant": not apt, "evidence_opposed": opposed(claim["claim"], quoted)}
    return verdict, checks, frozenset(name for name, holds in odd.items() if holds)


def _said_by(claim: str, texts: Sequence[str]) -> bool:
    """Whether a text holds the claim's numbers and at least 40 % of its content words."""
    wanted, numerals = content_words(claim), answer_numerals(claim, (), ())
    return any(
        (recall(wanted, content_words(text)) or 0.0) >= _LEAST_SHARED and not unknown_numerals(numerals, [text])
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
