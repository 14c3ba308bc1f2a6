"""Rates of a judge against people: shares with their own denominators, signed bias, binary rates, AUC."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import (
    Estimate,
    FloatArray,
    cluster_warnings,
    constant_mean,
    normal_quantile,
    present,
    proportion,
    t_quantile,
    undefined,
    wilson_bounds,
    wilson_effective,
)
from calibration.resampling import PairTables, one_table, table_estimate


def cell_share(
    data: PairTables, numerator: npt.ArrayLike, denominator: npt.ArrayLike | None = None, *, level: float = 0.95
) -> Estimate:
    """The share of label pairs in the numerator cells among those in the denominator cells (default: all).

    Both are K x K masks. Wilson interval; with several humans or clusters Wilson at the effective sample size of the
    ratio estimate over items or clusters. Empty denominator: undefined `empty_denominator`.
    """
    top, bottom = _cell_sums(data, numerator, denominator)
    n = int(data.counts @ bottom)
    if n == 0:
        return undefined("empty_denominator", n_dropped=data.n_dropped, method="wilson")
    hits = int(data.counts @ top)
    if data.independent:
        return proportion(hits, n, level=level, n_dropped=data.n_dropped)
    share, units = hits / n, int(data.counts[bottom > 0].sum())
    known: dict[str, Any] = {
        "value": share, "level": level, "n": n, "n_dropped": data.n_dropped, "n_clusters": units,
        "method": "wilson_effective_n", "warnings": cluster_warnings(units),
    }  # fmt: skip
    if units < 2:
        return Estimate(**known, status="insufficient", reason="one_cluster")
    se = _ratio_se(top - share * bottom, data.counts, n, units)
    low, high = wilson_effective(share, se, n, units, level)
    return Estimate(**known, se=se, ci_low=low, ci_high=high)


def cell_mean(data: PairTables, values: npt.ArrayLike, bounds: tuple[float, float], *, level: float = 0.95) -> Estimate:
    """The mean over label pairs of a value that depends on the cell (K x K), with a t interval.

    `bounds` are the ends of what the value can be: they carry the interval when every pair has the same value. With
    several humans or clusters the standard error is CR1 over items or clusters. No pairs: undefined `no_values`.
    """
    top, bottom = _cell_sums(data, values, None)
    n, units = int(data.counts @ bottom), int(data.counts.sum())
    if n == 0:
        return undefined("no_values", n_dropped=data.n_dropped)
    centre = float(data.counts @ top) / n
    known: dict[str, Any] = {
        "value": centre, "level": level, "n": n, "n_clusters": None if data.independent else units,
        "n_dropped": data.n_dropped, "warnings": () if data.independent else cluster_warnings(units),
    }  # fmt: skip
    if units < 2:
        return Estimate(**known, status="insufficient", reason="one_value" if n == 1 else "one_cluster")
    filled = np.broadcast_to(np.asarray(values, dtype=np.float64), data.tables.shape)[data.tables > 0]
    if np.ptp(filled) == 0:
        return constant_mean(known, units, bounds)
    se = _ratio_se(top - centre * bottom, data.counts, n, units)
    method = "t" if data.independent else "t_cr1"
    if se <= 1e-12 * np.ptp(filled):
        return Estimate(**known, se=se, method=method, status="insufficient", reason="zero_variance")
    half = t_quantile(level, units - 1) * se
    return Estimate(**known, se=se, ci_low=centre - half, ci_high=centre + half, method=method)


def _cell_sums(
    data: PairTables, values: npt.ArrayLike, denominator: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Per unit: the sum of `values` over its label pairs, and how many of them count."""
    shape = data.tables.shape
    ones = np.ones(shape[1:]) if denominator is None else np.asarray(denominator, dtype=np.float64)
    per_cell = np.broadcast_to(np.asarray(values, dtype=np.float64), shape).ravel()[data.cells]
    counted = np.broadcast_to(ones, shape).ravel()[data.cells]
    return data.units @ (per_cell * counted), data.units @ counted


def _ratio_se(errors: FloatArray, counts: npt.NDArray[np.intp], n: int, units: int) -> float:
    """CR1 standard error of a ratio of sums over units; with one pair per unit the usual one of a mean."""
    return math.sqrt(units / (units - 1) * float(counts @ errors**2)) / n


def binary_rates(
    data: PairTables | npt.ArrayLike, *, level: float = 0.95, seed: int = 0, replicates: int = 9999
) -> dict[str, Estimate]:
    """Rates of a 2 x 2 table (rows = judge, columns = human); the last label is the positive one.

    Sensitivity, specificity, PPV, NPV and prevalence with Wilson intervals on their own denominators; F1, MCC and
    balanced accuracy with a bootstrap of items. PPV and NPV hold for this prevalence only. A rate with an empty
    denominator is undefined, MCC with an empty margin too.
    """
    data = data if isinstance(data, PairTables) else one_table(data)
    if data.tables.shape[-1] != 2:
        raise CalibrationError(f"the table has {data.tables.shape[-1]} labels: binary rates need exactly two")
    true_positive, true_negative = np.array([[0, 0], [0, 1]]), np.array([[1, 0], [0, 0]])
    judged_positive, human_positive = np.array([[0, 0], [1, 1]]), np.array([[0, 1], [0, 1]])
    options: dict[str, Any] = {"level": level, "seed": seed, "replicates": replicates}
    return {
        "sensitivity": cell_share(data, true_positive, human_positive, level=level),
        "specificity": cell_share(data, true_negative, 1 - human_positive, level=level),
        "ppv": cell_share(data, true_positive, judged_positive, level=level),
        "npv": cell_share(data, true_negative, 1 - judged_positive, level=level),
        "f1": table_estimate(_f1, data, reason="no_positives", **options),
        "mcc": table_estimate(_mcc, data, reason="empty_margin", **options),
        "balanced_accuracy": table_estimate(_balanced_accuracy, data, reason="empty_margin", **options),
        "prevalence": cell_share(data, human_positive, level=level),
    }


def _f1(t: FloatArray) -> FloatArray:
    return _divide(2 * t[..., 1, 1], 2 * t[..., 1, 1] + t[..., 0, 1] + t[..., 1, 0])


def _mcc(t: FloatArray) -> FloatArray:
    margins = t.sum(-1).prod(-1) * t.sum(-2).prod(-1)
    return _divide(t[..., 1, 1] * t[..., 0, 0] - t[..., 0, 1] * t[..., 1, 0], np.sqrt(margins))


def _balanced_accuracy(t: FloatArray) -> FloatArray:
    return (_divide(t[..., 1, 1], t[..., :, 1].sum(-1)) + _divide(t[..., 0, 0], t[..., :, 0].sum(-1))) / 2


def _divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator == 0, np.nan, numerator / denominator)


def auc(
    scores: Sequence[float | None] | npt.NDArray[Any], positives: Sequence[bool | None], *, level: float = 0.95
) -> Estimate:
    """Probability that a positive item scores above a negative one, ties half; 0.5 is chance.

    Items with a missing score or label are dropped. Interval: DeLong variance on the logit scale; when no pair of
    items is out of order (or every pair is), Wilson with the smaller group as n. One class: undefined `single_class`;
    fewer than 10 items: value only. DeLong, DeLong and Clarke-Pearson 1988.
    """
    numbers, has_score = present(scores, "scores")
    labels, has_label = present(positives, "positives")
    if len(has_score) != len(has_label):
        raise CalibrationError(f"scores has {len(has_score)} entries, positives {len(has_label)}: one per item")
    if not np.isin(labels, (0, 1)).all():
        raise CalibrationError("positives holds values other than true and false")
    kept = has_score & has_label
    numbers, labels = numbers[kept[has_score]], labels[kept[has_label]]
    n, n_dropped = len(numbers), int((~kept).sum())
    good, bad = np.sort(numbers[labels == 1]), np.sort(numbers[labels == 0])
    if len(good) == 0 or len(bad) == 0:
        return undefined("single_class" if n else "no_data", n=n, n_dropped=n_dropped)
    beaten, outdone = _placements(good, bad), 1 - _placements(bad, good)
    value = float(beaten.mean())
    known: dict[str, Any] = {"value": value, "level": level, "n": n, "n_dropped": n_dropped}
    if n < 10 or min(len(good), len(bad)) < 2:
        return Estimate(**known, status="insufficient", reason="n_below_10" if n < 10 else "one_of_a_class")
    se = math.sqrt(beaten.var(ddof=1) / len(good) + outdone.var(ddof=1) / len(bad))
    if se == 0 or value in (0.0, 1.0):
        smaller = min(len(good), len(bad))
        low, high = wilson_bounds(value * smaller, smaller, level)
        return Estimate(**known, se=se, ci_low=low, ci_high=high, method="wilson_zero_variance")
    half = normal_quantile(level) * se / (value * (1 - value))
    centre = math.log(value / (1 - value))
    low, high = (1 / (1 + math.exp(-edge)) for edge in (centre - half, centre + half))
    return Estimate(**known, se=se, ci_low=low, ci_high=high, method="delong_logit")


def _placements(these: FloatArray, others: FloatArray) -> FloatArray:
    """For each of `these`: the share of sorted `others` below it, ties half."""
    below = np.searchsorted(others, these, side="left") + np.searchsorted(others, these, side="right")
    shares: FloatArray = below / (2 * len(others))
    return shares
