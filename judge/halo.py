"""Halo: does the judge that is too kind in one rubric tend to be too kind in another one on the same case?"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from calibration.ranking import rank_correlation
from judge.biases import apart
from judge.pairing import Pairing, Rated


def halo(pairings: Mapping[str, Pairing], *, seed: int = 0, replicates: int = 9999) -> dict[str, list[dict[str, Any]]]:
    """For each audited rubric, the others with labels on the same cases, and how their residuals go together.

    `residuals`: rank correlation of judge minus people in the one rubric with judge minus people in the other, -1..1;
    above 0 is halo, or an error that people make in both. Beside it the correlation of the judge's own scores and that
    of people's marks. Clustered by question where cases share one; below 10 shared cases without an interval.
    """
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in pairings}
    for one, other in combinations(pairings, 2):
        measured = _pair(pairings[one], pairings[other], {"seed": seed, "replicates": replicates})
        if measured["n"]:
            found[one].append({"rubric": other, **measured})
            found[other].append({"rubric": one, **measured})
    return found


def _pair(one: Pairing, other: Pairing, options: Mapping[str, Any]) -> dict[str, Any]:
    second = {rated.case.id: rated for rated in other.rated}
    both = [(rated, second[rated.case.id]) for rated in one.rated if rated.case.id in second]
    questions = [rated.case.question for rated, _ in both]
    clusters = questions if len(set(questions)) < len(questions) else None

    def correlation(left: list[float], right: list[float]) -> dict[str, Any]:
        return rank_correlation(left, right, clusters=clusters, **options).to_dict()

    return {
        "n": len(both),
        "residuals": correlation([apart(one, a) for a, _ in both], [apart(other, b) for _, b in both]),
        "judge": correlation([a.p for a, _ in both], [b.p for _, b in both]),
        "people": correlation([_said(one, a) for a, _ in both], [_said(other, b) for _, b in both]),
    }


def _said(pairing: Pairing, rated: Rated) -> float:
    return pairing.pass_share(rated) if pairing.on_passes else rated.label
