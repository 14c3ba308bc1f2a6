"""From the judge's mean to the mean that people would have given, by the method that the label design allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibration.budget import labels_for_variance
from calibration.errors import CalibrationError
from calibration.estimate import (
    Estimate,
    FloatArray,
    cluster_warnings,
    clustered_proportion,
    mean,
    present,
    proportion,
    t_quantile,
)
from calibration.rogan_gladen import rogan_gladen, variance_parts
from calibration.sample import Codes, Numbers, Pair, Sample, clustered_lambda, influence, sample_of, squared
from calibration.stratified import TUNE_FROM, UNSEEN, Weighted, post_stratified, strata_of, stratified_ppi, weighted_ppi

VERDICT_FROM = 30
FEW_DISAGREEMENTS = 5
POST_STRATIFY_FROM = 50
Method = Literal["ppi++", "post-stratified"]
CLUSTERED = "no_interval_for_clusters"

VALID_WHEN = {
    "random": "valid when the labelled items are a random sample of the judged ones, whatever errors the judge makes",
    "stratified": "valid when labels are a random sample within each stratum and every stratum has labels",
    "propensity": "valid when every judged item could have been labelled and its chance is the one recorded",
    "external": "valid when the judge errs on these items as often as on the labelled ones, for each true class",
}
REFUSED = {
    "unknown": "how the labels were chosen is not stated; agreement can be reported, a corrected mean cannot",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The judge's own mean, the corrected mean, the mean of the labels alone, and what the labels were worth."""

    method: str
    naive: Estimate
    corrected: Estimate
    human_only: Estimate
    lam: float | None
    effective_n: float | None
    labels_to_halve_ci: int | None
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types under the names of the contract (`lam` is `lambda` there)."""
        return {
            "method": self.method, "naive": self.naive.to_dict(), "corrected": self.corrected.to_dict(),
            "human_only": self.human_only.to_dict(), "lambda": self.lam, "effective_n": self.effective_n,
            "labels_to_halve_ci": self.labels_to_halve_ci, "warnings": list(self.warnings),
        }  # fmt: skip


def correct(
    scores: Mapping[str, float | None],
    labels: Mapping[str, float | None],
    *,
    design: str,
    strata: Mapping[str, str] | None = None,
    propensities: Mapping[str, float | None] | None = None,
    clusters: Mapping[str, Any] | None = None,
    method: Method = "ppi++",
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Correction:
    """Correct the mean of judge scores (item -> score) with human labels (item -> label) on the same scale.

    `design` says how the labelled items were chosen. `random`: a random sample of the judged items, gives PPI++.
    `stratified`: a random sample within each of `strata` (item -> stratum, all judged items), gives stratified PPI++.
    `propensity`: with unequal chances, `propensities` (labelled item -> chance), gives weighted PPI++.
    `external`: other items, scored by the same judge; binary only, gives Rogan-Gladen for the judged items without a
    label. Anything else is refused with the reason. Labels of items without a score are left out and counted; None
    is a missing score or label. Without `bounds` only scores of 0 and 1 have a known scale. `method`
    `post-stratified`, for design random and 50 labels or more: the labels reweighted to the judge's levels, for a judge
    with few levels whose error is not linear.

    `clusters` (item -> cluster, all judged items; questions, say): intervals are cluster-robust, over labelled and
    unlabelled items of a cluster together. Rogan-Gladen has no such interval: none is given where items share clusters.
    """
    if design not in VALID_WHEN:
        rule = REFUSED.get(design, f"the designs are {', '.join(VALID_WHEN)}")
        raise CalibrationError(f"label design {design!r}: {rule}; state --label-design random or external if it is so")
    if method != "ppi++" and design != "random":
        raise CalibrationError(f"method {method!r} is for label design 'random'; design {design!r} has its own method")
    scored = {item: score for item, score in scores.items() if score is not None}
    given = {item: label for item, label in labels.items() if label is not None}
    shared = [item for item in given if item in scored]
    if not shared:
        raise CalibrationError(
            f"none of the {len(given)} labelled items is among the {len(scored)} judged ones: check the ids"
        )
    y = present([given[item] for item in shared], "label")[0]
    f = present([scored[item] for item in shared], "score")[0]
    others = [item for item in scored if item not in given]
    rest = present([scored[item] for item in others], "score")[0]
    _same_scale(np.concatenate([f, rest]), y, bounds)
    grouped = _clusters_of(shared, others, clusters)
    if bounds is None and all(_binary(values) for values in (y, f, rest)):
        bounds = (0.0, 1.0)
    if design == "external":
        found = _external(sample_of(y, f, rest, grouped), level)
    elif design == "stratified":
        named = None if grouped is None else clusters
        weighted = _by_stratum(scored, given, shared, strata, named, level)
        found = _designed(design, weighted, sample_of(y, f, rest, grouped), bounds, level)
    elif design == "propensity":
        weighted = weighted_ppi(y, f, _chances(shared, propensities), rest, clusters=grouped, level=level)
        found = _designed(design, weighted, sample_of(y, f, rest, grouped), bounds, level)
    elif method == "post-stratified":
        found = _reweighted(sample_of(y, f, rest, grouped), grouped, bounds, level)
    else:
        found = ppi(y, f, rest, clusters=grouped, bounds=bounds, level=level)
    lost = len(given) - len(shared)
    return replace(found, warnings=(*found.warnings, f"labels_without_score: {lost}")) if lost else found


def _clusters_of(shared: Sequence[str], others: Sequence[str], clusters: Mapping[str, Any] | None) -> Pair | None:
    """The clusters of labelled and of other items; None where no two items share one."""
    if clusters is None:
        return None
    missing = [item for item in (*shared, *others) if clusters.get(item) is None]
    if missing:
        raise CalibrationError(
            f"item {missing[0]} has no cluster ({len(missing)} of {len(shared) + len(others)} have none): "
            "when clusters are given every judged item has one"
        )
    pair = ([clusters[item] for item in shared], [clusters[item] for item in others])
    return pair if len({*pair[0], *pair[1]}) < len(pair[0]) + len(pair[1]) else None


def _by_stratum(
    scored: Mapping[str, float],
    given: Mapping[str, float],
    shared: Sequence[str],
    strata: Mapping[str, str] | None,
    clusters: Mapping[str, Any] | None,
    level: float,
) -> Weighted:
    if strata is None:
        raise CalibrationError("label design 'stratified' needs a stratum for every judged item: give the column")
    return stratified_ppi(strata_of({item: given[item] for item in shared}, scored, strata, clusters), level=level)


def _chances(shared: Sequence[str], propensities: Mapping[str, float | None] | None) -> list[float]:
    known = {item: chance for item, chance in (propensities or {}).items() if chance is not None}
    missing = [item for item in shared if item not in known]
    if missing:
        raise CalibrationError(
            f"label design 'propensity' needs the chance with which each item was labelled; {missing[0]} has none"
            f" ({len(missing)} of {len(shared)}): give a propensity column"
        )
    return [known[item] for item in shared]


def _designed(
    design: str, found: Weighted, sample: Sample, bounds: tuple[float, float] | None, level: float
) -> Correction:
    n, corrected = len(sample.labels), found.corrected
    naive = _judge_alone(sample, bounds, level)
    if corrected.reason == UNSEEN:
        return _human_only(naive, found.human_only, (*corrected.warnings, UNSEEN))
    alone = found.human_only.se
    to_halve = _labels_to_halve(sample, corrected.se, alone) if corrected.se and alone else None
    few = (f"fewer_than_{VERDICT_FROM}_labels: {n}",) if n < VERDICT_FROM else ()
    return Correction(
        method=f"ppi++_{'weighted' if design == 'propensity' else design}",
        naive=naive, corrected=corrected, human_only=found.human_only, lam=found.lam,
        effective_n=found.effective_n, labels_to_halve_ci=to_halve, warnings=few + corrected.warnings,
    )  # fmt: skip


def _reweighted(sample: Sample, clusters: Pair | None, bounds: tuple[float, float] | None, level: float) -> Correction:
    n, own = len(sample.labels), None if sample.clusters is None else sample.clusters[0]
    if n < POST_STRATIFY_FROM:
        raise CalibrationError(
            f"there are {n} labels: method 'post-stratified' needs {POST_STRATIFY_FROM} or more; ppi++ works with fewer"
        )
    naive, human_only = _judge_alone(sample, bounds, level), _plain_mean(sample.labels, own, bounds, level)
    if sample.other_units < 2:
        return _human_only(naive, human_only, ("no_unlabelled_items",))
    corrected = post_stratified(sample.labels, sample.judged, sample.unlabelled, clusters=clusters, level=level)
    if not corrected.se:
        return _human_only(naive, human_only, (*corrected.warnings, UNSEEN))
    alone = ppi_se(sample, 0.0)
    return Correction(
        method="post_stratified", naive=naive, corrected=corrected, human_only=human_only, lam=None,
        effective_n=n * (alone / corrected.se) ** 2, labels_to_halve_ci=_labels_to_halve(sample, corrected.se, alone),
        warnings=corrected.warnings,
    )  # fmt: skip


def _same_scale(scores: FloatArray, labels: FloatArray, bounds: tuple[float, float] | None) -> None:
    for name, values in (("scores", scores), ("labels", labels)):
        low, high = bounds or (-math.inf, math.inf)
        outside = values[(values < low) | (values > high)]
        if len(outside):
            raise CalibrationError(f"{name} hold {outside[0]:g}, outside the scale {low:g}..{high:g}")
    if bounds is None and (scores.max() <= 1) != (labels.max() <= 1) and min(scores.min(), labels.min()) >= 0:
        raise CalibrationError(
            f"scores reach {scores.max():g} and labels {labels.max():g}: they seem to be on different scales; "
            "bring both to one scale, or declare it with --scale if they are"
        )


def _binary(values: FloatArray) -> bool:
    return bool(np.isin(values, (0.0, 1.0)).all())


def _plain_mean(values: FloatArray, codes: Codes | None, bounds: tuple[float, float] | None, level: float) -> Estimate:
    if bounds != (0.0, 1.0) or not _binary(values):
        return mean(values, clusters=codes, level=level, bounds=bounds)
    if codes is None:
        return proportion(int(values.sum()), len(values), level=level)
    return clustered_proportion(values, clusters=codes, level=level)


def _judge_alone(sample: Sample, bounds: tuple[float, float] | None, level: float) -> Estimate:
    """The judge's own mean over all judged items."""
    return _plain_mean(np.concatenate([sample.judged, sample.unlabelled]), sample.codes, bounds, level)


def tuned_lambda(labels: FloatArray, judged: FloatArray, unlabelled: FloatArray) -> float:
    """How far to trust the judge, 0..1: Cov(Y, f) / ((1 + n / N) Var f). Angelopoulos, Duchi and Zrnic 2023."""
    spread = np.concatenate([judged, unlabelled]).var(ddof=1)
    if spread == 0:
        return 0.0
    covariance = np.mean((labels - labels.mean()) * (judged - judged.mean()))
    return float(np.clip(covariance / ((1 + len(labels) / len(unlabelled)) * spread), 0, 1))


def ppi_se(sample: Sample, lam: float, *, ddof: int = 1) -> float:
    """Standard error of lam mean(f~) + mean(Y - lam f), cluster-robust where the sample has clusters."""
    return math.sqrt(squared(influence(sample, lam, ddof=ddof), sample.codes))


def ppi(
    labels: Numbers,
    judged: Numbers,
    unlabelled: Numbers,
    *,
    clusters: Pair | None = None,
    lam: float | None = None,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Correction:
    """PPI++: the mean label in the population from n labelled items and N further judged ones.

    `labels` and `judged` belong to the same n items, `unlabelled` are judge scores of the others. theta =
    lam mean(f~) + mean(Y - lam f), t interval with n - 1 df and ddof 1; lam is tuned from 20 labels on, else 0, unless
    given. Labels alone (method `human_only`) when fewer than two others are judged, the judge is constant, or judge
    and people differ by a constant, where the error of the correction cannot be seen. Bounds may leave the scale.

    `clusters`: names of the clusters of the labelled and of the other items; a cluster may have both. Influences are
    summed within clusters over both sides, CR1, t with G - 1 df where G clusters hold labels, and lam has the least
    such variance, tuned from 20 clusters on. Angelopoulos, Duchi and Zrnic 2023; Liang and Zeger 1986.
    """
    sample = sample_of(labels, judged, unlabelled, clusters)
    y, f, rest, units = sample.labels, sample.judged, sample.unlabelled, sample.units
    if len(y) == 0:
        raise CalibrationError("there are no labels: a correction needs labelled items")
    n, own = len(y), None if sample.clusters is None else sample.clusters[0]
    naive = _judge_alone(sample, bounds, level)
    human_only = _plain_mean(y, own, bounds, level)
    warnings = _thin(sample, tuning=lam is None)
    if min(units, sample.other_units) < 2:
        lacking = "one_cluster_of_labels" if own is not None and units < 2 else "no_unlabelled_items"
        return _human_only(naive, human_only, (*warnings, lacking))
    if np.ptp(np.concatenate([f, rest])) == 0:
        return _human_only(naive, human_only, (*warnings, "judge_constant"))
    tuned = clustered_lambda([sample]) if own is not None else tuned_lambda(y, f, rest)
    trust = lam if lam is not None else tuned if units >= TUNE_FROM else 0.0
    if np.ptp(y - f) == 0 or np.ptp(y - trust * f) == 0:
        return _human_only(naive, human_only, (*warnings, UNSEEN))
    value = trust * float(rest.mean()) + float((y - trust * f).mean())
    se, alone = ppi_se(sample, trust), ppi_se(sample, 0.0)
    half = t_quantile(level, units - 1) * se
    corrected = Estimate(
        value=value, se=se, ci_low=value - half, ci_high=value + half, level=level, n=n,
        method="ppi++_t" if own is None else "ppi++_t_cr1", n_clusters=None if own is None else units,
        warnings=() if own is None else cluster_warnings(units),
    )  # fmt: skip
    return Correction(
        method="ppi++", naive=naive, corrected=corrected, human_only=human_only, lam=trust,
        effective_n=n * (alone / se) ** 2, labels_to_halve_ci=_labels_to_halve(sample, se, alone),
        warnings=warnings + corrected.warnings,
    )  # fmt: skip


def _thin(sample: Sample, *, tuning: bool) -> tuple[str, ...]:
    """What is too few about the labels."""
    n, units, (y, f) = len(sample.labels), sample.units, (sample.labels, sample.judged)
    warnings: tuple[str, ...] = (f"fewer_than_{VERDICT_FROM}_labels: {n}",) if n < VERDICT_FROM else ()
    if tuning and units < TUNE_FROM:
        what = "labels" if sample.clusters is None else "clusters"
        warnings += (f"too_few_{what}_to_tune: {units}",)
    disagreements = int((y != f).sum())
    if _binary(y) and _binary(f) and 0 < disagreements < FEW_DISAGREEMENTS:
        warnings += (f"few_disagreements: {disagreements}",)
    return warnings


def _human_only(naive: Estimate, human_only: Estimate, warnings: tuple[str, ...]) -> Correction:
    n = human_only.n
    return Correction(
        method="human_only", naive=naive, corrected=human_only, human_only=human_only, lam=0.0,
        effective_n=float(n), labels_to_halve_ci=4 * n, warnings=warnings,
    )  # fmt: skip


def _labels_to_halve(sample: Sample, se: float, alone: float) -> int | None:
    """Labels in all that halve the interval, with the judge as good as on the labels and as many judged items.

    `alone` is the standard error of the labels alone: with clusters, labels of as large clusters are meant.
    """
    n, y, f, others = len(sample.labels), sample.labels, sample.judged, len(sample.unlabelled)
    if not others:
        return None
    rho = 0.0 if np.ptp(f) == 0 or np.ptp(y) == 0 else float(np.corrcoef(y, f)[0, 1])
    return max(n + 1, labels_for_variance(se**2 / 4, alone * math.sqrt(n), max(rho, 0.0), others))


def ppi_difference(
    labels: tuple[Sequence[float], Sequence[float]],
    judged: tuple[Sequence[float], Sequence[float]],
    unlabelled: tuple[Sequence[float], Sequence[float]],
    *,
    clusters: Pair | None = None,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Correction:
    """PPI++ of system A minus system B on the same items: one correction of the differences, not two intervals.

    Each argument is (values of A, values of B) in the same item order; `bounds` are the ends of the score scale.
    """
    span = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    pairs = {"labels": labels, "judged": judged, "unlabelled": unlabelled}
    for name, (a, b) in pairs.items():
        if len(a) != len(b):
            raise CalibrationError(f"{name} has {len(a)} values of A and {len(b)} of B: give both on the same items")
    y, f, rest = (present(a, name)[0] - present(b, name)[0] for name, (a, b) in pairs.items())
    return ppi(y, f, rest, clusters=clusters, bounds=span, level=level)


def _external(sample: Sample, level: float) -> Correction:
    labels, judged, evaluated = sample.labels, sample.judged, sample.unlabelled
    if not (_binary(labels) and _binary(judged) and _binary(evaluated)):
        raise CalibrationError(
            "label design 'external' needs scores and labels of 0 and 1: labels of other items cannot "
            "correct graded scores; label a random sample of these"
        )
    if len(evaluated) == 0:
        raise CalibrationError(
            "every judged item is labelled: with design 'external' the judged file also holds the items to correct"
        )
    n, passes = len(evaluated), int(evaluated.sum())
    m1, m0 = int(labels.sum()), int((1 - labels).sum())
    sensitivity = float(judged[labels == 1].mean()) if m1 else 0.0
    specificity = float(1 - judged[labels == 0].mean()) if m0 else 0.0
    rates: dict[str, Any] = {"specificity": specificity, "m0": m0, "sensitivity": sensitivity, "m1": m1}
    corrected = rogan_gladen(passes / n, n, **rates, level=level)
    warnings = tuple(f"few_labels_of_a_class: {count}" for count in (m0, m1) if count < VERDICT_FROM)
    effective = to_halve = None
    own, others = sample.clusters or (None, None)
    if own is not None and corrected.value is not None:
        corrected = replace(corrected, se=None, ci_low=None, ci_high=None, status="insufficient", reason=CLUSTERED)
    if corrected.value is not None and corrected.se:
        judge_part, label_part = variance_parts(corrected.value, passes / n, n, **rates)
        target = (judge_part + label_part) / 4
        spread = corrected.value * (1 - corrected.value)
        effective = spread / corrected.se**2 if spread > 0 else None
        to_halve = math.ceil((m0 + m1) * label_part / (target - judge_part)) if target > judge_part else None
        warnings += ("more_judged_items_needed",) if to_halve is None else ()
    return Correction(
        method="rogan_gladen", naive=_plain_mean(evaluated, others, (0.0, 1.0), level), corrected=corrected,
        human_only=_plain_mean(labels, own, (0.0, 1.0), level), lam=None, effective_n=effective,
        labels_to_halve_ci=to_halve, warnings=warnings + corrected.warnings,
    )  # fmt: skip
