"""Intraclass correlations of complete ratings, with exact or Satterthwaite F intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import Estimate, cluster_codes, undefined
from calibration.ratings import Ratings

Form = Literal["ICC1", "ICC2", "ICC3", "ICC1k", "ICC2k", "ICC3k"]
FORMS: tuple[Form, ...] = ("ICC1", "ICC2", "ICC3", "ICC1k", "ICC2k", "ICC3k")


def intraclass(ratings: npt.ArrayLike, *, level: float = 0.95) -> dict[Form, Estimate]:
    """The six intraclass correlations of complete ratings (units, raters) with F intervals.

    ICC1 raters differ from unit to unit; ICC2 absolute agreement of a random set of raters (judge against human);
    ICC3 consistency of these raters; k: of the mean of all raters. No variance at all: undefined `constant_input`; no
    error: 1 without an interval. Shrout and Fleiss 1979; intervals of McGraw and Wong 1996.
    """
    x = np.asarray(ratings, dtype=np.float64)
    if x.ndim != 2 or min(x.shape) < 2 or not np.isfinite(x).all():
        raise CalibrationError(
            f"ratings has shape {x.shape}: give units x raters, two of each or more, no value missing; "
            "with missing labels use krippendorff_alpha"
        )
    n, k = x.shape
    grand, rows, columns = x.mean(), x.mean(axis=1), x.mean(axis=0)
    msr = k * float(((rows - grand) ** 2).sum()) / (n - 1)
    msc = n * float(((columns - grand) ** 2).sum()) / (k - 1)
    residual = x - rows[:, None] - columns[None, :] + grand
    mse = float((residual**2).sum()) / ((n - 1) * (k - 1))
    msw = float(((x - rows[:, None]) ** 2).sum()) / (n * (k - 1))
    single: dict[Form, Estimate] = {
        "ICC1": _ratio(msr, msw, n - 1, n * (k - 1), n, k, level),
        "ICC2": _absolute(msr, msc, mse, n, k, level),
        "ICC3": _ratio(msr, mse, n - 1, (n - 1) * (k - 1), n, k, level),
    }
    averaged: dict[str, Estimate] = {f"{form}k": _stepped(estimate, k) for form, estimate in single.items()}
    return {form: (single | averaged)[form] for form in FORMS}


def intraclass_of(ratings: Ratings, raters: Sequence[str], *, level: float = 0.95) -> dict[Form, Estimate]:
    """The same for named raters, on the items that all of them rated; the others are counted in `n_dropped`.

    Labels need numbers or a declared order. Fewer than two such items: undefined `no_data`. Where items share clusters
    there is no interval, reason `no_interval_for_clusters`: F takes items as independent.
    """
    if ratings.scale.numbers is None and not ratings.scale.declared:
        raise CalibrationError("labels are words: declare their order with --scale, lowest first")
    codes = np.stack([ratings.of(rater) for rater in raters], axis=1)
    complete: npt.NDArray[np.bool_] = np.all(codes >= 0, axis=1)
    n, dropped = int(complete.sum()), int((~complete).sum())
    if n < 2:
        return dict.fromkeys(FORMS, undefined("no_data", n=n, n_dropped=dropped, method="anova"))
    found = intraclass(ratings.scale.values[codes[complete]], level=level)
    shared = ratings.clusters is not None and cluster_codes(ratings.clusters, complete)[1] < n
    return {form: _of_items(one, dropped, shared=shared) for form, one in found.items()}


def _of_items(estimate: Estimate, dropped: int, *, shared: bool) -> Estimate:
    if not shared or estimate.ci_low is None:
        return replace(estimate, n_dropped=dropped)
    return replace(
        estimate, ci_low=None, ci_high=None, n_dropped=dropped, status="insufficient", reason="no_interval_for_clusters"
    )


def _ratio(msr: float, error: float, df1: int, df2: int, n: int, k: int, level: float) -> Estimate:
    if msr == 0 and error == 0:
        return undefined("constant_input", n=n, method="anova")
    if error == 0:
        return Estimate(value=1.0, n=n, level=level, method="anova", status="insufficient", reason="zero_variance")
    value = (msr - error) / (msr + (k - 1) * error)
    low, high = f_interval(msr / error, df1, df2, k - 1, level)
    return Estimate(value=value, ci_low=low, ci_high=high, n=n, level=level, method="anova_f")


def _absolute(msr: float, msc: float, mse: float, n: int, k: int, level: float) -> Estimate:
    """ICC(2,1) with Satterthwaite's degrees of freedom for its error."""
    from scipy.special import fdtri

    denominator = msr + (k - 1) * mse + k * (msc - mse) / n
    if denominator <= 0:
        return undefined("constant_input", n=n, method="anova")
    value = (msr - mse) / denominator
    if mse == 0:
        return Estimate(value=value, n=n, level=level, method="anova", status="insufficient", reason="zero_variance")
    a, b = k * value / (n * (1 - value)), 1 + k * value * (n - 1) / (n * (1 - value))
    df = (a * msc + b * mse) ** 2 / ((a * msc) ** 2 / (k - 1) + (b * mse) ** 2 / ((n - 1) * (k - 1)))
    tail = (1 + level) / 2
    lower, upper = float(fdtri(n - 1, df, tail)), float(fdtri(df, n - 1, tail))
    spread = k * msc + (k * n - k - n) * mse
    low = n * (msr - lower * mse) / (lower * spread + n * msr)
    high = n * (upper * msr - mse) / (spread + n * upper * msr)
    return Estimate(value=value, ci_low=low, ci_high=high, n=n, level=level, method="anova_f")


def _stepped(icc: Estimate, k: int) -> Estimate:
    def up(value: float | None) -> float | None:
        return None if value is None else k * value / (1 + (k - 1) * value)

    return replace(icc, value=up(icc.value), ci_low=up(icc.ci_low), ci_high=up(icc.ci_high))


def f_interval(f: float, df1: float, df2: float, extra: float, level: float) -> tuple[float, float]:
    """Bounds (F' - 1) / (F' + extra) of a one-way or consistency ICC. McGraw and Wong 1996, table 7."""
    from scipy.special import fdtri

    tail = (1 + level) / 2
    low, high = f / float(fdtri(df1, df2, tail)), f * float(fdtri(df2, df1, tail))
    return (low - 1) / (low + extra), (high - 1) / (high + extra)
