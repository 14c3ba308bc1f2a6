"""Agreement formulas on contingency tables: rows = judge, columns = human, categories in the order of the scale.

Every function takes tables of shape (..., K, K), counts or shares, and returns values of shape (...): one table, or
thousands of bootstrap tables in one call. A value that does not exist (0 / 0) is NaN here and becomes an undefined
Estimate with a reason one floor up; nothing else lets a NaN out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import FloatArray

Weights = Literal["none", "linear", "quadratic"]
Metric = Literal["nominal", "ordinal", "interval"]


def table_of(judge: npt.NDArray[np.integer], human: npt.NDArray[np.integer], k: int) -> FloatArray:
    """The K x K counts of two raters' category numbers (0..K-1), all present."""
    counts = np.bincount(judge.astype(np.int64) * k + human, minlength=k * k)
    return counts.reshape(k, k).astype(np.float64)


def weight_matrix(k: int, weights: Weights) -> FloatArray:
    """Agreement weights: identity, 1 - |i-j| / (K-1), or 1 - ((i-j) / (K-1))^2. Cohen 1968."""
    if weights not in ("none", "linear", "quadratic"):
        raise CalibrationError(f"weights is {weights!r}: choose none, linear or quadratic")
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / (k - 1)
    return {"none": np.eye(k), "linear": 1 - distance, "quadratic": 1 - distance**2}[weights]


def _margins(tables: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Row and column shares and the total; shares come from summed counts so that a full margin is exactly 1."""
    rows, columns = tables.sum(-1), tables.sum(-2)
    total = rows.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return rows / total[..., None], columns / total[..., None], total


def _shares(tables: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Cell shares, row shares, column shares."""
    rows, columns, total = _margins(tables)
    with np.errstate(invalid="ignore", divide="ignore"):
        return tables / total[..., None, None], rows, columns


def _agreed(tables: FloatArray, weights: Weights, total: FloatArray) -> FloatArray:
    """The weighted share of agreement; the diagonal alone when unweighted."""
    weighted = tables * weight_matrix(tables.shape[-1], weights) if weights != "none" else None
    hits = np.einsum("...ii->...", tables) if weighted is None else weighted.sum((-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        share: FloatArray = hits / total
    return share


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator == 0, np.nan, numerator / denominator)


def percent_agreement(tables: FloatArray) -> FloatArray:
    """Share of items with the same label from both raters, 0..1."""
    return _agreed(tables, "none", tables.sum((-2, -1)))


def cohen_kappa(tables: FloatArray, weights: Weights = "none") -> FloatArray:
    """Cohen's kappa, -1..1; undefined when both raters used one and the same category. Cohen 1960, 1968."""
    rows, columns, total = _margins(tables)
    observed = _agreed(tables, weights, total)
    expected = ((rows @ weight_matrix(tables.shape[-1], weights)) * columns).sum(-1)
    return _ratio(observed - expected, 1 - expected)


def kappa_max(tables: FloatArray) -> FloatArray:
    """The largest unweighted kappa that these margins allow."""
    rows, columns, _ = _margins(tables)
    expected = (rows * columns).sum(-1)
    return _ratio(np.minimum(rows, columns).sum(-1) - expected, 1 - expected)


def scott_pi(tables: FloatArray) -> FloatArray:
    """Scott's pi: chance agreement from the pooled margins; undefined for a single category. Scott 1955."""
    rows, columns, total = _margins(tables)
    observed = _agreed(tables, "none", total)
    expected = (((rows + columns) / 2) ** 2).sum(-1)
    return _ratio(observed - expected, 1 - expected)


def gwet_ac(tables: FloatArray, weights: Weights = "none") -> FloatArray:
    """Gwet's AC1 (AC2 with weights); K comes from the declared scale, so one used category gives 1. Gwet 2008."""
    k = tables.shape[-1]
    rows, columns, total = _margins(tables)
    w, pooled = weight_matrix(k, weights), (rows + columns) / 2
    observed = _agreed(tables, weights, total)
    expected = w.sum() / (k * (k - 1)) * (pooled * (1 - pooled)).sum(-1)
    return _ratio(observed - expected, 1 - expected)


def pabak(tables: FloatArray) -> FloatArray:
    """Prevalence- and bias-adjusted kappa (K p_o - 1) / (K - 1). Byrt et al. 1993; Brennan and Prediger 1981."""
    k = int(tables.shape[-1])
    return (k * percent_agreement(tables) - 1) / (k - 1)


def prevalence_index(tables: FloatArray) -> FloatArray:
    """|a - d| / n of 2 x 2 tables, 0..1. Byrt et al. 1993."""
    p, _, _ = _shares(tables)
    return np.abs(p[..., 0, 0] - p[..., 1, 1])


def bias_index(tables: FloatArray) -> FloatArray:
    """|b - c| / n of 2 x 2 tables, 0..1; the sign is in mean_bias. Byrt et al. 1993."""
    p, _, _ = _shares(tables)
    return np.abs(p[..., 0, 1] - p[..., 1, 0])


def pearson(tables: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson's r when row i stands for x[..., i] and column j for y[..., j]; undefined for a constant rater."""
    _, _, variance_x, variance_y, covariance = moments(tables, x, y)
    scale = np.sqrt(variance_x * variance_y)
    return np.clip(_ratio(covariance, scale), -1, 1)


def lin_ccc(tables: FloatArray, x: FloatArray) -> FloatArray:
    """Lin's concordance correlation (ddof 0): the quadratic kappa when values are evenly spaced. Lin 1989."""
    mean_x, mean_y, variance_x, variance_y, covariance = moments(tables, x, x)
    return _ratio(2 * covariance, variance_x + variance_y + (mean_x - mean_y) ** 2)


def moments(tables: FloatArray, x: FloatArray, y: FloatArray) -> tuple[FloatArray, ...]:
    """Means, variances (ddof 0) and covariance of row values and column values."""
    p, rows, columns = _shares(tables)
    mean_x, mean_y = (rows * x).sum(-1), (columns * y).sum(-1)
    dx, dy = x - mean_x[..., None], y - mean_y[..., None]
    covariance = np.einsum("...ij,...i,...j->...", p, dx, dy)
    return mean_x, mean_y, (rows * dx**2).sum(-1), (columns * dy**2).sum(-1), covariance


def spearman(tables: FloatArray) -> FloatArray:
    """Spearman's rho with midranks: Pearson's r of the ranks that the margins give to each category."""
    rows, columns, _ = _margins(tables)
    return pearson(tables, midranks(rows), midranks(columns))


def midranks(shares: FloatArray) -> FloatArray:
    """The middle of each category's block of ranks, as a share of all items."""
    below: FloatArray = np.cumsum(shares, axis=-1)
    return below - shares / 2


def kendall_tau_b(tables: FloatArray) -> FloatArray:
    """Kendall's tau-b: concordant minus discordant pairs over the pairs untied in each rater. Kendall 1945."""
    p, rows, columns = _shares(tables)
    concordant = (p[..., :-1, :-1] * _beyond(p)).sum((-2, -1))
    mirrored = p[..., ::-1]
    discordant = (mirrored[..., :-1, :-1] * _beyond(mirrored)).sum((-2, -1))
    untied = (1 - (rows**2).sum(-1)) * (1 - (columns**2).sum(-1))
    return np.clip(_ratio(2 * (concordant - discordant), np.sqrt(np.maximum(untied, 0))), -1, 1)


def _beyond(p: FloatArray) -> FloatArray:
    """For cell (i, j): the mass in rows after i and columns after j."""
    return p[..., ::-1, ::-1].cumsum(-1).cumsum(-2)[..., ::-1, ::-1][..., 1:, 1:]


def alpha_of_coincidences(coincidences: FloatArray, metric: Metric, values: Sequence[float] | FloatArray) -> FloatArray:
    """Krippendorff's alpha = 1 - D_o / D_e from coincidence matrices; undefined for a single category.

    The ordinal metric is (sum of n from c to k, less half of n_c and n_k)^2, which is the squared distance of
    midranks. Krippendorff 2011, "Computing Krippendorff's alpha-reliability".
    """
    k = coincidences.shape[-1]
    n_c = coincidences.sum(-1)
    n = n_c.sum(-1)
    if metric == "nominal":
        distance = 1 - np.eye(k)
    else:
        place = midranks(n_c) if metric == "ordinal" else np.asarray(values, dtype=np.float64)
        distance = (place[..., :, None] - place[..., None, :]) ** 2
    observed = (coincidences * distance).sum((-2, -1))
    expected = (n_c[..., :, None] * n_c[..., None, :] * distance).sum((-2, -1))
    alpha: FloatArray = 1 - (n - 1) * _ratio(observed, expected)
    return alpha


def pair_alpha(tables: FloatArray, metric: Metric, values: Sequence[float] | FloatArray) -> FloatArray:
    """Krippendorff's alpha of two raters without missing labels."""
    return alpha_of_coincidences(tables + np.swapaxes(tables, -1, -2), metric, values)
