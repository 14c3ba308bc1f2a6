"""What stands beside the diagnosis: users, cost and latency of the pipeline, age of sources, citations, estimates."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from statistics import median
from typing import Any

from judge.diagnosing.examined import Examined
from judge.diagnosing.feedback import satisfaction
from judge.diagnosing.outcomes import OUTCOMES
from judge.diagnosing.scenario import Diagnosed
from judge.diagnosing.summary import is_failed
from judge.diagnosing.verdicts import average, share
from rubrics.citations import parse

AGES = ((30, "up to 30 days"), (90, "31 to 90 days"), (365, "91 to 365 days"), (None, "over 365 days"))


def feedback(run: Diagnosed) -> dict[str, Any]:
    """Satisfaction of users in all, and by whether the case passes here: do the two agree?"""
    told = satisfaction(run)
    groups: dict[str, Any] = {}
    for name, good in (("passed", True), ("failed", False)):
        cases = [c for c in run.cases if c.decided and OUTCOMES[c.outcome].good is good]
        part = satisfaction(_only(run, cases))
        groups[name] = part.estimate.to_dict() if part.estimate else None
    return {"satisfaction": told.estimate.to_dict() if told.estimate else None, "reason": told.reason, **groups}


def _only(run: Diagnosed, cases: Sequence[Examined]) -> Diagnosed:
    from dataclasses import replace

    return replace(run, cases=cases)


def pipeline(run: Diagnosed) -> list[dict[str, Any]]:
    """Per system: quality beside latency and cost of the judged pipeline; empty when no case recorded either."""
    if all(case.case.latency_s is None and case.case.cost_usd is None for case in run.cases):
        return []
    names = sorted({case.case.system or "(none)" for case in run.cases})
    return [_pipeline(run, name, [c for c in run.cases if (c.case.system or "(none)") == name]) for name in names]


def _pipeline(run: Diagnosed, name: str, cases: Sequence[Examined]) -> dict[str, Any]:
    decided = [case for case in cases if case.decided]
    clusters = [run.cluster(case) for case in cases]
    made: dict[str, Any] = {
        "system": name, "n": len(cases),
        "passed": share([OUTCOMES[c.outcome].good for c in decided], [run.cluster(c) for c in decided]).to_dict(),
    }  # fmt: skip
    for field in ("latency_s", "cost_usd"):
        values = [getattr(case.case, field) for case in cases]
        known = sorted(value for value in values if value is not None)
        made[field] = {
            "mean": average(values, clusters, bounds=None).to_dict(),
            "median": median(known) if known else None,
            "p95": known[min(len(known) - 1, int(0.95 * len(known)))] if known else None,
        }
    made["cost_per_pass"] = _cost_per_pass(decided)
    return made


def _cost_per_pass(decided: Sequence[Examined]) -> float | None:
    """Cost of the decided cases over how many of them pass; None where a cost is missing or none passes."""
    costs = [case.case.cost_usd for case in decided]
    passed = sum(OUTCOMES[case.outcome].good for case in decided)
    return None if None in costs or not passed else sum(cost or 0.0 for cost in costs) / passed


def ages(run: Diagnosed, reference: datetime.date) -> list[dict[str, Any]]:
    """Share of failed answers by the age of `as_of` on the day of reference; empty when no case has one.

    `wrong_source`: how many are supported by their passages and wrong all the same, the sign of an outdated source.
    """
    dated = [case for case in run.cases if case.case.as_of is not None]
    groups: dict[str, list[Examined]] = {}
    for case in dated:
        days = (reference - case.case.as_of).days  # type: ignore[operator]
        groups.setdefault(next(name for most, name in AGES if most is None or days <= most), []).append(case)
    return [
        {
            "age": name, "n": len(groups[name]),
            "failed": share([is_failed(c) for c in groups[name]], [run.cluster(c) for c in groups[name]]).to_dict(),
            "wrong_source": sum(case.outcome == "faithful_but_wrong" for case in groups[name]),
        }
        for _, name in AGES if name in groups
    ]  # fmt: skip


def citations(run: Diagnosed) -> dict[str, Any]:
    """Citation recall: the share of `expected_citations` that an answer cites, by the citation parser, no judge."""
    cases = [case for case in run.cases if case.case.expected_citations]
    values = [_cited(case) for case in cases]
    return {
        "n": len(cases),
        "recall": average(values, [run.cluster(case) for case in cases]).to_dict(),
        "missed": [case.case.id for case, value in zip(cases, values, strict=True) if value < 1][:20],
    }


def _cited(case: Examined) -> float:
    expected = set(case.case.expected_citations or ())
    cited = {mark.id or mark.raw for mark in parse(case.case.answer or "", case.case.contexts or ())}
    return len(expected & cited) / len(expected)


def estimates(run: Diagnosed) -> dict[str, Any]:
    """For answerable cases without recall: precision and sufficiency by the judge of context_relevance. Estimates."""
    cases = [case for case in run.cases if case.outcome == "unlabelled" and case.useful is not None]
    cases = [case for case in cases if case.side("recall") == "missing" and case.side("answerable") == "yes"]
    clusters = [run.cluster(case) for case in cases]
    shares = [sum(c.useful.values()) / len(c.useful) if c.useful else None for c in cases]
    enough = [None if case.sufficiency is None else case.sufficiency == "full" for case in cases]
    suggested: dict[str, int] = {}
    for case in cases:
        if case.estimated is not None:
            suggested[case.estimated.outcome] = suggested.get(case.estimated.outcome, 0) + 1
    return {
        "n": len(cases),
        "precision_estimate": average(shares, clusters).to_dict(),
        "sufficiency_estimate": share(enough, clusters).to_dict(),
        "any_useful_estimate": share([any((case.useful or {}).values()) for case in cases], clusters).to_dict(),
        "outcomes_estimate": suggested,
    }
