"""Scores without fixed levels against labels: rank correlation, and AUC when items come in clusters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.accuracy import auc
from calibration.errors import CalibrationError
from calibration.estimate import (
    CELLS_AT_ONCE,
    TOO_FEW_CLUSTERS,
    Estimate,
    FloatArray,
    cluster_codes,
    cluster_warnings,
    percentile_estimate,
    present,
    undefined,
)
from calibration.resampling import JACKKNIFE_FROM, MINIMUM_N, SMALL_N, fisher_interval

Numbers = Sequence[float | None] | npt.NDArray[Any]
Weighted = Callable[[FloatArray], FloatArray]


def rank_correlation(
    scores: Numbers,
    labels: Numbers,
    *,
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
    level: float = 0.95,
    seed: int = 0,
    replicates: int = 9999,
) -> Estimate:
    """Spearman's rho of any numbers with any numbers, ties by midranks, -1..1.

    Items where either is None are dropped and counted. Percentile bootstrap over items, or over whole clusters; from
    10,000 independent items the Fisher z interval of Bonett and Wright 2000. A constant side: undefined
    `constant_input`; fewer than 10 items or 5 clusters: value only. Says nothing about leniency.
    """
    x, y, groups, n_dropped = _paired(scores, labels, clusters)
    if len(x) == 0:
        return undefined("no_data", n_dropped=n_dropped)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return undefined("constant_input", n=len(x), n_dropped=n_dropped)

    def rho(weights: FloatArray) -> FloatArray:
        half = weights.sum(axis=1, keepdims=True) / 2
        dx, dy = _midranks(x, weights) - half, _midranks(y, weights) - half
        spread = np.sqrt((weights * dx**2).sum(axis=1) * (weights * dy**2).sum(axis=1))
        with np.errstate(invalid="ignore", divide="ignore"):
            found: FloatArray = (weights * dx * dy).sum(axis=1) / np.where(spread > 0, spread, np.nan)
        return np.clip(found, -1, 1)

    value = float(rho(np.ones((1, len(x))))[0])
    if clusters is None and len(x) >= JACKKNIFE_FROM and abs(value) < 1:
        z_se = math.sqrt((1 + value**2 / 2) / (len(x) - 3))
        low, high = fisher_interval(value, z_se, level)
        return Estimate(
            value=value, se=z_se * (1 - value**2), ci_low=low, ci_high=high, level=level, method="fisher_z",
            n=len(x), n_dropped=n_dropped,
        )  # fmt: skip
    return _resampled(rho, value, groups, n_dropped, level=level, seed=seed, replicates=replicates)


def clustered_auc(
    scores: Numbers,
    positives: Sequence[bool | None],
    *,
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
    level: float = 0.95,
    seed: int = 0,
    replicates: int = 9999,
) -> Estimate:
    """AUC as in `auc`; with clusters the interval is a percentile bootstrap over whole clusters."""
    plain = auc(scores, positives, level=level)
    if clusters is None or plain.value is None or plain.n < MINIMUM_N:
        return plain
    x, y, groups, n_dropped = _paired(scores, positives, clusters)

    def area(weights: FloatArray) -> FloatArray:
        good, bad = _masses(x, weights * (y == 1)), _masses(x, weights * (y == 0))
        above = (good * (np.cumsum(bad, axis=1) - bad / 2)).sum(axis=1)
        pairs = good.sum(axis=1) * bad.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares: FloatArray = above / np.where(pairs > 0, pairs, np.nan)
        return shares

    found = _resampled(area, plain.value, groups, n_dropped, level=level, seed=seed, replicates=replicates)
    return plain if found.reason == "zero_variance" else replace(found, n=plain.n)


def _paired(
    scores: Numbers, labels: Any, clusters: Sequence[Any] | npt.NDArray[Any] | None
) -> tuple[FloatArray, FloatArray, tuple[npt.NDArray[np.intp], int | None], int]:
    """Numbers of the items that have both, the resampling unit of each, and how many items were dropped."""
    x, has_x = present(scores, "scores")
    y, has_y = present(labels, "labels")
    if len(has_x) != len(has_y):
        raise CalibrationError(f"scores has {len(has_x)} entries, labels {len(has_y)}: one per item")
    kept = has_x & has_y
    x, y = x[kept[has_x]], y[kept[has_y]]
    if clusters is None:
        return x, y, (np.arange(len(x)), None), int((~kept).sum())
    return x, y, cluster_codes(clusters, kept), int((~kept).sum())


def _masses(x: FloatArray, weights: FloatArray) -> FloatArray:
    """Weight of each distinct value of x, ascending: (replicates, items) to (replicates, values)."""
    order = np.argsort(x, kind="stable")
    starts = np.flatnonzero(np.diff(x[order], prepend=-math.inf))
    masses: FloatArray = np.add.reduceat(weights[:, order], starts, axis=1)
    return masses


def _midranks(x: FloatArray, weights: FloatArray) -> FloatArray:
    mass = _masses(x, weights)
    return (np.cumsum(mass, axis=1) - mass / 2)[:, np.unique(x, return_inverse=True)[1]]


def _weights(groups: npt.NDArray[np.intp], seed: int, replicates: int) -> Iterator[FloatArray]:
    """How often each item occurs in bootstrap samples of its units, some replicates at a time."""
    rng, units = np.random.default_rng(seed), int(groups.max()) + 1
    step = max(1, CELLS_AT_ONCE // (8 * len(groups)))
    for start in range(0, replicates, step):
        drawn = rng.multinomial(units, np.full(units, 1 / units), size=min(step, replicates - start))
        yield drawn[:, groups].astype(np.float64)


def _resampled(
    statistic: Weighted,
    value: float,
    groups: tuple[npt.NDArray[np.intp], int | None],
    n_dropped: int,
    *,
    level: float,
    seed: int,
    replicates: int,
) -> Estimate:
    codes, n_clusters = groups
    warnings = () if n_clusters is None else cluster_warnings(n_clusters)
    known: dict[str, Any] = {
        "value": value, "level": level, "n": len(codes), "n_clusters": n_clusters, "n_dropped": n_dropped,
        "warnings": (*(("small_sample",) if len(codes) < SMALL_N else ()), *warnings),
    }  # fmt: skip
    if len(codes) < MINIMUM_N:
        return Estimate(**known, status="insufficient", reason=f"n_below_{MINIMUM_N}")
    if n_clusters is not None and n_clusters < TOO_FEW_CLUSTERS:
        return Estimate(**known, status="insufficient", reason=f"fewer_than_{TOO_FEW_CLUSTERS}_clusters")
    drawn = np.concatenate([statistic(weights) for weights in _weights(codes, seed, replicates)])
    return percentile_estimate(
        drawn, known | {"method": "bootstrap_percentile", "seed": seed, "replicates": replicates}
    )
