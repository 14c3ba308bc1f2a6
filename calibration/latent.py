"""The labels behind several judges, without people: Dawid and Skene's model, which assumes independent errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray
from calibration.kappa import kappa
from calibration.multirater import label_counts
from calibration.ratings import Ratings
from calibration.resampling import pair_tables

TOLERANCE = 1e-10
STEPS = 2000
JUDGES = 3
ITEMS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentTruth:
    """Dawid-Skene: `posterior` (items, K), `prior` (K,), `confusion` (judges, K true, K said), log-likelihood.

    `assumes` says what must hold: errors of the judges are independent given the truth, which language models violate.
    """

    posterior: FloatArray
    prior: FloatArray
    confusion: FloatArray
    log_likelihood: float
    steps: int
    converged: bool
    warnings: tuple[str, ...]
    assumes: str = "judges err independently given the truth; posteriors are overconfident where they do not"


def dawid_skene(codes: npt.NDArray[np.integer[Any]], k: int) -> LatentTruth:
    """Latent true labels from codes (items, judges), -1 missing, by expectation-maximisation. Dawid and Skene 1979.

    Starts from vote shares; stops when the observed-data log-likelihood, which cannot fall, gains less than 1e-10 of
    itself. Three judges or more; below 50 items a warning. Compare its classes with people: labels can switch.
    """
    if codes.ndim != 2 or codes.shape[1] < JUDGES:
        raise CalibrationError(f"codes has shape {codes.shape}: items x judges, three judges or more")
    votes = label_counts(codes.astype(np.int64), k)
    if (votes.sum(axis=1) == 0).any():
        raise CalibrationError("an item has no judgment at all: leave it out")
    said = np.stack([codes == label for label in range(k)], axis=2).astype(np.float64)
    posterior: FloatArray = votes / votes.sum(axis=1, keepdims=True)
    before, steps, gain = -np.inf, 0, np.inf
    while gain > TOLERANCE and steps < STEPS:
        prior = posterior.mean(axis=0)
        counts = np.einsum("it,ijs->jts", posterior, said)
        totals = counts.sum(axis=2, keepdims=True)
        confusion = np.divide(counts, totals, out=np.full_like(counts, 1 / k), where=totals > 0)
        with np.errstate(divide="ignore"):
            log_joint = np.log(prior) + _log_said(said, np.log(confusion))
        top = log_joint.max(axis=1, keepdims=True)
        evidence = top[:, 0] + np.log(np.exp(log_joint - top).sum(axis=1))
        posterior = np.exp(log_joint - evidence[:, None])
        after = float(evidence.sum())
        gain = (after - before) / abs(after) if np.isfinite(before) and after else np.inf
        before, steps = after, steps + 1
    return LatentTruth(
        posterior=posterior, prior=prior, confusion=confusion, log_likelihood=before, steps=steps,
        converged=gain <= TOLERANCE,
        warnings=(f"fewer_than_{ITEMS}_items: {len(codes)}",) if len(codes) < ITEMS else (),
    )  # fmt: skip


def _log_said(said: FloatArray, log_confusion: FloatArray) -> FloatArray:
    """Sum over judges of log P(said | true), (items, K); a label not said adds nothing even where its log is -inf."""
    total = np.zeros((said.shape[0], log_confusion.shape[1]))
    for judge in range(said.shape[1]):
        rows, labels = np.nonzero(said[:, judge])
        total[rows] += log_confusion[judge][:, labels].T
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentSummary:
    """What Dawid-Skene makes of a panel; `kappa` compares its most probable labels with the human ones."""

    assumes: str
    prior: dict[str, float]
    right_share: dict[str, dict[str, float]]
    kappa: Estimate | None
    log_likelihood: float
    steps: int
    converged: bool
    n: int
    warnings: tuple[str, ...]


def latent_truth(ratings: Ratings, judges: Sequence[str], human: str | None = None) -> LatentSummary:
    """Dawid-Skene on the items that any of the judges labelled, by the names of labels and judges.

    `right_share`: for each judge and true label the estimated chance of saying it.
    """
    codes = np.stack([ratings.of(judge) for judge in judges], axis=1)
    there: npt.NDArray[np.bool_] = np.any(codes >= 0, axis=1)
    labels = ratings.scale.labels
    found = dawid_skene(codes[there], len(labels))
    said = found.posterior.argmax(axis=1)
    groups = None if ratings.clusters is None else [c for c, kept in zip(ratings.clusters, there, strict=True) if kept]
    agreement = None
    if human is not None:
        agreement = kappa(pair_tables([(said, ratings.of(human)[there])], len(labels), clusters=groups))
    return LatentSummary(
        assumes=found.assumes, prior=dict(zip(labels, map(float, found.prior), strict=True)),
        right_share={
            judge: {label: float(table[place, place]) for place, label in enumerate(labels)}
            for judge, table in zip(judges, found.confusion, strict=True)
        },
        kappa=agreement, log_likelihood=found.log_likelihood, steps=found.steps, converged=found.converged,
        n=int(there.sum()), warnings=found.warnings,
    )  # fmt: skip
