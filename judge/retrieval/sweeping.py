"""How many items to retrieve: recall and precision at every k, and the least k that is as good as the whole list."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from judge.errors import UsageError
from judge.retrieval.result import RetrievalResult

TOLERANCE = 0.02
DEPTH = 100
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SweepRow:
    """Means at one k. `ceiling` is mean(min(R, k) / k), the most that precision could be with R relevant labels.

    The ceiling is None where several items may count for one label (documents or passages at chunk unit).
    """

    k: int
    recall: float | None
    precision: float | None
    ceiling: float | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """`best_k` is the least k whose recall is within `tolerance` of the best; None when recall is undefined."""

    best_k: int | None
    best_recall: float | None
    tolerance: float
    depth: int
    rows: tuple[SweepRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {**asdict(self), "rows": [asdict(row) for row in self.rows]}


def k_sweep(result: RetrievalResult, *, depth: int = DEPTH, tolerance: float = TOLERANCE) -> Sweep:
    """Measure the lists of a result at k = 1, 2, ... up to their longest, at most `depth`.

    Low precision at a large k is arithmetic when few labels exist: compare it with the ceiling beside it.
    """
    if depth < 1:
        raise UsageError(f"depth is {depth}: give a whole number from 1")
    longest = int(result.matched.lengths.max(initial=1))
    swept = RetrievalResult(result.matched, tuple(range(1, min(longest, depth) + 1)), result.options)
    ceilings = swept.precision_ceiling
    rows = tuple(
        SweepRow(k, swept.measures[f"recall@{k}"].value, swept.measures[f"precision@{k}"].value, ceilings[k])
        for k in swept.k
    )
    recalls = [row.recall for row in rows if row.recall is not None]
    best = max(recalls, default=None)
    least = None
    if best is not None:
        least = next(row.k for row in rows if row.recall is not None and row.recall >= best - tolerance - ROUNDING)
    return Sweep(least, best, tolerance, swept.k[-1], rows)
