"""Correcting a pass rate with sensitivity and specificity that were measured on other items."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from calibration.errors import CalibrationError
from calibration.estimate import Estimate, normal_quantile, undefined


def rogan_gladen(
    pass_rate: float,
    n: int,
    *,
    specificity: float,
    m0: int,
    sensitivity: float,
    m1: int,
    level: float = 0.95,
) -> Estimate:
    """The true pass rate (p + specificity - 1) / (specificity + sensitivity - 1) with the interval of Lee et al.

    `pass_rate` is the judge's on `n` items; specificity was measured on `m0` human-negative, sensitivity on `m1`
    human-positive items of any population in which the judge errs the same way. Value and bounds are not clipped to
    0..1: a value outside is warned of (`out_of_range`), it means that the error rates did not carry over. No items of
    a class: undefined `one_class_labels`; Youden's J not surely above 0: undefined `judge_not_better_than_chance`.
    Rogan and Gladen 1978; Lee et al. 2025, arXiv 2511.21140.
    """
    for name, value in (("pass_rate", pass_rate), ("specificity", specificity), ("sensitivity", sensitivity)):
        if not 0 <= value <= 1:
            raise CalibrationError(f"{name} is {value}: a rate lies between 0 and 1")
    method = "rogan_gladen_lee"
    if n == 0:
        return undefined("no_data", method=method)
    if m0 == 0 or m1 == 0:
        return undefined("one_class_labels", n=n, method=method)
    z = normal_quantile(level)
    p = (n * pass_rate + z * z / 2) / (n + z * z)
    q0, q1 = (m0 * specificity + 1) / (m0 + 2), (m1 * sensitivity + 1) / (m1 + 2)
    variance_0, variance_1 = q0 * (1 - q0) / (m0 + 2), q1 * (1 - q1) / (m1 + 2)
    youden = q0 + q1 - 1
    if specificity + sensitivity <= 1 or youden - z * math.sqrt(variance_0 + variance_1) <= 0:
        return undefined("judge_not_better_than_chance", n=n, method=method)
    theta = (p + q0 - 1) / youden
    shift = 2 * z * z * (theta * variance_1 - (1 - theta) * variance_0)
    spread = p * (1 - p) / (n + z * z) + (1 - theta) ** 2 * variance_0 + theta**2 * variance_1
    half = z * math.sqrt(spread) / youden
    raw = (pass_rate + specificity - 1) / (specificity + sensitivity - 1)
    known: dict[str, Any] = {"value": raw, "ci_low": theta + shift - half, "ci_high": theta + shift + half}
    found = Estimate(**known, level=level, method=method, n=n, se=math.sqrt(sum(variance_parts(
        raw, pass_rate, n, specificity, m0, sensitivity, m1))))  # fmt: skip
    return found if 0 <= raw <= 1 else replace(found, warnings=("out_of_range",))


def variance_parts(
    theta: float, pass_rate: float, n: int, specificity: float, m0: int, sensitivity: float, m1: int
) -> tuple[float, float]:
    """Delta-method variance of the corrected rate: the part of the judged items and the part of the labels."""
    youden = specificity + sensitivity - 1
    judged = pass_rate * (1 - pass_rate) / n
    labels = (1 - theta) ** 2 * specificity * (1 - specificity) / m0 + theta**2 * sensitivity * (1 - sensitivity) / m1
    return judged / youden**2, labels / youden**2
