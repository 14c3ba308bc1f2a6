"""Maximum likelihood for choices among a few outcomes: logistic, Bradley-Terry and Davidson models in one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibration.estimate import FloatArray

STEPS = 100
TOLERANCE = 1e-10
LARGEST = 30.0


@dataclass(frozen=True, slots=True)
class Fit:
    """Coefficients (p,), the inverse Fisher information (p, p), and the score of every row (m, p)."""

    coefficients: FloatArray
    covariance: FloatArray
    scores: FloatArray


def fit_choices(features: FloatArray, counts: FloatArray) -> Fit | None:
    """The model P(outcome o in row i) proportional to exp(features[i, o] @ coefficients), by Newton's method.

    `features` (m, o, p), `counts` (m, o) how often each outcome occurred in each row, fractions allowed. The
    likelihood is concave. None when it has no finite maximum: perfect separation, or coefficients that no row informs.
    """
    totals = counts.sum(axis=1)
    beta = np.zeros(features.shape[2])
    for _ in range(STEPS):
        shares = _shares(features, beta)
        expected = np.einsum("io,iop->ip", shares, features)
        gradient = np.einsum("io,iop->p", counts, features) - totals @ expected
        centred = features - expected[:, None, :]
        information = np.einsum("i,io,iop,ioq->pq", totals, shares, centred, centred)
        if np.linalg.cond(information) > 1e12:
            return None
        step = np.linalg.solve(information, gradient)
        beta = beta + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(beta).max() > LARGEST:
            return None
        if np.abs(step).max() < TOLERANCE:
            scores = np.einsum("io,iop->ip", counts - totals[:, None] * shares, features)
            return Fit(beta, np.linalg.inv(information), scores)
    return None


def _shares(features: FloatArray, beta: FloatArray) -> FloatArray:
    utility = features @ beta
    weights: FloatArray = np.exp(utility - utility.max(axis=1, keepdims=True))
    shares: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return shares


def clustered_covariance(fit: Fit, codes: npt.NDArray[np.intp], n_clusters: int) -> FloatArray:
    """The sandwich covariance with whole clusters as units, CR1. Liang and Zeger 1986."""
    summed = np.zeros((n_clusters, fit.scores.shape[1]))
    np.add.at(summed, codes, fit.scores)
    meat: FloatArray = summed.T @ summed * n_clusters / max(n_clusters - 1, 1)
    return fit.covariance @ meat @ fit.covariance
