"""Numbers of an answer that stand in no source: a flag for review, since sums and unit changes are legitimate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rubrics.citations import Citation, definition_spans, parse
from rubrics.evidence import ascii_digits, protected
from rubrics.model import Passage

_NUMBER = re.compile(r"\d{1,3}(?:[ \u00a0\u202f\u2009'’]\d{3})+(?![\d])(?:[.,]\d+)?|\d+(?:[.,]\d+)*")
_LIST_NUMBER = re.compile(r"^[ \t]*\(?\d{1,3}[.)](?=[ \t])", re.MULTILINE)
_SEPARATORS = re.compile(r"[ \u00a0\u202f\u2009'’]")
_SEPARATING = (".", ",", "'", "’", " ", "\u00a0", "\u202f", "\u2009")
_MARKS = re.compile(r"[.,]")
_DIGIT = re.compile(r"\d")
_LETTERS = re.compile(r"[a-z]+")
_ARABIC = str.maketrans("٫٬", ".,")
_WORDS = {
    word: str(value)
    for value, words in {
        0: "zero", 1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine",
        10: "ten", 11: "eleven", 12: "twelve dozen", 13: "thirteen", 14: "fourteen", 15: "fifteen", 16: "sixteen",
        17: "seventeen", 18: "eighteen", 19: "nineteen", 20: "twenty", 30: "thirty", 40: "forty", 50: "fifty",
        60: "sixty", 70: "seventy", 80: "eighty", 90: "ninety", 100: "hundred", 1000: "thousand",
    }.items()
    for word in words.split()
}  # fmt: skip
_TENS = re.compile(
    r"\b(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[- ](one|two|three|four|five|six|seven|eight|nine)\b"
)


def _canonical(whole: str, fraction: str = "") -> str:
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def readings(numeral: str) -> list[frozenset[str]]:
    """What a numeral may mean: sets of canonical values, of which one must be wholly known.

    "3.100" is 3100 or 3.1; "1.234,5" is 1234.5; "12.05.2020" is its three parts; "9 850" is 9850 or 9 and 850.
    """
    if numeral.isdigit():
        return [frozenset((_canonical(numeral),))]
    parts = _SEPARATORS.split(numeral)
    if len(parts) > 1:
        joined = readings("".join(parts))
        return [*joined, frozenset().union(*(readings(part)[0] for part in parts))]
    marks, pieces = _MARKS.findall(numeral), _MARKS.split(numeral)
    if len(set(marks)) == 2 and marks.index(marks[-1]) == len(marks) - 1:
        return [frozenset((_canonical("".join(pieces[:-1]), pieces[-1]),))]
    thousands = len(pieces[0]) <= 3 and pieces[0] != "0" and all(len(piece) == 3 for piece in pieces[1:])
    found = [frozenset((_canonical("".join(pieces)),))] if thousands else []
    if len(marks) == 1:
        return [*found, frozenset((_canonical(*pieces),))]
    return found or [frozenset(_canonical(piece) for piece in pieces)]


def numerals(text: str) -> list[str]:
    """Numerals of a text as written, native digits mapped to 0-9."""
    return _NUMBER.findall(ascii_digits(text).translate(_ARABIC) if not text.isascii() else text)


def values(text: str) -> frozenset[str]:
    """Every value that a numeral or an English number word of the text may stand for."""
    known = {value for numeral in set(numerals(text)) for reading in readings(numeral) for value in reading}
    lowered = text.casefold()
    known.update(_WORDS[word] for word in set(_LETTERS.findall(lowered)) & _WORDS.keys())
    known.update(str(int(_WORDS[tens]) + int(_WORDS[one])) for tens, one in _TENS.findall(lowered))
    return frozenset(known)


def _masked(answer: str, citations: Sequence[Citation]) -> str:
    spans = {*protected(answer), *((mark.start, mark.end) for mark in citations), *definition_spans(answer)}
    spans |= {match.span() for match in _LIST_NUMBER.finditer(answer)}
    for start, end in spans:
        answer = answer[:start] + "\n" * (end - start) + answer[end:]
    return answer


def _own_numerals(answer: str, citations: Sequence[Citation]) -> Iterator[str]:
    masked = ascii_digits(_masked(answer, citations)).translate(_ARABIC)
    for match in _NUMBER.finditer(masked):
        if not (match.start() and (masked[match.start() - 1].isalpha() or masked[match.start() - 1] == "_")):
            yield match.group()


def answer_numerals(answer: str, contexts: Sequence[Passage], citations: Sequence[Citation] | None = None) -> list[str]:
    """Numerals that the answer states: marks, code, maths, footnotes, list numbers and names such as K2 left out."""
    if not _DIGIT.search(answer):
        return []
    return list(dict.fromkeys(_own_numerals(answer, parse(answer, contexts) if citations is None else citations)))


def unknown_numerals(stated: Sequence[str], sources: Sequence[str]) -> list[str]:
    """Those of the stated numerals of which no reading is found in any source."""
    if not stated:
        return []
    unseen = [numeral for numeral in stated if not any(_stands_in(numeral, source) for source in sources)]
    if not unseen:
        return []
    known: frozenset[str] = frozenset().union(*(values(source) for source in sources))
    return [numeral for numeral in unseen if not any(reading <= known for reading in readings(numeral))]


def _stands_in(numeral: str, text: str) -> bool:
    position = text.find(numeral)
    while position >= 0:
        end = position + len(numeral)
        before, after = text[max(position - 2, 0) : position], text[end : end + 2]
        joins_left = before[-1:].isdigit() or (before[-1:] in _SEPARATING and before[:1].isdigit())
        joins_right = after[:1].isdigit() or (after[:1] in _SEPARATING and after[1:].isdigit())
        if not joins_left and not joins_right:
            return True
        position = text.find(numeral, position + 1)
    return False


def number_mismatches(
    answer: str, contexts: Sequence[Passage], question: str, citations: Sequence[Citation] | None = None
) -> list[str]:
    """Numerals of the answer, as written and once each, that occur in no passage nor in the question.

    Separators are normalised in every sensible reading (3.100 = 3,100 = 3100), native digits mapped, English number
    words in the sources understood. `citations` saves parsing the marks again.
    """
    stated = answer_numerals(answer, contexts, citations)
    return unknown_numerals(stated, [question, *(passage.text for passage in contexts)])
