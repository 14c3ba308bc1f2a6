"""Paired comparison of two systems on the same items: difference, tests, and what could have been seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray, cluster_codes, mean, normal_quantile, present
from calibration.values import Values

EXACT_UNITS = 16
SIGNS_AT_ONCE = 4_000_000


def sign_flip(
    differences: Sequence[float | None] | npt.NDArray[Any],
    *,
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
    seed: int = 0,
    replicates: int = 9999,
) -> float | None:
    """Two-sided p of the paired sign-flip permutation test that differences are symmetric around 0.

    With clusters the sums of whole clusters are flipped. Exact by enumeration up to 16 non-zero units, and exact
    binomial when all of them have one size (binary scores); otherwise (1 + #) / (replicates + 1), seeded, never 0.
    None (missing) is dropped. All zero: 1. No differences: None. Fisher 1935; Phipson and Smyth 2010 for the +1.
    """
    units, mask = present(differences, "differences")
    if len(units) == 0:
        return None
    if clusters is not None:
        units = np.bincount(cluster_codes(clusters, mask)[0], weights=units).astype(np.float64)
    tolerance = 1e-9 * np.abs(units).sum()
    units = units[np.abs(units) > tolerance]
    if len(units) == 0:
        return 1.0
    observed = abs(units.sum()) - tolerance
    if np.ptp(np.abs(units)) <= tolerance:
        return mcnemar(int((units > 0).sum()), int((units < 0).sum())).p_exact
    if len(units) <= EXACT_UNITS:
        signs = 1 - 2 * (np.arange(2 ** len(units))[:, None] >> np.arange(len(units)) & 1)
        return float((np.abs(signs @ units) >= observed).mean())
    rng = np.random.default_rng(seed)
    extreme, step = 0, max(1, SIGNS_AT_ONCE // len(units))
    for start in range(0, replicates, step):
        size = (min(step, replicates - start), len(units))
        flips = rng.integers(0, 2, size=size, dtype=np.int8)
        extreme += int((np.abs(units.sum() - 2 * (flips @ units)) >= observed).sum())
    return (1 + extreme) / (replicates + 1)


@dataclass(frozen=True, slots=True)
class McNemar:
    """The discordant counts of two binary scores on the same items, with exact and mid-p two-sided p values."""

    only_a: int
    only_b: int
    p_exact: float
    p_mid: float


def mcnemar(only_a: int, only_b: int) -> McNemar:
    """McNemar's test from the discordant counts; both p are 1 when there are none.

    Mid-p leaves out half of the observed outcome's probability. Fagerland, Lydersen and Laake 2013.
    """
    from scipy.special import bdtr

    if only_a < 0 or only_b < 0:
        raise CalibrationError(f"discordant counts are {only_a} and {only_b}: counts cannot be negative")
    n, fewer = only_a + only_b, min(only_a, only_b)
    if n == 0:
        return McNemar(only_a, only_b, 1.0, 1.0)
    tail = float(bdtr(fewer, n, 0.5))
    point = tail - (float(bdtr(fewer - 1, n, 0.5)) if fewer else 0.0)
    if only_a == only_b:
        return McNemar(only_a, only_b, 1.0, 1 - point / 2)
    both = min(1.0, 2 * tail)  # rounding lifts it above 1 at 4 against 5
    return McNemar(only_a, only_b, both, both - point)


def wilcoxon(
    differences: Sequence[float | None] | npt.NDArray[Any], *, zeros: Literal["pratt", "wilcox"] = "pratt"
) -> float | None:
    """Two-sided p of the signed-rank test; all zero: 1; none: None.

    Zeros are ranked and then left out (Pratt 1959), or dropped before ranking (`wilcox`, Wilcoxon 1945).
    """
    values, _ = present(differences, "differences")
    if len(values) == 0:
        return None
    if not values.any():
        return 1.0
    from scipy.stats import wilcoxon as signed_rank

    return float(signed_rank(values, zero_method=zeros).pvalue)


def normal_p(difference: Estimate) -> float | None:
    """Two-sided p that an estimate with a standard error is 0, normal; None where either is missing."""
    if difference.value is None or not difference.se:
        return None
    return math.erfc(abs(difference.value) / difference.se / math.sqrt(2))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p values in the order given: for gates, controls any false alarm. Holm 1979."""
    p = _checked(p_values)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


def false_discovery(p_values: Sequence[float], *, method: Literal["bh", "by"] = "bh") -> list[float]:
    """Benjamini-Hochberg (exploration) or Benjamini-Yekutieli (any dependence) adjusted p values."""
    p = _checked(p_values)
    if len(p) == 0:
        return []
    from scipy.stats import false_discovery_control

    return [float(value) for value in false_discovery_control(p, method=method)]


def _checked(p_values: Sequence[float]) -> FloatArray:
    p = np.asarray(p_values, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise CalibrationError(f"p_values are {list(p_values)}: each must lie between 0 and 1")
    return p


def minimal_detectable_effect(se: float, *, level: float = 0.95, power: float = 0.8) -> float:
    """The true difference that a two-sided test finds with that power: (z + z_power) se. Miller 2024, power."""
    return (normal_quantile(level) + normal_quantile(2 * power - 1)) * se


def non_inferior(difference: Estimate, margin: float) -> bool:
    """Whether new - old is above -margin at its lower bound; an undefined bound fails."""
    if margin <= 0:
        raise CalibrationError(f"margin is {margin}: name the loss that would still be acceptable, above 0")
    return difference.ci_low is not None and difference.ci_low > -margin


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two systems on the same items; `difference` is a - b. `mcnemar` only for scores of 0 and 1."""

    difference: Estimate
    p_sign_flip: float | None
    mcnemar: McNemar | None
    mde: float | None
    n_pairs: int


def paired(
    a: Sequence[float | None] | npt.NDArray[Any],
    b: Sequence[float | None] | npt.NDArray[Any],
    *,
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    seed: int = 0,
    replicates: int = 9999,
) -> Comparison:
    """Compare two systems whose values stand in the same item order; a pair with a missing side is dropped.

    Difference with t interval (CR1 over clusters), sign-flip p, McNemar for binary values, and the minimal
    detectable effect at 80% power. `bounds` are the ends of the score scale (0 and 1 when all values are 0 or 1):
    they give an interval when every difference is the same.
    """
    if len(a) != len(b):
        raise CalibrationError(f"a has {len(a)} values and b has {len(b)}: give both in the same item order")
    left, mask_a = present(a, "a")
    right, mask_b = present(b, "b")
    kept = mask_a & mask_b
    left, right = left[kept[mask_a]], right[kept[mask_b]]
    groups = None if clusters is None else cluster_codes(clusters, kept)[0]
    binary = len(left) > 0 and bool(np.isin(left, (0, 1)).all() and np.isin(right, (0, 1)).all())
    low, high = bounds if bounds is not None else ((0.0, 1.0) if binary else (math.nan, math.nan))
    span = None if math.isnan(low) else (low - high, high - low)
    difference = mean(left - right, clusters=groups, level=level, bounds=span)
    return Comparison(
        difference=difference,
        p_sign_flip=sign_flip(left - right, clusters=groups, seed=seed, replicates=replicates),
        mcnemar=mcnemar(int((left > right).sum()), int((left < right).sum())) if binary else None,
        mde=minimal_detectable_effect(difference.se, level=level) if difference.se else None,
        n_pairs=len(left),
    )


def paired_values(
    a: Values, b: Values, *, bounds: tuple[float, float] | None = None, seed: int = 0
) -> tuple[Comparison, dict[str, list[str]]]:
    """Compare two files of values joined on item, and the items that only one of them has.

    The cluster of an item must be the same in both files when both name it.
    """
    shared = [item for item in a.numbers if item in b.numbers]
    unmatched = {
        "a": [item for item in a.numbers if item not in b.numbers],
        "b": [item for item in b.numbers if item not in a.numbers],
    }
    if not shared:
        raise CalibrationError(
            f"no item is in both files: {len(unmatched['a'])} only in a, {len(unmatched['b'])} only in b; check the ids"
        )
    if a.clusters is not None and b.clusters is not None:
        moved = [item for item in shared if a.clusters[item] != b.clusters[item]]
        if moved:
            raise CalibrationError(
                f"item {moved[0]} is in cluster {a.clusters[moved[0]]!r} in a and {b.clusters[moved[0]]!r} in b"
            )
    source = a.clusters if a.clusters is not None else b.clusters
    clusters = None if source is None else [source[item] for item in shared]
    left, right = ([values.numbers[item] for item in shared] for values in (a, b))
    return paired(left, right, clusters=clusters, bounds=bounds, seed=seed), unmatched
