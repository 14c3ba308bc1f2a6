"""What an evaluation rests on after matching: which slot of which query holds something labelled.

    rankings, labels --ids or passages--> Matched --measures--> values per query

Flat arrays over all queries, ordered by query, then rank. Everything here is independent of the cut-offs, the gain
and the relevance level, so one matching serves any number of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Slots:
    """Events: at `rank` (from 1) of the list of query `row` something of that `grade` happens."""

    row: IntArray
    rank: IntArray
    grade: FloatArray

    @classmethod
    def ordered(cls, row: IntArray, rank: IntArray, grade: FloatArray) -> Slots:
        """The events sorted by query, then rank."""
        order = np.argsort((row << 32) + rank, kind="stable")
        return cls(row[order], rank[order], grade[order])

    @classmethod
    def from_events(cls, events: Sequence[tuple[int, int, float]]) -> Slots:
        """The events of (row, rank, grade) triples."""
        table = np.array(events, dtype=np.float64).reshape(-1, 3)
        return cls.ordered(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])

    @classmethod
    def ideal(cls, row: IntArray, grade: FloatArray, n: int) -> Slots:
        """The best list that each of `n` queries could have: its grades in falling order from rank 1."""
        if not ((np.diff(grade) <= 0) | (np.diff(row) > 0)).all():
            order = np.lexsort((-grade, row))
            row, grade = row[order], grade[order]
        return cls(row, places(row, n) + 1, grade)

    def where(self, kept: BoolArray) -> Slots:
        """The events that the mask keeps."""
        return self if bool(kept.all()) else Slots(self.row[kept], self.rank[kept], self.grade[kept])


def places(row: IntArray, n: int) -> IntArray:
    """Position of each event within its query, from 0; rows must be sorted."""
    sizes = np.bincount(row, minlength=n)
    return np.arange(len(row)) - (np.cumsum(sizes) - sizes)[row]


@dataclass(frozen=True, slots=True)
class TieGroup:
    """Consecutive items with the same score: how many, and the grades of the labelled ones among them."""

    size: int
    grades: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LabelMatch:
    """Where one label was found: the rank and id of the item that completed it, and how much of it was retrieved.

    `found_at` and `item` are None when it was not found; `coverage` is the share of it over the whole list.
    """

    label: str
    grade: float
    found_at: int | None
    item: str | None
    coverage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """All queries with labels, and what their lists found.

    found: one event per found label (recall, hit rate, rr). relevant: one per relevant item (precision). gains: one
    per item that found something new, with the largest new grade (ap, dcg). judged: one per item with a label of
    grade 0 or more. labels, ideal: what could be found and what could be gained, as the best possible list. On plain
    ids the first three are the same. covered, redundant: passages only, growth of the share of a label, and relevant
    items that bring nothing new. tied: the tie groups by row, only for `ties=expected`.
    """

    queries: tuple[str, ...]
    lengths: IntArray
    n_missing: int
    n_extra: int
    n_duplicates: int
    found: Slots
    relevant: Slots
    gains: Slots
    judged: Slots
    labels: Slots
    ideal: Slots
    covered: tuple[Slots, FloatArray] | None = None
    redundant: Slots | None = None
    tied: dict[int, tuple[TieGroup, ...]] = field(default_factory=dict)
    matches: Callable[[int], tuple[LabelMatch, ...]] = field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return len(self.queries)
