"""Whether what a judge listed from an answer can be believed: empty lists, spans that do not stand there, gaps."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rubrics.evidence import normalise, sentences
from rubrics.model import Rubric
from rubrics.scoring import Draft
from rubrics.screening import refusal_hint


def checkable(answer: str) -> bool:
    """Whether some sentence looks like a statement: it has a digit, a name, or over 6 words, and is no refusal.

    A judge that lists nothing to check in such an answer is not believed (error no_inventory).
    """
    if refusal_hint(answer) == "refused":
        return False
    for sentence in sentences(answer):
        words = re.findall(r"[^\W_]+", sentence)
        named = any(word[0].isupper() and word not in ("I",) for word in words[1:])
        dense = sum(character >= "\u0e00" and character.isalpha() for character in sentence) > 12
        if any(character.isdigit() for character in sentence) or named or len(words) > 6 or dense:
            return True
    return False


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
