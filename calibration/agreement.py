"""The agreement page of a judge: every coefficient beside its base rate, bias and ceiling, never kappa alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from calibration.accuracy import binary_rates, cell_mean, cell_share
from calibration.ceiling import HumanCeiling, ceiling_of
from calibration.correlation import ccc_estimate, pearson_estimate
from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray, undefined
from calibration.kappa import kappa
from calibration.multirater import krippendorff_alpha, label_counts
from calibration.ratings import Ratings, Scale, choose_raters
from calibration.resampling import PairTables, pair_tables, table_estimate
from calibration.tables import (
    Metric,
    Weights,
    bias_index,
    gwet_ac,
    kappa_max,
    kendall_tau_b,
    pabak,
    pair_alpha,
    percent_agreement,
    prevalence_index,
    scott_pi,
    spearman,
)

WEIGHTS: tuple[Weights, ...] = ("none", "linear", "quadratic")
PARADOX_GAP = 0.3
PARADOX_PREVALENCE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Counts over all judge-human pairs: rows = judge, columns = human, in scale order."""

    labels: list[str]
    table: list[list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAgreement:
    """The judge against one human."""

    rater: str
    n: int
    n_dropped: int
    percent_agreement: Estimate
    kappa: dict[str, Estimate]
    mean_bias: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What `agreement` reports; field order is the order of the JSON keys.

    With several humans coefficients are means over the humans, shares and means run over all judge-human pairs with
    intervals clustered by item, and alpha is that of all raters together.
    """

    n: int
    n_dropped: int
    scale: list[str]
    percent_agreement: Estimate
    kappa: dict[str, Estimate]
    kappa_max: float | None
    scott_pi: Estimate
    ac1: Estimate
    pabak: Estimate
    prevalence_index: float | None
    bias_index: float | None
    within_1: Estimate
    mean_bias: Estimate
    mae: Estimate
    spearman: Estimate
    kendall_tau_b: Estimate
    pearson: Estimate
    ccc: Estimate
    krippendorff_alpha: dict[str, Estimate]
    confusion: Confusion
    binary: dict[str, Estimate] | None
    base_rate: float
    constant_judge_accuracy: float
    human_ceiling: HumanCeiling
    per_human: list[HumanAgreement]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, no NaN."""
        plain: dict[str, Any] = as_json(self)
        return plain


def as_json(value: Any) -> Any:
    """Estimates, dataclasses, dicts and sequences of them as plain JSON types."""
    if isinstance(value, Estimate):
        return value.to_dict()
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, list | tuple) else value


def agreement(
    ratings: Ratings,
    *,
    judge: str | None = None,
    humans: Sequence[str] | None = None,
    level: float = 0.95,
    seed: int = 0,
    replicates: int = 9999,
) -> Agreement:
    """The agreement page of one judge with one or more humans.

    Ordered statistics are undefined with reason `scale_not_declared` or `nominal_scale` unless the scale is declared
    and ordered. Clusters of the ratings are the resampling unit. Unknown raters, a judge that is also a human, and
    raters without a common item are errors.
    """
    judge, chosen = choose_raters(ratings, judge, humans)
    scale, k = ratings.scale, len(ratings.scale.labels)
    pairs = [(ratings.of(judge), ratings.of(human)) for human in chosen]
    data = pair_tables(pairs, k, clusters=ratings.clusters)
    if data.n == 0:
        raise CalibrationError(_empty_join(ratings, judge, chosen))
    options: dict[str, Any] = {"level": level, "seed": seed, "replicates": replicates}
    pooled = data.pooled
    humans_alone = pooled.sum(axis=0) / pooled.sum()
    page = Agreement(
        n=data.n,
        n_dropped=data.n_dropped,
        scale=list(scale.labels),
        percent_agreement=cell_share(data, np.eye(k), level=level),
        kappa={weights: _kappa(data, scale, weights, options) for weights in WEIGHTS},
        kappa_max=_plain(kappa_max(pooled)),
        scott_pi=table_estimate(scott_pi, data, **options),
        ac1=table_estimate(gwet_ac, data, **options) if scale.declared else _not_applicable(scale, data),
        pabak=_pabak(data, level, options) if scale.declared else _not_applicable(scale, data),
        prevalence_index=_plain(prevalence_index(pooled)) if k == 2 else None,
        bias_index=_plain(bias_index(pooled)) if k == 2 else None,
        **_ordered_statistics(data, scale, options),
        krippendorff_alpha=_alphas(ratings, [judge, *chosen], data, options),
        confusion=Confusion(labels=list(scale.labels), table=[[int(cell) for cell in row] for row in pooled]),
        binary=binary_rates(data, **options) if k == 2 and scale.declared else None,
        base_rate=float(humans_alone[-1] if k == 2 and scale.declared else humans_alone.max()),
        constant_judge_accuracy=float(humans_alone.max()),
        human_ceiling=ceiling_of(ratings, judge, chosen, **options),
        per_human=[_against(ratings, judge, human, options) for human in chosen] if len(chosen) > 1 else [],
        warnings=[],
    )
    return replace(page, warnings=_page_warnings(page, data, scale))


def _empty_join(ratings: Ratings, judge: str, humans: Sequence[str]) -> str:
    judged = int((ratings.of(judge) >= 0).sum())
    labelled = int(np.any([ratings.of(human) >= 0 for human in humans], axis=0).sum())
    names = ", ".join(humans)
    return (
        f"no item has a label from both {judge!r} and {names}: {judged} items only from {judge!r}, {labelled} only "
        f"from {names}; the item ids must be spelled the same in all rows"
    )


def _plain(value: FloatArray) -> float | None:
    return float(value) if math.isfinite(value) else None


def _not_applicable(scale: Scale, data: PairTables) -> Estimate:
    return undefined("nominal_scale" if scale.declared else "scale_not_declared", n=data.n, n_dropped=data.n_dropped)


def _kappa(data: PairTables, scale: Scale, weights: Weights, options: dict[str, Any]) -> Estimate:
    return kappa(data, weights, **options) if weights == "none" or scale.ordered else _not_applicable(scale, data)


def _pabak(data: PairTables, level: float, options: dict[str, Any]) -> Estimate:
    """PABAK is a line in percent agreement, so its interval is the Wilson one carried over."""
    if not data.independent or data.n < 10:
        return table_estimate(pabak, data, **options)
    share, k = cell_share(data, np.eye(data.tables.shape[-1]), level=level), data.tables.shape[-1]
    line = {name: (k * getattr(share, name) - 1) / (k - 1) for name in ("value", "ci_low", "ci_high")}
    return replace(share, **line, se=k / (k - 1) * (share.se or 0.0), method="wilson_map")


def _ordered_statistics(data: PairTables, scale: Scale, options: dict[str, Any]) -> dict[str, Estimate]:
    names = ("within_1", "mean_bias", "mae", "spearman", "kendall_tau_b", "pearson", "ccc")
    if not scale.ordered:
        return {name: _not_applicable(scale, data) for name in names}
    steps, values, level = np.arange(len(scale.labels)), scale.values, options["level"]
    apart, span = values[:, None] - values[None, :], float(values[-1] - values[0])
    near = np.abs(steps[:, None] - steps[None, :]) <= 1
    return {
        "within_1": cell_share(data, near, level=level),
        "mean_bias": cell_mean(data, apart, (-span, span), level=level),
        "mae": cell_mean(data, np.abs(apart), (0.0, span), level=level),
        "spearman": table_estimate(spearman, data, reason="constant_input", **options),
        "kendall_tau_b": table_estimate(kendall_tau_b, data, reason="constant_input", **options),
        "pearson": pearson_estimate(data, values, **options),
        "ccc": ccc_estimate(data, values, **options),
    }


def _alphas(ratings: Ratings, raters: Sequence[str], data: PairTables, options: dict[str, Any]) -> dict[str, Estimate]:
    """Alpha of all raters together; two raters without clusters are taken from their table."""
    scale, values = ratings.scale, ratings.scale.values
    metrics: tuple[Metric, ...] = ("nominal", "ordinal", "interval") if scale.ordered else ("nominal",)
    alphas = {metric: _not_applicable(scale, data) for metric in ("nominal", "ordinal", "interval")}
    if len(raters) == 2:
        return alphas | {
            metric: table_estimate(partial(pair_alpha, metric=metric, values=values), data, **options)
            for metric in metrics
        }
    counts = label_counts(np.stack([ratings.of(rater) for rater in raters], axis=1), len(scale.labels))
    return alphas | {
        metric: krippendorff_alpha(counts, metric, values=values, clusters=ratings.clusters, **options)
        for metric in metrics
    }


def _against(ratings: Ratings, judge: str, human: str, options: dict[str, Any]) -> HumanAgreement:
    scale, k = ratings.scale, len(ratings.scale.labels)
    data = pair_tables([(ratings.of(judge), ratings.of(human))], k, clusters=ratings.clusters)
    apart, span = scale.values[:, None] - scale.values[None, :], float(scale.values[-1] - scale.values[0])
    bias = cell_mean(data, apart, (-span, span), level=options["level"])
    return HumanAgreement(
        rater=human,
        n=data.n,
        n_dropped=data.n_dropped,
        percent_agreement=cell_share(data, np.eye(k), level=options["level"]),
        kappa={weights: _kappa(data, scale, weights, options) for weights in WEIGHTS},
        mean_bias=bias if scale.ordered else _not_applicable(scale, data),
    )


def _page_warnings(page: Agreement, data: PairTables, scale: Scale) -> list[str]:
    pooled = data.pooled
    found = [warning for estimate in page.kappa.values() for warning in estimate.warnings]
    found += ["scale_not_declared"] if not scale.declared else []
    found += ["word_scale_counted_in_steps"] if scale.ordered and scale.numbers is None else []
    found += ["judge_constant"] if (pooled.sum(axis=1) > 0).sum() == 1 else []
    found += ["human_constant"] if (pooled.sum(axis=0) > 0).sum() == 1 else []
    found += ["n_below_10"] if data.n < 10 else []
    skipped = [human.rater for human in page.per_human if human.kappa["none"].value is None]
    found += [f"kappa_undefined_for: {rater}" for rater in skipped]
    agreed, coefficient = float(percent_agreement(pooled)), page.kappa["none"].value
    gap = coefficient is not None and agreed - coefficient >= PARADOX_GAP
    found += ["prevalence_paradox"] if gap or (page.prevalence_index or 0) >= PARADOX_PREVALENCE else []
    return list(dict.fromkeys(found))
