"""What people would have said, given the judge's score: a monotone curve fitted to labels, always used out of fold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray, cluster_warnings, mean, present, t_quantile
from calibration.sample import Numbers, Pair, influence, sample_of, squared

FOLDS = 5
FIT_FROM = 30
FEW_AT_A_LEVEL = 5
PROBE_FROM = 50

Transport = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Expected human score at each judge level seen in the labels, never falling."""

    levels: tuple[float, ...]
    fitted: tuple[float, ...]
    counts: tuple[int, ...]

    def __call__(self, scores: Numbers) -> FloatArray:
        """The expected human score: straight lines between levels, constant beyond the outermost ones."""
        expected: FloatArray = np.interp(np.asarray(scores, dtype=np.float64), self.levels, self.fitted)
        return expected


def isotonic(judged: Numbers, labels: Numbers) -> Curve:
    """Least-squares non-decreasing fit of labels on judge scores; equal scores are one level. Barlow et al. 1972."""
    from scipy.optimize import isotonic_regression

    f, y = _paired(judged, labels)
    levels, place, counts = np.unique(f, return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=y) / counts
    fitted = isotonic_regression(means, weights=counts).x
    return Curve(
        levels=tuple(map(float, levels)), fitted=tuple(map(float, fitted)), counts=tuple(int(count) for count in counts)
    )


def _paired(judged: Numbers, labels: Numbers) -> tuple[FloatArray, FloatArray]:
    f, y = present(judged, "judged")[0], present(labels, "labels")[0]
    if len(f) != len(y) or not len(f):
        raise CalibrationError(f"judged has {len(f)} entries, labels {len(y)}: one of each per item, one item or more")
    return f, y


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalibration:
    """The curve of all labels, its out-of-fold predictions of the labelled items, and the corrected mean.

    `expected`: calibrated scores of the unlabelled items, in the order given; keep the raw ones beside them.
    """

    curve: Curve
    out_of_fold: tuple[float, ...]
    expected: tuple[float, ...]
    corrected: Estimate
    warnings: tuple[str, ...]


def fold_of(n_groups: int, seed: int, folds: int = FOLDS) -> npt.NDArray[np.intp]:
    """A fold for each group, sizes equal up to one, in seeded random order."""
    return np.random.default_rng(seed).permutation(n_groups) % folds


def recalibrate(
    labels: Numbers,
    judged: Numbers,
    unlabelled: Numbers,
    *,
    clusters: Pair | None = None,
    folds: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Recalibration:
    """The mean label from a nonlinear judge: mean of g over all judged items + mean of (Y - g_out_of_fold).

    Labels are a random sample; `unlabelled` are the judge's scores of the other items. Questions (`clusters`, of the
    labelled and of the other items) stay within one of 5 folds, or `folds` are given. The residual term is never left
    out: a curve that is fitted and evaluated on the same labels covers far less than it says. Variance: that of both
    means, summed within clusters, and the delete-one-fold jackknife of the estimate over curves (an error of the curve
    nearly cancels in it); t with G - 1 df for G labelled items or clusters with labels. From 30 labels. A level with
    fewer than 5 labels is said.
    Landesberg et al. 2025 (causal judge evaluation), augmented estimate; isotonic: Barlow et al. 1972.
    """
    sample = sample_of(labels, judged, unlabelled, clusters)
    f, y, rest, n = sample.judged, sample.labels, sample.unlabelled, len(sample.labels)
    if n < FIT_FROM:
        raise CalibrationError(f"there are {n} labels: a curve needs {FIT_FROM} or more; PPI++ works with fewer")
    own = np.arange(n) if sample.clusters is None else np.unique(sample.clusters[0], return_inverse=True)[1]
    fold = fold_of(sample.units, seed)[own] if folds is None else np.asarray(folds)
    if len(fold) != n:
        raise CalibrationError(f"folds has {len(fold)} entries for {n} labels: one per label")
    if len(np.unique(fold)) < 2:
        raise CalibrationError("all labels are in one cluster: an out-of-fold curve needs two or more")
    curve, everything = isotonic(f, y), np.concatenate([f, rest])
    predicted = np.empty(n)
    per_fold = []
    for k in np.unique(fold):
        without = isotonic(f[fold != k], y[fold != k])
        predicted[fold == k] = without(f[fold == k])
        per_fold.append(float(without(everything).mean() - without(f).mean()))
    residual, scores = y - predicted, curve(everything)
    warnings = _thin_levels(curve)
    value = float(scores.mean()) + float(residual.mean())
    known: dict[str, Any] = {
        "value": value, "level": level, "method": "isotonic_out_of_fold", "n": n, "seed": seed,
        "n_clusters": None if clusters is None else sample.units,
        "warnings": warnings if clusters is None else warnings + cluster_warnings(sample.units),
    }  # fmt: skip
    if np.ptp(residual) == 0:
        corrected = Estimate(**known, status="insufficient", reason="zero_residual_variance")
    else:
        terms = influence(replace(sample, labels=residual, judged=np.zeros(n)), 0.0)
        terms += (scores - scores.mean()) / len(scores)
        spread = np.array(per_fold) - np.mean(per_fold)
        jackknife = (len(per_fold) - 1) / len(per_fold) * float(spread @ spread)
        se = math.sqrt(squared(terms, sample.codes) + jackknife)
        half = t_quantile(level, sample.units - 1) * se
        corrected = Estimate(**known, se=se, ci_low=value - half, ci_high=value + half)
    return Recalibration(
        curve=curve, out_of_fold=tuple(map(float, predicted)), expected=tuple(map(float, curve(rest))),
        corrected=corrected, warnings=warnings,
    )  # fmt: skip


def _thin_levels(curve: Curve) -> tuple[str, ...]:
    thin = [f"{level:g}" for level, count in zip(curve.levels, curve.counts, strict=True) if count < FEW_AT_A_LEVEL]
    return (f"few_labels_at_level: {', '.join(thin[:10])}{' ...' if len(thin) > 10 else ''}",) if thin else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportAudit:
    """Does a curve hold elsewhere? `pass`: the mean residual is surely within +-delta; `fail`: surely beyond it."""

    verdict: Transport
    residual: Estimate
    delta: float


def transport_audit(
    curve: Curve,
    judged: Numbers,
    labels: Numbers,
    *,
    delta: float,
    clusters: Sequence[Any] | None = None,
    systems: int = 1,
    level: float = 0.95,
) -> TransportAudit:
    """Mean of Y - g(f) on a random labelled probe of the target (another system, another month).

    `delta` in units of the label (5% of the scale is usual). Bonferroni over `systems` audited together. Fewer than 50
    labels can fail but not pass. Not rejecting a difference is never a pass.
    """
    if not delta > 0 or systems < 1:
        raise CalibrationError(f"delta is {delta} and systems {systems}: delta above 0, systems 1 or more")
    f, y = _paired(judged, labels)
    residual = mean(y - curve(f), clusters=clusters, level=1 - (1 - level) / systems)
    low, high = residual.ci_low, residual.ci_high
    verdict: Transport = "inconclusive"
    if low is not None and high is not None:
        if -delta <= low and high <= delta:
            verdict = "pass" if len(y) >= PROBE_FROM else "inconclusive"
        elif low > delta or high < -delta:
            verdict = "fail"
    few = (f"fewer_than_{PROBE_FROM}_labels: {len(y)}",) if len(y) < PROBE_FROM else ()
    return TransportAudit(verdict=verdict, residual=replace(residual, warnings=residual.warnings + few), delta=delta)


def transport_audits(
    curve: Curve,
    judged: Numbers,
    labels: Numbers,
    systems: Sequence[str],
    *,
    delta: float,
    clusters: Sequence[Any] | None = None,
    level: float = 0.95,
) -> dict[str, TransportAudit]:
    """An audit of each system, in the order in which they occur, Bonferroni over them."""
    f, y = _paired(judged, labels)
    if len(systems) != len(f):
        raise CalibrationError(f"systems has {len(systems)} names for {len(f)} items: one per item")
    found = {}
    names = dict.fromkeys(systems)
    for name in names:
        own = np.array([system == name for system in systems])
        groups = None if clusters is None else [group for group, kept in zip(clusters, own, strict=True) if kept]
        found[name] = transport_audit(
            curve, f[own], y[own], delta=delta, clusters=groups, systems=len(names), level=level
        )
    return found
