"""A pass mark fitted to labels, and what it is worth on labels that it was not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import FloatArray, cluster_codes
from calibration.tables import cohen_kappa

FOLDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedThreshold:
    """`value`: fitted to all labels; `passed`: for each item by the mark fitted without its fold."""

    value: float
    passed: list[bool]
    folds: int


def best_threshold(scores: FloatArray, positives: npt.NDArray[np.bool_]) -> float | None:
    """The mark t with the largest kappa of `score >= t` and the labels, midway between two scores; lowest of equals.

    None when all labels or all scores are the same: there is nothing to tell apart.
    """
    order = np.argsort(scores, kind="stable")
    x, y = scores[order], positives[order].astype(np.float64)
    cuts = np.flatnonzero(np.diff(x) > 0)
    if len(cuts) == 0 or y.min() == y.max():
        return None
    below, good_below = cuts + 1.0, np.cumsum(y)[cuts]
    bad_below = below - good_below
    bad, good = len(y) - y.sum(), y.sum()
    tables = np.stack([bad_below, good_below, bad - bad_below, good - good_below], axis=1).reshape(-1, 2, 2)
    place = int(cuts[np.argmax(cohen_kappa(tables))])
    return float((x[place] + x[place + 1]) / 2)


def fitted_threshold(
    scores: Sequence[float], positives: Sequence[bool], *, clusters: Sequence[Any] | None = None, seed: int = 0
) -> FittedThreshold | None:
    """A pass mark from labels, with out-of-fold verdicts: agreement may be measured on `passed`, never on the fit.

    Five folds; clusters (questions) stay together. None when a mark cannot be fitted in every fold.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(positives, dtype=bool)
    if len(x) != len(y):
        raise CalibrationError(f"scores has {len(x)} entries, positives {len(y)}: one per item")
    groups, n_groups = cluster_codes(range(len(x)) if clusters is None else clusters, np.ones(len(x), dtype=bool))
    overall = best_threshold(x, y) if n_groups >= FOLDS else None
    if overall is None:
        return None
    fold = (np.random.default_rng(seed).permutation(n_groups) % FOLDS)[groups]
    passed = np.zeros(len(x), dtype=bool)
    for k in range(FOLDS):
        mark = best_threshold(x[fold != k], y[fold != k])
        if mark is None:
            return None
        passed[fold == k] = x[fold == k] >= mark
    return FittedThreshold(value=overall, passed=[bool(verdict) for verdict in passed], folds=FOLDS)
