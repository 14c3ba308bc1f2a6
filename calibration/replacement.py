"""May the judge stand in for a person? The alternative annotator test: closer to the other people than each one is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibration.compare import false_discovery
from calibration.errors import CalibrationError
from calibration.estimate import FEW_CLUSTERS, Estimate, FloatArray, bootstrap, cluster_codes, mean, undefined
from calibration.multirater import krippendorff_alpha, label_counts
from calibration.ratings import Ratings, choose_raters

Scoring = Literal["accuracy", "neg_rmse"]

MINIMUM_ITEMS = 30
PASS_FROM = 0.5
LOW_ALPHA = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterTest:
    """The judge against one person, both scored by the other people on the same `n` items.

    `judge_advantage` and `human_advantage` are the shares of items on which each is at least as close (ties count for
    both). `p_adjusted` is Benjamini-Yekutieli over the tested people; `replaced` says that it is at most q.
    """

    rater: str
    n: int
    judge_advantage: float
    human_advantage: float
    t: float | None
    p: float
    p_adjusted: float
    replaced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AltTest:
    """Whether the judge may replace one of the people; `passed` is None when nobody could be tested."""

    passed: bool | None
    winning_rate: Estimate
    advantage_probability: Estimate
    human_advantage: Estimate
    human_alpha: Estimate
    epsilon: float
    scoring: Scoring
    q: float
    n: int
    n_dropped: int
    per_rater: tuple[RaterTest, ...] = ()
    too_few_items: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def alt_test(
    ratings: Ratings,
    *,
    judge: str | None = None,
    humans: Sequence[str] | None = None,
    epsilon: float,
    scoring: Scoring | None = None,
    q: float = 0.05,
    level: float = 0.95,
    seed: int = 0,
    replicates: int = 9999,
) -> AltTest:
    """The alternative annotator test. Calderon, Reichart and Dror 2025 (ACL), section 3.

    For each person j with 30 items or more that the judge and another person labelled too: d = 1{h_j at least as close
    to the others} - 1{judge at least as close}; one-sided t-test of mean d >= epsilon (clusters: CR1, t(G-1), 15
    clusters or more), Benjamini-Yekutieli at q. Winning rate = share of tests rejected; passes from one half.
    `epsilon` is what a person costs more than the judge: 0.2 experts, 0.15 skilled, 0.1 crowd. `scoring`: `accuracy`
    (share of the others with the same label) or `neg_rmse` (needs a declared ordered scale; its default there).

    Nobody with 30 items: undefined `no_eligible_rater` and the counts in `too_few_items`; one person: `one_human`.
    Passing means as good as a random person of this group, not right. No Wilcoxon test: on -1, 0, 1 it is invalid.
    """
    if not (0 <= epsilon < 1 and 0 < q < 1):
        raise CalibrationError(f"epsilon is {epsilon} and q {q}: 0 <= epsilon < 1, 0 < q < 1; crowd workers take 0.1")
    judge, people = choose_raters(ratings, judge, humans)
    chosen = _scoring(ratings, scoring)
    codes = np.stack([ratings.of(person) for person in people], axis=1)
    votes = label_counts(codes, len(ratings.scale.labels))
    usable = (ratings.of(judge) >= 0) & (votes.sum(axis=1) >= 2)
    known: dict[str, Any] = {
        "human_alpha": _alpha(ratings, votes, chosen, level, seed, replicates),
        "epsilon": epsilon, "scoring": chosen, "q": q, "n": int(usable.sum()), "n_dropped": int((~usable).sum()),
    }  # fmt: skip
    closer, at_least = _duels(ratings, ratings.of(judge), codes, votes, usable, chosen)
    counts = np.isfinite(closer).sum(axis=0)
    tested = [j for j in range(len(people)) if _enough(closer[:, j], ratings.clusters)]
    small = {people[j]: int(counts[j]) for j in range(len(people)) if j not in tested}
    if not tested:
        nothing = undefined("one_human" if len(people) == 1 else "no_eligible_rater", n=known["n"])
        return AltTest(
            passed=None, winning_rate=nothing, advantage_probability=nothing, human_advantage=nothing,
            too_few_items=small, **known,
        )  # fmt: skip
    tests = [_one_person(closer[:, j], ratings.clusters, epsilon) for j in tested]
    adjusted = false_discovery([p for _, p in tests], method="by")
    present = np.isfinite(closer[:, tested])
    wins = np.where(present[:, :, None], at_least[:, tested], False)
    per_rater = tuple(
        RaterTest(
            rater=people[j], n=int(present[:, place].sum()), t=t, p=p, p_adjusted=corrected, replaced=corrected <= q,
            judge_advantage=float(wins[:, place, 0].sum() / present[:, place].sum()),
            human_advantage=float(wins[:, place, 1].sum() / present[:, place].sum()),
        )
        for place, (j, (t, p), corrected) in enumerate(zip(tested, tests, adjusted, strict=True))
    )  # fmt: skip
    rate = sum(test.replaced for test in per_rater) / len(per_rater)
    options = {"clusters": ratings.clusters, "level": level, "seed": seed, "replicates": replicates}
    return AltTest(
        passed=rate >= PASS_FROM,
        winning_rate=Estimate(value=rate, level=level, method="share_of_raters", n=len(per_rater)),
        advantage_probability=_mean_share(wins[:, :, 0], present, options),
        human_advantage=_mean_share(wins[:, :, 1], present, options),
        per_rater=per_rater, too_few_items=small, warnings=_warnings(per_rater, known["human_alpha"]), **known,
    )  # fmt: skip


def _scoring(ratings: Ratings, scoring: Scoring | None) -> Scoring:
    ordered = ratings.scale.ordered and len(ratings.scale.labels) > 2
    if scoring == "neg_rmse" and not ordered:
        raise CalibrationError("scoring neg_rmse measures distances: declare an ordered --scale of three labels up")
    if scoring not in (None, "accuracy", "neg_rmse"):
        raise CalibrationError(f"scoring is {scoring!r}: choose accuracy or neg_rmse")
    return scoring or ("neg_rmse" if ordered else "accuracy")


def _duels(
    ratings: Ratings,
    judged: npt.NDArray[np.int64],
    codes: npt.NDArray[np.int64],
    votes: npt.NDArray[np.int64],
    usable: npt.NDArray[np.bool_],
    scoring: Scoring,
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """d (items, people), NaN where the two do not meet; and who is at least as close (items, people, judge|person).

    The loss of a label is the sum of its distances to the other people's labels: squared distances order labels as
    the root of their mean does, and 0/1 distances as the share of equal labels does.
    """
    values = ratings.scale.values
    distance = (values[:, None] - values[None, :]) ** 2 if scoring == "neg_rmse" else 1 - np.eye(len(values))
    to_all = votes @ distance
    meets = usable[:, None] & (codes >= 0)
    row = np.arange(len(codes))[:, None]
    judge_loss = to_all[row, judged[:, None]] - distance[judged[:, None], codes]
    human_loss = to_all[row, codes]
    tolerance = 1e-9 * max(1.0, float(distance.max()))
    at_least = np.stack([judge_loss <= human_loss + tolerance, human_loss <= judge_loss + tolerance], axis=2)
    at_least &= meets[:, :, None]
    return np.where(meets, at_least[:, :, 1] * 1.0 - at_least[:, :, 0], np.nan), at_least


def _enough(d: FloatArray, clusters: Sequence[str] | None) -> bool:
    met = np.isfinite(d)
    if met.sum() < MINIMUM_ITEMS:
        return False
    return clusters is None or cluster_codes(clusters, met)[1] >= FEW_CLUSTERS


def _one_person(d: FloatArray, clusters: Sequence[str] | None, epsilon: float) -> tuple[float | None, float]:
    """t and one-sided p of mean d >= epsilon; identical differences have no t, and p 0 or 1."""
    from scipy.special import stdtr

    values = [None if math.isnan(value) else float(value) for value in d]
    difference = mean(values, clusters=clusters)
    away = (difference.value or 0.0) - epsilon
    if not difference.se or difference.ci_low is None:
        return None, float(away >= 0)
    t = away / difference.se
    return t, float(stdtr((difference.n_clusters or difference.n) - 1, t))


def _mean_share(wins: npt.NDArray[np.bool_], present: npt.NDArray[np.bool_], options: dict[str, Any]) -> Estimate:
    """Mean over people of the share of their items won, items (or clusters) resampled for all people at once."""
    people = wins.shape[1]

    def share(sums: FloatArray) -> FloatArray:
        averaged: FloatArray = np.mean(sums[:, :people] / sums[:, people:], axis=1)
        return averaged

    met: npt.NDArray[np.bool_] = np.any(present, axis=1)
    clusters = options["clusters"]
    kept = None if clusters is None else [name for name, there in zip(clusters, met, strict=True) if there]
    return bootstrap(share, np.hstack([wins, present])[met], **(options | {"clusters": kept}))


def _alpha(
    ratings: Ratings, votes: npt.NDArray[np.int64], scoring: Scoring, level: float, seed: int, replicates: int
) -> Estimate:
    return krippendorff_alpha(
        votes, "ordinal" if scoring == "neg_rmse" else "nominal", values=ratings.scale.values,
        clusters=ratings.clusters, level=level, seed=seed, replicates=replicates,
    )  # fmt: skip


def _warnings(per_rater: Sequence[RaterTest], alpha: Estimate) -> tuple[str, ...]:
    found: tuple[str, ...] = ("fewer_than_3_raters",) if len(per_rater) < 3 else ()
    if alpha.value is not None and alpha.value < LOW_ALPHA:
        found += (f"low_human_agreement: alpha {alpha.value:.2f}",)
    return found
