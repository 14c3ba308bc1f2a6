"""Evidence that needs no model: sentences and points of a text, and quotes found again in their passages.

Everything here is a pure function of texts and cheap enough to run for every judgment.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal

from rubrics.sanitising import restore

QuoteResult = Literal["exact", "wrong_id", "near", "too_short", "failed"]
Span = tuple[int, int]


def words(text: str) -> frozenset[str]:
    """The words of a list written as one string."""
    return frozenset(text.split())


# --- sentences -------------------------------------------------------------------------------------------------------

_PROTECTED = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|``.+?``|`[^`\n]+`"  # code
    r"|\$\$.+?\$\$|\$(?=[^\s$])[^$\n]*?(?<=[^\s\\$])\$(?!\d)|\\\(.+?\\\)|\\\[.+?\\\]",  # maths; "$5 and $10" is not
    re.DOTALL,
)
_MARKS = r"(?:[ \t]*(?:\[\^?[\w.:,;\- –]{1,40}\](?![(:])|【[^】\n]{1,40}】|<sup>[^<]{1,20}</sup>))+"
_MARKS_AFTER = re.compile(rf"{_MARKS}|[ \t]*\n{_MARKS}[ \t]*(?=\n|$)")  # on the same line, or alone on the next
_CANDIDATE = re.compile(r"[.!?…؟۔।。！？｡\n\r]")
_EVENT = re.compile(
    r"(?P<stop>[.!?…؟۔।]+[\"'”’»)\]*_]*(?=\s|$|\[|【|<)|[。！？｡]+[」』”’）】]*)"
    r"|(?P<break>\n[ \t]*\n+|\n(?=[ \t]*(?:[-*+•–][ \t]|\(?\d{1,3}[.)][ \t]|\#{1,6} |\||\[\^))|(?<=:)\n|\r)"
)
_LIST_NUMBER = re.compile(r"[ \t]*(?:[-*+•–][ \t]+)?\(?(?:\d{1,3}|[a-zA-Z])[.)]$")
_LAST_WORD = re.compile(r"[\w.]+$")
_NEXT = re.compile(r"[ \t]*([\w'’]*)")
_DOTTED = re.compile(r"(?:\w\.)+\w")
_WORD_OR_ABBREVIATION = words("no nos nr p pp s m art v c ca")
_NEVER_LAST = words(
    "mr mrs ms dr prof st mt vs v cf eg e.g ie i.e fig figs eq eqs sec ch vol ed eds al approx ca c dept gen sen rep"
    " sr jr hon rev col lt sgt z.b d.h u.a bzw usw vgl nr bd s sra dra ud uds p.ej pág núm m mme mlle dhr mevr bijv"
    " resp art abs pp p no nos"
)
_MAY_BE_LAST = words("inc ltd co corp etc a.m p.m am pm u.s u.k u.s.a e.u d.c ph.d b.c a.d est")
_OPENERS = words(
    "the a an this that these those it its he she they we you i in on at for from after before when while if but"
    " however there here as by with his her their our my another both each one two no yes"
)
_MONTHS = words(
    "januar februar märz april mai juni juli august september oktober november dezember jänner"
    " januari februari maart mei augustus december"
)


def protected(text: str) -> list[Span]:
    """Code and maths in a Markdown text, as ordered (start, end) spans in which no mark or sentence end counts."""
    if "`" not in text and "$" not in text and "\\" not in text and "~~~" not in text:
        return []
    return [match.span() for match in _PROTECTED.finditer(text)]


def inside(position: int, spans: Sequence[Span]) -> bool:
    """Whether a position lies in one of the ordered spans."""
    found = bisect_right(spans, (position, 1 << 60)) - 1
    return found >= 0 and position < spans[found][1]


def _ends_sentence(text: str, start: int, stop: re.Match[str]) -> bool:
    """Whether a stop mark ends the sentence that began at `start` (abbreviations, initials, list numbers do not)."""
    position = stop.start()
    if text[position] not in ".…":
        return True
    if position - start < 9 and _LIST_NUMBER.match(text[start:position] + "."):
        return False
    following = _NEXT.match(text, stop.end())
    upcoming = following.group(1) if following else ""
    if not upcoming:
        return True
    if upcoming[0].islower():
        return False
    word_match = _LAST_WORD.search(text, max(start, position - 24), position)
    word = word_match.group() if word_match else ""
    if len(word) > 6:
        return True
    folded, opener = word.casefold(), upcoming.casefold() in _OPENERS
    if folded in _WORD_OR_ABBREVIATION:
        return not (upcoming[0].isdigit() or (len(word) == 1 and upcoming[0].isupper() and not opener))
    if folded in _NEVER_LAST:
        return False
    if folded in _MAY_BE_LAST or (len(word) == 1 and word.isupper()) or _DOTTED.fullmatch(word):
        return opener or not upcoming[0].isalnum()
    return not (word.isdigit() and len(word) <= 2 and upcoming.casefold() in _MONTHS)


def _cuts(text: str, shielded: Sequence[Span]) -> Iterator[int]:
    start = 0
    for candidate in _CANDIDATE.finditer(text):
        position = candidate.start()
        if position < start or (shielded and inside(position, shielded)) or not (event := _EVENT.match(text, position)):
            continue
        end = event.end()
        if event.lastgroup == "stop":
            if not _ends_sentence(text, start, event):
                continue
            if text[end : end + 2].lstrip()[:1] in "[【<" and (marks := _MARKS_AFTER.match(text, end)):
                end = marks.end()
        yield end
        start = end


@lru_cache(maxsize=256)
def sentence_spans(text: str) -> tuple[Span, ...]:
    """Sentences of a text as (start, end) spans without surrounding blanks.

    Splits at sentence ends, list items and blank lines, never in code or maths. Abbreviations, initials, decimals and
    list numbers do not end a sentence; citation marks after the full stop belong to the sentence before. CJK, Arabic
    and Devanagari stops are known. Pieces without a letter or digit are joined to the piece before, or dropped.
    """
    spans: list[Span] = []
    start = 0
    for end in [*_cuts(text, protected(text)), len(text)]:
        piece = text[start:end]
        left = start + len(piece) - len(piece.lstrip())
        right = start + len(piece.rstrip())
        start = end
        if any(character.isalnum() for character in text[left:right]):
            spans.append((left, right))
    return tuple(spans)


def sentences(text: str) -> list[str]:
    """Sentences of a text in order, verbatim (citation marks included); see `sentence_spans`."""
    return [text[start:end] for start, end in sentence_spans(text)]


def points(reference: str) -> list[str]:
    """Points of a reference: its sentences, split further at semicolons (quick form of completeness)."""
    parts = (part.strip() for sentence in sentences(reference) for part in re.split(r"[;；]", sentence))
    return [part for part in parts if any(character.isalnum() for character in part)]


# --- quotes ----------------------------------------------------------------------------------------------------------

_QUOTES_AND_DASHES = str.maketrans({**dict.fromkeys('"“”„‟«»‘’‚‛‹›′″「」『』`', "'"), **dict.fromkeys("‐‑‒–—―−", "-")})
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff]"
)
_UNDERSCORE = re.compile(r"(?<!\w)_+|_+(?!\w)")
_ELLIPSIS = re.compile(r"\s*[\[(]?\.{3,}[\])]?\s*")
NEGATION = re.compile(
    r"\b(?:not?|never|none|neither|nor|without|cannot|un(?:able|less)|\w+n't|nicht|kein\w*|nie|niemals|ohne|nunca|jamás|sin"
    r"|ne|pas|jamais|sans|aucune?|não|nem|sem|niet|geen|nooit|non|mai|senza|не|нет|никогда|без)\b|[不没沒無无未]|ない|لا|لم|لن|ليس"
)
_NUMERAL = re.compile(r"\d+(?:[.,]\d+)*")
_EDGES = " '.,;:!?。，；：-"
_NEAR_COVER = 0.93
_NEAR_LIMIT = 600
_SMALL_WORDS = words("the a an of to in on at is are was were and that which its this el la los de le les der") | {""}
_LATE_IN_UNICODE = "\u0530"


@dataclass(frozen=True, slots=True)
class QuoteCheck:
    """Where a quote was found: `passage` is the id that holds it (None when it was not found)."""

    result: QuoteResult
    passage: str | None

    @property
    def verified(self) -> bool:
        return self.result in ("exact", "wrong_id", "near")


def ascii_digits(text: str) -> str:
    """The text with digits of every script (and superscripts) as 0-9, lengths unchanged."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.digit(c)) if unicodedata.digit(c, None) is not None else c for c in text)


def normalise(text: str) -> str:
    """The form in which quotes are compared.

    NFKC, invisible characters removed (made visible or not), quotation marks and dashes unified, Markdown emphasis
    removed, case folded, blanks collapsed.
    """
    if not text.isascii():
        if "⟦U+" in text:
            text = restore(text)
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_QUOTES_AND_DASHES)
    else:
        text = text.replace('"', "'").replace("`", "'")
    text = text.casefold()
    if "*" in text:
        text = text.replace("*", "")
    if "_" in text:
        text = _UNDERSCORE.sub("", text)
    return " ".join(text.split())


def _glued(text: str, start: int, end: int) -> bool:
    """Whether the match [start, end) cuts a word or a number in two, so that it says something else."""
    first, last = text[start], text[end - 1]
    before, after = text[start - 1 : start], text[end : end + 1]
    if first.isalnum() and first < _LATE_IN_UNICODE and before.isalnum():
        return True
    if last.isalnum() and last < _LATE_IN_UNICODE and after.isalnum() and after < _LATE_IN_UNICODE:
        return True
    if first.isdigit() and before:
        previous = text[start - 2 : start - 1] if start > 1 else ""
        if (before in ".," and previous.isdigit()) or (before == "-" and previous in ("", " ", "(")):
            return True
    return last.isdigit() and after in (".", ",") and text[end + 1 : end + 2].isdigit()


def _find(needle: str, text: str, start: int = 0) -> int:
    position = text.find(needle, start)
    while position >= 0 and _glued(text, position, position + len(needle)):
        position = text.find(needle, position + 1)
    return position


def _stands_in(fragments: Sequence[str], text: str) -> bool:
    position = 0
    for fragment in fragments:
        found = _find(fragment, text, position)
        if found < 0:
            return False
        position = found + len(fragment)
    return True


def _same_facts(quote: str, window: str) -> bool:
    """Whether two nearly equal texts have the same numbers, negations and words, but for spelling and small words."""
    for pattern in (_NUMERAL, NEGATION):
        if sorted(pattern.findall(quote)) != sorted(pattern.findall(window)):
            return False
    one, other = ({word.strip(_EDGES) for word in text.split()} for text in (quote, window))
    return _respelt(one - other, other) and _respelt(other - one, one)


def _respelt(odd: set[str], among: set[str]) -> bool:
    """Whether each odd word is a small word or a spelling of one among the others: "waterproof", "water-proof"."""
    return all(
        word in _SMALL_WORDS
        or any(SequenceMatcher(None, word, other).ratio() >= 0.88 for other in among if other[:1] == word[:1])
        for word in odd
    )


def _nearly_in(quote: str, text: str) -> bool:
    """Whether one window covers 93 % of the quote's characters, in order, and states the same (`_same_facts`).

    Windows come from pieces of the quote found verbatim: with at most e = 7 % of characters wrong, one of e + 1 pieces
    is intact. Quotes over 600 characters are compared exactly only.
    """
    if len(quote) > _NEAR_LIMIT:
        return False
    slips = int(len(quote) * (1 - _NEAR_COVER))
    size = max(len(quote) // (slips + 1), 1)
    starts: set[int] = set()
    for offset in range(0, len(quote) - size + 1, size):
        position = text.find(quote[offset : offset + size])
        while position >= 0 and len(starts) < 16:
            starts.add(max(position - offset, 0))
            position = text.find(quote[offset : offset + size], position + 1)
    for start in sorted(starts):
        left = max(start - slips, 0)
        blocks = SequenceMatcher(None, quote, text[left : start + len(quote) + slips], False).get_matching_blocks()[:-1]
        if sum(block.size for block in blocks) >= _NEAR_COVER * len(quote):
            low, high = left + blocks[0].b, left + blocks[-1].b + blocks[-1].size
            while low > 0 and not text[low - 1].isspace():
                low -= 1
            while high < len(text) and not text[high].isspace():
                high += 1
            if _same_facts(quote, text[low:high]):
                return True
    return False


def verify_quote(quote: str, passages: Mapping[str, str], cited_id: str | None, *, shortest: int = 8) -> QuoteCheck:
    """Look for a judge's quote in the passage it names, then in the others.

    `passages` maps ids to texts already passed through `normalise`. "..." joins fragments that must follow in order.
    exact: in the cited passage; wrong_id: word for word in another one; near: 93 % of the characters in one window of
    the cited passage (of any, when the id is unknown) with the same numbers, negations and words but for spelling;
    too_short: under `shortest` characters (half of that for CJK) unless the passage itself is that short; failed:
    anything else. A match never cuts a word or number. Finding a quote is necessary for support, not sufficient.
    """
    whole = normalise(quote).strip(_EDGES)
    fragments = [part for piece in _ELLIPSIS.split(whole) if (part := piece.strip(_EDGES))]
    cjk = not whole.isascii() and any(character >= "\u2e80" for character in whole)
    enough = shortest // 2 if cjk else shortest
    order = sorted(passages, key=lambda identifier: identifier != cited_id)
    if not fragments or sum(map(len, fragments)) < enough:
        same = (identifier for identifier in order if whole and passages[identifier].strip(_EDGES) == whole)
        return _located(next(same, None), cited_id, "too_short")
    for identifier in order:
        text = passages[identifier]
        if _find(whole, text) >= 0 or (len(fragments) > 1 and _stands_in(fragments, text)):
            return _located(identifier, cited_id, "failed")
    near = [cited_id] if cited_id in passages else order
    for candidate in near:
        if candidate is not None and len(fragments) == 1 and _nearly_in(whole, passages[candidate]):
            return QuoteCheck("near", candidate)
    return QuoteCheck("failed", None)


def _located(found: str | None, cited_id: str | None, otherwise: QuoteResult) -> QuoteCheck:
    if found is None:
        return QuoteCheck(otherwise, None)
    return QuoteCheck("exact" if found == cited_id else "wrong_id", found)
