"""Does the judge agree with itself? Repeats of the same items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray, mean, present, proportion, undefined
from calibration.intraclass import f_interval
from calibration.ratings import Ratings

FEW_ITEMS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """Repeats of a judge on the same items.

    `icc` is the reliability of one run, `icc_mean` of the mean of all runs. `flip_rate`: share of items whose repeats
    are not all the same; `pass_flip_rate`: share of items with repeats on both sides of the pass mark.
    `repeats_needed`: runs to average for the target reliability; None when the runs say nothing about the items.
    """

    icc: Estimate
    icc_mean: Estimate
    flip_rate: Estimate
    pass_flip_rate: Estimate
    pairwise_agreement: Estimate
    mean: Estimate
    repeats_needed: int | None
    target: float
    item_variance: float | None
    run_variance: float | None
    n: int
    n_dropped: int
    repeats: float
    warnings: tuple[str, ...]


def reliability(
    items: Sequence[Any],
    scores: Sequence[float | None] | npt.NDArray[Any],
    *,
    pass_mark: float | None = None,
    passed: Sequence[bool | None] | None = None,
    target: float = 0.95,
    level: float = 0.95,
) -> Reliability:
    """Reliability from one row per judgment: the item and its score (None: that repeat gave none, and is left out).

    One-way random effects, items with two repeats or more; the numbers of repeats may differ. ICC(1,1) =
    (MSB - MSW) / (MSB + (R - 1) MSW) with R = (N - sum r_i^2 / N) / (n - 1), F interval (exact when balanced and
    normal); it can be negative: then the runs say nothing about the items. Repeats that never differ: ICC 1 without
    an interval, reason `deterministic` (temperature 0, or a cache); one value everywhere: undefined. `passed` are the
    verdicts, when a mark alone does not decide them. Shrout and Fleiss 1979; Spearman-Brown for `icc_mean` and
    `repeats_needed` = ceil(t (1 - ICC) / ((1 - t) ICC)).
    """
    if not 0 < target < 1:
        raise CalibrationError(f"target is {target}: a reliability between 0 and 1, such as 0.95")
    numbers, mask = present(scores, "scores")
    if len(items) != len(mask):
        raise CalibrationError(f"items has {len(items)} entries, scores {len(mask)}: one row per judgment")
    codes = _codes(items, mask)
    counts = np.bincount(codes) if len(codes) else np.zeros(0, dtype=np.int64)
    kept = counts[codes] >= 2
    n_all = len({*items})
    x, groups = numbers[kept], np.unique(codes[kept], return_inverse=True)[1]
    n = int(groups.max()) + 1 if len(groups) else 0
    if n == 0:
        return _without_repeats(target, n_all)
    sizes = np.bincount(groups)
    means = np.bincount(groups, weights=x) / sizes
    within = float(((x - means[groups]) ** 2).sum())
    same = _ranges(x, groups, n) == 0
    verdicts = _verdicts(passed, mask, kept) if passed is not None else None if pass_mark is None else x >= pass_mark
    flips = None if verdicts is None else _ranges(verdicts.astype(np.float64), groups, n) > 0
    across = undefined("no_pass_mark", n=n) if flips is None else proportion(int(flips.sum()), n, level=level)
    average = (len(x) - float((sizes**2).sum()) / len(x)) / (n - 1) if n > 1 else float(sizes[0])
    icc, item_variance, run_variance = _one_way(x, means, sizes, within, average, level)
    warnings = (f"fewer_than_{FEW_ITEMS}_items: {n}",) if n < FEW_ITEMS else ()
    return Reliability(
        icc=icc, icc_mean=_stepped_up(icc, average),
        flip_rate=proportion(int((~same).sum()), n, level=level), pass_flip_rate=across,
        pairwise_agreement=mean(_agreeing_pairs(x, groups, sizes), level=level, bounds=(0, 1)),
        mean=mean(means, level=level),
        repeats_needed=_repeats_needed(icc, target), target=target,
        item_variance=item_variance, run_variance=run_variance, n=n, n_dropped=n_all - n, repeats=average,
        warnings=warnings + (("deterministic",) if within == 0 else ()),
    )  # fmt: skip


def _codes(items: Sequence[Any], mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    order: dict[Any, int] = {}
    there = [order.setdefault(item, len(order)) for item, kept in zip(items, mask, strict=True) if kept]
    return np.array(there, dtype=np.intp)


def _verdicts(
    passed: Sequence[bool | None], mask: npt.NDArray[np.bool_], kept: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    scored = [verdict for verdict, there in zip(passed, mask, strict=True) if there]
    if None in scored:
        raise CalibrationError("passed is missing for a score: every scored repeat has a verdict")
    verdicts: npt.NDArray[np.bool_] = np.array(scored, dtype=bool)[kept]
    return verdicts


def _ranges(x: FloatArray, groups: npt.NDArray[np.intp], n: int) -> FloatArray:
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, groups, x)
    np.maximum.at(high, groups, x)
    ranges: FloatArray = high - low
    return ranges


def _agreeing_pairs(x: FloatArray, groups: npt.NDArray[np.intp], sizes: npt.NDArray[np.intp]) -> FloatArray:
    """For each item the share of its pairs of repeats with the same score."""
    levels = np.unique(x, return_inverse=True)[1]
    pairs, counts = np.unique(np.stack([groups, levels], axis=1), axis=0, return_counts=True)
    equal = np.bincount(pairs[:, 0], weights=counts * (counts - 1))
    shares: FloatArray = equal / (sizes * (sizes - 1))
    return shares


def _one_way(
    x: FloatArray, means: FloatArray, sizes: npt.NDArray[np.intp], within: float, repeats: float, level: float
) -> tuple[Estimate, float | None, float | None]:
    """ICC(1,1), and the variance of items and of runs behind it."""
    n, total = len(means), len(x)
    if n < 2:
        return Estimate(status="undefined", reason="one_item", n=n, method="anova_one_way"), None, within / (total - 1)
    between = float((sizes * (means - x.mean()) ** 2).sum())
    msb, msw = between / (n - 1), within / (total - n)
    item_variance = (msb - msw) / repeats
    known: dict[str, Any] = {"level": level, "n": n, "method": "anova_one_way"}
    if msb == 0 and msw == 0:
        return Estimate(**known, status="undefined", reason="constant_input"), 0.0, 0.0
    if msw == 0:
        return Estimate(**known, value=1.0, status="insufficient", reason="deterministic"), item_variance, 0.0
    value = (msb - msw) / (msb + (repeats - 1) * msw)
    low, high = f_interval(msb / msw, n - 1, total - n, repeats - 1, level)
    return Estimate(**known, value=value, ci_low=low, ci_high=high), item_variance, msw


def _stepped_up(icc: Estimate, repeats: float) -> Estimate:
    """Spearman-Brown: the reliability of a mean of `repeats` runs; undefined where the ICC is negative."""
    if icc.value is None:
        return icc
    if icc.value <= 0:
        return undefined("icc_not_positive", n=icc.n, method="spearman_brown")

    def up(value: float | None) -> float | None:
        if value is None or 1 + (repeats - 1) * value <= 0:
            return None
        return repeats * value / (1 + (repeats - 1) * value)

    return replace(icc, value=up(icc.value), ci_low=up(icc.ci_low), ci_high=up(icc.ci_high), method="spearman_brown")


def _repeats_needed(icc: Estimate, target: float) -> int | None:
    if icc.value is None or icc.value <= 0:
        return None
    return max(1, math.ceil(target * (1 - icc.value) / ((1 - target) * icc.value) - 1e-9))


def _without_repeats(target: float, n_all: int) -> Reliability:
    none = undefined("no_repeats", n_dropped=n_all)
    return Reliability(
        icc=none, icc_mean=none, flip_rate=none, pass_flip_rate=none, pairwise_agreement=none, mean=none,
        repeats_needed=None, target=target, item_variance=None, run_variance=None, n=0, n_dropped=n_all,
        repeats=1.0 if n_all else 0.0, warnings=(),
    )  # fmt: skip


def repeats_of(ratings: Ratings, **options: Any) -> Reliability:
    """The same for ratings whose raters are the repeats; the scale's labels need numbers or a declared order."""
    if ratings.scale.numbers is None and not ratings.scale.declared:
        raise CalibrationError("labels are words: declare their order with --scale, lowest first")
    there = ratings.codes >= 0
    rows, columns = np.nonzero(there)
    scores = ratings.scale.values[ratings.codes[rows, columns]]
    found = reliability([ratings.items[row] for row in rows], scores, **options)
    return replace(found, n_dropped=len(ratings.items) - found.n)
