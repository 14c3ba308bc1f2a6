"""Cheap looks at texts before and beside the judge: orders to the rater, degenerate answers, refusals, language.

The screen is a flag for a person, never a verdict: by construction it misses many attacks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from rubrics.evidence import sentences
from rubrics.model import Item, Rubric
from rubrics.phrases import COMMON_WORDS, COURTESY, ORDER_PATTERNS, REFUSAL_PATTERNS, SCRIPTS, TURN

# --- orders to the rater ---------------------------------------------------------------------------------------------

_INVISIBLE = re.compile("[\u200b\u2060\ufeff\u00ad\U000e0000-\U000e0fff]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_WORD = re.compile(r"[^\W\d_]+")
_LOOKALIKES = str.maketrans("аеорсухіјѕԁһԛԝАВЕКМНОРСТХІЈЅ", "aeopcyxijsdhqwABEKMHOPCTXIJS")
_ORDER_WORDS = frozenset().union(*(words for words, _ in ORDER_PATTERNS.values()))
_ASCII_ORDER_WORDS = frozenset(word for word in _ORDER_WORDS if word.isascii())
ORDERS = frozenset(ORDER_PATTERNS) - {"template"} | {"invisible", "bidi"}


def screen(text: str) -> list[str]:
    """Flags for text that may address the rater or break the frame, sorted; usually none.

    Vocabulary: judge_address, override, score_request, role_spoof, fake_json, chat_token, tag_like, hidden_markup,
    encoded, template, invisible, bidi, control. Hidden characters and Cyrillic look-alikes are undone before reading.
    """
    found: list[str] = []
    if not text.isascii():
        if _BIDI.search(text):
            found.append("bidi")
        if _INVISIBLE.search(text):
            found.append("invisible")
            text = _INVISIBLE.sub("", text)
        if any("\u0400" <= character <= "\u052f" for character in text) and re.search(r"[A-Za-z]", text):
            text = text.translate(_LOOKALIKES)
        text = unicodedata.normalize("NFKC", text)
    if not text.replace("\n", " ").isprintable() and _CONTROL.search(text):
        found.append("control")
        text = _CONTROL.sub(" ", text)
    lowered = text.casefold()
    present = {word for word in (_ASCII_ORDER_WORDS if text.isascii() else _ORDER_WORDS) if word in lowered}
    for flag, (needed, order) in ORDER_PATTERNS.items():
        if not present.isdisjoint(needed) and order.search(text):
            found.append(flag)
    return sorted(found)


def screen_all(texts: Iterable[str]) -> list[str]:
    """Flags of several texts together, sorted and once each: read as one text, a line apart."""
    return screen("\n".join(texts))


def shown_texts(rubric: Rubric, item: Item) -> list[str]:
    """The untrusted texts that a rubric of this mode shows to its judge."""
    texts = [item.question]
    if rubric.mode != "passages":
        texts.append(item.answer or "")
    if "contexts" in rubric.requires or rubric.mode in ("claims", "nuggets", "citations", "passages", "matrix"):
        texts += [text for passage in item.contexts or () for text in (passage.id, passage.text)]
    if "reference" in rubric.requires or rubric.mode in ("facts", "nuggets") or rubric.root == "hallucination":
        texts += item.reference or ()
    return texts


def case_flags(
    rubric: Rubric, item: Item, attempts: Sequence[str], more: Sequence[str] = ()
) -> tuple[list[str], dict[str, Any]]:
    """Flags that come from the case itself, and `details` that explain them.

    injection_attempt: the judge reported orders to the rater (`attempts`) or the screen found any in a text shown (of
    `more` too); details hold the screen's words. language_mismatch: answer and question differ beyond doubt.
    """
    screened = screen_all((*shown_texts(rubric, item), *more))
    flags = []
    if attempts or not ORDERS.isdisjoint(screened):
        flags.append("injection_attempt")
    if rubric.mode != "passages" and item.answer and language_mismatch(item.question, item.answer):
        flags.append("language_mismatch")
    return flags, {"screen": screened} if screened else {}


# --- degenerate answers ----------------------------------------------------------------------------------------------

_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufe00-\ufe0f"
                     "\U000e0000-\U000e0fff\x00-\x1f\x7f]")  # fmt: skip
_OPENER = re.compile(
    r"(?:(?:my |the )?(?:thought process|thoughts?|reasoning(?: process)?|solution|answer|final answer|response"
    r"|analysis|explanation|output|result|step 1|step one|respuesta|solución|antwort|lösung|réponse|solution|risposta"
    r"|soluzione|resposta|solução|antwoord|oplossing|答案|解答|解|回答|思考过程|الحل|الإجابة|解决方案)"
    r"|(?:let(?:'|’)?s|let us|i will|i'll|we will|we'll|we should)"
    r" (?:work|think|solve|go|walk|reason|start|begin|break)\b[^.!?\n]{0,60}"
    r"|(?:to (?:solve|answer) (?:this|the) (?:problem|question)\b[^.!?\n]{0,40})"
    r"|(?:sure|certainly|of course|okay|ok|great question|here(?: is|'s) (?:the|my|an?) answer))",
    re.IGNORECASE,
)


def degenerate(answer: str | None) -> Literal["empty", "punctuation", "opener"] | None:
    """Why an answer says nothing at all, or None: empty, only signs (":", "."), or a bare opener ("Thought process:").

    "No", "5" and "42." are answers.
    """
    text = (answer or "").strip()
    if text and len(text) <= 120:
        text = _HIDDEN.sub("", text).strip()
    elif text:
        return None if any(character.isalnum() for character in text) else "punctuation"
    if not text:
        return "empty"
    if not any(character.isalnum() for character in text):
        return "punctuation"
    return "opener" if _OPENER.fullmatch(text.strip(" *#_:：.!-—…\n")) else None


# --- refusals --------------------------------------------------------------------------------------------------------


def _refuses(part: str) -> bool:
    lowered = part.casefold()
    return any(any(word in lowered for word in words) and pattern.search(part) for words, pattern in REFUSAL_PATTERNS)


def _carries_content(part: str) -> bool:
    """Whether a part of an answer that is no refusal itself says something to be judged."""
    if _refuses(part) or COURTESY.search(part):
        return False
    words = re.findall(r"\w+", part)
    return any(character.isdigit() for character in part) or len(words) > 3 or any(c >= "\u2e80" for c in part[:1])


def refusal_hint(answer: str) -> Literal["refused", "caveated"] | None:
    """What refusal phrases suggest (en es fr de it pt nl pl ru tr zh ja ko ar hi): a cross-check, never a verdict.

    refused: a refusal phrase, and no part of the answer says anything else but courtesies; caveated: a refusal phrase
    beside content ("the documents do not say, but it is probably 15 days"); None: no such phrase.
    """
    if not _refuses(answer):
        return None
    parts = (part for sentence in sentences(answer) for part in TURN.split(sentence) if part.strip())
    return "caveated" if any(_carries_content(part) for part in parts) else "refused"


def declines(answer: str) -> bool:
    """Whether phrases alone show that the answer only declines (quick refusal_correctness asks them first)."""
    return refusal_hint(answer) == "refused"


# --- language --------------------------------------------------------------------------------------------------------


def language(text: str) -> str | None:
    """The script, or for Latin letters the language, of a text when it is beyond doubt; else None.

    Latin: at least three of its common words, and twice as many as in any other language.
    """
    letters = [] if text.isascii() else [character for character in text[:2000] if character.isalpha()]
    if letters:
        for name, low, high in SCRIPTS:
            if sum(low <= character <= high for character in letters) > 0.5 * len(letters):
                return "han" if name == "kana" else name
    counts = {"": 0}
    for word in _WORD.findall(text[:2000].casefold()):
        for name in COMMON_WORDS.get(word, ()):
            counts[name] = counts.get(name, 0) + 1
    second, best = sorted((0, *counts.values()))[-2:]
    name = max(counts, key=counts.__getitem__)
    return name if best >= 3 and best >= 2 * max(second, 1) else None


def language_mismatch(question: str, answer: str) -> bool:
    """Whether question and answer are beyond doubt in different languages or scripts."""
    asked = language(question)
    return asked is not None and (given := language(answer)) is not None and given != asked
