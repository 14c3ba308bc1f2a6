"""Two retrievers on the same questions: paired differences with interval and test, and the questions that moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.compare import holm, sign_flip
from calibration.estimate import Estimate, bootstrap
from judge.errors import UsageError
from judge.retrieval.result import RetrievalResult
from judge.retrieval.slots import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measure: means over the pairs, their difference (system - baseline), sign-flip p and p after Holm."""

    system: float | None
    baseline: float | None
    difference: Estimate
    p_sign_flip: float | None
    p_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A query whose value changed, with both values."""

    query_id: str
    system: float
    baseline: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalComparison:
    """Paired comparison of two rankings. `moved` is sorted by the size of the change of `moved_measure`.

    `n_pairs` counts the queries in both; `unmatched` those that only one of them has.
    """

    n_pairs: int
    unmatched: int
    seed: int
    replicates: int
    measures: Mapping[str, Difference]
    moved_measure: str
    moved: tuple[Moved, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "n_pairs": self.n_pairs,
            "unmatched": self.unmatched,
            "seed": self.seed,
            "replicates": self.replicates,
            "measures": {
                name: {
                    "system": d.system,
                    "baseline": d.baseline,
                    "difference": d.difference.to_dict(),
                    "p_sign_flip": d.p_sign_flip,
                    "p_holm": d.p_holm,
                }
                for name, d in self.measures.items()
            },
            "moved_measure": self.moved_measure,
            "moved": [{"query_id": m.query_id, "system": m.system, "baseline": m.baseline} for m in self.moved],
        }


def compare_rankings(
    system: RetrievalResult,
    baseline: RetrievalResult,
    *,
    measures: Sequence[str] | None = None,
    seed: int = 0,
    replicates: int = 9999,
) -> RetrievalComparison:
    """Compare two results query by query; a query that a measure is undefined for on either side is dropped.

    Default measures: precision, recall, hit rate and NDCG at the largest common cut-off, rr and ap. The interval of
    the difference is a paired percentile bootstrap over queries, the p value a two-sided sign-flip permutation test
    (1 when nothing differs, None without pairs), adjusted over all measures of the call by Holm. Both are seeded.
    The queries that moved are told for the first measure whose name starts with ndcg, else the first.
    Raises UsageError when the options differ, there is no common query or measure, or replicates are below 100.
    """
    if replicates < 100:
        raise UsageError(f"replicates is {replicates}: give 100 or more, fewer say nothing about an interval")
    if system.conventions != baseline.conventions:
        raise UsageError("the two results follow different conventions: evaluate both with the same options")
    names = chosen_measures(system, baseline, measures)
    rows = {query: row for row, query in enumerate(baseline.matched.queries)}
    common = [(row, rows[query]) for row, query in enumerate(system.matched.queries) if query in rows]
    if not common:
        raise UsageError("the two results have no query in common: are the query ids the same?")
    left, right = np.array(common).T
    pairs = {name: (system.values(name)[left], baseline.values(name)[right]) for name in names}
    raw = {name: _difference(*pair, seed, replicates) for name, pair in pairs.items()}
    adjusted = _adjusted({name: d.p_sign_flip for name, d in raw.items()})
    subject = next((name for name in names if name.startswith("ndcg")), names[0])
    queries = [system.matched.queries[row] for row in left]
    return RetrievalComparison(
        n_pairs=len(common),
        unmatched=system.n_queries + baseline.n_queries - 2 * len(common),
        seed=seed,
        replicates=replicates,
        measures={
            name: Difference(
                system=d.system, baseline=d.baseline, difference=d.difference, p_sign_flip=d.p_sign_flip,
                p_holm=adjusted[name],
            )
            for name, d in raw.items()
        },
        moved_measure=subject,
        moved=_moved(queries, *pairs[subject]),
    )  # fmt: skip


def chosen_measures(system: RetrievalResult, baseline: RetrievalResult, asked: Sequence[str] | None) -> tuple[str, ...]:
    """The names to compare; asked ones must exist on both sides."""
    common = [name for name in system.measures if name in baseline.measures]
    if asked is None:
        k = max(set(system.k) & set(baseline.k), default=None)
        at_k = () if k is None else tuple(f"{family}@{k}" for family in ("precision", "recall", "hit_rate", "ndcg"))
        return (*at_k, "rr", "ap")
    unknown = [name for name in asked if name not in common]
    if unknown or not asked:
        raise UsageError(f"measures {', '.join(unknown) or 'is empty'}: choose among {', '.join(common)}")
    return tuple(dict.fromkeys(asked))


def _difference(a: FloatArray, b: FloatArray, seed: int, replicates: int) -> Difference:
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    changes = a - b
    estimate = bootstrap(
        lambda sums: sums[:, 0] / sums[:, 1],
        np.column_stack([changes, np.ones(len(changes))]),
        seed=seed,
        replicates=replicates,
    )
    return Difference(
        system=float(a.mean()) if len(a) else None,
        baseline=float(b.mean()) if len(b) else None,
        difference=estimate,
        p_sign_flip=sign_flip(changes, seed=seed, replicates=replicates),
        p_holm=None,
    )


def _adjusted(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    known = {name: p for name, p in p_values.items() if p is not None}
    return dict.fromkeys(p_values) | dict(zip(known, holm(list(known.values())), strict=True))


def _moved(queries: Sequence[str], a: FloatArray, b: FloatArray) -> tuple[Moved, ...]:
    changed = [
        Moved(query_id=query, system=float(x), baseline=float(y))
        for query, x, y in zip(queries, a, b, strict=True)
        if not np.isnan(x + y) and x != y
    ]
    return tuple(sorted(changed, key=lambda m: (-abs(m.system - m.baseline), m.query_id)))
