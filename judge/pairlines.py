"""Comparison lines as the columns that statistics want: one record per pair of answers, its repeats, its slices."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from calibration.verdicts import PairVerdicts
from judge.combining import by_difference
from judge.joining import Names, pairs_of
from judge.pairwise import Pair
from judge.runs import rows

POINTS: Mapping[str, float] = {"a": 1.0, "b": 0.0, "tie": 0.5, "inconsistent": 0.5}
SLICED = ("lang", "split", "answerable")
LINES = "comparisons.jsonl"
IDENTITY = ("case_id", "rubric", "repeat", "a", "b")


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


def read_records(
    run: Path,
    pairs: Sequence[Names],
    wanted: Iterable[Mapping[str, Any]],
    *,
    chosen: Mapping[Names, frozenset[str]] | None = None,
    slice_by: Sequence[str] = (),
) -> tuple[list[Record], int]:
    """The records that have lines about what is `wanted` (identities), and how many lines are about something else."""
    current = {tuple(identity[name] for name in IDENTITY) for identity in wanted}
    known = {(one.a, one.b, one.case_id): one for one in records_of(run, pairs, chosen, slice_by)}
    gone = 0
    for row in rows(run, LINES):
        if tuple(row[name] for name in IDENTITY) in current:
            known[row["a"], row["b"], row["case_id"]].lines.append(row)
        else:
            gone += 1
    return [one for one in known.values() if one.lines], gone


def verdicts(records: Sequence[Record], *, named: bool = False) -> PairVerdicts:
    """The lines as verdict columns, items being questions, so that intervals are clustered by question.

    In quick and score mode, where averages decide, each line carries that decision: its own outcome in quick mode,
    that of the pair over all repeats in score mode. The systems tell pairs of one question apart: by their names when
    `named`, else by names and case id.
    """
    lines = [(one, line) for one in records for line in one.lines]
    columns = [_orders(line) for _, line in lines]
    return PairVerdicts(
        items=[one.question for one, _ in lines],
        order1=[column[0] for column in columns],
        order2=[column[1] for column in columns],
        systems=[(one.a, one.b) if named else (f"{one.a}\x1f{one.b}", one.case_id) for one, _ in lines],
        decided=_averaged(records) if any(line["mode"] != "full" for _, line in lines) else None,
    )


def outcomes_of(records: Sequence[Record]) -> list[str]:
    """The outcome of each pair over its repeats: by the pooled rating difference in score mode, else that of most
    complete repeats, `tie` where two have as many."""
    return [_pooled(one) if difference_of(one) is not None else _majority(one) for one in records]


def points_of(records: Sequence[Record]) -> list[float | None]:
    """What each pair is worth to a: a win 1, tie and contradiction one half, a loss 0; else None."""
    return [POINTS.get(outcome) for outcome in outcomes_of(records)]


def difference_of(record: Record) -> float | None:
    """The rating of a minus that of b over all complete repeats (score mode), else None."""
    known = [line["difference"] for line in record.lines if line.get("difference") is not None]
    return fmean(known) if known else None


def _pooled(record: Record) -> str:
    difference = difference_of(record)
    return "incomplete" if difference is None else by_difference(difference)[0]


def _majority(record: Record) -> str:
    complete = Counter(line["outcome"] for line in record.lines if line["outcome"] != "incomplete").most_common()
    split = len(complete) > 1 and complete[0][1] == complete[1][1]
    return "tie" if split else complete[0][0] if complete else "incomplete"


def _averaged(records: Sequence[Record]) -> list[str]:
    """The decision that each line carries where averages decide."""
    decided = [(line["outcome"], _pooled(one)) for one in records for line in one.lines]
    return [own if "incomplete" in (own, pooled) else pooled for own, pooled in decided]


def _orders(line: Mapping[str, Any]) -> tuple[str | None, str | None]:
    if not line["calls"]:
        return ("identical", "identical") if line["outcome"] == "tie" else (None, None)
    said = {call["first"]: call["winner"] for call in line["calls"]}
    return said.get("a", "unasked"), said.get("b", "unasked")


def _slices(pair: Pair, more: Sequence[str]) -> Iterator[str]:
    """Slices of the question: tags that both cases have, and `name=value` of fields of the case or its metadata."""
    yield from (f"tag={tag}" for tag in pair.case.tags)
    for name in (*SLICED, *more):
        value = getattr(pair.case, name, None) if name in SLICED else pair.case.metadata.get(name)
        if value is not None and not isinstance(value, dict | list):
            yield f"{name}={value}"
