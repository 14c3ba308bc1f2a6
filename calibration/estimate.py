"""A number that carries its doubt: value, interval, n, method and what went wrong, in one object."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError

FloatArray = npt.NDArray[np.float64]
Status = Literal["ok", "undefined", "insufficient"]

FEW_CLUSTERS = 15
TOO_FEW_CLUSTERS = 5
DEGENERATE_SHARE = 0.05
BOOTSTRAP_FROM = 10
CELLS_AT_ONCE = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A statistic with its interval and the counts behind it.

    `status` is `ok`; `insufficient` (a value that the data cannot give an interval or a verdict for); or
    `undefined` (no value). The latter two have a `reason`. No field is ever NaN or infinite.
    """

    value: float | None = None
    se: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    level: float = 0.95
    method: str = "none"
    n: int = 0
    n_clusters: int | None = None
    n_dropped: int = 0
    status: Status = "ok"
    reason: str | None = None
    warnings: tuple[str, ...] = ()
    seed: int | None = None
    replicates: int | None = None

    def __post_init__(self) -> None:
        for name in ("value", "se", "ci_low", "ci_high"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise CalibrationError(f"{name} is {number}: an Estimate holds finite numbers or None with a reason")
        if self.status == "undefined" and self.value is not None:
            raise CalibrationError(f"value is {self.value} but status is undefined: an undefined Estimate has no value")
        if self.status != "ok" and self.reason is None:
            raise CalibrationError(f"status is {self.status} without a reason: name what is missing")

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON types, in the order of the contract."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("value", "se", "ci_low", "ci_high"):
            plain[name] = None if plain[name] is None else float(plain[name])
        return plain | {"warnings": list(self.warnings)}


def undefined(reason: str, *, n: int = 0, method: str = "none", n_dropped: int = 0) -> Estimate:
    """An Estimate without a value, and why."""
    return Estimate(status="undefined", reason=reason, n=n, method=method, n_dropped=n_dropped)


def normal_quantile(level: float) -> float:
    """z of a two-sided interval of that level, 1.96 for 0.95."""
    if not 0 < level < 1:
        raise CalibrationError(f"level is {level}: it must lie between 0 and 1, such as 0.95")
    return NormalDist().inv_cdf((1 + level) / 2)


def t_quantile(level: float, df: float) -> float:
    """t of a two-sided interval of that level with `df` degrees of freedom."""
    from scipy.special import stdtrit

    normal_quantile(level)
    return float(stdtrit(df, (1 + level) / 2))


def wilson_bounds(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a share, n > 0; counts may be fractional (effective sizes). Wilson 1927."""
    z = normal_quantile(level)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(max(share * (1 - share), 0.0) / n + z * z / (4 * n * n))
    low = 0.0 if share == 0 else centre - half
    high = 1.0 if share == 1 else centre + half
    return low, high


def present(values: Sequence[Any] | npt.NDArray[Any], name: str = "values") -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The values that are there as floats, and a mask of where they were.

    None is missing. NaN, infinity and text that is no number are errors that name the position.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        mask = np.ones(len(values), dtype=bool)
        numbers = values.astype(np.float64)
    else:
        mask = np.fromiter((value is not None for value in values), dtype=bool, count=len(values))
        kept = [value for value in values if value is not None]
        try:
            numbers = np.array(kept, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise CalibrationError(f"{name}: {error}; every value must be a number or None") from None
    if numbers.ndim != 1:
        raise CalibrationError(f"{name} has {numbers.ndim} dimensions: give one number per item")
    broken = np.flatnonzero(~np.isfinite(numbers))
    if len(broken):
        place = int(np.flatnonzero(mask)[broken[0]])
        raise CalibrationError(f"{name}[{place}] is {numbers[broken[0]]}: give a finite number, or None when missing")
    return numbers, mask


def cluster_codes(
    clusters: Sequence[Any] | npt.NDArray[Any], mask: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.intp], int]:
    """Clusters of the items that the mask keeps as 0..G-1, and G; one label per item, none missing."""
    labels = list(clusters)
    if len(labels) != len(mask):
        raise CalibrationError(f"clusters has {len(labels)} labels for {len(mask)} values: give one cluster per value")
    if any(label is None for label in labels):
        raise CalibrationError(f"clusters[{labels.index(None)}] is missing: every item belongs to a cluster")
    order: dict[Any, int] = {}
    codes = [order.setdefault(label, len(order)) for label, kept in zip(labels, mask, strict=True) if kept]
    return np.array(codes, dtype=np.intp), len(order)


def cluster_warnings(n_clusters: int) -> tuple[str, ...]:
    """The warning that intervals from fewer than 15 clusters cover less than they say."""
    return (f"few_clusters: {n_clusters}",) if n_clusters < FEW_CLUSTERS else ()


def mean(
    values: Sequence[float | None] | npt.NDArray[Any],
    *,
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """The mean with a t interval (n - 1 df), cluster-robust (CR1, G - 1 df) when clusters are given.

    None is dropped and counted. No values: undefined `no_values`. One value, or one cluster: no interval.
    All values equal: a t interval would have width 0. With `bounds` (the scale's ends) the interval then lets the
    Wilson upper limit of 0 in n sit at either end; without bounds there is no interval, reason `zero_variance`.
    Bounds of t intervals may leave the scale. CR1: Liang and Zeger 1986 with G/(G-1).
    """
    numbers, mask = present(values)
    n, n_dropped = len(numbers), int((~mask).sum())
    if n == 0:
        return undefined("no_values", n_dropped=n_dropped)
    centre = float(numbers[0] if np.ptp(numbers) == 0 else numbers.mean())
    errors = numbers - centre
    units = n
    n_clusters, method = None, "t"
    warnings: tuple[str, ...] = ()
    if clusters is None:
        variance = float(errors @ errors) / (n - 1) / n if n > 1 else 0.0
    else:
        codes, n_clusters = cluster_codes(clusters, mask)
        units, method, warnings = n_clusters, "t_cr1", cluster_warnings(n_clusters)
        sums = np.bincount(codes, weights=errors)
        variance = float(sums @ sums) / n**2 * units / (units - 1) if units > 1 else 0.0
    known: dict[str, Any] = {
        "value": centre, "level": level, "n": n, "n_clusters": n_clusters, "n_dropped": n_dropped, "warnings": warnings
    }  # fmt: skip
    if units == 1:
        reason = "one_value" if n == 1 else "one_cluster"
        return Estimate(**known, method=method, status="insufficient", reason=reason)
    if np.ptp(numbers) == 0:
        return constant_mean(known, units, bounds)
    se = math.sqrt(variance)
    if se <= 1e-12 * np.ptp(numbers):
        return Estimate(**known, se=se, method=method, status="insufficient", reason="zero_variance")
    half = t_quantile(level, units - 1) * se
    return Estimate(**known, se=se, ci_low=centre - half, ci_high=centre + half, method=method)


def constant_mean(known: dict[str, Any], units: int, bounds: tuple[float, float] | None) -> Estimate:
    """The Estimate of a mean whose `units` all have one value; `known` holds value, level, n and counts."""
    known = dict(known)
    known["warnings"] = (*known["warnings"], "zero_variance")
    if bounds is None:
        return Estimate(**known, se=0.0, method="t", status="insufficient", reason="zero_variance")
    low, high = bounds
    if not low <= known["value"] <= high:
        raise CalibrationError(f"value {known['value']} lies outside bounds {low}..{high}: pass the scale's own ends")
    unseen = wilson_bounds(0, units, known["level"])[1]
    ci_low = known["value"] - unseen * (known["value"] - low)
    ci_high = known["value"] + unseen * (high - known["value"])
    return Estimate(**known, se=0.0, ci_low=ci_low, ci_high=ci_high, method="wilson_zero_variance")


def proportion(successes: int, n: int, *, level: float = 0.95, n_dropped: int = 0) -> Estimate:
    """A share of independent trials with its Wilson interval, from n = 1; n = 0 is undefined `no_values`."""
    if n < 0 or not 0 <= successes <= n:
        raise CalibrationError(f"successes is {successes} of n {n}: counts need 0 <= successes <= n")
    if n == 0:
        return undefined("no_values", method="wilson", n_dropped=n_dropped)
    low, high = wilson_bounds(successes, n, level)
    share = successes / n
    se = math.sqrt(share * (1 - share) / n)
    return Estimate(
        value=share, se=se, ci_low=low, ci_high=high, level=level, method="wilson", n=int(n), n_dropped=n_dropped
    )


def clustered_proportion(
    outcomes: Sequence[bool | None] | npt.NDArray[Any],
    *,
    clusters: Sequence[Any] | npt.NDArray[Any],
    level: float = 0.95,
) -> Estimate:
    """A share of trials that come in clusters: Wilson with the effective sample size.

    The effective size is p(1-p) / CR1 variance, at most n, shrunk by (z / t(G-1))^2; when every outcome is the same
    it is the number of clusters. Below 2 clusters there is no interval. Korn and Graubard 1998, Wilson form.
    """
    numbers, mask = present(outcomes, "outcomes")
    if not np.isin(numbers, (0.0, 1.0)).all():
        raise CalibrationError("outcomes holds values other than 0 and 1: a proportion counts yes and no")
    plain = mean(outcomes, clusters=clusters, level=level)
    if plain.value is None or plain.n_clusters is None or plain.n_clusters < 2:
        return plain
    low, high = wilson_effective(plain.value, plain.se or 0.0, plain.n, plain.n_clusters, level)
    return Estimate(
        value=plain.value, se=plain.se, ci_low=low, ci_high=high, level=level, method="wilson_effective_n",
        n=plain.n, n_clusters=plain.n_clusters, n_dropped=int((~mask).sum()),
        warnings=cluster_warnings(plain.n_clusters),
    )  # fmt: skip


def wilson_effective(share: float, se: float, n: float, units: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson interval with the effective size of a share whose cluster-robust standard error is `se`."""
    effective = float(units)
    if 0 < share < 1 and se > 0:
        shrink = (normal_quantile(level) / t_quantile(level, units - 1)) ** 2
        effective = min(float(n), share * (1 - share) / se**2 * shrink)
    return wilson_bounds(share * effective, effective, level)


def resampled_totals(
    rows: FloatArray, counts: npt.NDArray[Any], rng: np.random.Generator, replicates: int
) -> FloatArray:
    """Column sums of bootstrap samples, shape (replicates, k).

    `rows` (u, k) are the distinct units, `counts` (u,) how often each occurs: drawing units with replacement is
    drawing multinomial counts of the distinct ones, so nothing loops over items or replicates.
    """
    n = int(counts.sum())
    totals = np.empty((replicates, rows.shape[1]))
    step = max(1, CELLS_AT_ONCE // len(rows))
    for start in range(0, replicates, step):
        size = min(step, replicates - start)
        totals[start : start + size] = rng.multinomial(n, counts / n, size=size).astype(np.float64) @ rows
    return totals


def distinct_units(
    contributions: FloatArray, clusters: Sequence[Any] | npt.NDArray[Any] | None
) -> tuple[FloatArray, npt.NDArray[np.intp], int | None]:
    """Distinct rows of the resampled units and their counts; with clusters a unit is the sum over a cluster."""
    n_clusters = None
    units = contributions
    if clusters is not None:
        codes, n_clusters = cluster_codes(clusters, np.ones(len(contributions), dtype=bool))
        units = np.zeros((n_clusters, contributions.shape[1]))
        np.add.at(units, codes, contributions)
    rows, counts = np.unique(units, axis=0, return_counts=True)
    return rows, counts, n_clusters


def bootstrap(
    statistic: Callable[[FloatArray], FloatArray],
    contributions: npt.ArrayLike,
    *,
    seed: int,
    replicates: int = 9999,
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Percentile bootstrap of a statistic that is a function of sums over items.

    `contributions` has shape (n,) or (n, k): what each item adds to k sums. `statistic` maps sums of shape
    (r, k) to values of shape (r,), NaN where undefined. A ratio of means is
    `bootstrap(lambda s: s[:, 0] / s[:, 1], np.column_stack([x, y]), seed=1)`.
    With clusters, whole clusters are drawn. Replicates without a value are left out and counted in the warning
    `undefined_replicates`; above 5% also `degenerate_resamples`. Fewer than 2 items or 5 clusters, or replicates that
    are all equal: value without interval. Efron 1979; the same seed gives the same numbers.
    """
    items = np.asarray(contributions, dtype=np.float64)
    items = items[:, None] if items.ndim == 1 else items
    if not np.isfinite(items).all():
        raise CalibrationError("contributions holds NaN or infinity: drop the items without a value and count them")
    if len(items) == 0:
        return undefined("no_values", method="bootstrap_percentile")
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(statistic(items.sum(axis=0, keepdims=True))[0])
    if not math.isfinite(value):
        return undefined("statistic_undefined", n=len(items), method="bootstrap_percentile")
    rows, counts, n_clusters = distinct_units(items, clusters)
    known: dict[str, Any] = {
        "value": value, "level": level, "n": len(items), "n_clusters": n_clusters, "method": "bootstrap_percentile"
    }  # fmt: skip
    if n_clusters is not None and n_clusters < TOO_FEW_CLUSTERS:
        return Estimate(**known, status="insufficient", reason=f"fewer_than_{TOO_FEW_CLUSTERS}_clusters")
    if len(items) < 2:
        return Estimate(**known, status="insufficient", reason="one_value")
    totals = resampled_totals(rows, counts, np.random.default_rng(seed), replicates)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = statistic(totals)
    warnings = cluster_warnings(n_clusters) if n_clusters is not None else ()
    return percentile_estimate(drawn, known | {"warnings": warnings, "seed": seed, "replicates": replicates})


def bootstrap_mean(
    values: Sequence[float | None] | npt.NDArray[Any],
    *,
    seed: int,
    replicates: int = 9999,
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean with a seeded percentile bootstrap over values, or over whole clusters; for differences full of zeros.

    None is dropped and counted. Values that are all equal have no spread to resample: the interval is that of `mean`
    with these `bounds`. Fewer than 10 values or 5 clusters: the mean without an interval. Efron 1979.
    """
    numbers, mask = present(values)
    n_dropped = int((~mask).sum())
    if len(numbers) and len(numbers) < BOOTSTRAP_FROM:
        known: dict[str, Any] = {"value": float(numbers.mean()), "n": len(numbers), "n_dropped": n_dropped}
        return Estimate(**known, level=level, status="insufficient", reason=f"n_below_{BOOTSTRAP_FROM}")
    if len(numbers) == 0 or np.ptp(numbers) == 0:
        return mean(values, clusters=clusters, level=level, bounds=bounds)
    groups = None if clusters is None else cluster_codes(clusters, mask)[0]
    sums = np.column_stack([numbers, np.ones(len(numbers))])
    found = bootstrap(
        lambda totals: totals[:, 0] / totals[:, 1], sums, seed=seed, replicates=replicates, clusters=groups, level=level
    )
    return replace(found, n_dropped=n_dropped)


def percentile_estimate(drawn: FloatArray, known: dict[str, Any]) -> Estimate:
    """An Estimate whose interval is the percentile range of the defined replicates; `known` holds its other fields."""
    defined = drawn[np.isfinite(drawn)]
    warnings = (*known.get("warnings", ()), *replicate_warnings(len(defined), len(drawn)))
    known = known | {"warnings": warnings}
    if len(defined) < 2 or np.ptp(defined) == 0:
        return Estimate(**known, status="insufficient", reason="zero_variance" if len(defined) else "no_replicates")
    tail = (1 - known["level"]) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Estimate(**known, se=float(defined.std(ddof=1)), ci_low=float(low), ci_high=float(high))


def replicate_warnings(defined: int, drawn: int) -> tuple[str, ...]:
    """How many replicates had no value, and whether that is too many to trust the interval."""
    missing = drawn - defined
    counted = (f"undefined_replicates: {missing} of {drawn}",) if missing else ()
    return (*counted, "degenerate_resamples") if missing > DEGENERATE_SHARE * drawn else counted
