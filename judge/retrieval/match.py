"""Matching passages: which retrieved items cover which label, when labels are documents, chunks, texts or offsets.

Every label is a row of units: one for a document or a chunk, its tokens for a text, its characters for an offset
range. A set of units is the bits of a whole number, so the union over ranks is `|`. A label is found at the first
rank where the items so far cover a share of `tau` of it, and, for a text, every token that holds a digit.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from judge.errors import InputError
from judge.retrieval.chunks import Passage

if TYPE_CHECKING:
    from judge.cases import Label

RUN = 3
WEAK_TOKENS = 5
ROUNDING = 1e-9
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
TOKEN = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])\w)+")


@lru_cache(maxsize=2048)
def tokens(text: str) -> tuple[str, ...]:
    """Words of a text after NFKC and case folding; scripts written without spaces give one token a character."""
    return tuple(TOKEN.findall(unicodedata.normalize("NFKC", text).casefold()))


@lru_cache(maxsize=512)
def runs(words: tuple[str, ...], length: int) -> frozenset[tuple[str, ...]]:
    """All runs of that many neighbouring tokens."""
    return frozenset(words[i : i + length] for i in range(len(words) - length + 1))


def shared(words: tuple[str, ...], others: tuple[str, ...], length: int) -> int:
    """The tokens of `words`, as bits, that lie in a run of that length which `others` holds too."""
    known = runs(others, length)
    bits = 0
    for i in range(len(words) - length + 1):
        if words[i : i + length] in known:
            bits |= ((1 << length) - 1) << i
    return bits


@dataclass(frozen=True, slots=True)
class Target:
    """A label as units: how many, which of them must be covered, what a passage covers, whether it lies inside."""

    label: Label
    name: str
    size: int
    needed: int
    covers: Callable[[Passage], int]
    holds: Callable[[Passage], bool]

    def found(self, units: int, tau: float) -> bool:
        enough = units.bit_count() + ROUNDING >= tau * self.size
        return enough and units & self.needed == self.needed


def target(label: Label, query: str) -> Target:
    """The units of a label, by its kind."""
    if label.kind == "doc":
        return Target(label, str(label.doc), 1, 1, lambda p: int(p.document == label.doc), lambda p: False)
    if label.kind == "chunk":
        return Target(label, f"chunk {label.chunk}", 1, 1, lambda p: int(p.id == label.chunk), lambda p: False)
    return _text_target(label, query) if label.kind == "text" else _offset_target(label, query)


def _text_target(label: Label, query: str) -> Target:
    text = label.text or ""
    words = tokens(text)
    name = f'"{text[:60]}"' if len(text) <= 60 else f'"{text[:57]}..."'
    if not words:
        raise InputError(f"labels of query {query!r}: the text label {text!r} has no words: give the passage itself")
    length = min(RUN, len(words))
    digits = sum(1 << i for i, word in enumerate(words) if any(c.isdigit() for c in word))

    def elsewhere(passage: Passage) -> bool:
        return label.doc is not None and passage.doc is not None and passage.doc != label.doc

    def covers(passage: Passage) -> int:
        if elsewhere(passage):
            return 0
        if passage.text is None:
            raise InputError(
                f"query {query!r}: the label {name} is a text, but item {passage.id!r} has no text: give items as "
                "{id, text}, or a chunk_map with texts, or label by doc or offsets"
            )
        return shared(words, tokens(passage.text), length)

    def holds(passage: Passage) -> bool:
        inner = tokens(passage.text or "")
        whole = len(inner) >= length and shared(inner, words, length).bit_count() == len(inner)
        return whole and not elsewhere(passage)

    return Target(label, name, len(words), digits, covers, holds)


def _offset_target(label: Label, query: str) -> Target:
    start, end = label.start or 0, label.end or 0

    def covers(passage: Passage) -> int:
        if passage.document != label.doc:
            return 0
        if passage.start is None or passage.end is None:
            raise InputError(
                f"query {query!r}: the label {label.doc}[{start},{end}) is an offset range, but item {passage.id!r} of "
                "that document has no start and end: give items as {id, doc, start, end}, or a chunk_map"
            )
        low, high = max(start, passage.start), min(end, passage.end)
        return ((1 << (high - low)) - 1) << (low - start) if low < high else 0

    def holds(passage: Passage) -> bool:
        known = passage.start is not None and passage.end is not None
        return known and passage.document == label.doc and start <= passage.start and passage.end <= end  # type: ignore[operator]

    return Target(label, f"{label.doc}[{start},{end})", end - start, 0, covers, holds)


@dataclass(frozen=True, slots=True)
class Findings:
    """What one list found. `found_at`: rank per label or None. `coverage`: share per label over the whole list.

    growth: (rank, label index, added share). relevant, redundant: (rank, largest grade that the item is relevant
    to). judged: ranks of the items that touch a label of grade 0 or more.
    """

    found_at: list[int | None]
    coverage: list[float]
    growth: list[tuple[int, int, float]] = field(default_factory=list)
    relevant: list[tuple[int, float]] = field(default_factory=list)
    redundant: list[tuple[int, float]] = field(default_factory=list)
    judged: list[int] = field(default_factory=list)


def find(slots: Sequence[Passage], targets: Sequence[Target], tau: float) -> Findings:
    """Walk down the list once; an item that came before keeps its slot and earns nothing.

    An item is relevant when it alone finds a label, completes one, or lies wholly inside one.
    """
    covered = [0] * len(targets)
    findings = Findings([None] * len(targets), [0.0] * len(targets))
    seen: set[str] = set()
    for rank, passage in enumerate(slots, 1):
        if passage.id in seen:
            continue
        seen.add(passage.id)
        grades = []
        new = touched = False
        for i, goal in enumerate(targets):
            units = goal.covers(passage)
            union = covered[i] | units
            completes = findings.found_at[i] is None and goal.found(union, tau)
            if completes:
                findings.found_at[i] = rank
            if completes or goal.found(units, tau) or goal.holds(passage):
                grades.append(goal.label.grade)
            if union != covered[i]:
                new = True
                share = (union.bit_count() - covered[i].bit_count()) / goal.size
                findings.growth.append((rank, i, share))
            touched = touched or (units != 0 and goal.label.grade >= 0)
            covered[i] = union
        if grades:
            findings.relevant.append((rank, max(grades)))
            if not new:
                findings.redundant.append((rank, max(grades)))
        if touched:
            findings.judged.append(rank)
    findings.coverage[:] = [units.bit_count() / goal.size for units, goal in zip(covered, targets, strict=True)]
    return findings


def judged_slots(slots: Sequence[Passage], targets: Sequence[Target]) -> list[Passage]:
    """The list without the items that touch no label of grade 0 or more."""
    judges = [goal for goal in targets if goal.label.grade >= 0]
    return [passage for passage in slots if any(goal.covers(passage) for goal in judges)]
