"""Pearson's r and Lin's concordance with Fisher-z intervals; resampled when labels come in clusters."""

from __future__ import annotations

import math
from functools import partial

from calibration.estimate import Estimate, FloatArray
from calibration.resampling import MINIMUM_N, SMALL_N, PairTables, Statistic, fisher_interval, table_estimate
from calibration.tables import lin_ccc, moments, pearson


def pearson_estimate(
    data: PairTables, values: FloatArray, *, level: float = 0.95, seed: int = 0, replicates: int = 9999
) -> Estimate:
    """Pearson's r of two raters whose labels count for `values`; interval from Fisher's z, 1 / sqrt(n - 3).

    Several humans, clusters, fewer than 10 items or |r| = 1: as any table statistic. A constant rater: undefined
    `constant_input`. Says nothing about leniency: read it beside mean_bias. Fisher 1921.
    """
    statistic = partial(pearson, x=values, y=values)
    value = _plain_value(statistic, data)
    if value is None:
        return table_estimate(statistic, data, reason="constant_input", level=level, seed=seed, replicates=replicates)
    return _fisher(value, 1 / math.sqrt(data.n - 3), data, level)


def ccc_estimate(
    data: PairTables, values: FloatArray, *, level: float = 0.95, seed: int = 0, replicates: int = 9999
) -> Estimate:
    """Lin's concordance correlation (ddof 0) of two raters; interval from its own z variance. Lin 1989.

    Several humans, clusters, fewer than 10 items, a constant rater or |ccc| = 1: as any table statistic. Both raters
    one same value: undefined `single_class`.
    """
    statistic = partial(lin_ccc, x=values)
    value = _plain_value(statistic, data)
    variance = None if value is None else _ccc_z_variance(data.tables[0], values, value)
    if value is None or variance is None:
        return table_estimate(statistic, data, level=level, seed=seed, replicates=replicates)
    return _fisher(value, math.sqrt(variance), data, level)


def _plain_value(statistic: Statistic, data: PairTables) -> float | None:
    """The value when Fisher's interval holds for it: one pair of raters, no clusters, 10 items, not -1 or 1."""
    if not data.independent or data.n < MINIMUM_N:
        return None
    value = float(statistic(data.tables[0]))
    return value if abs(value) < 1 - 1e-12 else None


def _fisher(value: float, z_se: float, data: PairTables, level: float) -> Estimate:
    low, high = fisher_interval(value, z_se, level)
    return Estimate(
        value=value, se=z_se * (1 - value**2), ci_low=low, ci_high=high, level=level, method="fisher_z",
        n=data.n, n_dropped=data.n_dropped, warnings=("small_sample",) if data.n < SMALL_N else (),
    )  # fmt: skip


def _ccc_z_variance(table: FloatArray, values: FloatArray, ccc: float) -> float | None:
    """Variance of atanh(CCC); None when a rater is constant or the correlation is 0. Lin 1989."""
    mean_x, mean_y, variance_x, variance_y, covariance = (float(part) for part in moments(table, values, values))
    if variance_x * variance_y == 0 or covariance == 0:
        return None
    scale = math.sqrt(variance_x * variance_y)
    rho, u2 = covariance / scale, (mean_x - mean_y) ** 2 / scale
    shrink = 1 - ccc**2
    terms = (1 - rho**2) * ccc**2 / (shrink * rho**2) + 2 * ccc**3 * (1 - ccc) * u2 / (rho * shrink**2)
    variance = (terms - ccc**4 * u2**2 / (2 * rho**2 * shrink**2)) / (float(table.sum()) - 2)
    return variance if variance > 0 else None
