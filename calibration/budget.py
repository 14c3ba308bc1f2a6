"""How many labels are needed before collecting them. Plan, then label; do not stop because the interval looks good."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibration.errors import CalibrationError
from calibration.estimate import normal_quantile
from calibration.kappa import kappa_variance

SMALLEST = 1e-6


def labels_for_kappa(kappa: float, half_width: float, prevalence: float, *, level: float = 0.95) -> int:
    """Labelled items for a kappa interval of value +- half_width, two labels, both raters with that prevalence.

    z^2 V / h^2 with V the large-sample variance of one item at the table (1 - kappa) p p' + kappa diag(p). Skewed
    prevalence costs a multiple: sample the rare class more often and record how often. Fleiss et al. 1969.
    """
    _between("kappa", kappa, -1, 1)
    _between("prevalence", prevalence, 0, 1)
    shares = np.array([prevalence, 1 - prevalence])
    table = (1 - kappa) * np.outer(shares, shares) + kappa * np.diag(shares)
    if (table < 0).any():
        raise CalibrationError(f"kappa {kappa} cannot occur at prevalence {prevalence}: choose one nearer to 0")
    return _ceil(normal_quantile(level) ** 2 * kappa_variance(table, n=1) / _positive(half_width) ** 2)


def labels_for_proportion(share: float, half_width: float, *, level: float = 0.95) -> int:
    """Labels for a share of value +- half_width without any judge: z^2 p (1 - p) / h^2."""
    _between("share", share, 0, 1)
    return _ceil(normal_quantile(level) ** 2 * share * (1 - share) / _positive(half_width) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionPlan:
    """What n labels give with the judge's help and without."""

    variance: float
    half_width: float
    effective_n: float
    human_only_half_width: float


def plan_correction(sd: float, rho: float, n: int, n_judged: int, *, level: float = 0.95) -> CorrectionPlan:
    """The best PPI++ can do: (sd^2 / n) (1 - rho^2 / (1 + n / N)).

    `sd` of the labels, `rho` correlation of judge and labels, `n` labels, `n_judged` further judged items.
    Angelopoulos, Duchi and Zrnic 2023.
    """
    _between("rho", rho, -1, 1)
    if n < 1 or n_judged < 1:
        raise CalibrationError(f"n is {n} and n_judged {n_judged}: both need at least one item")
    left = 1 - rho**2 / (1 + n / n_judged)
    variance, z = _positive(sd) ** 2 / n * left, normal_quantile(level)
    return CorrectionPlan(
        variance=variance,
        half_width=z * math.sqrt(variance),
        effective_n=n / left,
        human_only_half_width=z * sd / math.sqrt(n),
    )


def labels_for_variance(variance: float, sd: float, rho: float, n_judged: float) -> int:
    """The smallest n with (sd^2 / n) (1 - rho^2 / (1 + n / N)) at or below `variance`.

    The positive root of variance n^2 + (variance N - sd^2) n - sd^2 N (1 - rho^2) = 0.
    """
    slope = variance * n_judged - sd**2
    root = math.sqrt(slope**2 + 4 * variance * sd**2 * n_judged * (1 - rho**2))
    return _ceil((root - slope) / (2 * variance))


def allocate_labels(
    m: int, pass_rate: float, specificity: float, sensitivity: float, pilot: int = 10
) -> tuple[int, int]:
    """Split m external labels into human-negative and human-positive items for Rogan-Gladen. Lee et al. 2025.

    `specificity` and `sensitivity` come from `pilot` items of each class, `pass_rate` from the judge.
    """
    _between("pass_rate", pass_rate, 0, 1)
    k = (pilot * (1 - specificity) + 1) / (pilot * (1 - sensitivity) + 1)
    positives = round(m / (1 + (1 / pass_rate - 1) * math.sqrt(k)))
    return m - positives, positives


def _ceil(count: float) -> int:
    return math.ceil(count - 1e-9)


def _positive(value: float) -> float:
    if not (math.isfinite(value) and value >= SMALLEST):
        raise CalibrationError(f"the value is {value}: a width or a standard deviation is {SMALLEST:g} or more")
    return value


def _between(name: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        raise CalibrationError(f"{name} is {value}: it must lie between {low} and {high}")
