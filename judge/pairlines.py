"""Comparison lines as the columns that statistics want: one record per pair of answers, its repeats, its slices."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibration.verdicts import PairVerdicts
from judge.joining import Names, pairs_of
from judge.pairwise import Pair

SLICED = ("lang", "split", "answerable")
WORDS: Mapping[str, str] = {"inconsistent": "tie", "incomplete": "error"}


@dataclass(slots=True)
class Record:
    """One pair of answers over its repeats. `question` is a hash, `longer` the words of a minus those of b."""

    a: str
    b: str
    case_id: str
    question: str
    slices: list[str]
    longer: int
    lines: list[dict[str, Any]] = field(default_factory=list)


def records_of(
    run: Path, pairs: Sequence[Names], chosen: Mapping[Names, frozenset[str]] | None, slice_by: Sequence[str]
) -> Iterator[Record]:
    """A record, still without lines, of every pair of a joined run."""
    for pair in pairs_of(run / "cases.jsonl", pairs, chosen):
        yield Record(
            a=pair.a,
            b=pair.b,
            case_id=pair.case.id,
            question=hashlib.blake2b(pair.case.question.encode(), digest_size=12).hexdigest(),
            slices=list(_slices(pair, slice_by)),
            longer=len(pair.answer_a.split()) - len(pair.answer_b.split()),
        )


def verdicts(records: Sequence[Record], *, by_outcome: bool = False, named: bool = False) -> PairVerdicts:
    """The lines as verdict columns, items being questions, so that intervals are clustered by question.

    `by_outcome` puts the line's outcome in both orders (quick mode, where it follows the mean probability). The third
    column tells pairs of one question apart: by systems when `named`, else by systems and case id.
    """
    lines = [(one, line) for one in records for line in one.lines]
    columns = [_outcome_twice(line) if by_outcome else _orders(line) for _, line in lines]
    return PairVerdicts(
        items=[one.question for one, _ in lines],
        order1=[column[0] for column in columns],
        order2=[column[1] for column in columns],
        systems=[(one.a, one.b) if named else (f"{one.a}\x1f{one.b}", one.case_id) for one, _ in lines],
    )


def outcomes_of(records: Sequence[Record]) -> list[str]:
    """The outcome of each pair: that of most complete repeats, `tie` where two have as many."""
    found = []
    for one in records:
        complete = Counter(line["outcome"] for line in one.lines if line["outcome"] != "incomplete").most_common()
        split = len(complete) > 1 and complete[0][1] == complete[1][1]
        found.append("tie" if split else complete[0][0] if complete else "incomplete")
    return found


def _orders(line: Mapping[str, Any]) -> tuple[str | None, str | None]:
    if not line["calls"]:
        return ("identical", "identical") if line["outcome"] == "tie" else (None, None)
    one, two = (call["winner"] for call in line["calls"])
    return one, two


def _outcome_twice(line: Mapping[str, Any]) -> tuple[str, str]:
    word = WORDS.get(line["outcome"], line["outcome"])
    return word, word


def _slices(pair: Pair, more: Sequence[str]) -> Iterator[str]:
    """Slices of the question: tags that both cases have, and `name=value` of fields of the case or its metadata."""
    yield from (f"tag={tag}" for tag in pair.case.tags)
    for name in (*SLICED, *more):
        value = getattr(pair.case, name, None) if name in SLICED else pair.case.metadata.get(name)
        if value is not None and not isinstance(value, dict | list):
            yield f"{name}={value}"
