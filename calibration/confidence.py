"""Do the judge's probabilities mean what they say? Brier score, calibration error with its floor, reliability table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import (
    Estimate,
    FloatArray,
    cluster_codes,
    mean,
    percentile_estimate,
    present,
    proportion,
    undefined,
)
from calibration.ranking import clustered_auc

Binning = Literal["width", "mass"]

ECE_FROM = 100
SHOWN_FROM = 5
BASELINE_DRAWS = 200
BOOTSTRAP = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Items whose probability lies in (low, high]; `observed` is None below 5 items."""

    low: float
    high: float
    n: int
    predicted: float | None
    observed: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """Probabilities against what people said. `ece_if_calibrated`: the ECE that perfect probabilities would show."""

    brier: Estimate
    brier_of_base_rate: float | None
    log_loss: Estimate
    auc: Estimate
    ece: Estimate
    ece_if_calibrated: float | None
    bins: tuple[Bin, ...]
    n: int
    n_dropped: int


def confidence(
    probabilities: Sequence[float | None] | npt.NDArray[Any],
    positives: Sequence[bool | None],
    *,
    bins: int = 10,
    binning: Binning = "width",
    clusters: Sequence[Any] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Confidence:
    """How good probabilities of the good answer are, 0..1, against labels; None is dropped and counted.

    Brier and log loss (probabilities kept 1e-15 away from 0 and 1) are means with t intervals. ECE is biased upwards
    in small samples: below 100 items it is undefined, above it stands beside its mean over 200 label sets drawn from
    the probabilities themselves. Its interval is a percentile bootstrap of items or clusters. `width`: equal-width
    bins, right-closed; `mass`: equal counts. Brier 1950; Naeini et al. 2015; Guo et al. 2017.
    """
    p, has_p = present(probabilities, "probabilities")
    y, has_y = present(positives, "positives")
    if len(has_p) != len(has_y):
        raise CalibrationError(f"probabilities has {len(has_p)} entries, positives {len(has_y)}: one per item")
    outside = p[(p < 0) | (p > 1)]
    if len(outside):
        raise CalibrationError(f"probabilities hold {outside[0]:g}: each must lie between 0 and 1")
    if not np.isin(y, (0, 1)).all():
        raise CalibrationError("positives holds values other than true and false")
    kept = has_p & has_y
    p, y, n_dropped = p[kept[has_p]], y[kept[has_y]], int((~kept).sum())
    if len(p) == 0:
        none = undefined("no_data", n_dropped=n_dropped)
        return Confidence(
            brier=none, brier_of_base_rate=None, log_loss=none, auc=none, ece=none, ece_if_calibrated=None, bins=(),
            n=0, n_dropped=n_dropped,
        )  # fmt: skip
    groups = None if clusters is None else cluster_codes(clusters, kept)[0]
    place, edges = bin_places(p, bins, binning)
    safe = np.clip(p, 1e-15, 1 - 1e-15)
    base = float(y.mean())
    enough = len(p) >= ECE_FROM
    return Confidence(
        brier=mean((p - y) ** 2, clusters=groups, level=level, bounds=(0, 1)), brier_of_base_rate=base * (1 - base),
        log_loss=mean(-np.where(y == 1, np.log(safe), np.log1p(-safe)), clusters=groups, level=level),
        auc=clustered_auc(
            p, [bool(label) for label in y], clusters=None if groups is None else list(groups), level=level, seed=seed
        ),
        ece=_ece_estimate(p, y, place, len(edges) - 1, groups, level, seed)
        if enough
        else undefined(f"n_below_{ECE_FROM}", n=len(p)),
        ece_if_calibrated=ece_if_calibrated(p, place, len(edges) - 1, seed) if enough else None,
        bins=_table(p, y, place, edges, level), n=len(p), n_dropped=n_dropped,
    )  # fmt: skip


def bin_places(p: FloatArray, bins: int, binning: Binning = "width") -> tuple[npt.NDArray[np.intp], FloatArray]:
    """The bin of each probability, right-closed (the first bin also holds its left edge), and the edges."""
    if bins < 1:
        raise CalibrationError(f"bins is {bins}: one bin or more")
    inner = np.linspace(0, 1, bins + 1)[1:-1]
    if binning == "mass":
        inner = np.unique(np.quantile(p, inner))
    edges = np.concatenate([[0.0], inner[(inner > 0) & (inner < 1)], [1.0]])
    place: npt.NDArray[np.intp] = np.searchsorted(edges[1:-1], p, side="left")
    return place, edges


def ece(p: FloatArray, y: FloatArray, place: npt.NDArray[np.intp], bins: int) -> float:
    """Expected calibration error: mean over items of |observed - predicted| of their bin. Naeini et al. 2015."""
    return float(np.abs(np.bincount(place, weights=y - p, minlength=bins)).sum() / len(p))


def ece_if_calibrated(p: FloatArray, place: npt.NDArray[np.intp], bins: int, seed: int) -> float:
    """The mean ECE when labels are drawn from the probabilities: how much of an ECE is sample size alone."""
    rng = np.random.default_rng(seed)
    drawn = (rng.random((BASELINE_DRAWS, len(p))) < p).astype(np.float64)
    draws = [ece(p, labels, place, bins) for labels in drawn]
    return float(np.mean(draws))


def _ece_estimate(
    p: FloatArray,
    y: FloatArray,
    place: npt.NDArray[np.intp],
    bins: int,
    groups: npt.NDArray[np.intp] | None,
    level: float,
    seed: int,
) -> Estimate:
    units = np.arange(len(p)) if groups is None else groups
    n_units = int(units.max()) + 1
    gaps = np.zeros((n_units, bins + 1))
    np.add.at(gaps, (units, place), y - p)
    gaps[:, bins] = np.bincount(units, minlength=n_units)
    drawn = np.random.default_rng(seed).multinomial(n_units, np.full(n_units, 1 / n_units), size=BOOTSTRAP) @ gaps
    known: dict[str, Any] = {
        "value": ece(p, y, place, bins), "level": level, "method": "bootstrap_percentile", "n": len(p),
        "n_clusters": None if groups is None else n_units, "seed": seed, "replicates": BOOTSTRAP,
    }  # fmt: skip
    return percentile_estimate(np.abs(drawn[:, :bins]).sum(axis=1) / drawn[:, bins], known)


def _table(
    p: FloatArray, y: FloatArray, place: npt.NDArray[np.intp], edges: FloatArray, level: float
) -> tuple[Bin, ...]:
    rows = []
    for k, (low, high) in enumerate(pairwise(edges)):
        inside = place == k
        n = int(inside.sum())
        rows.append(
            Bin(
                low=float(low), high=float(high), n=n, predicted=float(p[inside].mean()) if n else None,
                observed=proportion(int(y[inside].sum()), n, level=level) if n >= SHOWN_FROM else None,
            )
        )  # fmt: skip
    return tuple(rows)


def ranked_probability_score(probabilities: npt.ArrayLike, labels: Sequence[int] | npt.NDArray[Any]) -> float:
    """Mean squared distance of cumulative probabilities (items, K) to labels 0..K-1, over K - 1; 0 best. Epstein."""
    p, y = np.asarray(probabilities, dtype=np.float64), np.asarray(labels, dtype=np.int64)
    if p.ndim != 2 or len(p) != len(y) or p.shape[1] < 2 or not np.isfinite(p).all() or not len(y):
        raise CalibrationError(f"probabilities has shape {p.shape} for {len(y)} labels: give items x K, K from 2")
    if (np.abs(p.sum(axis=1) - 1) > 1e-6).any() or y.min() < 0 or y.max() >= p.shape[1]:
        raise CalibrationError("each row of probabilities sums to 1, and each label is a place 0..K-1")
    reached = np.arange(p.shape[1])[None, :] >= y[:, None]
    return float(((p.cumsum(axis=1) - reached) ** 2).sum(axis=1).mean() / (p.shape[1] - 1))
