"""Has the judge changed? Old and new verdicts on the same frozen, human-labelled anchor items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibration.compare import McNemar, holm, mcnemar, normal_p, sign_flip, wilcoxon
from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray, mean, proportion
from calibration.ratings import Ratings, Scale, ratings_of
from calibration.resampling import PairTables, pair_tables, summary_estimate
from calibration.tables import Weights, cohen_kappa, table_of

Verdict = Literal["equivalent", "changed", "inconclusive"]

MARGIN_SHARE = 0.05
KAPPA_MARGIN = 0.1
ALPHA = 0.05
ANCHORS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One way in which the judge may have changed: new minus old, how much of it is harmless, and what came out.

    `p_adjusted` is Holm's over the checks and the planned looks.
    """

    name: str
    difference: Estimate
    margin: float
    p: float | None
    p_adjusted: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Homogeneity:
    """Stuart-Maxwell's test that both versions use the labels equally often; None when no label moved."""

    chi2: float | None
    df: int
    p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The verdict on old against new; `difference` is the mean shift of the score, new minus old.

    `p`: the smallest Holm-adjusted p of the checks, before the planned looks: what the next look takes as `earlier`.
    """

    verdict: Verdict
    difference: Estimate
    checks: tuple[Check, ...]
    exact_agreement: Estimate
    wilcoxon_p: float | None
    mcnemar: McNemar
    stuart_maxwell: Homogeneity
    kappa_old: Estimate
    kappa_new: Estimate
    looks: int
    p: float | None
    n: int
    n_dropped: int
    warnings: tuple[str, ...]


def drift(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    anchor: Mapping[str, Any],
    *,
    scale: Scale | None = None,
    clusters: Mapping[str, Any] | None = None,
    margin: float | None = None,
    kappa_margin: float = KAPPA_MARGIN,
    looks: int = 1,
    earlier: Sequence[float] = (),
    level: float = 0.95,
    seed: int = 0,
    replicates: int = 9999,
) -> Drift:
    """Old and new labels of the judge, and the human anchor labels, item -> label; items in all three are compared.

    Three checks: mean shift of the score, difference of the shares that agree with the human label (McNemar mid-p), and
    difference of kappa (paired bootstrap of items). Each is `equivalent` when its interval lies within +-margin,
    `changed` when its Holm-adjusted p is below 0.05, else `inconclusive`. Together: `changed` when any check is, else
    `equivalent` when all are. `margin` is on the score's scale (default 5% of its range, and 5 points of agreement);
    `looks` is the number of looks planned in all: intervals spend an equal share each, p values are adjusted by Holm
    over the looks, `earlier` being the `p` of those before this one. Without a declared scale labels
    must be numbers, and kappa is unweighted. A label off the scale is an error. Two one-sided tests: Schuirmann 1987;
    Fagerland et al. 2013; Stuart 1955, Maxwell 1970.
    """
    if looks < 1:
        raise CalibrationError(f"looks is {looks}: the number of looks planned in all, 1 or more")
    planned_looks([*earlier, 1.0], looks)
    ratings, n_dropped = _joined(old, new, anchor, scale, clusters)
    known = ratings.scale
    if known.numbers is None and not known.declared:
        raise CalibrationError("labels are words: declare their order with --scale, lowest first")
    before, after, human = (ratings.of(name) for name in ("old", "new", "anchor"))
    n, span = len(ratings.items), float(np.ptp(known.values))
    score_margin = MARGIN_SHARE * span if margin is None else margin
    for name, value in (("margin", score_margin), ("kappa_margin", kappa_margin)):
        if not value > 0:
            raise CalibrationError(f"{name} is {value}: name the change that would be harmless, above 0")
    confidence = 1 - (1 - level) / looks
    options: dict[str, Any] = {"level": confidence, "seed": seed, "replicates": replicates}
    shift = known.values[after] - known.values[before]
    right = (after == human) * 1.0 - (before == human)
    data = pair_tables([(before, human), (after, human)], len(known.labels), clusters=ratings.clusters)
    weights: Weights = "quadratic" if known.ordered and len(known.labels) > 2 else "none"
    gain = kappa_difference(data, weights, options)
    won, lost = int((right > 0).sum()), int((right < 0).sum())
    differences = {
        "mean_shift": mean(shift, clusters=ratings.clusters, level=confidence, bounds=(-span, span)),
        "accuracy": mean(right, clusters=ratings.clusters, level=confidence, bounds=(-1, 1)),
        "kappa": gain,
    }
    changes, groups = mcnemar(won, lost), ratings.clusters
    p_values = {
        "mean_shift": sign_flip(shift, clusters=groups, seed=seed, replicates=replicates),
        "accuracy": changes.p_mid if groups is None else sign_flip(right, clusters=groups, seed=seed),
        "kappa": normal_p(gain),
    }
    margins = {"mean_shift": score_margin, "accuracy": MARGIN_SHARE, "kappa": kappa_margin}
    own = _over_checks(p_values)
    adjusted = {name: planned_looks([*earlier, p], looks)[-1] for name, p in own.items()}
    checks = _checks(differences, margins, p_values, adjusted, moved=bool((before != after).any()))
    return Drift(
        verdict=_together(checks), difference=differences["mean_shift"], checks=checks,
        exact_agreement=proportion(int((before == after).sum()), n, level=level),
        wilcoxon_p=wilcoxon(shift, zeros="wilcox"),
        mcnemar=changes, stuart_maxwell=stuart_maxwell(table_of(before, after, len(known.labels))),
        kappa_old=_kappa_of(data, 0, weights, options), kappa_new=_kappa_of(data, 1, weights, options),
        looks=looks, p=min(own.values(), default=None), n=n, n_dropped=n_dropped,
        warnings=(f"few_anchors: {n}",) if n < ANCHORS else (),
    )  # fmt: skip


def _joined(
    old: Mapping[str, Any], new: Mapping[str, Any], anchor: Mapping[str, Any], scale: Scale | None,
    clusters: Mapping[str, Any] | None,
) -> tuple[Ratings, int]:  # fmt: skip
    """Ratings of the items that all three have, and how many items lack one."""
    sides = {"old": old, "new": new, "anchor": anchor}
    items = [item for item in anchor if all(side.get(item) is not None for side in sides.values())]
    if not items:
        sizes = ", ".join(f"{name} {len(side)}" for name, side in sides.items())
        raise CalibrationError(f"no item has an old, a new and an anchor label ({sizes} items): check the ids")
    rows = [(item, name, side[item]) for item in items for name, side in sides.items()]
    names, raters, labels = zip(*rows, strict=True)
    groups = None if clusters is None else [clusters[item] for item in names]
    ratings = ratings_of(names, raters, labels, scale=scale, clusters=groups)
    return ratings, len({*old, *new, *anchor}) - len(items)


def kappa_difference(data: PairTables, weights: Weights, options: dict[str, Any]) -> Estimate:
    def difference(tables: FloatArray) -> FloatArray:
        found: FloatArray = cohen_kappa(tables[:, 1], weights) - cohen_kappa(tables[:, 0], weights)
        return found

    return summary_estimate(difference, data, reason="single_class", **options)


def _kappa_of(data: PairTables, place: int, weights: Weights, options: dict[str, Any]) -> Estimate:
    def of_version(tables: FloatArray) -> FloatArray:
        return cohen_kappa(tables[:, place], weights)

    return summary_estimate(of_version, data, reason="single_class", **options)


def _over_checks(p_values: Mapping[str, float | None]) -> dict[str, float]:
    """Holm's adjusted p of the checks that have one."""
    tested = {name: p for name, p in p_values.items() if p is not None}
    return dict(zip(tested, holm(list(tested.values())), strict=True))


def _checks(
    differences: Mapping[str, Estimate],
    margins: Mapping[str, float],
    p_values: Mapping[str, float | None],
    adjusted: Mapping[str, float],
    *,
    moved: bool,
) -> tuple[Check, ...]:
    found: list[Check] = []
    for name, difference in differences.items():
        p = adjusted.get(name)
        verdict = _verdict(difference, margins[name], p)
        if not moved and name != "mean_shift":
            verdict = found[0].verdict
        known: dict[str, Any] = {"margin": margins[name], "p": p_values[name], "p_adjusted": p, "verdict": verdict}
        found.append(Check(name=name, difference=difference, **known))
    return tuple(found)


def _verdict(difference: Estimate, margin: float, p_adjusted: float | None) -> Verdict:
    low, high = difference.ci_low, difference.ci_high
    if low is not None and high is not None and -margin <= low and high <= margin:
        return "equivalent"
    return "changed" if p_adjusted is not None and p_adjusted < ALPHA else "inconclusive"


def _together(checks: Sequence[Check]) -> Verdict:
    verdicts = {check.verdict for check in checks}
    if "changed" in verdicts:
        return "changed"
    return "equivalent" if verdicts == {"equivalent"} else "inconclusive"


def stuart_maxwell(table: FloatArray) -> Homogeneity:
    """Marginal homogeneity of a K x K table: d' S^-1 d with K - 1 df over the labels in use. Stuart 1955; Maxwell 1970.

    Blind to order: a shift along an ordered scale is seen by the signed-rank test, not here.
    """
    from scipy.special import chdtrc

    used = np.flatnonzero(table.sum(axis=0) + table.sum(axis=1))
    n = table[np.ix_(used, used)]
    d = (n.sum(axis=1) - n.sum(axis=0))[:-1]
    spread = -(n + n.T)
    np.fill_diagonal(spread, n.sum(axis=1) + n.sum(axis=0) - 2 * np.diag(n))
    moves = spread[:-1, :-1]
    df = len(used) - 1
    if df == 0 or np.linalg.matrix_rank(moves) < df:
        return Homogeneity(chi2=None, df=df, p=None)
    chi2 = float(d @ np.linalg.solve(moves, d))
    return Homogeneity(chi2=chi2, df=df, p=float(chdtrc(df, chi2)))


def planned_looks(p_values: Sequence[float], planned: int) -> list[float]:
    """Holm's adjusted p of the looks so far when `planned` looks are made in all; those to come count as 1.

    An alarm at an adjusted p below alpha keeps the chance of any false alarm over all looks at alpha. Holm 1979.
    """
    if planned < len(p_values):
        raise CalibrationError(f"{len(p_values)} looks were made and {planned} planned: an extra look needs a new plan")
    return holm([*p_values, *[1.0] * (planned - len(p_values))])[: len(p_values)]


def anytime_half_width(t: int, *, alpha: float = ALPHA, width: float = 1.0) -> float:
    """Half-width of a confidence sequence for a mean of t values on a scale of that width, valid at every look.

    width sqrt(log(2 t (t + 1) / alpha) / (2 t)): Hoeffding's bound with a union over t. For alarms; at t = 100 it is
    2.6 times as wide as an interval for one planned look.
    """
    if t < 1 or not 0 < alpha < 1 or not width > 0:
        raise CalibrationError(f"t is {t}, alpha {alpha}, width {width}: t from 1, alpha within 0..1, width above 0")
    return width * math.sqrt(math.log(2 * t * (t + 1) / alpha) / (2 * t))
