"""Ratings of several systems from pairwise outcomes: Bradley-Terry, or Davidson when there are ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.choice import Fit, clustered_covariance, fit_choices
from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray, cluster_codes, cluster_warnings, t_quantile, undefined
from calibration.verdicts import OUTCOMES, PairVerdicts

RANK_DRAWS = 9999
WIN, LOSS, TIE = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """A system's log strength around the mean of all systems, and its rank (1 is best) with an interval."""

    system: str
    rating: Estimate
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Strengths:
    """Log strengths relative to the reference system (0), their standard errors, and log nu of ties if any."""

    log_strength: list[float]
    se: list[float]
    log_nu: float | None
    se_log_nu: float | None


def bradley_terry(wins: npt.ArrayLike, *, ties: npt.ArrayLike | None = None, reference: int = -1) -> Strengths | None:
    """Log strengths from counts (row beats column), with Davidson's tie parameter when `ties` (symmetric) are given.

    P(i beats j) = pi_i / (pi_i + pi_j), ties proportional to nu sqrt(pi_i pi_j). Standard errors from the Fisher
    information, comparisons independent. None when no finite maximum exists. Bradley and Terry 1952; Davidson 1970.
    """
    won = np.asarray(wins, dtype=np.float64)
    tied = np.zeros_like(won) if ties is None else np.asarray(ties, dtype=np.float64)
    rows = [(i, j) for i in range(len(won)) for j in range(i + 1, len(won)) if won[i, j] + won[j, i] + tied[i, j] > 0]
    counts = np.array([[won[i, j], won[j, i], tied[i, j]] for i, j in rows])
    reference %= len(won)
    fit = _fit(np.array(rows), counts, len(won), reference, with_ties=ties is not None)
    if fit is None:
        return None
    errors = np.sqrt(np.diag(fit.covariance))
    others = len(won) - 1
    with_ties = ties is not None
    return Strengths(
        log_strength=[float(value) for value in np.insert(fit.coefficients[:others], reference, 0.0)],
        se=[float(error) for error in np.insert(errors[:others], reference, 0.0)],
        log_nu=float(fit.coefficients[-1]) if with_ties else None,
        se_log_nu=float(errors[-1]) if with_ties else None,
    )  # fmt: skip


def _fit(
    pairs: npt.NDArray[np.int64], counts: FloatArray, systems: int, reference: int, *, with_ties: bool
) -> Fit | None:
    """Choice model over (win of i, win of j, tie); parameters: all systems but the reference, then log nu."""
    strength = np.zeros((len(pairs), 2, systems))
    strength[np.arange(len(pairs)), 0, pairs[:, 0]] = 1
    strength[np.arange(len(pairs)), 1, pairs[:, 1]] = 1
    strength = np.delete(strength, reference, axis=2)
    if not with_ties:
        return fit_choices(strength, counts[:, :2])
    features = np.zeros((len(pairs), 3, systems))
    features[:, :2, :-1] = strength
    features[:, 2, :-1] = strength.mean(axis=1)
    features[:, 2, -1] = 1
    return fit_choices(features, counts)


def ratings(verdicts: PairVerdicts, *, level: float = 0.95, seed: int = 0) -> list[Rating]:
    """Ratings of all systems, best first; inconsistent counts as a tie, both_fail and incomplete are left out.

    Intervals are clustered by question (CR1), rank intervals come from draws of the fitted strengths. When systems
    never meet, even through others, no common scale exists: undefined `disconnected`. When a group of systems never
    loses to the rest, or nobody wins, half a win is added to both sides of every compared pair, with the warning
    `half_win_added`. A fit without a maximum all the same: undefined `not_converged`.
    """
    if verdicts.systems is None:
        raise CalibrationError("systems are not named: ratings need (a, b) for every comparison")
    names = sorted({name for pair in verdicts.systems for name in pair})
    outcome, questions = verdicts.outcomes(), np.asarray(verdicts.items, dtype=object)
    kept = (outcome <= 2) | (outcome == OUTCOMES.index("inconsistent"))
    pairs = np.array([[names.index(a), names.index(b)] for a, b in verdicts.systems])[kept]
    counts = np.eye(3)[np.minimum(outcome[kept], TIE)]
    met = [int((pairs == place).sum()) for place in range(len(names))]
    if len(pairs) == 0 or _components(pairs, len(names), np.ones((len(pairs), 2), bool)) > 1:
        return _unrated("disconnected", names, met, len(pairs))
    warnings: tuple[str, ...] = ()
    with_ties = bool(counts[:, TIE].any())
    beaten = (counts[:, [WIN, LOSS]] > 0) | (counts[:, [TIE]] > 0)
    if _components(pairs, len(names), beaten) > 1 or not counts[:, :TIE].any():
        warnings = ("half_win_added",)
        counts = counts + _half_wins(pairs)
    fit = _fit(pairs, counts, len(names), len(names) - 1, with_ties=with_ties)
    if fit is None:
        return _unrated("not_converged", names, met, len(pairs))
    return _rated(fit, names, met, questions[kept], warnings, level, seed)


def _unrated(reason: str, names: list[str], met: list[int], n: int) -> list[Rating]:
    nothing = undefined(reason, n=n)
    return [
        Rating(system=name, rating=nothing, rank=None, rank_low=None, rank_high=None, n=count)
        for name, count in zip(names, met, strict=True)
    ]


def _components(pairs: npt.NDArray[np.int64], systems: int, directions: npt.NDArray[np.bool_]) -> int:
    """Strongly connected components of the graph with an edge i -> j where directions say that i beat (or tied) j."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    forth, back = pairs[directions[:, 0]], pairs[directions[:, 1]][:, ::-1]
    edges = np.concatenate([forth, back])
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(systems, systems))
    return int(connected_components(graph, directed=True, connection="strong")[0])


def _half_wins(pairs: npt.NDArray[np.int64]) -> FloatArray:
    """Half a win for both sides of each compared pair of systems, spread over its comparisons."""
    _, kind, times = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True, return_counts=True)
    return np.column_stack([0.5 / times[kind], 0.5 / times[kind], np.zeros(len(pairs))])


def _rated(
    fit: Fit, names: list[str], met: list[int], questions: Sequence[Any], warnings: tuple[str, ...], level: float,
    seed: int,
) -> list[Rating]:  # fmt: skip
    k = len(names)
    codes, n_clusters = cluster_codes(questions, np.ones(len(questions), dtype=bool))
    centre = np.vstack([np.eye(k - 1), np.zeros(k - 1)]) - 1 / k
    covariance = clustered_covariance(fit, codes, n_clusters)[: k - 1, : k - 1]
    strengths, spread = centre @ fit.coefficients[: k - 1], centre @ covariance @ centre.T
    errors = np.sqrt(np.maximum(np.diag(spread), 0))
    quantile = t_quantile(level, max(n_clusters - 1, 1))
    draws = np.random.default_rng(seed).multivariate_normal(strengths, spread, size=RANK_DRAWS, method="eigh")
    places = 1 + (draws[:, :, None] < draws[:, None, :]).sum(axis=2)
    lows, highs = np.quantile(places, [(1 - level) / 2, (1 + level) / 2], axis=0, method="nearest")
    known: dict[str, Any] = {
        "level": level, "method": "bradley_terry_cr1", "n": len(questions), "n_clusters": n_clusters,
        "warnings": warnings + cluster_warnings(n_clusters), "seed": seed, "replicates": RANK_DRAWS,
    }  # fmt: skip
    found = []
    for i, (value, se) in enumerate(zip(strengths.tolist(), errors.tolist(), strict=True)):
        rating = Estimate(value=value, se=se, ci_low=value - quantile * se, ci_high=value + quantile * se, **known)
        rank = 1 + int((strengths > value + 1e-9).sum())
        found.append(
            Rating(system=names[i], rating=rating, rank=rank, rank_low=int(lows[i]), rank_high=int(highs[i]), n=met[i])
        )
    return sorted(found, key=lambda rating: (-(rating.rating.value or 0.0), rating.system))
