"""Which share of good pieces earns which level: bands fitted to labels, and what they are worth out of fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.drift import kappa_difference
from calibration.errors import CalibrationError
from calibration.estimate import Estimate, FloatArray, cluster_codes, present
from calibration.kappa import kappa
from calibration.recalibration import FOLDS, fold_of, isotonic
from calibration.resampling import pair_tables
from calibration.sample import Numbers
from calibration.tables import Weights

FIT_FROM = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedBands:
    """`after`: level -> lowest rate, fitted to all labels. The kappas (quadratic) are those of levels with people.

    `kappa_out_of_fold` uses bands that never saw the item; `difference` is it minus `kappa_before`.
    """

    after: dict[int, float]
    kappa_before: Estimate
    kappa_out_of_fold: Estimate
    difference: Estimate
    n: int
    warnings: tuple[str, ...]


def bands_of(rates: Numbers, labels: Numbers, levels: Sequence[int]) -> dict[int, float]:
    """Lowest rate of each level but the lowest, strictly rising, between 0 and 1.

    The isotonic fit rounded to the nearest level is the best monotone map to whole levels in squared error. Cuts lie
    between two observed rates; levels that the fit jumps over share the gap. Bands cannot but give a share of 1 the
    highest level and a share of 0 the lowest, whatever people say there.
    """
    curve = isotonic(rates, labels)
    seen, fitted = np.array(curve.levels), np.array(curve.fitted)
    inner = [float(rate) for rate in seen if 0 < rate < 1]
    edges = [0.0, *inner, 1.0]
    gaps: dict[int, list[int]] = {}
    for level in sorted(levels)[1:]:
        reached = seen[fitted >= level - 0.5]
        first = float(reached[0]) if len(reached) else 1.0
        gaps.setdefault(max(1, edges.index(first)), []).append(level)
    cuts: dict[int, float] = {}
    for end, inside in gaps.items():
        low, high = edges[end - 1], edges[end]
        for place, level in enumerate(inside, start=1):
            cuts[level] = round(low + (high - low) * place / (len(inside) + 1), 4)
    return cuts


def fit_bands(
    rates: Numbers,
    labels: Numbers,
    people: Sequence[int],
    scored: Sequence[int],
    before: Mapping[int, float],
    levels: Sequence[int],
    *,
    clusters: Sequence[Any] | None = None,
    seed: int = 0,
    replicates: int = 9999,
) -> FittedBands:
    """Bands from the rates (0..1) and mean labels of n items, at least 100, and whether they agree better with people.

    `people`: whole labels, for kappa; `scored`: the levels given now, under the bands `before`. Where `scored` lies
    below what `before` gives for the rate a cap held it down, and holds the fitted level down too. Five folds, clusters
    (questions) kept together.
    """
    x, y = present(rates, "rates")[0], present(labels, "labels")[0]
    if len({len(x), len(y), len(people), len(scored)}) > 1:
        raise CalibrationError(f"rates {len(x)}, labels {len(y)}, people {len(people)}, scored {len(scored)}: one each")
    if len(x) < FIT_FROM:
        raise CalibrationError(f"there are {len(x)} labels: fitting bands needs {FIT_FROM} or more")
    if np.ptp(x) == 0:
        raise CalibrationError(f"every item has the rate {x[0]:g}: there is nothing to fit")
    groups, units = cluster_codes(range(len(x)) if clusters is None else clusters, np.ones(len(x), dtype=bool))
    fold = fold_of(units, seed)[groups]
    now, old = np.asarray(scored), levels_of(x, before, levels)
    out_of_fold = np.empty(len(x), dtype=np.int64)
    for k in range(FOLDS):
        inside = fold == k
        cuts = bands_of(x[~inside], y[~inside], levels)
        out_of_fold[inside] = levels_of(x[inside], cuts, levels)
    capped = now < old
    out_of_fold[capped] = np.minimum(out_of_fold, now)[capped]
    place = {level: code for code, level in enumerate(sorted(levels))}
    columns = [np.array([place[int(v)] for v in column]) for column in (now, out_of_fold, people)]
    options: dict[str, Any] = {"level": 0.95, "seed": seed, "replicates": replicates}
    cluster_labels = None if clusters is None else list(clusters)
    pairs = [(columns[0], columns[2]), (columns[1], columns[2])]
    each = [pair_tables([pair], len(levels), clusters=cluster_labels) for pair in pairs]
    weights: Weights = "quadratic" if len(levels) > 2 else "none"
    after = bands_of(x, y, levels)
    full = isotonic(x, y)(np.array([1.0]))[0]
    warnings = (f"full_rate_is_worth: {full:.2f}",) if full < max(levels) - 0.5 else ()
    return FittedBands(
        after=after, kappa_before=kappa(each[0], weights, **options),
        kappa_out_of_fold=kappa(each[1], weights, **options),
        difference=kappa_difference(pair_tables(pairs, len(levels), clusters=cluster_labels), weights, options),
        n=len(x), warnings=warnings,
    )  # fmt: skip


def levels_of(rates: FloatArray, bands: Mapping[int, float], levels: Sequence[int]) -> npt.NDArray[np.int64]:
    """The highest level whose band each rate reaches, else the lowest level."""
    ordered = sorted(bands)
    reached = np.array([[rate >= bands[level] - 1e-9 for level in ordered] for rate in rates]).sum(axis=1)
    earned: npt.NDArray[np.int64] = np.array([min(levels), *ordered], dtype=np.int64)[reached]
    return earned
