"""Is the judge as close to people as people are to each other?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibration.estimate import Estimate, FloatArray, undefined
from calibration.ratings import Ratings
from calibration.resampling import PairTables, pair_tables, summary_estimate
from calibration.tables import Weights, cohen_kappa


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanCeiling:
    """Mean kappa among humans, mean kappa of the judge with each human, and judge minus humans on the same items."""

    human_human: Estimate
    judge_human: Estimate
    delta: Estimate


def ceiling_of(
    ratings: Ratings, judge: str, humans: Sequence[str], *, level: float = 0.95, seed: int = 0, replicates: int = 9999
) -> HumanCeiling:
    """The ceiling with quadratic kappa on an ordered scale of three labels or more, else unweighted kappa.

    One human only: undefined `one_human`.
    """
    scale, k = ratings.scale, len(ratings.scale.labels)
    if len(humans) < 2:
        alone = undefined("one_human")
        return HumanCeiling(human_human=alone, judge_human=alone, delta=alone)
    weights: Weights = "quadratic" if scale.ordered and k > 2 else "none"
    columns = [ratings.of(human) for human in humans]
    with_judge = [(ratings.of(judge), column) for column in columns]
    among = [(left, right) for place, left in enumerate(columns) for right in columns[place + 1 :]]
    data = pair_tables(with_judge + among, k, clusters=ratings.clusters)
    return human_ceiling(data, len(humans), weights, level=level, seed=seed, replicates=replicates)


def human_ceiling(
    data: PairTables,
    n_humans: int,
    weights: Weights,
    *,
    level: float = 0.95,
    seed: int = 0,
    replicates: int = 9999,
) -> HumanCeiling:
    """Judge-human kappa against human-human kappa; items are resampled once for both and for their difference.

    `data` holds the judge's pair with each human first, then every pair of humans. The ceiling is kappa with single
    humans: agreement with a majority vote is higher by construction.
    """

    def judge_human(tables: FloatArray) -> FloatArray:
        averaged: FloatArray = np.mean(cohen_kappa(tables[:, :n_humans], weights), axis=1)
        return averaged

    def human_human(tables: FloatArray) -> FloatArray:
        averaged: FloatArray = np.mean(cohen_kappa(tables[:, n_humans:], weights), axis=1)
        return averaged

    def delta(tables: FloatArray) -> FloatArray:
        return judge_human(tables) - human_human(tables)

    estimate = partial(
        summary_estimate, data=data, reason="single_class", level=level, seed=seed, replicates=replicates
    )
    return HumanCeiling(human_human=estimate(human_human), judge_human=estimate(judge_human), delta=estimate(delta))
