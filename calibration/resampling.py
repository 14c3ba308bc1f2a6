"""Intervals for statistics of contingency tables: which units to resample, the bootstrap, the jackknife."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import (
    CELLS_AT_ONCE,
    TOO_FEW_CLUSTERS,
    Estimate,
    FloatArray,
    cluster_codes,
    cluster_warnings,
    normal_quantile,
    percentile_estimate,
    undefined,
)

Statistic = Callable[[FloatArray], FloatArray]
Summary = Callable[[FloatArray], FloatArray]
Codes = npt.NDArray[np.integer[Any]]

MINIMUM_N = 10
SMALL_N = 30
JACKKNIFE_FROM = 10_000
JACKKNIFE_DISAGREEMENTS = 100
ONE_BY_ONE = 12
DRAWS_AT_ONCE = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTables:
    """Contingency tables of P rater pairs on the same items, and the units that a resample draws.

    `tables` (P, K, K) are counts. Unit i occurs `counts[i]` times and adds `units[i]` to the non-empty `cells` of the
    flattened tables. A unit is an item, or a whole cluster. `n` counts items that at least one pair has rated.
    """

    tables: FloatArray
    units: FloatArray
    counts: npt.NDArray[np.intp]
    cells: npt.NDArray[np.intp]
    n: int
    n_dropped: int = 0
    n_clusters: int | None = None

    @property
    def pooled(self) -> FloatArray:
        summed: FloatArray = self.tables.sum(axis=0)
        return summed

    @property
    def independent(self) -> bool:
        """Whether every unit is one pair of labels."""
        return self.n_clusters is None and bool(self.units.sum(axis=1).max(initial=1) <= 1)

    @property
    def disagreements(self) -> int:
        return int(self.tables.sum() - np.einsum("pii->", self.tables))

    def expand(self, totals: FloatArray) -> FloatArray:
        """Tables (r, P, K, K) from sums over the non-empty cells (r, cells), laid out with r as the fastest axis."""
        tables = np.zeros((self.tables.size, len(totals)))
        tables[self.cells] = totals.T
        return np.moveaxis(tables.reshape(*self.tables.shape, len(totals)), -1, 0)


def pair_tables(
    pairs: Sequence[tuple[Codes, Codes]], k: int, *, clusters: Sequence[Any] | npt.NDArray[Any] | None = None
) -> PairTables:
    """Tables of rater pairs from category numbers 0..K-1, -1 where missing; a pair needs both labels.

    All pairs list the same items in the same order. An item without any complete pair is dropped and counted.
    """
    cells = np.stack([_cells(judge, human, k, place) for place, (judge, human) in enumerate(pairs)], axis=1)
    kept: npt.NDArray[np.bool_] = np.any(cells >= 0, axis=1)
    size = len(pairs) * k * k
    flat = np.bincount(cells[cells >= 0], minlength=size).astype(np.float64)
    filled = np.flatnonzero(flat)
    position = np.full(size + 1, len(filled))
    position[filled] = np.arange(len(filled))
    places = position[cells[kept]]
    n_clusters = None
    if clusters is None:
        places, counts = distinct_rows(places, len(filled) + 1)
        units = np.zeros((len(places), len(filled) + 1))
        np.add.at(units, (np.arange(len(places))[:, None], places), 1.0)
        units = units[:, :-1]
    else:
        codes, n_clusters = cluster_codes(clusters, kept)
        units = np.zeros((n_clusters, len(filled) + 1))
        np.add.at(units, (codes[:, None], places), 1.0)
        units, counts = np.unique(units[:, :-1], axis=0, return_counts=True)
    return PairTables(
        tables=flat.reshape(len(pairs), k, k), units=units, counts=counts, cells=filled,
        n=int(kept.sum()), n_dropped=int((~kept).sum()), n_clusters=n_clusters,
    )  # fmt: skip


def _cells(judge: Codes, human: Codes, k: int, place: int) -> npt.NDArray[np.int64]:
    if len(judge) != len(human):
        raise CalibrationError(f"the raters have {len(judge)} and {len(human)} labels: both list the same items")
    both = (judge >= 0) & (human >= 0)
    return np.where(both, (place * k + judge.astype(np.int64)) * k + human, -1)


def distinct_rows(places: npt.NDArray[np.intp], base: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Distinct rows of whole numbers below `base`, and counts; a row becomes one number, which sorts faster."""
    key = np.zeros(len(places), dtype=np.int64)
    for column in places.T:
        _, key = np.unique(key, return_inverse=True)
        key = key * base + column
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    return places[first], counts


def one_table(table: npt.ArrayLike) -> PairTables:
    """The same for a single K x K table of counts."""
    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or len(counts) < 2:
        raise CalibrationError(f"table has shape {counts.shape}: give a K x K table over one scale, K at least 2")
    if not (np.isfinite(counts).all() and (counts >= 0).all() and (counts == np.floor(counts)).all()):
        raise CalibrationError("table holds values that are no counts: cells are whole numbers from 0")
    filled = np.flatnonzero(counts)
    return PairTables(
        tables=counts[None], units=np.eye(len(filled)), counts=counts.ravel()[filled].astype(np.intp),
        cells=filled, n=int(counts.sum()),
    )  # fmt: skip


def over_pairs(statistic: Statistic, data: PairTables) -> Summary:
    """The statistic of tables (r, P, K, K) as its mean over the rater pairs for which the data define it."""
    defined = np.isfinite(statistic(data.tables))
    if not defined.any():
        return lambda tables: np.full(len(tables), np.nan)
    return lambda tables: np.mean(statistic(tables[:, defined]), axis=1)


def replicated(summary: Summary, data: PairTables, *, seed: int, replicates: int) -> FloatArray:
    """The summary of `replicates` bootstrap tables (r, P, K, K), NaN where a replicate does not define it."""
    rng = np.random.default_rng(seed)
    drawn = np.empty(replicates)
    one_cell_each = data.units.shape[0] == data.units.shape[1] and bool((data.units == np.eye(len(data.units))).all())
    step = max(1, CELLS_AT_ONCE // max(len(data.counts), data.tables.size))
    for start in range(0, replicates, step):
        size = min(step, replicates - start)
        drawn_units = resampled(data.counts, size, rng)
        totals = drawn_units if one_cell_each else drawn_units @ data.units
        drawn[start : start + size] = summary(data.expand(totals))
    return drawn


def resampled(counts: npt.NDArray[np.intp], size: int, rng: np.random.Generator) -> FloatArray:
    """How often each distinct unit occurs in `size` resamples (size, units) of as many units as there are.

    Drawn unit by unit where the units are few for their kinds, which is faster; else as multinomial counts.
    """
    n, kinds = int(counts.sum()), len(counts)
    if n > ONE_BY_ONE * kinds:
        return rng.multinomial(n, counts / n, size=size).astype(np.float64)
    units = np.repeat(np.arange(kinds), counts)
    found = np.empty((size, kinds))
    step = max(1, DRAWS_AT_ONCE // n)
    for start in range(0, size, step):
        rows = min(step, size - start)
        drawn = units[rng.integers(0, n, (rows, n))] + kinds * np.arange(rows)[:, None]
        found[start : start + rows] = np.bincount(drawn.ravel(), minlength=rows * kinds).reshape(rows, kinds)
    return found


def jackknifed(summary: Summary, data: PairTables) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """The summary without one unit, for each distinct unit, and how often each occurs."""
    total = data.tables.reshape(-1)[data.cells]
    parts = np.array_split(data.units, math.ceil(len(data.units) * data.tables.size / CELLS_AT_ONCE))
    left_out = [summary(data.expand(total - part)) for part in parts]
    return np.concatenate(left_out), data.counts


def jackknife_se(left_out: FloatArray, counts: npt.NDArray[np.intp]) -> float:
    """Standard error from leave-one-out values with multiplicities. Efron and Tibshirani 1993, ch. 11."""
    n = counts.sum()
    centre = counts @ left_out / n
    return math.sqrt((n - 1) / n * float(counts @ (left_out - centre) ** 2))


def bca_interval(
    value: float, drawn: FloatArray, left_out: FloatArray, counts: npt.NDArray[np.intp], level: float
) -> tuple[float, float] | None:
    """Bias-corrected and accelerated interval; None where the replicates cannot place the value. Efron 1987.

    The bias correction counts replicates equal to the value half.
    """
    defined = drawn[np.isfinite(drawn)]
    tolerance = 1e-12
    below = (np.mean(defined < value - tolerance) + np.mean(defined <= value + tolerance)) / 2 if len(defined) else 0
    if not 0 < below < 1 or np.ptp(defined) <= tolerance:
        return None
    normal = NormalDist()
    shift, acceleration = normal.inv_cdf(float(below)), bca_acceleration(left_out, counts)
    z = normal_quantile(level)
    tails = [normal.cdf(shift + (shift + side) / (1 - acceleration * (shift + side))) for side in (-z, z)]
    low, high = np.quantile(defined, tails)
    return float(low), float(high)


def bca_acceleration(left_out: FloatArray, counts: npt.NDArray[np.intp]) -> float:
    """The acceleration of BCa from leave-one-out values with multiplicities."""
    kept = np.isfinite(left_out)
    weights = counts[kept]
    away = weights @ left_out[kept] / weights.sum() - left_out[kept]
    spread = float(weights @ away**2)
    return float(weights @ away**3) / (6 * spread**1.5) if spread > 0 else 0.0


def size_limits(data: PairTables) -> tuple[str | None, tuple[str, ...]]:
    """Why an agreement coefficient of these data gets no interval, if so, and warnings about small samples."""
    if data.n < MINIMUM_N:
        return f"n_below_{MINIMUM_N}", ()
    warnings = ("small_sample",) if data.n < SMALL_N else ()
    if data.n_clusters is None:
        return None, warnings
    if data.n_clusters < TOO_FEW_CLUSTERS:
        return f"fewer_than_{TOO_FEW_CLUSTERS}_clusters", warnings
    return None, warnings + cluster_warnings(data.n_clusters)


def table_estimate(
    statistic: Statistic,
    data: PairTables,
    *,
    reason: str = "single_class",
    level: float = 0.95,
    seed: int = 0,
    replicates: int = 9999,
) -> Estimate:
    """An agreement coefficient with a percentile bootstrap interval over items, or over clusters.

    The mean over rater pairs when there are several. Rules for small, degenerate and large data: `summary_estimate`.
    """
    summary = over_pairs(statistic, data)
    return summary_estimate(summary, data, reason=reason, level=level, seed=seed, replicates=replicates)


def summary_estimate(
    summary: Summary, data: PairTables, *, reason: str, level: float, seed: int, replicates: int
) -> Estimate:
    """One number from the tables of all rater pairs (r, P, K, K), with a percentile bootstrap interval.

    No items: undefined `no_data`; a value that does not exist: undefined with `reason`; fewer than 10 items or 5
    clusters: value only. From 10,000 units with at least 100 disagreements the interval is value +- z times the
    jackknife standard error, which the bootstrap reproduces to three digits there.
    """
    if data.n == 0:
        return undefined("no_data", n_dropped=data.n_dropped)
    value = float(summary(data.tables[None])[0])
    if not math.isfinite(value):
        return undefined(reason, n=data.n, n_dropped=data.n_dropped)
    too_small, warnings = size_limits(data)
    known: dict[str, Any] = {
        "value": value, "level": level, "n": data.n, "n_dropped": data.n_dropped, "n_clusters": data.n_clusters,
        "warnings": warnings,
    }  # fmt: skip
    if too_small:
        return Estimate(**known, status="insufficient", reason=too_small)
    if large(data) and (se := jackknife_se(*jackknifed(summary, data))) > 0:
        half = normal_quantile(level) * se
        return Estimate(**known, se=se, ci_low=value - half, ci_high=value + half, method="jackknife")
    drawn = replicated(summary, data, seed=seed, replicates=replicates)
    return percentile_estimate(
        drawn, known | {"method": "bootstrap_percentile", "seed": seed, "replicates": replicates}
    )


def large(data: PairTables) -> bool:
    """Whether the jackknife normal interval stands in for the bootstrap."""
    return int(data.counts.sum()) >= JACKKNIFE_FROM and data.disagreements >= JACKKNIFE_DISAGREEMENTS


def fisher_interval(value: float, z_se: float, level: float = 0.95) -> tuple[float, float]:
    """tanh(atanh(value) +- z times `z_se`), for a correlation strictly between -1 and 1. Fisher 1921."""
    centre, half = math.atanh(value), normal_quantile(level) * z_se
    return math.tanh(centre - half), math.tanh(centre + half)
