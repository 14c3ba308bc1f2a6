"""Citation marks in an answer: found, resolved to passages and attached to sentences by code, never by the judge."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from rubrics.evidence import ascii_digits, inside, protected, sentence_spans, words
from rubrics.model import Passage

Source = tuple[str, str | None, int | None]  # id, author, year
Resolution = Literal["resolved", "unknown", "unresolvable"]


@dataclass(frozen=True, slots=True)
class Citation:
    """One mark, pointing at one passage.

    `raw` is the id as written ("2", "d1", "Smith 2020"), `id` the passage it resolves to, or None. `unknown` marks lead
    nowhere; `unresolvable` ones name an author although no passage has author metadata, so nothing can be said.
    `start`, `end` delimit the whole bracket in the answer (a list or range gives several citations with one bracket).
    """

    raw: str
    id: str | None
    start: int
    end: int
    resolution: Resolution


@dataclass(frozen=True, slots=True)
class CitedStatement:
    """A numbered sentence with the marks that stand on it.

    `n` counts from 1. `text` is the sentence without its marks. The judge's `k` is the 1-based place in `citations`;
    only resolved marks need a verdict.
    """

    n: int
    text: str
    citations: tuple[Citation, ...]


_BRACKET = re.compile(
    r"(?P<square>\[\^?[^\[\]\n]{1,80}\])|(?P<wide>［[^［］\n]{1,80}］|〔[^〔〕\n]{1,80}〕|〚[^〚〛\n]{1,80}〛)"
    r"|(?P<lenticular>【[^【】\n]{1,80}】)|(?P<html><(?P<tag>sup|cite)>[^<\n]{1,60}</(?P=tag)>)"
    r"|(?P<paren>\([^()\n]{4,160}\))|(?P<superscript>[⁰¹²³⁴-⁹]{1,2}(?:[,⁻˒][⁰¹²³⁴-⁹]{1,2})*)"
)
_DEFINITION = re.compile(r"^[ \t]*\[\^?[^\[\]\n]+\]:.*$", re.MULTILINE)
_RANGE = re.compile(
    r"(?P<prefix>[^\W\d]*[-_.: ]?)(?P<low>\d{1,3})\s*[-–—]\s*(?P<prefix2>[^\W\d]*[-_.: ]?)"
    r"(?P<high>\d{1,3})$"
)
_PREFIX = re.compile(
    r"(?:sources?|refs?|references?|cit(?:ation|e)?s?|docs?|documents?|passages?|contexts?|chunks?|quellen?|fuentes?)"
    r"\s*[:#]?\s+|(?:sources?|refs?|cite|docs?|passages?|contexts?|quelle|fuente)\s*:\s*",
    re.IGNORECASE,
)
_POSITION = re.compile(r"(?:source|ref|reference|doc|document|passage|context|chunk)[-_ #]?(\d{1,3})$", re.IGNORECASE)
_ID_LIKE = re.compile(r"([^\W\d]{1,24})[-_.:]?\d{1,6}$")
_CODE_WORD = re.compile(
    r"(?:[a-z]|arr|array|args|argv|list|data|items?|row|rows|matrix|vec|vector|dict|map|buf|buffer|values?|self"
    r"|\w*_\w*|[a-z]+[A-Z]\w*)$"
)
_AUTHOR_YEAR = re.compile(
    r"(?P<names>[^\W\d_][^\W\d_'’.-]*(?:[-'’ ][^\W\d_]+|[ ,]+(?:and|und|y|et|en|&)[ ]+[^\W\d_][\w'’-]+"
    r"|\s+et\s+al\.?|\s*&\s*[^\W\d_][\w'’-]+)*)"
    r"(?P<comma>,)?\s+(?P<year>(?:1[5-9]|20)\d\d)(?P<letter>[a-z])?(?:,.*)?$"
)
_NOT_AUTHORS = words(
    "january february march april may june july august september october november december spring summer autumn fall"
    " winter early late mid since until from in by about circa january jan feb mar apr jun jul aug sep sept oct nov dec"
    " enero mayo januar mai version q1 q2 q3 q4"
)


class _Resolver:
    """Ids of the passages, positions and author-year metadata of one item."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.order = [identifier for identifier, _, _ in sources]
        self.ids = {identifier: identifier for identifier in self.order}
        self.folded = {identifier.casefold(): identifier for identifier in self.order}
        self.sources = sources

    @cached_property
    def bare_numbers(self) -> bool:
        return any(identifier.isdigit() for identifier in self.order)

    @cached_property
    def prefixes(self) -> frozenset[str]:
        matches = (_ID_LIKE.match(identifier) for identifier in self.order)
        return frozenset(match.group(1).casefold() for match in matches if match)

    @cached_property
    def authors(self) -> list[tuple[frozenset[str], str, str]]:
        return [
            (frozenset(_names(author)), str(year or ""), identifier)
            for identifier, author, year in self.sources
            if author
        ]

    def by_id(self, raw: str) -> str | None:
        return self.ids.get(raw) or self.folded.get(raw.casefold())

    def by_position(self, number: int) -> str | None:
        if self.bare_numbers or not 1 <= number <= len(self.order):
            return None
        return self.order[number - 1]

    def by_author(self, names: str, year: str, letter: str) -> str | None:
        wanted = _names(names)
        for known, known_year, identifier in self.authors:
            if wanted and wanted[0] in known and set(wanted) <= known and known_year in (year, year + letter):
                return identifier
        return None


def _names(text: str | None) -> list[str]:
    found = re.findall(r"[^\W\d_]{2,}(?:[-'’][^\W\d_]+)*", (text or "").casefold())
    return [word for word in found if word not in ("and", "und", "et", "al", "en", "others")]


def _single(token: str, resolver: _Resolver) -> tuple[str, str | None, Resolution] | None:
    """One id as written: (raw, passage id, resolution), or None when the token is no mark at all."""
    found = resolver.by_id(token)
    if found:
        return token, found, "resolved"
    plain = ascii_digits(token)
    if plain.isdigit():
        found = resolver.by_id(plain) or resolver.by_position(int(plain))
        if found is None and len(plain) > 3:
            return None
        return plain, found, "resolved" if found else "unknown"
    position = _POSITION.match(plain)
    if position:
        found = resolver.by_id(position.group(1)) or resolver.by_position(int(position.group(1)))
        return token, found, "resolved" if found else "unknown"
    like = _ID_LIKE.match(token)
    if like and like.group(1).casefold() in resolver.prefixes:
        return token, None, "unknown"
    return None


def _expand(token: str, resolver: _Resolver) -> list[str]:
    match = None if resolver.by_id(token) else _RANGE.match(ascii_digits(token))
    if not match or match["prefix2"] not in ("", match["prefix"]):
        return [token]
    low, high = int(match["low"]), int(match["high"])
    if not low < high <= low + 50 or (match["prefix"] and not match["prefix2"] and match["prefix"][-1:] in "-_.: "):
        return [token]
    return [f"{match['prefix']}{number}" for number in range(low, high + 1)]


def _listed(content: str, resolver: _Resolver, named: bool) -> list[tuple[str, str | None, Resolution]]:
    content = content.strip().removeprefix("^").strip()
    if resolver.by_id(content):
        return [(content, resolver.by_id(content), "resolved")]
    prefix = _PREFIX.match(content)
    if prefix:
        content, named = content[prefix.end() :].strip(), True
    tokens = [part.strip().removeprefix("^") for part in re.split(r"[,;、，]", content)]
    if len(tokens) == 2 and tokens[0] == "0" and not resolver.by_id("0"):
        return []  # an interval such as [0, 1]
    found = []
    for token in (one for listed in tokens for one in _expand(listed, resolver)):
        one = _single(token, resolver)
        if one is None and named and token and re.fullmatch(r"[\w.:-]{1,64}", token):
            one = (token, None, "unknown")
        if one is None:
            return []
        found.append(one)
    return found


def _authors(content: str, resolver: _Resolver) -> list[tuple[str, str | None, Resolution]]:
    found: list[tuple[str, str | None, Resolution]] = []
    for part in content.split(";"):
        part = re.sub(r"^\s*(?:see|cf\.?|e\.g\.,?|siehe|vgl\.|véase)\s+", "", part.strip())
        match = _AUTHOR_YEAR.match(part)
        if not match or not match["names"][:1].isupper() or match["names"].split()[0].casefold() in _NOT_AUTHORS:
            continue
        scholarly = ";" in content or match["comma"] or re.search(r"et al|&| and ", match["names"])
        identifier = resolver.by_author(match["names"], match["year"], match["letter"] or "")
        raw = part[: match.end("letter") if match["letter"] else match.end("year")]
        if identifier:
            found.append((raw, identifier, "resolved"))
        elif resolver.authors:
            found.append((raw, None, "unknown"))
        elif scholarly:
            found.append((raw, None, "unresolvable"))
    return found


def _is_index(answer: str, match: re.Match[str]) -> bool:
    """Whether a square bracket glued to a word is an array index rather than a mark: arr[0], a[i], data[1].x."""
    before = re.search(r"[\w)\]]+$", answer[max(0, match.start() - 40) : match.start()])
    if not before or answer[match.start() - 1] == "]":
        return False
    content = match.group()[1:-1].strip()
    word = match.start() - len(before.group())
    after = answer[match.end() : match.end() + 2]
    return bool(
        content == "0"
        or _CODE_WORD.match(before.group())
        or re.match(r"[=(+*/<>]|\.\w| [=+*/<>]", after)
        or re.search(r"[=+*/(<>] ?$", answer[max(0, word - 2) : word])
    )


def _content(answer: str, match: re.Match[str], resolver: _Resolver) -> list[tuple[str, str | None, Resolution]]:
    text = match.group()
    if match["square"]:
        if answer[match.end() : match.end() + 1] == "(" or answer[max(0, match.start() - 1) : match.start()] == "!":
            return []
        return [] if _is_index(answer, match) else _listed(text[1:-1], resolver, named=False)
    if match["wide"]:
        return _listed(text[1:-1], resolver, named=False)
    if match["lenticular"]:
        content = text[1:-1].partition("†")[0]
        return _listed(content.rpartition(":")[2] if re.match(r"\d+:\d+$", content) else content, resolver, named=False)
    if match["html"]:
        return _listed(re.sub(r"<[^>]*>|[\[\]]", "", text), resolver, named=match["tag"] == "cite")
    if match["paren"]:
        return _authors(text[1:-1], resolver)
    glued = re.search(r"(?:[^\W\d_]{4,}|[.,;:!?)\"”])$", answer[max(0, match.start() - 5) : match.start()])
    numbers = [ascii_digits(part) for part in re.split(r"[,⁻˒]", text)]
    found = [_single(number, resolver) for number in numbers] if glued else []
    return [one for one in found if one and one[2] == "resolved"]


def definition_spans(answer: str) -> list[tuple[int, int]]:
    """Footnote and link definition lines ("[^1]: ...") as spans; they are neither marks nor statements."""
    return [match.span() for match in _DEFINITION.finditer(answer)] if "]:" in answer else []


def _marks(answer: str, resolver: _Resolver) -> Iterator[Citation]:
    shielded = protected(answer)
    definitions = definition_spans(answer)
    for match in _BRACKET.finditer(answer):
        if inside(match.start(), shielded) or inside(match.start(), definitions):
            continue
        for raw, identifier, resolution in _content(answer, match, resolver):
            yield Citation(raw, identifier, match.start(), match.end(), resolution)


def parse(answer: str, contexts: Sequence[Passage]) -> list[Citation]:
    """Citation marks of an answer in reading order, each resolved to a passage or named unknown.

    Read: [1], [1, 2], [1-3], [d1][d2], [doc-3], [source: d2], [^1], (Smith 2020), (Smith et al., 2020; Lee 2021)
    through author and year metadata, 【3†source】 and 【4:3†source】, wide brackets, <sup>, <cite>, superscript
    digits that resolve. Not marks: code, maths, arr[0], [x], [sic], Markdown links, footnote
    definition lines, years, intervals.
    Resolution: exact id, then 1-based position (only if no id is itself a bare number), then author and year.
    """
    return list(_parsed(answer, tuple((passage.id, passage.author, passage.year) for passage in contexts)))


@lru_cache(maxsize=256)
def _parsed(answer: str, sources: tuple[Source, ...]) -> tuple[Citation, ...]:
    """An answer is read for its marks by several rubrics and checks in a row; the last few are remembered."""
    return tuple(_marks(answer, _Resolver(sources)))


def unmarked(answer: str, start: int, end: int, citations: Sequence[Citation]) -> str:
    """The part [start, end) of an answer without the given marks (in reading order) and the blanks before them."""
    pieces, position = [], start
    for citation in citations:
        if citation.start >= position:
            pieces.append(answer[position : citation.start].rstrip(" "))
            position = citation.end
    return "".join([*pieces, answer[position:end]]).strip()


def statements(
    answer: str, contexts: Sequence[Passage], scope: Literal["sentence", "paragraph"] = "sentence"
) -> list[CitedStatement]:
    """The answer's sentences, numbered from 1, with the marks that stand on them and the marks taken out of the text.

    A mark belongs to its sentence; after the full stop, to the sentence before. With scope "paragraph" the marks that
    close a paragraph also cover its sentences that have none of their own. Footnote definition lines are no statements.
    """
    citations = parse(answer, contexts)
    definitions = definition_spans(answer)
    spans = [span for span in sentence_spans(answer) if not inside(span[0], definitions)]
    starts = [citation.start for citation in citations]
    attached: list[list[Citation]] = [[] for _ in spans]
    texts: list[str] = []
    for place, (start, end) in enumerate(spans):
        limit = spans[place + 1][0] if place + 1 < len(spans) else len(answer)
        first = 0 if place == 0 else start
        attached[place] = citations[bisect_left(starts, first) : bisect_left(starts, limit)]
        texts.append(unmarked(answer, start, end, [c for c in attached[place] if start <= c.start < end]))
    kept = [place for place, text in enumerate(texts) if any(character.isalnum() for character in text)]
    for place in sorted(set(range(len(spans))) - set(kept)):
        before = bisect_left(kept, place)
        if attached[place] and before:
            attached[kept[before - 1]] += attached[place]
    if scope == "paragraph":
        _spread(answer, spans, attached)
    return [CitedStatement(n, texts[place], tuple(attached[place])) for n, place in enumerate(kept, start=1)]


def _spread(answer: str, spans: Sequence[tuple[int, int]], attached: list[list[Citation]]) -> None:
    closing: list[Citation] = []
    for place in range(len(spans) - 1, -1, -1):
        limit = spans[place + 1][0] if place + 1 < len(spans) else len(answer)
        between = answer[spans[place][1] : limit]
        if place + 1 == len(spans) or re.search(r"\n\s*\n", between):
            tail = re.sub(r"[\s.!?。]+", "", answer[attached[place][-1].end : limit]) if attached[place] else "-"
            closing = list(attached[place]) if not tail else []
        elif not attached[place]:
            attached[place] = list(closing)
