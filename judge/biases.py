"""Where a judge leans: signed difference from people by score level, answer length and slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from calibration.accuracy import cell_share
from calibration.estimate import Estimate, clustered_proportion, mean, proportion
from calibration.kappa import kappa
from calibration.ranking import rank_correlation
from calibration.ratings import Ratings
from calibration.resampling import PairTables, pair_tables
from judge.labels import JUDGE
from judge.pairing import Pairing, Rated, ratings
from judge.verdicts import headline_weights

LEAST = 5
MOST_SLICES = 20
LENGTHS = ("short", "middle", "long")
P_BINS = 5


def lean(pairing: Pairing, rated: Sequence[Rated]) -> Estimate:
    """Mean of judge minus people: levels of the scale, or share of passes where they are compared on pass and fail.

    Above 0 the judge is lenient. A case counts once, its people by their mean; clustered by question where shared.
    """
    low, high = (0.0, 1.0) if pairing.on_passes else (float(pairing.rubric.scale.min), float(pairing.rubric.scale.max))
    questions = [one.case.question for one in rated]
    shared = pairing.clusters is not None
    return mean([apart(pairing, one) for one in rated], clusters=questions if shared else None,
                bounds=(low - high, high - low))  # fmt: skip


def apart(pairing: Pairing, rated: Rated) -> float:
    """Judge minus people for one case."""
    return float(rated.passed) - pairing.pass_share(rated) if pairing.on_passes else rated.score - rated.label


def leniency(pairing: Pairing) -> dict[str, Any]:
    """How often the judge gives the top mark (on pass and fail: a pass), and how often people do."""
    top = pairing.rubric.scale.max
    if pairing.on_passes:
        judged = [float(one.passed) for one in pairing.rated]
        people = [pairing.pass_share(one) for one in pairing.rated]
    else:
        judged = [float(one.score == top) for one in pairing.rated]
        people = [fmean(value == top for value in one.people.values()) for one in pairing.rated]
    shares = {"judge": _share_of(pairing, judged), "people": _share_of(pairing, people)}
    return {"top": "pass" if pairing.on_passes else str(top)} | {name: one.to_dict() for name, one in shares.items()}


def _share_of(pairing: Pairing, shares: Sequence[float]) -> Estimate:
    """The mean of shares of the rated cases: Wilson where each is 0 or 1, by questions where cases share them."""
    if not set(shares) <= {0.0, 1.0}:
        return mean(shares, clusters=pairing.clusters, bounds=(0.0, 1.0))
    if pairing.clusters is not None:
        return clustered_proportion([share == 1 for share in shares], clusters=pairing.clusters)
    return proportion(round(sum(shares)), len(shares))


def by_score_level(pairing: Pairing) -> list[dict[str, Any]]:
    """For each level the judge gave (quick: a fifth of p): what people said there.

    `people` is their mean mark, or their pass share where the comparison is on passes; `lean` is judge minus people.
    """
    groups: dict[str, list[Rated]] = {name: [] for name in _levels(pairing)}
    for one in pairing.rated:
        groups[_level(pairing, one)].append(one)
    return [
        {
            "level": name,
            "n": len(rated),
            "judge": float(np.mean([one.p if pairing.quick else one.score for one in rated])),
            "people": _people(pairing, rated).to_dict(),
            "lean": lean(pairing, rated).to_dict(),
        }
        for name, rated in groups.items()
        if rated
    ]


def _people(pairing: Pairing, rated: Sequence[Rated]) -> Estimate:
    clusters = [one.case.question for one in rated] if pairing.clusters else None
    if not pairing.on_passes:
        bounds = (float(pairing.rubric.scale.min), float(pairing.rubric.scale.max))
        return mean([one.label for one in rated], clusters=clusters, bounds=bounds)
    shares = [pairing.pass_share(one) for one in rated]
    if clusters is None and set(shares) <= {0.0, 1.0}:
        return proportion(round(sum(shares)), len(shares))
    return mean(shares, clusters=clusters, bounds=(0.0, 1.0))


def _levels(pairing: Pairing) -> list[str]:
    if pairing.quick:
        return [f"p {n / P_BINS:.1f}-{(n + 1) / P_BINS:.1f}" for n in range(P_BINS)]
    return [str(level) for level in pairing.rubric.scale.levels]


def _level(pairing: Pairing, rated: Rated) -> str:
    if pairing.quick:
        return _levels(pairing)[min(int(rated.p * P_BINS), P_BINS - 1)]
    return str(round(rated.score))


def by_length(pairing: Pairing, *, seed: int = 0, replicates: int = 9999) -> dict[str, Any]:
    """The lean for short, middle and long answers (thirds of the labelled ones, in characters), and its trend.

    `trend` is the rank correlation of answer length with judge minus people: above 0 the judge favours long answers
    more than people do.
    """
    sizes = [len(one.case.answer or "") for one in pairing.rated]
    cuts = np.quantile(sizes, [1 / 3, 2 / 3])
    groups: dict[str, list[Rated]] = {name: [] for name in LENGTHS}
    for size, one in zip(sizes, pairing.rated, strict=True):
        groups[LENGTHS[int(np.searchsorted(cuts, size))]].append(one)
    differences = [apart(pairing, one) for one in pairing.rated]
    return {
        "characters": [round(float(cut)) for cut in cuts],
        "groups": [
            {"group": name, "n": len(rated), "lean": lean(pairing, rated).to_dict()}
            for name, rated in groups.items()
            if rated
        ],
        "trend": rank_correlation(
            sizes, differences, clusters=pairing.clusters, seed=seed, replicates=replicates
        ).to_dict(),
    }


def by_slice(pairing: Pairing, *, seed: int = 0, replicates: int = 9999) -> list[dict[str, Any]]:
    """Agreement and lean of each slice (system, split, language, tag) with 5 cases or more, the largest first.

    A slice that holds every case is left out. With many slices one in twenty intervals misses by chance alone.
    """
    slices: dict[str, list[Rated]] = {}
    for one in pairing.rated:
        for name in slice_names(one):
            slices.setdefault(name, []).append(one)
    kept = [(name, rated) for name, rated in slices.items() if LEAST <= len(rated) < len(pairing.rated)]
    kept.sort(key=lambda pair: (-len(pair[1]), pair[0]))
    found = []
    for name, rated in kept[:MOST_SLICES]:
        inside = {one.case.id for one in rated}
        kept_cases = [one.case.id in inside for one in pairing.rated]
        data = pairs_of(*_some(pairing, kept_cases))
        found.append({
            "slice": name,
            "n": len(rated),
            "percent_agreement": cell_share(data, np.eye(data.tables.shape[-1])).to_dict(),
            "kappa": kappa(data, headline_weights(data.tables.shape[-1]), seed=seed, replicates=replicates).to_dict(),
            "lean": lean(pairing, rated).to_dict(),
        })  # fmt: skip
    return found


def slice_names(rated: Rated) -> list[str]:
    """The slices a case belongs to."""
    case = rated.case
    named: Mapping[str, str | None] = {"system": case.system, "split": case.split, "lang": case.lang}
    return [f"{kind} {name}" for kind, name in named.items() if name] + [f"tag {tag}" for tag in case.tags]


def _some(pairing: Pairing, kept: Sequence[bool]) -> tuple[Ratings, tuple[str, ...]]:
    """The ratings of some of the rated cases."""
    rated, names = ratings(pairing, passes=pairing.on_passes)
    return rated.only(np.array([keep for keep, one in zip(kept, pairing.rated, strict=True) for _ in one.lines])), names


def pairs_of(rated: Ratings, names: Sequence[str]) -> PairTables:
    """The tables of the judge with each person."""
    pairs = [(rated.of(JUDGE), rated.of(name)) for name in names]
    return pair_tables(pairs, len(rated.scale.labels), clusters=rated.clusters)
