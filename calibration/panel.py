"""Several judges on the same items: what they say together, and how many independent judges they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray, mean, percentile_estimate, undefined
from calibration.kappa import kappa
from calibration.multirater import label_counts
from calibration.ratings import Ratings
from calibration.resampling import pair_tables
from calibration.tables import Weights

MINIMUM_N = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One judge of the panel against the people."""

    judge: str
    kappa: Estimate
    mean_bias: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Judges together. `error_correlation`: mean over pairs of judges of the correlation of (judge - human).

    `effective_judges` = m / (1 + (m - 1) rho): how many judges with independent errors they amount to. `majority` and
    `panel_mean` hold one entry per item, None where there is a tie or no judgment.
    """

    judges: tuple[str, ...]
    members: tuple[Member, ...]
    majority_kappa: Estimate
    mean_bias: Estimate
    unanimous: Estimate
    ties: int
    error_correlation: Estimate
    pairwise_error_correlation: dict[str, float | None]
    effective_judges: float | None
    n: int
    n_labelled: int
    majority: tuple[str | None, ...]
    panel_mean: tuple[float | None, ...]


def panel(
    ratings: Ratings,
    judges: Sequence[str],
    human: str | None = None,
    *,
    level: float = 0.95,
    seed: int = 0,
    replicates: int = 9999,
) -> Panel:
    """Majority, mean, each judge's kappa with the human label, and the correlation of their errors.

    A majority is the label with the most votes; a tie is None, never the first label. Errors are signed distances from
    the human label on the scale (steps on a scale of words; 0/1 wrong without a declared order). Without a human only
    the joint judgments exist. Kuncheva and Whitaker 2003 on dependent errors; the effective size is the design effect.
    """
    if len(judges) < 2:
        raise CalibrationError(f"the panel has {len(judges)} judges: name two or more")
    codes = np.stack([ratings.of(judge) for judge in judges], axis=1)
    values, k = ratings.scale.values, len(ratings.scale.labels)
    votes = label_counts(codes, k)
    joint, ties = majority(votes)
    labelled = votes.sum(axis=1) > 0
    averages = [
        float((row @ values) / row.sum()) if there else None for row, there in zip(votes, labelled, strict=True)
    ]
    agreed = [bool(row.max() == row.sum()) if row.sum() > 1 else None for row in votes]
    truth = None if human is None else ratings.of(human)
    weights: Weights = "quadratic" if ratings.scale.ordered and k > 2 else "none"
    options: dict[str, Any] = {"level": level, "seed": seed, "replicates": replicates}
    errors = None if truth is None else _errors(codes, truth, values, ordered=ratings.scale.ordered)
    correlation, pairs, effective = _dependence(errors, judges, level, seed, replicates)
    return Panel(
        judges=tuple(judges),
        members=tuple(_member(ratings, judge, truth, values, weights, options) for judge in judges),
        majority_kappa=_kappa(joint, truth, k, ratings.clusters, weights, options),
        mean_bias=_bias(averages, truth, values, ratings.clusters, level),
        unanimous=mean(agreed, clusters=ratings.clusters, level=level, bounds=(0, 1)), ties=ties,
        error_correlation=correlation, pairwise_error_correlation=pairs, effective_judges=effective,
        n=int(labelled.sum()), n_labelled=0 if truth is None else int((labelled & (truth >= 0)).sum()),
        majority=tuple(None if code < 0 else ratings.scale.labels[code] for code in joint), panel_mean=tuple(averages),
    )  # fmt: skip


def majority(votes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """The most voted label of each item from counts (items, K), -1 for a tie or no vote; and how many ties."""
    most = votes.max(axis=1)
    tied = ((votes == most[:, None]).sum(axis=1) > 1) & (most > 0)
    joint = np.where(tied | (most == 0), -1, votes.argmax(axis=1))
    return joint.astype(np.int64), int(tied.sum())


def _errors(
    codes: npt.NDArray[np.int64], truth: npt.NDArray[np.int64], values: FloatArray, *, ordered: bool
) -> FloatArray:
    """Errors (items, judges) of the items that every judge and the human labelled."""
    complete: npt.NDArray[np.bool_] = np.all(codes >= 0, axis=1) & (truth >= 0)
    judged, human = codes[complete], truth[complete][:, None]
    if ordered or len(values) == 2:
        found: FloatArray = values[judged] - values[human]
        return found
    wrong: FloatArray = (judged != human).astype(np.float64)
    return wrong


def _dependence(
    errors: FloatArray | None, judges: Sequence[str], level: float, seed: int, replicates: int
) -> tuple[Estimate, dict[str, float | None], float | None]:
    if errors is None:
        return undefined("no_human_label"), {}, None
    m, n = len(judges), len(errors)
    places = [(i, j) for i in range(m) for j in range(i + 1, m)]
    names = [f"{judges[i]}~{judges[j]}" for i, j in places]
    if n < MINIMUM_N:
        return undefined(f"n_below_{MINIMUM_N}", n=n), dict.fromkeys(names), None
    matrix = _correlations(np.ones((1, n)), errors, places)[0]
    pairs = {name: float(r) if np.isfinite(r) else None for name, r in zip(names, matrix, strict=True)}
    if not np.isfinite(matrix).any():
        return undefined("constant_input", n=n), pairs, None
    value = float(np.nanmean(matrix))
    rng, drawn = np.random.default_rng(seed), np.empty(replicates)
    defined = np.isfinite(matrix)
    step = max(1, 2_000_000 // n)
    for start in range(0, replicates, step):
        size = min(step, replicates - start)
        weights = rng.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64)
        drawn[start : start + size] = _correlations(weights, errors, places)[:, defined].mean(axis=1)
    known: dict[str, Any] = {
        "value": value, "level": level, "method": "bootstrap_percentile", "n": n, "seed": seed, "replicates": replicates
    }  # fmt: skip
    shrink = 1 + (m - 1) * value
    return percentile_estimate(drawn, known), pairs, m / shrink if shrink > 0 else None


def _correlations(weights: FloatArray, errors: FloatArray, places: Sequence[tuple[int, int]]) -> FloatArray:
    """Pearson's r of the errors of each pair under item weights (r, n): shape (r, pairs), NaN where constant."""
    total = weights.sum(axis=1, keepdims=True)
    centre = weights @ errors / total
    square = weights @ errors**2 / total - centre**2
    left, right = [i for i, _ in places], [j for _, j in places]
    cross = weights @ (errors[:, left] * errors[:, right]) / total - centre[:, left] * centre[:, right]
    spread = square[:, left] * square[:, right]
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = cross / np.sqrt(np.where(spread > 1e-24, spread, np.nan))
    return found


def _member(
    ratings: Ratings, judge: str, truth: npt.NDArray[np.int64] | None, values: FloatArray, weights: Weights,
    options: dict[str, Any],
) -> Member:  # fmt: skip
    codes = ratings.of(judge)
    numbers = [None if code < 0 else float(values[code]) for code in codes]
    return Member(
        judge=judge, kappa=_kappa(codes, truth, len(values), ratings.clusters, weights, options),
        mean_bias=_bias(numbers, truth, values, ratings.clusters, options["level"]),
    )  # fmt: skip


def _kappa(
    codes: npt.NDArray[np.int64], truth: npt.NDArray[np.int64] | None, k: int, clusters: Sequence[str] | None,
    weights: Weights, options: dict[str, Any],
) -> Estimate:  # fmt: skip
    if truth is None:
        return undefined("no_human_label")
    return kappa(pair_tables([(codes, truth)], k, clusters=clusters), weights, **options)


def _bias(
    numbers: Sequence[float | None], truth: npt.NDArray[np.int64] | None, values: FloatArray,
    clusters: Sequence[str] | None, level: float,
) -> Estimate:  # fmt: skip
    if truth is None:
        return undefined("no_human_label")
    span = float(np.ptp(values))
    away = [
        None if number is None or code < 0 else number - float(values[code])
        for number, code in zip(numbers, truth, strict=True)
    ]
    return mean(away, clusters=clusters, level=level, bounds=(-span, span))
