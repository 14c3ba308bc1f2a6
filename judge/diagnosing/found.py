"""Recall readings from the cases: how much of the labelled evidence was in what the generator was given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.cases import Case
from judge.diagnosing.rules import Reading, compare, missing
from judge.diagnosing.thresholds import Threshold
from judge.errors import InputError
from judge.retrieval import RetrievalResult, evaluate, from_cases

FIRST_RANKS = 5


@dataclass(frozen=True, slots=True)
class Found:
    """Recall of every case, and the measures of the run: `given` over the passages given, `ranked` over full rankings.

    Both are None with a `reason` when no case has labels or the labels cannot be matched.
    """

    recalls: Mapping[str, Reading]
    given: RetrievalResult | None
    ranked: RetrievalResult | None
    reason: str | None = None


def find(cases: Sequence[Case], threshold: Threshold, evidence: str, options: Mapping[str, Any]) -> Found:
    """Match labels with the passages given; `evidence` (all, any) holds for cases that do not say.

    `all` reads recall, `any` reads hit rate, both over the passages given to the generator: `contexts` where the
    ranking holds them, else as many items from the head of the ranking, else the whole ranking.
    """
    rankings, labels = from_cases(cases)
    labelled = {case.id: case for case in cases if case.id in labels and case.id in rankings}
    cut = {name: _given(case, rankings[name]) for name, case in labelled.items()}
    wanted = {name: labels[name] for name in labelled}
    given, reason = _measure(cut, wanted, options)
    known = _values(given) if given else {}
    readings = {}
    for case in cases:
        if case.id not in labelled:
            what = "relevant" if case.id not in labels else "contexts or retrieved"
            readings[case.id] = missing(f"the case has no `{what}`")
            continue
        values, why = known, None
        if given is None:
            alone, why = _measure({case.id: cut[case.id]}, {case.id: wanted[case.id]}, options)
            values = _values(alone) if alone else {}
        readings[case.id] = _read(case, values, why, threshold, case.evidence or evidence)
    ranked, _ = _measure({name: rankings[name] for name in labelled}, wanted, options)
    return Found(readings, given, ranked, reason)


def _given(case: Case, ranking: list[Any]) -> list[Any]:
    if case.contexts is None:
        return ranking
    place = {item.id: item for item in ranking}
    if all(context.id in place for context in case.contexts):
        return [place[context.id] for context in case.contexts]
    return ranking[: len(case.contexts)]


def _measure(
    rankings: Mapping[str, Any], labels: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[RetrievalResult | None, str | None]:
    if not labels:
        return None, "no case has both `relevant` and a ranking"
    longest = max(1, *map(len, rankings.values()))
    cuts = sorted({FIRST_RANKS, longest})
    try:
        return evaluate(rankings, labels, cuts, precision_denominator="retrieved", **options), None
    except InputError as error:
        return None, str(error).splitlines()[0]


def longest(result: RetrievalResult) -> int:
    """The length of the longest list, the cut-off that leaves every list whole."""
    return int(max(1, result.matched.lengths.max(initial=1)))


def by_query(result: RetrievalResult, name: str) -> dict[str, float | None]:
    """A measure of every query; None where it is undefined."""
    pairs = zip(result.matched.queries, result.values(name).tolist(), strict=True)
    return {query: None if math.isnan(value) else value for query, value in pairs}


def _values(result: RetrievalResult) -> dict[str, dict[str, float | None]]:
    return {name: by_query(result, f"{name}@{longest(result)}") for name in ("recall", "hit_rate")}


def _read(
    case: Case,
    values: Mapping[str, Mapping[str, float | None]],
    why: str | None,
    threshold: Threshold,
    evidence: str,
) -> Reading:
    if why is not None:
        return missing(why)
    name = "recall" if evidence == "all" else "hit_rate"
    value = values[name][case.id]
    if value is None:
        return missing("`relevant` names nothing relevant")
    n = len(case.contexts if case.contexts is not None else case.retrieved or ())
    return compare(value, threshold, origin=f"{name} over the {n} passages given (evidence {evidence})")
