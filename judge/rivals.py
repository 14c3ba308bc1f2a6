"""The scores of a judge as competing judges: computed, holistic, quick, another run's, and word overlap for free."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from calibration.estimate import Estimate, mean, undefined
from calibration.kappa import kappa
from calibration.ranking import clustered_auc, rank_correlation
from calibration.resampling import pair_tables
from calibration.threshold import fitted_threshold
from judge.pairing import Pairing, Rated

Number = Callable[[Mapping[str, Any]], float | None]
COVERAGE = 0.8
FIT_FROM = 30
FIELDS: dict[str, Number] = {
    "computed": lambda line: line["computed_score"],
    "holistic": lambda line: line["holistic_score"],
    "quick": lambda line: line["normalized"] if line["mode"] == "quick" else None,
    "overlap": lambda line: line["details"].get("overlap"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """One score per rated case (None where there is none) and its declared pass mark, None when it has no mark."""

    values: tuple[float | None, ...]
    mark: float | None


def rivals_of(pairing: Pairing, lines: Sequence[Sequence[Mapping[str, Any]]] | None = None) -> dict[str, Rival]:
    """The scores that the judgment lines hold; `lines` are those of another run, one group per rated case."""
    groups = [one.lines for one in pairing.rated] if lines is None else lines
    marks = {
        "computed": float(pairing.rubric.scale.pass_at),
        "holistic": float(pairing.rubric.scale.pass_at),
        "quick": pairing.rubric.quick.threshold if pairing.rubric.quick else 0.5,
        "overlap": None,
    }
    found = {}
    for name, number in FIELDS.items():
        values = tuple(_mean([number(line) for line in group]) for group in groups)
        if sum(value is not None for value in values) >= max(1.0, COVERAGE * len(values)):
            found[name] = Rival(values=values, mark=marks[name])
    return found


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def compared(pairing: Pairing, rivals: Mapping[str, Rival], *, seed: int = 0, replicates: int = 9999) -> dict[str, Any]:
    """Each score against the people on the same cases: AUC, rank correlation, kappa on pass and fail.

    Cases without every score, and cases on which people are split evenly, are left out. A score without a declared
    mark gets one fitted to the labels; its kappa is then measured out of fold, never on the labels it was fitted to.
    `difference` is the share of right verdicts minus that of the reported score. Several people count by majority,
    which makes agreement higher than with a single person.
    """
    keep = [
        place
        for place, one in enumerate(pairing.rated)
        if pairing.people_pass(one) is not None and all(r.values[place] is not None for r in rivals.values())
    ]
    rated = [pairing.rated[place] for place in keep]
    truth = [bool(pairing.people_pass(one)) for one in rated]
    questions = pairing.clusters
    clusters = [questions[place] for place in keep] if questions else None
    options: dict[str, Any] = {"clusters": clusters, "seed": seed, "replicates": replicates}
    reported = [one.passed for one in rated]
    return {
        name: _one(_kept(rival, keep), rival.mark, rated, truth, reported, options) for name, rival in rivals.items()
    }


def _kept(rival: Rival, keep: Sequence[int]) -> list[float]:
    return [value for place in keep if (value := rival.values[place]) is not None]


def _one(
    values: list[float],
    mark: float | None,
    rated: Sequence[Rated],
    truth: list[bool],
    reported: list[bool],
    options: dict[str, Any],
) -> dict[str, Any]:
    clusters, seed = options["clusters"], options["seed"]
    fit = fitted_threshold(values, truth, clusters=clusters, seed=seed) if len(values) >= FIT_FROM else None
    out_of_fold = _kappa(fit.passed, truth, **options) if fit else undefined(_no_fit(values))
    declared = undefined("no_declared_mark", n=len(values))
    passed = fit.passed if fit else None
    if mark is not None:
        passed = [value >= mark for value in values]
        declared = _kappa(passed, truth, **options)
    difference = undefined("no_mark")
    if passed is not None and len(values) > 1:
        gains = [float(a == t) - float(b == t) for a, b, t in zip(passed, reported, truth, strict=True)]
        difference = mean(gains, clusters=clusters, bounds=(-1.0, 1.0))
    return {
        "n": len(values),
        "auc": clustered_auc(values, truth, **options).to_dict(),
        "spearman": rank_correlation(values, [one.label for one in rated], **options).to_dict(),
        "mark": mark,
        "kappa": declared.to_dict(),
        "fitted_mark": fit.value if fit else None,
        "kappa_out_of_fold": out_of_fold.to_dict(),
        "difference": difference.to_dict(),
    }


def _no_fit(values: Sequence[float]) -> str:
    return f"n_below_{FIT_FROM}" if len(values) < FIT_FROM else "nothing_to_fit"


def _kappa(
    passed: Sequence[bool], truth: Sequence[bool], *, clusters: Sequence[str] | None, **options: Any
) -> Estimate:
    import numpy as np

    codes = [np.array(column, dtype=np.int64) for column in (passed, truth)]
    if not len(passed):
        return undefined("no_data")
    return kappa(pair_tables([(codes[0], codes[1])], 2, clusters=clusters), **options)
