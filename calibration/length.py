"""How much of a preference is a preference for longer answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.choice import clustered_covariance, fit_choices
from calibration.errors import CalibrationError
from calibration.estimate import Estimate, cluster_codes, normal_quantile, present, t_quantile, undefined


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthControl:
    """`effect`: logit per unit of tanh(length difference / sd). `win_rate`: the win rate of a at equal lengths."""

    intercept: Estimate
    effect: Estimate
    win_rate: Estimate
    raw_win_rate: float | None


def length_control(
    wins: Sequence[float | None] | npt.NDArray[Any],
    length_differences: Sequence[float | None] | npt.NDArray[Any],
    *,
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
    level: float = 0.95,
) -> LengthControl:
    """Length-controlled win rate of a over b: logit P(a wins) = b0 + b1 tanh(d / sd(d)), taken at d = 0.

    `wins` is 1, 0 or 0.5 per pair, `length_differences` a minus b in any unit; a missing side drops the pair. The
    interval of the win rate is that of b0 carried over, coefficient error included; with clusters the covariance is
    CR1. The effect is bias only as far as length is no sign of quality: compare it with the humans' own effect.
    Fewer than 10 pairs `n_below_10`, equal lengths `no_length_difference`, perfect separation `separated`: undefined.
    Dubois et al. 2024 (model); their standard error leaves the coefficients' error out, this one does not.
    """
    y, has_win = present(wins, "wins")
    d, has_length = present(length_differences, "length_differences")
    if len(has_win) != len(has_length):
        raise CalibrationError(f"wins has {len(has_win)} entries, length_differences {len(has_length)}: one per pair")
    if ((y < 0) | (y > 1)).any():
        raise CalibrationError("wins holds values outside 0..1: a win is 1, a loss 0, a tie 0.5")
    kept = has_win & has_length
    y, d = y[kept[has_win]], d[kept[has_length]]
    n, n_dropped = len(y), int((~kept).sum())
    reason = "n_below_10" if n < 10 else "no_length_difference" if np.ptp(d) == 0 else None
    fit = None
    if reason is None:
        x = np.tanh(d / d.std(ddof=1))
        features = np.zeros((n, 2, 2))
        features[:, 0] = np.column_stack([np.ones(n), x])
        fit = fit_choices(features, np.column_stack([y, 1 - y]))
    raw = float(y.mean()) if n else None
    if fit is None:
        nothing = undefined(reason or "separated", n=n, n_dropped=n_dropped, method="logit")
        return LengthControl(intercept=nothing, effect=nothing, win_rate=nothing, raw_win_rate=raw)
    covariance, n_clusters, quantile = fit.covariance, None, normal_quantile(level)
    if clusters is not None:
        codes, n_clusters = cluster_codes(clusters, kept)
        covariance, quantile = clustered_covariance(fit, codes, n_clusters), t_quantile(level, max(n_clusters - 1, 1))
    known: dict[str, Any] = {
        "level": level, "n": n, "n_clusters": n_clusters, "n_dropped": n_dropped,
        "method": "logit" if clusters is None else "logit_cr1",
    }  # fmt: skip
    b0, b1 = (
        _estimate(float(b), float(se), quantile, known)
        for b, se in zip(fit.coefficients, np.sqrt(np.diag(covariance)), strict=True)
    )
    rate = _logistic(b0.value or 0.0)
    win_rate = Estimate(
        value=rate, se=(b0.se or 0.0) * rate * (1 - rate), ci_low=_logistic(b0.ci_low or 0.0),
        ci_high=_logistic(b0.ci_high or 0.0), **known,
    )  # fmt: skip
    return LengthControl(intercept=b0, effect=b1, win_rate=win_rate, raw_win_rate=raw)


def _estimate(value: float, se: float, quantile: float, known: dict[str, Any]) -> Estimate:
    return Estimate(value=value, se=se, ci_low=value - quantile * se, ci_high=value + quantile * se, **known)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))
