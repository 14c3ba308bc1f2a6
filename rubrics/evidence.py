"""Evidence that needs no model: sentences, quotes found again in their passages, and numbers without a source.

Everything here is a pure function of texts and cheap enough to run for every judgment.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

QuoteResult = Literal["exact", "wrong_id", "near", "too_short", "failed"]
Span = tuple[int, int]

# --- sentences -------------------------------------------------------------------------------------------------------

_PROTECTED = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|``.+?``|`[^`\n]+`"  # code
    r"|\$\$.+?\$\$|\$(?=[^\s$])[^$\n]*?(?<=[^\s\\$])\$(?!\d)|\\\(.+?\\\)|\\\[.+?\\\]",  # maths; "$5 and $10" is not
    re.DOTALL,
)
_MARKS_AFTER = re.compile(r"(?:[ \t]*(?:\[\^?[\w.:,;\- –]{1,40}\](?![(:])|【[^】\n]{1,40}】|<sup>[^<]{1,20}</sup>))+")
_STOP = re.compile(r"[.!?…؟۔।]+[\"'”’»)\]*_]*(?=\s|$|\[|【|<)|[。！？｡]+[」』”’）】]*")
_BREAK = re.compile(r"\n[ \t]*\n+|\n(?=[ \t]*(?:[-*+•–][ \t]|\(?\d{1,3}[.)][ \t]|\#{1,6} |\||\[\^))|(?<=:)\n|\r")
_LIST_NUMBER = re.compile(r"[ \t]*(?:[-*+•–][ \t]+)?\(?(?:\d{1,3}|[a-zA-Z])[.)]$")
_LAST_WORD = re.compile(r"[\w.]+$")
_FIRST_WORD = re.compile(r"[\w'’]+")
_NEVER_LAST = frozenset(
    "mr mrs ms dr prof st mt vs v cf eg e.g ie i.e fig figs eq eqs sec ch vol ed eds al approx ca c dept gen sen rep"
    " sr jr hon rev col lt sgt z.b d.h u.a bzw usw vgl nr bd s sra dra ud uds p.ej pág núm m mme mlle dhr mevr bijv"
    " resp art abs pp p no nos".split()
)
_MAY_BE_LAST = frozenset("inc ltd co corp etc a.m p.m am pm u.s u.k u.s.a e.u d.c ph.d b.c a.d est".split())
_OPENERS = frozenset(
    "the a an this that these those it its he she they we you i in on at for from after before when while if but"
    " however there here as by with his her their our my another both each one two no yes".split()
)
_MONTHS = frozenset(
    "januar februar märz april mai juni juli august september oktober november dezember jänner"
    " januari februari maart mei augustus december".split()
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
    mark = stop.group()[0]
    if mark not in ".…":
        return True
    before, rest = text[start : stop.start()], text[stop.end() :].lstrip(" \t")
    if not rest or rest[0] == "\n":
        return not _LIST_NUMBER.match(before + mark)
    if _LIST_NUMBER.match(before + "."):
        return False
    following = _FIRST_WORD.match(rest)
    upcoming = following.group() if following else ""
    if upcoming[:1].islower():
        return False
    word_match = _LAST_WORD.search(before)
    word = word_match.group() if word_match else ""
    opener = upcoming.casefold() in _OPENERS
    if word.casefold() in ("no", "nos", "nr", "p", "pp", "s", "m", "art", "v", "c", "ca"):
        return not (upcoming[:1].isdigit() or (len(word) == 1 and upcoming[:1].isupper() and not opener))
    if word.casefold() in _NEVER_LAST:
        return False
    if word.casefold() in _MAY_BE_LAST or (len(word) == 1 and word.isupper()) or re.fullmatch(r"(?:\w\.)+\w", word):
        return opener or not upcoming[:1].isalnum()
    return not (word.isdigit() and len(word) <= 2 and upcoming.casefold() in _MONTHS)


def _cuts(text: str, shielded: Sequence[Span]) -> Iterator[int]:
    start = 0
    events = sorted([*_STOP.finditer(text), *_BREAK.finditer(text)], key=lambda match: match.start())
    for event in events:
        if event.start() < start or inside(event.start(), shielded):
            continue
        end = event.end()
        if event.re is _STOP:
            if not _ends_sentence(text, start, event):
                continue
            marks = _MARKS_AFTER.match(text, end)
            end = marks.end() if marks else end
        yield end
        start = end


def sentence_spans(text: str) -> list[Span]:
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
    return spans


def sentences(text: str) -> list[str]:
    """Sentences of a text in order, verbatim (citation marks included); see `sentence_spans`."""
    return [text[start:end] for start, end in sentence_spans(text)]


def points(reference: str) -> list[str]:
    """Points of a reference: its sentences, split further at semicolons (quick form of completeness)."""
    parts = (part.strip() for sentence in sentences(reference) for part in re.split(r"[;；]", sentence))
    return [part for part in parts if any(character.isalnum() for character in part)]
