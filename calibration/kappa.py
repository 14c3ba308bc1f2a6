"""Cohen's kappa with the interval that simulations chose: BCa, or a smoothed bootstrap where agreement is near perfect.

Plain intervals collapse to [1, 1] in the perfect-agreement sample and do not exist in the one-class sample; both are
common with 20 labels. spec: spec/calibration.md 1.3 (our own construction, supported by coverage simulations).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.estimate import Estimate, FloatArray, normal_quantile, replicate_warnings, undefined, wilson_bounds
from calibration.resampling import (
    PairTables,
    bca_interval,
    jackknifed,
    large,
    one_table,
    over_pairs,
    replicated,
    size_limits,
    table_estimate,
)
from calibration.tables import Weights, cohen_kappa, weight_matrix

SMOOTH_BELOW = 100
FEW_DISAGREEMENTS = 5


def kappa(
    data: PairTables | npt.ArrayLike,
    weights: Weights = "none",
    *,
    level: float = 0.95,
    seed: int = 0,
    replicates: int = 9999,
) -> Estimate:
    """Cohen's kappa of a judge and a human (table: rows = judge, columns = human), -1..1.

    `se` is the large-sample one. Interval: unweighted with 5 or more disagreements BCa; with fewer the smoothed
    bootstrap united with the Wilson map; weighted the smoothed bootstrap below 100 items or 5 disagreements, else BCa.
    With clusters, or several humans (mean over them), a bootstrap of clusters or items, `se` from it.
    Both raters one same category: undefined `single_class`. Fewer than 10 items: value only. On two labels all weights
    are the same coefficient and get the same interval.
    Cohen 1960, 1968; Fleiss, Cohen and Everitt 1969; Efron 1987.
    """
    data = data if isinstance(data, PairTables) else one_table(data)
    weights = "none" if data.tables[0].shape[0] == 2 else weights
    statistic = partial(cohen_kappa, weights=weights)
    if len(data.tables) > 1 or data.n_clusters is not None:
        return table_estimate(statistic, data, level=level, seed=seed, replicates=replicates)
    if data.n == 0:
        return undefined("no_data", n_dropped=data.n_dropped)
    table = data.tables[0]
    value = float(cohen_kappa(table, weights))
    if not math.isfinite(value):
        return undefined("single_class", n=data.n, n_dropped=data.n_dropped)
    too_small, warnings = size_limits(data)
    known: dict[str, Any] = {
        "value": value, "se": math.sqrt(kappa_variance(table, weights)), "level": level, "n": data.n,
        "n_dropped": data.n_dropped, "warnings": warnings + _table_warnings(table),
    }  # fmt: skip
    if too_small:
        return Estimate(**known, status="insufficient", reason=too_small)
    if large(data) and known["se"] > 0:
        half = normal_quantile(level) * known["se"]
        return Estimate(**known, ci_low=value - half, ci_high=value + half, method="large_sample")
    known |= {"seed": seed, "replicates": replicates}
    if data.disagreements >= FEW_DISAGREEMENTS and (weights == "none" or data.n >= SMOOTH_BELOW):
        summary = over_pairs(statistic, data)
        drawn = replicated(summary, data, seed=seed, replicates=replicates)
        interval = bca_interval(value, drawn, *jackknifed(summary, data), level)
        if interval is not None:
            known["warnings"] += replicate_warnings(int(np.isfinite(drawn).sum()), replicates)
            return Estimate(**known, ci_low=interval[0], ci_high=interval[1], method="bootstrap_bca")
    low, high = smoothed_bootstrap(table, weights, level=level, seed=seed, replicates=replicates)
    method = "bootstrap_smoothed"
    if weights == "none" and data.disagreements < FEW_DISAGREEMENTS:
        mapped = wilson_map(table, level)
        low, high, method = min(low, mapped[0]), max(high, mapped[1]), "bootstrap_smoothed+wilson_map"
    return Estimate(**known, ci_low=low, ci_high=high, method=method)


def _table_warnings(table: FloatArray) -> tuple[str, ...]:
    n, agreed = int(table.sum()), int(np.trace(table))
    perfect = ("perfect_agreement_small_sample",) if agreed == n and n < SMOOTH_BELOW else ()
    constant = ("judge_constant",) if (table.sum(axis=1) > 0).sum() == 1 else ()
    return perfect + constant


def kappa_variance(table: FloatArray, weights: Weights = "none", *, n: float | None = None) -> float:
    """Large-sample variance of kappa, any weights; `n` items when the table holds shares. Fleiss et al. 1969."""
    p, w, expected, margins = _parts(table, weights)
    value = (float((w * p).sum()) - expected) / (1 - expected)
    spread = float((p * (w - margins * (1 - value)) ** 2).sum()) - (value - expected * (1 - value)) ** 2
    return max(spread, 0.0) / (float(n or table.sum()) * (1 - expected) ** 2)


def kappa_null_variance(table: FloatArray, weights: Weights = "none") -> float:
    """Large-sample variance of kappa if the raters were independent. Fleiss, Cohen and Everitt 1969."""
    p, w, expected, margins = _parts(table, weights)
    independent = np.outer(p.sum(axis=1), p.sum(axis=0))
    spread = float((independent * (w - margins) ** 2).sum()) - expected**2
    return max(spread, 0.0) / (float(table.sum()) * (1 - expected) ** 2)


def _parts(table: FloatArray, weights: Weights) -> tuple[FloatArray, FloatArray, float, FloatArray]:
    """Shares, weights, chance agreement, and for each cell the mean weights of its row and column added."""
    p, w = table / table.sum(), weight_matrix(len(table), weights)
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    return p, w, float(rows @ w @ columns), (w @ columns)[:, None] + (rows @ w)[None, :]


def smoothed_table(table: FloatArray) -> FloatArray:
    """Shares after one pseudo-observation, half on the diagonal and half on independence."""
    n, k = table.sum(), len(table)
    rows = (table.sum(axis=1) + 0.5) / (n + k / 2)
    columns = (table.sum(axis=0) + 0.5) / (n + k / 2)
    pseudo = 0.5 * np.diag((rows + columns) / 2) + 0.5 * np.outer(rows, columns)
    shares: FloatArray = (table + pseudo) / (n + 1)
    return shares


def smoothed_bootstrap(
    table: FloatArray, weights: Weights, *, level: float, seed: int, replicates: int
) -> tuple[float, float]:
    """Percentile interval of kappa over tables drawn from the smoothed shares."""
    k = len(table)
    shares = smoothed_table(table).ravel()
    drawn = np.random.default_rng(seed).multinomial(int(table.sum()), shares / shares.sum(), size=replicates)
    tables = np.moveaxis(np.ascontiguousarray(drawn.T, dtype=np.float64).reshape(k, k, replicates), -1, 0)
    values = cohen_kappa(tables, weights)
    tail = (1 - level) / 2
    low, high = np.quantile(values[np.isfinite(values)], [tail, 1 - tail])
    return float(low), float(high)


def wilson_map(table: FloatArray, level: float = 0.95) -> tuple[float, float]:
    """The Wilson interval of percent agreement carried to the kappa scale with smoothed chance; unweighted only."""
    low, high = wilson_bounds(float(np.trace(table)), float(table.sum()), level)
    shares = smoothed_table(table)
    expected = float(shares.sum(axis=1) @ shares.sum(axis=0))
    return max(-1.0, (low - expected) / (1 - expected)), min(1.0, (high - expected) / (1 - expected))
