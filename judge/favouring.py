"""Self-preference: judge minus people by the family of models that wrote the answers, at equal marks by people."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibration.compare import holm, normal_p
from calibration.estimate import BOOTSTRAP_FROM, Estimate, FloatArray, bootstrap, undefined
from judge.biases import LEAST, apart, lean
from judge.families import family, generator_of
from judge.pairing import Pairing, Rated

SUMS = 4
ALPHA = 0.05


def by_generator(pairing: Pairing, judge: str, *, seed: int = 0, replicates: int = 9999) -> dict[str, Any] | None:
    """The lean for each family of generators; None where the labelled cases name fewer than two with 5 cases.

    `lean`: mean of judge minus people. `against_others`: how much kinder the judge is to this family than to the others
    where people gave the same mark, weighted by the family's marks: a judge that pulls every mark to the middle is
    harsher to the better family without knowing who wrote what. Bootstrap over cases, or over questions that cases
    share; below 10 matched cases on a side there is no interval. `p_adjusted` is Holm's over the families (with two of
    them there is one test). `favoured`: the interval and that p say so. Wataoka et al. 2024 condition on people so.
    """
    own = family(judge)
    groups: dict[str, list[Rated]] = {}
    for one in pairing.rated:
        name = generator_of(one.case, own)
        if name is not None:
            groups.setdefault(name, []).append(one)
    named = sum(map(len, groups.values()))
    kept = {name: rated for name, rated in groups.items() if len(rated) >= LEAST}
    if len(kept) < 2:
        return None
    first = sorted(kept, key=lambda name: (name != own, -len(kept[name]), name))
    options: dict[str, Any] = {"seed": seed, "replicates": replicates}
    against = {name: _against(pairing, kept, name, options) for name in first}
    tested = [name for name in (first if len(first) > 2 else first[:1]) if normal_p(against[name]) is not None]
    p_values = dict(zip(tested, holm([normal_p(against[name]) or 0.0 for name in tested]), strict=True))
    return {
        "judge_family": own,
        "families": [
            {
                "family": name, "own": name == own, "n": len(kept[name]), "lean": lean(pairing, kept[name]).to_dict(),
                "against_others": against[name].to_dict(), "p_adjusted": p_values.get(name),
                "favoured": _favoured(against[name], p_values.get(name)),
            }
            for name in first
        ],
        "left_out": named - sum(map(len, kept.values())),
        "unnamed": len(pairing.rated) - named,
    }  # fmt: skip


def _favoured(difference: Estimate, p: float | None) -> bool:
    return p is not None and p < ALPHA and difference.ci_low is not None and difference.ci_low > 0


def _against(pairing: Pairing, groups: dict[str, list[Rated]], name: str, options: dict[str, Any]) -> Estimate:
    """This family's lean minus that of the others, within each mark that both got from people."""
    cases = [(one, family == name) for family, rated in groups.items() for one in rated]
    marks = [_mark(pairing, one) for one, _ in cases]
    sides = [{mark for mark, (_, inside) in zip(marks, cases, strict=True) if inside == side} for side in (True, False)]
    shared = sorted(sides[0] & sides[1])
    matched = [(one, inside, shared.index(mark)) for (one, inside), mark in zip(cases, marks, strict=True)
               if mark in shared]  # fmt: skip
    if not matched:
        return undefined("no_mark_in_common", n=0)
    sums = np.zeros((len(matched), len(shared), SUMS))
    for row, (one, inside, place) in enumerate(matched):
        column = 0 if inside else 2
        sums[row, place, column : column + 2] = apart(pairing, one), 1.0
    smaller = min(sum(inside for _, inside, _ in matched), sum(not inside for _, inside, _ in matched))
    questions = [one.case.question for one, _, _ in matched]
    clusters = questions if pairing.clusters is not None else None
    found = bootstrap(_kinder, sums.reshape(len(matched), -1), clusters=clusters, **options)
    found = replace(found, n_dropped=len(cases) - len(matched))
    if smaller >= BOOTSTRAP_FROM or found.value is None:
        return found
    few: dict[str, Any] = {"status": "insufficient", "reason": f"n_below_{BOOTSTRAP_FROM}"}
    return replace(found, se=None, ci_low=None, ci_high=None, **few)


def _mark(pairing: Pairing, one: Rated) -> int:
    """What people said, as a whole mark, or as pass and fail."""
    return round(pairing.pass_share(one) if pairing.on_passes else one.label)


def _kinder(totals: FloatArray) -> FloatArray:
    """Mean over the family's cases of the difference of leans at their mark, from sums (r, marks x 4)."""
    own, n, other, m = np.moveaxis(totals.reshape(len(totals), -1, SUMS), 2, 0)
    there = (n > 0) & (m > 0)
    weights = np.where(there, n, 0.0)
    apart_at = own / np.where(there, n, 1.0) - other / np.where(there, m, 1.0)
    found: FloatArray = (weights * apart_at).sum(axis=1) / weights.sum(axis=1)
    return found
