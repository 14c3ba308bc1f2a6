"""Corrected means from labels drawn with unequal chances: per stratum, with propensities, or by judge level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray, cluster_warnings, present, t_quantile
from calibration.sample import (
    Codes,
    Numbers,
    Pair,
    Sample,
    best_lambda,
    cluster_sums,
    clustered_lambda,
    influence,
    sample_of,
    squared,
)

TUNE_FROM = 20
WANTED_PER_STRATUM = 10
EXTREME_WEIGHT = 10.0
UNSEEN = "zero_residual_variance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """A corrected mean, the mean of the labels alone under the same design, and how far the judge was trusted."""

    corrected: Estimate
    human_only: Estimate
    lam: float
    effective_n: float | None
    per_stratum: dict[str, Estimate]


def strata_of(
    labels: Mapping[str, float],
    scores: Mapping[str, float],
    strata: Mapping[str, str],
    clusters: Mapping[str, Any] | None = None,
) -> dict[str, Sample]:
    """Items by stratum, in the order in which the strata occur; every scored item has one (and a cluster, if given)."""
    groups: dict[str, list[str]] = {}
    for item in scores:
        if item not in strata:
            raise CalibrationError(f"item {item} has no stratum: every judged item belongs to one")
        groups.setdefault(strata[item], []).append(item)
    numbers: dict[Any, int] = {}
    place = {item: numbers.setdefault(clusters[item], len(numbers)) for item in scores} if clusters else None
    found = {}
    for name, items in groups.items():
        own, rest = [item for item in items if item in labels], [item for item in items if item not in labels]
        codes = None
        if place is not None:
            codes = (np.array([place[item] for item in own], dtype=np.intp),
                     np.array([place[item] for item in rest], dtype=np.intp))  # fmt: skip
        found[name] = Sample(
            labels=np.array([labels[item] for item in own]), judged=np.array([scores[item] for item in own]),
            unlabelled=np.array([scores[item] for item in rest]), clusters=codes,
        )  # fmt: skip
    return found


def stratified_ppi(strata: Mapping[str, Sample], *, lam: float | None = None, level: float = 0.95) -> Weighted:
    """PPI++ per stratum, theta = sum W_h theta_h with W_h the stratum's share of all judged items. Fisch et al. 2024.

    Within a stratum labels are a random sample. A stratum has its own tuned lam from 20 labels; the others share one,
    tuned on their pooled variances (0 below 20 labels in all). t interval with n - H df. A stratum without two labels
    joins its neighbour; a stratum whose residuals are all equal, or where judge and people differ by a constant, takes
    the pooled residual variance: agreement on few labels says nothing about the error. No such variance anywhere: no
    interval, reason `zero_residual_variance`. Where the samples have clusters, every count above is one of clusters
    that hold labels, influences are summed within clusters over strata and both sides (CR1), and t has G - H df.
    """
    merged, warnings = _merged(strata)
    n, total = sum(len(h.labels) for h in merged.values()), sum(h.size for h in merged.values())
    units, what = _units(merged)
    if units <= len(merged):
        raise CalibrationError(f"{units} {what} in {len(merged)} strata: two per stratum or more are needed")
    small = [h for h in merged.values() if h.units < TUNE_FROM]
    shared = _pooled_lambda(small) if small and units >= TUNE_FROM else 0.0
    lams = {
        name: lam if lam is not None else _pooled_lambda([h]) if h.units >= TUNE_FROM else shared
        for name, h in merged.items()
    }
    weights = {name: h.size / total for name, h in merged.items()}
    corrected = _combined(merged, weights, lams, level, "ppi++_stratified_t")
    alone = _combined(merged, weights, dict.fromkeys(merged, 0.0), level, "stratified_t")
    trust = sum(weights[name] * lams[name] for name in merged)
    return Weighted(
        corrected=replace(corrected[0], warnings=corrected[0].warnings + warnings), human_only=alone[0], lam=trust,
        effective_n=n * (alone[0].se / corrected[0].se) ** 2 if alone[0].se and corrected[0].se else None,
        per_stratum=corrected[1],
    )  # fmt: skip


def _units(strata: Mapping[str, Sample]) -> tuple[int, str]:
    """How many independent units hold labels, and what they are."""
    own = [h.clusters[0] for h in strata.values() if h.clusters is not None]
    if not own:
        return sum(len(h.labels) for h in strata.values()), "labels"
    return len(np.unique(np.concatenate(own))), "clusters with labels"


def _merged(strata: Mapping[str, Sample]) -> tuple[dict[str, Sample], tuple[str, ...]]:
    """Strata with fewer than two labelled units joined with the stratum before them (the first with the one after)."""
    found: dict[str, Sample] = {}
    for name, stratum in strata.items():
        last = next(reversed(found), None)
        if last is not None and (stratum.units < 2 or found[last].units < 2):
            found[f"{last}+{name}"] = found.pop(last).joined(stratum)
        else:
            found[name] = stratum
    few = [f"{name} {len(h.labels)}" for name, h in found.items() if len(h.labels) < WANTED_PER_STRATUM]
    warnings = tuple(f"merged_strata: {name}" for name in found if name not in strata)
    return found, (*warnings, *((f"few_labels_in_stratum: {', '.join(few)}",) if few else ()))


def _certain(stratum: Sample, lam: float) -> bool:
    """Whether the error of the correction cannot be seen: judge and people differ by a constant on every label."""
    return lam != 0 and bool(np.ptp(stratum.labels - stratum.judged) == 0)


def _pooled_lambda(strata: Sequence[Sample]) -> float:
    """The one lam that minimises the sum of N_h^2 Var_h, 0..1: what `tuned_lambda` is for a single stratum."""
    useful = [h for h in strata if len(h.unlabelled)]
    if useful and useful[0].clusters is not None:
        return clustered_lambda(useful)
    covariance = variance = 0.0
    for h in useful:
        weight = h.size**2 / len(h.labels)
        covariance += weight * float(np.mean((h.labels - h.labels.mean()) * (h.judged - h.judged.mean())))
        spread = float(np.concatenate([h.judged, h.unlabelled]).var(ddof=1))
        variance += weight * (1 + len(h.labels) / len(h.unlabelled)) * spread
    return float(np.clip(covariance / variance, 0, 1)) if variance > 0 else 0.0


def _combined(
    strata: Mapping[str, Sample],
    weights: Mapping[str, float],
    lams: Mapping[str, float],
    level: float,
    method: str,
    more: Mapping[str, float] | None = None,
) -> tuple[Estimate, dict[str, Estimate]]:
    """The weighted mean over strata and each stratum's own; `more`: what every item of a stratum adds to the error."""
    used = {name: lams[name] if len(h.unlabelled) else 0.0 for name, h in strata.items()}
    residuals = {name: h.labels - used[name] * h.judged for name, h in strata.items()}
    spreads = {
        name: 0.0 if np.ptp(r) == 0 or _certain(strata[name], lams[name]) else float(r.var(ddof=1))
        for name, r in residuals.items()
    }
    free = sum(len(residuals[name]) - 1 for name in strata if spreads[name])
    pooled = sum((len(r) - 1) * spreads[name] for name, r in residuals.items()) / free if free else 0.0
    value = unseen = 0.0
    terms, per_stratum = [], {}
    for name, h in strata.items():
        lam, n = used[name], len(h.labels)
        part = float(residuals[name].mean()) + (lam * float(h.unlabelled.mean()) if lam else 0.0)
        own = influence(h, lam)
        if not spreads[name]:
            own[:n] = 0.0
        instead = 0.0 if spreads[name] else pooled / h.units
        value += weights[name] * part
        unseen += weights[name] ** 2 * instead
        terms.append(weights[name] * own + (more[name] if more else 0.0))
        per_stratum[name] = Estimate(
            value=part, se=math.sqrt(squared(own, h.codes) + instead), level=level, method=method, n=n,
            warnings=() if spreads[name] else ("zero_variance",),
        )  # fmt: skip
    codes = [h.codes for h in strata.values()]
    joint = np.concatenate([code for code in codes if code is not None]) if codes[0] is not None else None
    units, flat = _units(strata)[0], tuple(f"zero_variance_stratum: {name}" for name in strata if not spreads[name])
    known = _known(value, sum(len(h.labels) for h in strata.values()), units, joint, level, method, flat)
    if not pooled:
        return Estimate(**known, status="insufficient", reason=UNSEEN), per_stratum
    se = math.sqrt(squared(np.concatenate(terms), joint) + unseen)
    half = t_quantile(level, units - len(strata)) * se
    return Estimate(**known, se=se, ci_low=value - half, ci_high=value + half), per_stratum


def _known(
    value: float, n: int, units: int, codes: Codes | None, level: float, method: str, warnings: tuple[str, ...]
) -> dict[str, Any]:
    """The fields of an Estimate that say what it rests on; with clusters the method and few of them are said."""
    known: dict[str, Any] = {"value": value, "level": level, "n": n}
    if codes is None:
        return known | {"method": method, "warnings": warnings}
    return known | {"method": f"{method}_cr1", "n_clusters": units, "warnings": warnings + cluster_warnings(units)}


def weighted_ppi(
    labels: Numbers,
    judged: Numbers,
    propensities: Numbers,
    unlabelled: Numbers,
    *,
    clusters: Pair | None = None,
    lam: float | None = None,
    level: float = 0.95,
) -> Weighted:
    """PPI++ for labels drawn with known unequal chances pi > 0, every judged item having had one.

    theta = lam mean(f) + sum(w (Y - lam f)) / sum(w), w = 1 / pi, over all n + N judged items; linearised variance,
    t interval with n - 1 df. lam minimises that variance from 20 labels on (0 below). Labels alone: the weighted mean.
    Judge and people that differ by a constant on every label: no interval, reason `zero_residual_variance`. One weight
    over 10 times the mean is said (`extreme_weights`). `clusters` of labelled and of other items: the linearised terms
    are summed within clusters (CR1) and counts are of clusters that hold labels. Zrnic and Candes 2024, with Hajek's
    ratio.
    """
    sample, pi = sample_of(labels, judged, unlabelled, clusters), present(propensities, "propensities")[0]
    y, f, n, units, codes = sample.labels, sample.judged, len(sample.labels), sample.units, sample.codes
    if len(pi) != n:
        raise CalibrationError(f"labels {n}, propensities {len(pi)}: one each per labelled item")
    outside = pi[(pi <= 0) | (pi > 1)]
    if len(outside):
        raise CalibrationError(f"propensities hold {outside[0]:g}: the chance of being labelled, above 0, at most 1")
    if units < 2:
        what = "labels" if codes is None else "clusters with labels"
        raise CalibrationError(f"there are {units} {what}: two or more are needed")
    w, everything = 1 / pi, np.concatenate([f, sample.unlabelled])
    share = w / w.sum()

    def linearised(trust: float) -> tuple[float, FloatArray]:
        residual = y - trust * f
        centre = float(share @ residual)
        terms = trust * (everything - everything.mean())
        terms[:n] += share * sample.size * (residual - centre)
        return trust * float(everything.mean()) + centre, terms

    def estimate(trust: float, method: str) -> Estimate:
        value, terms = linearised(trust)
        known = _known(value, n, units, codes, level, method, extreme)
        if np.ptp(terms[:n]) == 0 or (trust and np.ptp(y - f) == 0):
            return Estimate(**known, status="insufficient", reason=UNSEEN)
        se = math.sqrt(squared(terms, codes) / sample.size**2 * units / (units - 1))
        half = t_quantile(level, units - 1) * se
        return Estimate(**known, se=se, ci_low=value - half, ci_high=value + half)

    extreme = ("extreme_weights",) if w.max() > EXTREME_WEIGHT * w.mean() else ()
    base, whole = (cluster_sums(linearised(trust)[1], codes) for trust in (0.0, 1.0))
    trust = lam if lam is not None else best_lambda(base, whole - base) if units >= TUNE_FROM else 0.0
    corrected, alone = estimate(trust, "ppi++_weighted_t"), estimate(0.0, "weighted_t")
    return Weighted(
        corrected=corrected, human_only=alone, lam=trust, per_stratum={},
        effective_n=n * (alone.se / corrected.se) ** 2 if alone.se and corrected.se else None,
    )  # fmt: skip


def post_stratified(
    labels: Numbers,
    judged: Numbers,
    unlabelled: Numbers,
    *,
    clusters: Pair | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean label from a random sample, reweighted to the judge's levels: theta = sum_s p(s) mean(Y | s).

    For judges with few levels whose error is not linear. Var = sum p^2 s^2 / n_s + Var(means) / (n + N), t with n - S
    df. Neighbouring levels with fewer than two labels are joined; a level whose labels are all equal takes the pooled
    variance. `clusters` of labelled and of other items: as in `stratified_ppi`. Chen et al. 2026; Cochran 1977, 5A.9.
    """
    whole = sample_of(labels, judged, unlabelled, clusters)
    levels = np.unique(np.concatenate([whole.judged, whole.unlabelled]))
    merged, warnings = _merged({f"{s:g}": _at_level(whole, s) for s in levels})
    units, what = _units(merged)
    if units <= len(merged):
        raise CalibrationError(f"{units} {what} on {len(merged)} levels: two per level or more are needed")
    weights = {name: h.size / whole.size for name, h in merged.items()}
    means = {name: float(h.labels.mean()) for name, h in merged.items()}
    value = sum(weights[name] * means[name] for name in merged)
    between = {name: (means[name] - value) / whole.size for name in merged}
    found, _ = _combined(merged, weights, dict.fromkeys(merged, 0.0), level, "post_stratified_t", between)
    return replace(found, warnings=found.warnings + warnings)


def _at_level(whole: Sample, level: float) -> Sample:
    """The items to which the judge gave one level."""
    own, rest = whole.judged == level, whole.unlabelled == level
    clusters = None if whole.clusters is None else (whole.clusters[0][own], whole.clusters[1][rest])
    return Sample(
        labels=whole.labels[own], judged=whole.judged[own], unlabelled=whole.unlabelled[rest], clusters=clusters
    )
