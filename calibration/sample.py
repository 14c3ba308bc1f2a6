"""Labelled and unlabelled items of one population or stratum, and what each adds to the error of a corrected mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import FloatArray, cluster_codes, present

Codes = npt.NDArray[np.intp]
Numbers = Sequence[float] | npt.NDArray[Any]
Pair = tuple[Sequence[Any], Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """n labels with their judge scores, and the judge scores of N other items.

    `clusters`: numbers of the clusters of both sides, in one numbering, since a cluster may have items on both; None
    when items are independent.
    """

    labels: FloatArray
    judged: FloatArray
    unlabelled: FloatArray
    clusters: tuple[Codes, Codes] | None = None

    @property
    def size(self) -> int:
        return len(self.judged) + len(self.unlabelled)

    @property
    def units(self) -> int:
        """Independent units that hold labels: items, or clusters."""
        return len(self.labels) if self.clusters is None else len(np.unique(self.clusters[0]))

    @property
    def other_units(self) -> int:
        """Independent units that hold unlabelled items."""
        return len(self.unlabelled) if self.clusters is None else len(np.unique(self.clusters[1]))

    @property
    def codes(self) -> Codes | None:
        """The clusters of all items, labelled ones first."""
        return None if self.clusters is None else np.concatenate(self.clusters)

    def joined(self, other: Sample) -> Sample:
        """Both samples as one; they share a numbering of clusters or have none."""
        clusters = None
        if self.clusters is not None and other.clusters is not None:
            left, right = (np.concatenate(side) for side in zip(self.clusters, other.clusters, strict=True))
            clusters = (left, right)
        return Sample(
            labels=np.concatenate([self.labels, other.labels]), judged=np.concatenate([self.judged, other.judged]),
            unlabelled=np.concatenate([self.unlabelled, other.unlabelled]), clusters=clusters,
        )  # fmt: skip


def sample_of(labels: Numbers, judged: Numbers, unlabelled: Numbers, clusters: Pair | None = None) -> Sample:
    """A sample from columns; `clusters` are the names of the clusters of labelled and of unlabelled items."""
    y, f, rest = present(labels, "labels")[0], present(judged, "judged")[0], present(unlabelled, "unlabelled")[0]
    if len(y) != len(f):
        raise CalibrationError(f"labels has {len(y)} entries and judged {len(f)}: both belong to the same items")
    if clusters is None:
        return Sample(labels=y, judged=f, unlabelled=rest)
    sizes = (len(clusters[0]), len(clusters[1]))
    if sizes != (len(y), len(rest)):
        raise CalibrationError(f"clusters has {sizes} names for {len(y)} labelled and {len(rest)} other items")
    codes, _ = cluster_codes([*clusters[0], *clusters[1]], np.ones(sum(sizes), dtype=bool))
    return Sample(labels=y, judged=f, unlabelled=rest, clusters=(codes[: len(y)], codes[len(y) :]))


def influence(sample: Sample, lam: float, *, ddof: int = 1) -> FloatArray:
    """What each item, labelled ones first, adds to the error of lam mean(f~) + mean(Y - lam f).

    Each side is scaled by the root of G / (G - ddof) of its own G units, so that squares of sums over clusters add up
    to the variance: the CR1 one for ddof 1, the sample variance where each item is its own cluster. Liang and Zeger
    1986 for the sandwich; Angelopoulos, Duchi and Zrnic 2023 for the estimator.
    """
    residual = sample.labels - lam * sample.judged
    labelled = (residual - residual.mean()) / len(residual) * _inflated(sample.units, ddof)
    others = np.zeros(len(sample.unlabelled))
    if lam and len(others):
        centred = sample.unlabelled - sample.unlabelled.mean()
        others = lam * centred / len(others) * _inflated(sample.other_units, ddof)
    return np.concatenate([labelled, others])


def _inflated(units: int, ddof: int) -> float:
    return float(np.sqrt(units / (units - ddof))) if units > ddof else 1.0


def cluster_sums(terms: FloatArray, codes: Codes | None) -> FloatArray:
    """The terms of independent items, or their sums over clusters."""
    if codes is None:
        return terms
    sums: FloatArray = np.bincount(codes, weights=terms).astype(np.float64)
    return sums


def squared(terms: FloatArray, codes: Codes | None) -> float:
    """The sum of squares over independent units."""
    sums = cluster_sums(terms, codes)
    return float(sums @ sums)


def best_lambda(base: FloatArray, slope: FloatArray) -> float:
    """The lam within 0..1 with the least sum of squares of base + lam slope."""
    return float(np.clip(-(base @ slope) / (slope @ slope), 0, 1)) if slope.any() else 0.0


def clustered_lambda(samples: Sequence[Sample]) -> float:
    """The one lam, 0..1, with the least cluster-robust variance of the size-weighted mean of these samples."""
    codes = [sample.codes for sample in samples]
    joint = np.concatenate([code for code in codes if code is not None])
    base, whole = (
        cluster_sums(np.concatenate([sample.size * influence(sample, lam) for sample in samples]), joint)
        for lam in (0.0, 1.0)
    )
    return best_lambda(base, whole - base)
