"""Corrected means from labels drawn with unequal chances: per stratum, with propensities, or by judge level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray, present, t_quantile

TUNE_FROM = 20
WANTED_PER_STRATUM = 10
EXTREME_WEIGHT = 10.0
UNSEEN = "zero_residual_variance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """One stratum: n labels with their judge scores, and the judge scores of its other items."""

    labels: FloatArray
    judged: FloatArray
    unlabelled: FloatArray

    @property
    def size(self) -> int:
        return len(self.judged) + len(self.unlabelled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """A corrected mean, the mean of the labels alone under the same design, and how far the judge was trusted."""

    corrected: Estimate
    human_only: Estimate
    lam: float
    effective_n: float | None
    per_stratum: dict[str, Estimate]


def strata_of(
    labels: Mapping[str, float], scores: Mapping[str, float], strata: Mapping[str, str]
) -> dict[str, Stratum]:
    """Items by stratum, in the order in which the strata occur; every scored item has one."""
    groups: dict[str, list[str]] = {}
    for item in scores:
        if item not in strata:
            raise CalibrationError(f"item {item} has no stratum: every judged item belongs to one")
        groups.setdefault(strata[item], []).append(item)
    return {
        name: Stratum(
            labels=np.array([labels[item] for item in items if item in labels]),
            judged=np.array([scores[item] for item in items if item in labels]),
            unlabelled=np.array([scores[item] for item in items if item not in labels]),
        )
        for name, items in groups.items()
    }


def stratified_ppi(strata: Mapping[str, Stratum], *, lam: float | None = None, level: float = 0.95) -> Weighted:
    """PPI++ per stratum, theta = sum W_h theta_h with W_h the stratum's share of all judged items. Fisch et al. 2024.

    Within a stratum labels are a random sample. A stratum has its own tuned lam from 20 labels; the others share one,
    tuned on their pooled variances (0 below 20 labels in all). t interval with n - H df. A stratum without two labels
    joins its neighbour; a stratum whose residuals are all equal, or where judge and people differ by a constant, takes
    the pooled residual variance: agreement on few labels says nothing about the error. No such variance anywhere: no
    interval, reason `zero_residual_variance`.
    """
    merged, warnings = _merged(strata)
    n, total = sum(len(h.labels) for h in merged.values()), sum(h.size for h in merged.values())
    if n <= len(merged):
        raise CalibrationError(f"{n} labels in {len(merged)} strata: two labels per stratum or more are needed")
    small = [h for h in merged.values() if len(h.labels) < TUNE_FROM]
    shared = _pooled_lambda(small) if n >= TUNE_FROM else 0.0
    lams = {
        name: lam if lam is not None else _pooled_lambda([h]) if len(h.labels) >= TUNE_FROM else shared
        for name, h in merged.items()
    }
    weights = {name: h.size / total for name, h in merged.items()}
    corrected = _combined(merged, weights, lams, n, level, "ppi++_stratified_t")
    alone = _combined(merged, weights, dict.fromkeys(merged, 0.0), n, level, "stratified_t")
    trust = sum(weights[name] * lams[name] for name in merged)
    return Weighted(
        corrected=replace(corrected[0], warnings=corrected[0].warnings + warnings), human_only=alone[0], lam=trust,
        effective_n=n * (alone[0].se / corrected[0].se) ** 2 if alone[0].se and corrected[0].se else None,
        per_stratum=corrected[1],
    )  # fmt: skip


def _merged(strata: Mapping[str, Stratum]) -> tuple[dict[str, Stratum], tuple[str, ...]]:
    """Strata with fewer than two labels joined with the stratum before them (the first with the one after it)."""
    found: dict[str, Stratum] = {}
    for name, stratum in strata.items():
        last = next(reversed(found), None)
        if last is not None and (len(stratum.labels) < 2 or len(found[last].labels) < 2):
            before = found.pop(last)
            joined = {
                side: np.concatenate([getattr(before, side), getattr(stratum, side)])
                for side in ("labels", "judged", "unlabelled")
            }
            found[f"{last}+{name}"] = Stratum(**joined)
        else:
            found[name] = stratum
    few = [f"{name} {len(h.labels)}" for name, h in found.items() if len(h.labels) < WANTED_PER_STRATUM]
    warnings = tuple(f"merged_strata: {name}" for name in found if name not in strata)
    return found, (*warnings, *((f"few_labels_in_stratum: {', '.join(few)}",) if few else ()))


def _certain(stratum: Stratum, lam: float) -> bool:
    """Whether the error of the correction cannot be seen: judge and people differ by a constant on every label."""
    return lam != 0 and bool(np.ptp(stratum.labels - stratum.judged) == 0)


def _pooled_lambda(strata: Sequence[Stratum]) -> float:
    """The one lam that minimises the sum of N_h^2 Var_h, 0..1: what `tuned_lambda` is for a single stratum."""
    covariance = variance = 0.0
    for h in strata:
        if not len(h.unlabelled):
            continue
        weight = h.size**2 / len(h.labels)
        covariance += weight * float(np.mean((h.labels - h.labels.mean()) * (h.judged - h.judged.mean())))
        spread = float(np.concatenate([h.judged, h.unlabelled]).var(ddof=1))
        variance += weight * (1 + len(h.labels) / len(h.unlabelled)) * spread
    return float(np.clip(covariance / variance, 0, 1)) if variance > 0 else 0.0


def _combined(
    strata: Mapping[str, Stratum],
    weights: Mapping[str, float],
    lams: Mapping[str, float],
    n: int,
    level: float,
    method: str,
) -> tuple[Estimate, dict[str, Estimate]]:
    residuals = {name: h.labels - (lams[name] if len(h.unlabelled) else 0.0) * h.judged for name, h in strata.items()}
    spreads = {
        name: 0.0 if np.ptp(r) == 0 or _certain(strata[name], lams[name]) else float(r.var(ddof=1))
        for name, r in residuals.items()
    }
    free = sum(len(residuals[name]) - 1 for name in strata if spreads[name])
    pooled = sum((len(r) - 1) * spreads[name] for name, r in residuals.items()) / free if free else 0.0
    value = variance = 0.0
    per_stratum: dict[str, Estimate] = {}
    for name, h in strata.items():
        lam, residual = lams[name] if len(h.unlabelled) else 0.0, residuals[name]
        part = float(residual.mean()) + (lam * float(h.unlabelled.mean()) if lam else 0.0)
        others = len(h.unlabelled)
        judge_part = lam**2 * float(h.unlabelled.var(ddof=1)) / others if lam and others > 1 else 0.0
        part_variance = judge_part + (spreads[name] or pooled) / len(residual)
        value += weights[name] * part
        variance += weights[name] ** 2 * part_variance
        constant = () if spreads[name] else ("zero_variance",)
        per_stratum[name] = Estimate(
            value=part, se=math.sqrt(part_variance), level=level, method=method, n=len(residual), warnings=constant
        )
    flat = tuple(f"zero_variance_stratum: {name}" for name in strata if not spreads[name])
    known: dict[str, Any] = {"value": value, "level": level, "method": method, "n": n, "warnings": flat}
    if not pooled:
        return Estimate(**known, status="insufficient", reason=UNSEEN), per_stratum
    half = t_quantile(level, n - len(strata)) * math.sqrt(variance)
    known |= {"se": math.sqrt(variance), "ci_low": value - half, "ci_high": value + half}
    return Estimate(**known), per_stratum


def weighted_ppi(
    labels: Sequence[float] | npt.NDArray[Any],
    judged: Sequence[float] | npt.NDArray[Any],
    propensities: Sequence[float] | npt.NDArray[Any],
    unlabelled: Sequence[float] | npt.NDArray[Any],
    *,
    lam: float | None = None,
    level: float = 0.95,
) -> Weighted:
    """PPI++ for labels drawn with known unequal chances pi > 0, every judged item having had one.

    theta = lam mean(f) + sum(w (Y - lam f)) / sum(w), w = 1 / pi, over all n + N judged items; linearised variance,
    t interval with n - 1 df. lam minimises that variance from 20 labels on (0 below). Labels alone: the weighted mean.
    Judge and people that differ by a constant on every label: no interval, reason `zero_residual_variance`. One weight
    over 10 times the mean is said (`extreme_weights`). Zrnic and Candes 2024, with Hajek's ratio.
    """
    y, f, pi = present(labels, "labels")[0], present(judged, "judged")[0], present(propensities, "propensities")[0]
    rest = present(unlabelled, "unlabelled")[0]
    if not len(y) == len(f) == len(pi):
        raise CalibrationError(f"labels {len(y)}, judged {len(f)}, propensities {len(pi)}: one each per labelled item")
    outside = pi[(pi <= 0) | (pi > 1)]
    if len(outside):
        raise CalibrationError(f"propensities hold {outside[0]:g}: the chance of being labelled, above 0, at most 1")
    if len(y) < 2:
        raise CalibrationError(f"there are {len(y)} labels: two or more are needed")
    w, n, total = 1 / pi, len(y), len(y) + len(rest)
    everything = np.concatenate([f, rest])
    share = w / w.sum()

    def linearised(trust: float) -> tuple[float, FloatArray]:
        residual = y - trust * f
        centre = float(share @ residual)
        terms = trust * (everything - everything.mean())
        terms[:n] += share * total * (residual - centre)
        return trust * float(everything.mean()) + centre, terms

    base, slope = linearised(0.0)[1], linearised(1.0)[1] - linearised(0.0)[1]
    tuned = float(np.clip(-(base @ slope) / (slope @ slope), 0, 1)) if slope.any() else 0.0
    trust = lam if lam is not None else tuned if n >= TUNE_FROM else 0.0
    warnings = ("extreme_weights",) if w.max() > EXTREME_WEIGHT * w.mean() else ()
    corrected = _linear(*linearised(trust), n, total, level, "ppi++_weighted_t", warnings)
    if trust and np.ptp(y - f) == 0:
        corrected = replace(corrected, se=None, ci_low=None, ci_high=None, status="insufficient", reason=UNSEEN)
    alone = _linear(*linearised(0.0), n, total, level, "weighted_t", warnings)
    return Weighted(
        corrected=corrected, human_only=alone, lam=trust, per_stratum={},
        effective_n=n * (alone.se / corrected.se) ** 2 if alone.se and corrected.se else None,
    )  # fmt: skip


def _linear(
    value: float, terms: FloatArray, n: int, total: int, level: float, method: str, warnings: tuple[str, ...]
) -> Estimate:
    known: dict[str, Any] = {"value": value, "level": level, "method": method, "n": n, "warnings": warnings}
    if np.ptp(terms[:n]) == 0:
        return Estimate(**known, status="insufficient", reason=UNSEEN)
    se = math.sqrt(float(terms @ terms) / total**2 * n / (n - 1))
    half = t_quantile(level, n - 1) * se
    return Estimate(**known, se=se, ci_low=value - half, ci_high=value + half)


def post_stratified(
    labels: Sequence[float] | npt.NDArray[Any],
    judged: Sequence[float] | npt.NDArray[Any],
    unlabelled: Sequence[float] | npt.NDArray[Any],
    *,
    level: float = 0.95,
) -> Estimate:
    """The mean label from a random sample, reweighted to the judge's levels: theta = sum_s p(s) mean(Y | s).

    For judges with few levels whose error is not linear. Var = sum p^2 s^2 / n_s + Var(means) / (n + N), t with n - S
    df. Neighbouring levels with fewer than two labels are joined; a level whose labels are all equal takes the pooled
    variance. Chen et al. 2026; Cochran 1977, 5A.9.
    """
    y, f = present(labels, "labels")[0], present(judged, "judged")[0]
    everything = np.concatenate([f, present(unlabelled, "unlabelled")[0]])
    levels = np.unique(everything)
    rest = everything[len(f) :]
    by_level = {f"{s:g}": Stratum(labels=y[f == s], judged=f[f == s], unlabelled=rest[rest == s]) for s in levels}
    merged, warnings = _merged(by_level)
    n, total = len(y), len(everything)
    if n <= len(merged):
        raise CalibrationError(f"{n} labels on {len(merged)} levels: two labels per level or more are needed")
    weights = {name: h.size / total for name, h in merged.items()}
    found, _ = _combined(merged, weights, dict.fromkeys(merged, 0.0), n, level, "post_stratified_t")
    if found.se is None or found.value is None:
        return replace(found, warnings=found.warnings + warnings)
    means = {name: float(h.labels.mean()) for name, h in merged.items()}
    between = sum(weights[name] * (means[name] - found.value) ** 2 for name in merged) / total
    se = math.sqrt(found.se**2 + between)
    half = t_quantile(level, n - len(merged)) * se
    return replace(
        found, se=se, ci_low=found.value - half, ci_high=found.value + half, warnings=found.warnings + warnings
    )
