"""What code decides before any call: a missing input, an answer that says nothing, an exact match."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

from rubrics.citations import parse
from rubrics.evidence import normalise, sentences
from rubrics.inventory import checkable
from rubrics.model import Item, Outcome, Rubric
from rubrics.numbers import answer_numerals
from rubrics.overlap import overlap
from rubrics.scoring import Draft, known_errors, of_five, outcome
from rubrics.screening import degenerate, language_mismatch, refusal_hint

_NEGATED = re.compile(
    r"\b(?:not?|never|none|neither|nor|cannot|without|except|\w+n't|nicht|kein\w*|nie|nunca|jamás|sin|ne|pas|jamais|sans|não|nem"
    r"|niet|geen|non|mai|senza|before|after|over|under|above|below|about|around|almost|nearly|roughly|approximately|only"
    r"|less|more|fewer|least|most|up to|until|since|between|or|unless|if|perhaps|maybe|possibly|probably|allegedly)\b"
    r"|[不没沒無无未<>~≈±≤≥]|не|нет|لا|لم|ليس"
)
_ARTICLES = re.compile(r"\b(?:the|an?|el|la|los|las|le|les|der|die|das|het|de)\b")
_TOKEN = re.compile(r"(?:(?<!\S)-)?[^\W_]+(?:[.,:/-]\d+)*|[^\w\s.,;:!?'()\[\]-]")  # signs such as € or < count
_JOINED = "the passages are glued into one text (joined): give `contexts` as a list, one passage each"
_LONGEST_EXACT_REFERENCE = 5
_LONGEST_NUMBER_ANSWER = 20
REFUSAL_TABLE = {
    # answerable: {behaviour: (level of five, label)}
    "yes": {"answered": (5, "correct_answer"), "caveated": (3, "needless_hedge"), "clarify": (2, "needless_question"),
            "refused": (1, "over_refusal"), "empty": (1, "silent_empty")},
    "partly": {"answered": (2, "missed_refusal"), "caveated": (5, "correct_caveat"), "clarify": (4, "fair_question"),
               "refused": (2, "over_refusal"), "empty": (1, "silent_empty")},
    "no": {"answered": (1, "missed_refusal"), "caveated": (3, "hedged_guess"), "clarify": (4, "fair_question"),
           "refused": (5, "correct_refusal"), "empty": (2, "silent_empty")},
}  # fmt: skip


def has_passages(item: Item) -> bool:
    """Whether any passage has text."""
    return any(passage.text.strip() for passage in item.contexts or ())


def has_reference(item: Item) -> bool:
    """Whether any accepted answer has text."""
    return any(text.strip() for text in item.reference or ())


def is_refusal_rubric(rubric: Rubric) -> bool:
    """Whether the rubric judges declining itself (mode matrix)."""
    return rubric.mode == "matrix"


def precheck(rubric: Rubric, item: Item, mode: Literal["full", "quick"]) -> Outcome | None:
    """The outcome of a case that needs no call to the judge, or None.

    In this order: inputs that are missing (not_applicable); an answer that is empty or degenerate (undefined, or the
    lowest score where a reference or nuggets say what was wanted; refusal_correctness has a row for it); passages that
    are blank, nuggets that are none (undefined); an answer that equals a short reference (top score). A missing
    `answerable` is never an error. In quick mode, where no reply can say so, phrases decide that an answer declines and
    says nothing else. Comparisons are not prechecked here.
    """
    if rubric.mode == "pairwise":
        return None
    draft = _missing(rubric, item, mode) or _silent(rubric, item) or _nothing_to_judge(rubric, item, mode)
    if draft is None and rubric.mode == "facts":
        draft = _exact_match(rubric, item)
    if draft is None:
        return None
    if draft.status == "scored":
        draft = replace(draft, details={**draft.details, "overlap": overlap(rubric, item)})
    return outcome(rubric, draft)


def _not_applicable(reason: str) -> Draft:
    return Draft(status="not_applicable", reason=reason)


def _undefined(reason: str, *flags: str) -> Draft:
    return Draft(status="undefined", reason=reason, flags=flags)


def _missing(rubric: Rubric, item: Item, mode: str) -> Draft | None:
    if "contexts" in rubric.requires and item.contexts is None:
        return _not_applicable("missing_contexts")
    if rubric.mode in ("citations", "passages") and any(getattr(p, "joined", False) for p in item.contexts or ()):
        return _not_applicable(_JOINED)
    if ("reference" in rubric.requires or rubric.mode == "facts") and not has_reference(item):
        return _not_applicable("missing_reference")
    unsourced = rubric.mode == "nuggets" and item.nuggets is None and not has_reference(item)
    if unsourced and (mode == "quick" or item.contexts is None):
        return _not_applicable("missing_reference")
    if mode == "quick" and rubric.root == "hallucination" and not has_passages(item) and not has_reference(item):
        return _not_applicable("missing_contexts")
    if mode == "quick" and is_refusal_rubric(rubric) and item.answerable == "partly" and not degenerate(item.answer):
        return _not_applicable("answerable_partly")
    return None


def _silent(rubric: Rubric, item: Item) -> Draft | None:
    """What an empty or degenerate answer means; context relevance does not see the answer."""
    kind = degenerate(item.answer)
    if kind is None or rubric.mode == "passages" or "answer" not in rubric.requires:
        return None
    reason = "empty_answer" if kind == "empty" else "degenerate_answer"
    flags = ("degenerate_answer",)
    if is_refusal_rubric(rubric):
        return _silent_refusal(rubric, item)
    if rubric.mode == "facts":
        errors, _ = known_errors(rubric, {"missing_fact": True})
        details: dict[str, Any] = {"fact_match": 0.0, "answer": reason}
        return Draft(level=rubric.scale.min, source="precheck", details=details, errors=errors, flags=flags)
    if rubric.mode == "nuggets" and (item.nuggets or has_reference(item)):
        errors, _ = known_errors(rubric, {"missing_vital_point": True})
        source = "nuggets" if item.nuggets else "reference"
        details = {"coverage": 0.0, "vital_strict": 0.0, "nugget_source": source, "answer": reason}
        return Draft(level=rubric.scale.min, source="precheck", details=details, errors=errors, flags=flags)
    return _undefined(reason, *flags)


def _silent_refusal(rubric: Rubric, item: Item) -> Draft:
    """The `empty` column of the table; without any word on answerability its worst cell, and a flag that says so."""
    answerable = item.answerable or ("no" if item.contexts is not None and not has_passages(item) else None)
    level, label = REFUSAL_TABLE[answerable or "yes"]["empty"]
    errors, _ = known_errors(rubric, {label: True})
    source = "gold" if item.answerable else "no_contexts" if answerable else None
    details = {
        "answerable": answerable, "answerable_source": source, "behaviour": "empty", "label": label, "binary": False,
    }  # fmt: skip
    flags = ("degenerate_answer",) if answerable else ("degenerate_answer", "answerable_unknown")
    return Draft(level=of_five(rubric.scale, level), source="precheck", details=details, errors=errors, flags=flags)


def _nothing_to_judge(rubric: Rubric, item: Item, mode: str) -> Draft | None:
    needs_passages = rubric.mode == "citations" or rubric.mode == "passages" or "contexts" in rubric.requires
    lenient = is_refusal_rubric(rubric) or rubric.root == "hallucination"
    if needs_passages and not lenient and not has_passages(item):
        return _undefined("no_contexts")
    if rubric.mode == "nuggets":
        nothing = item.nuggets is not None and not item.nuggets
        unanswerable = item.answerable == "no" and not item.nuggets and not has_reference(item)
        if nothing or unanswerable:
            return _undefined("no_nuggets")
        if not item.nuggets and not has_reference(item) and not has_passages(item):
            return _undefined("no_contexts")
    asked_by_phrase = mode == "quick" and rubric.mode in ("claims", "sentences") and rubric.on_refusal == "undefined"
    if asked_by_phrase and refusal_hint(item.answer or "") == "refused":
        return _undefined("refusal")
    if rubric.mode == "citations" and not parse(item.answer or "", item.contexts or ()):
        if not rubric.citations_required:
            return _undefined("no_citations")
        if mode == "quick":
            return _uncited(rubric, item)
    return None


def _uncited(rubric: Rubric, item: Item) -> Draft:
    """Quick form, no mark at all: the form sees cited sentences only, so code gives the score of full mode."""
    answer = item.answer or ""
    if refusal_hint(answer) == "refused":
        return _undefined("refusal")
    if not checkable(answer):
        return _undefined("no_citations")
    errors, _ = known_errors(rubric, {"uncited_claim": True})
    count = len(sentences(answer))
    details = {"precision": None, "recall": 0.0, "f1": 0.0, "uncited": count}
    return Draft(
        level=rubric.scale.min, source="precheck", details=details, errors=errors, flags=("uncited_sentences",)
    )


def _plain(text: str) -> str:
    return " ".join(_TOKEN.findall(_ARTICLES.sub(" ", normalise(text))))


def _exact_match(rubric: Rubric, item: Item) -> Draft | None:
    """Top score without a call when the answer is a short reference (at most 5 words), or is built around its number.

    Only if the answer has no further number, no negation and no word such as "about", "before" or "or".
    """
    answer = item.answer or ""
    if len(answer) > 400 or len(sentences(answer)) != 1 or language_mismatch(item.question, answer):
        return None
    marks = parse(answer, item.contexts or ())
    for mark in reversed(marks):
        answer = answer[: mark.start] + " " + answer[mark.end :] if mark.end <= len(answer) else answer
    given = _plain(answer)
    numerals = answer_numerals(answer, (), ())
    for reference in item.reference or ():
        wanted = _plain(reference)
        words = wanted.split()
        if not wanted or len(words) > _LONGEST_EXACT_REFERENCE or refusal_hint(reference):
            continue
        numeric = answer_numerals(reference, (), ())
        around_number = (
            len(numeric) == 1
            and numerals == numeric
            and f" {wanted} " in f" {given} "
            and len(given.split()) <= _LONGEST_NUMBER_ANSWER
            and not _NEGATED.search(normalise(answer))
        )
        if given == wanted or around_number:
            details = {"fact_match": 1.0, "matched": "exact" if given == wanted else "number"}
            return Draft(level=rubric.scale.max, source="precheck", details=details)
    return None
