"""The result of an evaluation: estimates on access, values per query on access, counts as attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from calibration.estimate import Estimate, mean, undefined
from judge.errors import UsageError
from judge.retrieval.measures import (
    AT_K,
    AT_K_PASSAGES,
    FAMILIES,
    MEAN_NAMES,
    UNBOUNDED,
    WHOLE_LIST,
    Sums,
    column_values,
    sums,
)
from judge.retrieval.options import Options, cutoffs
from judge.retrieval.slots import FloatArray, LabelMatch, Matched
from judge.retrieval.ties import expect

Value = TypeVar("Value")


class Lazy(Mapping[str, Value], Generic[Value]):
    """A read-only mapping whose values are made on first access and kept."""

    def __init__(self, names: Iterable[str], make: Callable[[str], Value]) -> None:
        self._names = dict.fromkeys(names)
        self._make = make
        self._made: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{len(self)} values on access: {', '.join(list(self._names)[:8])}, ...>"


@dataclass(frozen=True, slots=True)
class Prepared:
    """Rankings and labels, matched: measuring again at other cut-offs touches no id."""

    matched: Matched
    options: Options

    def at(self, k: int | Iterable[int]) -> RetrievalResult:
        """The result at these cut-offs."""
        return RetrievalResult(self.matched, cutoffs(k), self.options)


class RetrievalResult:
    """Measures of one set of rankings.

    `measures`: name -> Estimate; `per_query`: query id -> {name: value or None}; `matches`: query id -> where each
    label was found. All three are computed on access. Counts: `n_queries` labelled queries = `n_scored` (those that
    count 0 for a missing ranking included) + `n_undefined`; `n_missing`, `n_extra`, `n_duplicates`. `warnings` are
    plain sentences about what looks wrong.
    """

    def __init__(self, matched: Matched, k: tuple[int, ...], options: Options) -> None:
        self.k = k
        self.options = options
        self.matched = matched
        self.warnings = matched.warnings
        self.n_queries = matched.n
        self.n_missing = matched.n_missing
        self.n_extra = matched.n_extra
        self.n_duplicates = matched.n_duplicates
        self.sums: Sums = sums(matched, k, options)
        for row, groups in matched.tied.items():
            expect(self.sums, row, groups, options)
        labelled = (self.sums.total > 0) | self.sums.positive
        self.n_undefined = 0 if options.empty_labels == "zero" else int((~labelled).sum())
        self.n_scored = self.n_queries - self.n_undefined
        self._families: dict[str, FloatArray] = {}
        self.names = _names(k, passages=matched.covered is not None)
        self.measures: Mapping[str, Estimate] = Lazy((*self.names, *MEAN_NAMES), self._estimate)

    @property
    def unit(self) -> str:
        return self.options.unit

    @property
    def conventions(self) -> dict[str, Any]:
        """Every option with its value."""
        return self.options.conventions()

    @cached_property
    def _row(self) -> dict[str, int]:
        return {query: row for row, query in enumerate(self.matched.queries)}

    @cached_property
    def per_query(self) -> Mapping[str, dict[str, float | None]]:
        """Query id -> {measure: value, or None where undefined}."""
        return Lazy(self.matched.queries, self._query_values)

    @cached_property
    def matches(self) -> Mapping[str, tuple[LabelMatch, ...]]:
        """Query id -> where each of its labels was found."""
        return Lazy(self.matched.queries, lambda query: self.matched.matches(self._row[query]))

    def values(self, name: str) -> FloatArray:
        """One value per query, in the order of the labels; NaN where the measure is undefined."""
        family, column = self._place(name)
        if family not in self._families:
            self._families[family] = column_values(family, self.sums, self.options)
        column_of: FloatArray = self._families[family][column]
        return column_of

    def _place(self, name: str) -> tuple[str, int]:
        if name not in self.measures:
            raise UsageError(f"measure {name!r} is unknown here: the measures are {', '.join(self.names)}")
        family, _, cut = MEAN_NAMES.get(name, name).partition("@")
        return family, self.k.index(int(cut)) if cut else len(self.k)

    def _estimate(self, name: str) -> Estimate:
        values = self.values(name)
        gone = np.isnan(values)
        n_dropped = int(gone.sum())
        family, column = self._place(name)
        bounds = None if family in UNBOUNDED else (0.0, 1.0)
        kept = values[~gone] if n_dropped else values
        if self.options.mean == "macro" or not len(kept):
            estimate = mean(kept, bounds=bounds)
        else:
            numerators, denominators = FAMILIES[family](self.sums, self.options)
            denominators = np.broadcast_to(denominators, numerators.shape)
            estimate = _micro(numerators[column, ~gone], denominators[column, ~gone], bounds)
        return replace(estimate, n_dropped=n_dropped) if n_dropped else estimate

    def _query_values(self, query: str) -> dict[str, float | None]:
        row = self._row[query]
        values = {name: float(self.values(name)[row]) for name in self.names}
        return {name: None if np.isnan(value) else value for name, value in values.items()}

    @cached_property
    def precision_ceiling(self) -> dict[int, float | None]:
        """k -> mean(min(R, k) / k) over the queries with R > 0 relevant labels: what precision@k could reach.

        None without such queries, and at chunk unit when several items may count for one label.
        """
        total = self.sums.total[self.sums.total > 0]
        if self.matched.covered is not None or not len(total):
            return dict.fromkeys(self.k)
        return {k: float(np.minimum(total, k).mean() / k) for k in self.k}

    def to_frame(self) -> Any:
        """A pandas DataFrame: one row per query id, one column per measure, missing where undefined."""
        import pandas as pd

        columns = {name: self.values(name) for name in self.names}
        return pd.DataFrame(columns, index=pd.Index(self.matched.queries, name="query_id"))

    def to_dict(self) -> dict[str, Any]:
        """The public JSON form."""
        counts = ("n_queries", "n_scored", "n_undefined", "n_missing", "n_extra", "n_duplicates")
        return {
            "k": list(self.k),
            "unit": self.unit,
            "conventions": self.conventions,
            **{name: getattr(self, name) for name in counts},
            "measures": {name: estimate.to_dict() for name, estimate in self.measures.items()},
        }


def _names(k: tuple[int, ...], *, passages: bool) -> tuple[str, ...]:
    families = AT_K | AT_K_PASSAGES if passages else AT_K
    return (*(f"{family}@{cut}" for cut in k for family in families), *WHOLE_LIST)


def _micro(numerators: FloatArray, denominators: FloatArray, bounds: tuple[float, float] | None) -> Estimate:
    """Ratio of sums, with the t interval of its linearised contributions (Cochran 1977, section 6.4)."""
    total = float(denominators.sum())
    if total == 0:
        return undefined("no_values", n=len(numerators), method="ratio_linearised")
    ratio = float(numerators.sum()) / total
    residuals = (numerators - ratio * denominators) / denominators.mean()
    estimate = mean(ratio + residuals, bounds=bounds)
    return replace(estimate, value=ratio, method="ratio_linearised") if estimate.method == "t" else estimate
