"""Every threshold of a diagnosis with its value and where it comes from; all can be set, all are echoed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from judge.errors import UsageError

DEFAULTS = {
    "recall": 0.8, "faithfulness": 0.8, "correct": 0.5, "complete": 0.8, "citation": 0.8,
    "margin": 0.05, "min_n": 20,
    "S1_recall": 0.8, "S1_noise": 0.7, "S2": 0.2, "S3": 0.1, "S4_hit": 0.8, "S4_ratio": 0.5, "S5": 0.2,
    "S6_offline": 0.8, "S6_online": 0.6, "S7": 0.1, "S8_refusal": 0.8, "S8_over_refusal": 0.1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Threshold:
    """A value and its origin: `default`, `given`, or the rubric that brought it."""

    value: float
    origin: str = "default"


def choose(given: Mapping[str, float] | None = None) -> dict[str, Threshold]:
    """The defaults, with the given values in their place.

    recall to citation: from there on a case is high, 0..1. margin: a quick probability this close to its threshold is
    uncertain. min_n: cases below which a scenario is too_few. S1 to S8: shares from which a scenario holds. Raises
    UsageError for an unknown name or a value outside 0..1 (min_n: a whole number from 2).
    """
    chosen = {name: Threshold(value) for name, value in DEFAULTS.items()}
    for name, value in (given or {}).items():
        if name not in DEFAULTS:
            raise UsageError(f"threshold {name!r} is unknown: the thresholds are {', '.join(DEFAULTS)}")
        whole = name == "min_n"
        fits = value >= 2 and value % 1 == 0 if whole else 0 <= value <= 1
        if not math.isfinite(value) or not fits:
            rule = "give a whole number from 2" if whole else "give a number from 0 to 1"
            raise UsageError(f"threshold {name} is {value:g}: {rule}")
        chosen[name] = Threshold(float(value), "given")
    return chosen
