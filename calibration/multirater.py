"""Agreement among any number of raters, with missing labels: Krippendorff's alpha and Fleiss' kappa."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray, cluster_codes, undefined
from calibration.resampling import Codes, PairTables, distinct_rows, table_estimate
from calibration.tables import Metric, alpha_of_coincidences, scott_pi


def label_counts(codes: Codes, k: int) -> npt.NDArray[np.int64]:
    """How many raters gave each label, shape (units, K), from codes (units, raters) with -1 where missing."""
    units = len(codes)
    key = np.where(codes >= 0, codes, k) + (k + 1) * np.arange(units)[:, None]
    counts: npt.NDArray[np.int64] = np.bincount(key.ravel(), minlength=units * (k + 1)).reshape(units, k + 1)
    return counts[:, :k]


def coincidences(
    counts: npt.ArrayLike, *, clusters: Sequence[Any] | npt.NDArray[Any] | None = None
) -> tuple[PairTables, npt.NDArray[np.intp]]:
    """Coincidence matrix of the labels in use, o_ck = sum over units of (pairs c, k in the unit) / (m_u - 1).

    Units with fewer than two ratings are dropped and counted. Returns it as one table with its resampling units, and
    which labels of the scale are in use.
    """
    votes = np.asarray(counts, dtype=np.int64)
    if votes.ndim != 2 or (votes < 0).any():
        raise CalibrationError(f"counts has shape {votes.shape}: give units x labels, how many raters chose each")
    paired = votes.sum(axis=1) >= 2
    used = np.flatnonzero(votes[paired].any(axis=0))
    votes = votes[paired][:, used]
    n_clusters = None
    if clusters is None:
        rows, repeats = distinct_rows(votes, int(votes.max(initial=0)) + 1)
        units = _unit_coincidences(rows)
    else:
        codes, n_clusters = cluster_codes(clusters, paired)
        units = np.zeros((n_clusters, len(used) ** 2))
        np.add.at(units, codes, _unit_coincidences(votes))
        repeats = np.ones(n_clusters, dtype=np.intp)
    total = repeats @ units
    data = PairTables(
        tables=total.reshape(1, len(used), len(used)), units=units, counts=repeats, cells=np.arange(len(used) ** 2),
        n=len(votes), n_dropped=int((~paired).sum()), n_clusters=n_clusters,
    )  # fmt: skip
    return data, used


def _unit_coincidences(votes: npt.NDArray[np.int64]) -> FloatArray:
    pairs = votes[:, :, None] * votes[:, None, :] - votes[:, :, None] * np.eye(votes.shape[1])
    per_unit: FloatArray = pairs / (votes.sum(axis=1) - 1)[:, None, None]
    return per_unit.reshape(len(votes), votes.shape[1] ** 2)


def krippendorff_alpha(
    counts: npt.ArrayLike,
    metric: Metric = "nominal",
    *,
    values: Sequence[float] | FloatArray | None = None,
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
    level: float = 0.95,
    seed: int = 0,
    replicates: int = 9999,
) -> Estimate:
    """Krippendorff's alpha from label counts (units, K) in the order of the scale; 1 perfect, 0 chance, below 0 worse.

    Units may have any number of ratings; those with one are dropped and counted. `values` are what the labels count
    for in the interval metric (default 0..K-1). The interval bootstraps units, or clusters of them. One label in use:
    undefined `single_class`; no unit with two ratings: undefined `no_data`. Krippendorff 2011.
    """
    data, used = coincidences(counts, clusters=clusters)
    if data.n == 0:
        return undefined("no_data", n_dropped=data.n_dropped)
    worth = np.asarray(used if values is None else np.asarray(values, dtype=np.float64)[used], dtype=np.float64)
    statistic = partial(alpha_of_coincidences, metric=metric, values=worth)
    return table_estimate(statistic, data, level=level, seed=seed, replicates=replicates)


def fleiss_kappa(counts: npt.ArrayLike, *, level: float = 0.95, seed: int = 0, replicates: int = 9999) -> Estimate:
    """Fleiss' kappa from label counts (units, K), the same number of ratings in every unit. Fleiss 1971.

    Unequal numbers: undefined `unequal_raters` (alpha handles them). It is Scott's pi of the coincidence matrix.
    """
    sizes = np.asarray(counts).sum(axis=1)
    if len(sizes) == 0 or sizes[0] < 2:
        return undefined("no_data", n=len(sizes))
    if np.ptp(sizes) > 0:
        return undefined("unequal_raters", n=len(sizes))
    return table_estimate(scott_pi, coincidences(counts)[0], level=level, seed=seed, replicates=replicates)
