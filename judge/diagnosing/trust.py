"""How far a judge-based share can be trusted: its calibration, and the correction that an audit allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calibration.estimate import Estimate
from calibration.rogan_gladen import rogan_gladen
from judge.diagnosing.judged import ROOTS, rubric_for
from rubrics.model import Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """One judge-based input: its rubric, `calibrated | uncalibrated | stale`, and the error rates of its audit.

    `rates` are specificity with m0 human-negative and sensitivity with m1 human-positive items.
    """

    rubric: str | None
    state: str
    rates: Mapping[str, Any] | None = None

    @property
    def calibrated(self) -> bool:
        return self.state == "calibrated"


def trusts(run: Path, rubrics: Mapping[str, Rubric], summary: Mapping[str, Any]) -> dict[str, Trust]:
    """Input name (faithfulness, correct, complete, citation, refused) -> Trust, from summary.json and RUN/audit."""
    made = {}
    for name, root in ROOTS.items():
        rubric = rubric_for(root, rubrics)
        if rubric is None:
            made[name] = Trust(rubric=None, state="uncalibrated")
            continue
        state = summary["rubrics"].get(rubric.id, {}).get("calibration", "uncalibrated")
        made[name] = Trust(rubric=rubric.id, state=state, rates=error_rates(run / "audit" / f"{rubric.id}.json"))
    return made


def error_rates(path: Path) -> dict[str, Any] | None:
    """Sensitivity and specificity of an audit of pass and fail; None when the audit is not there or has none."""
    if not path.exists():
        return None
    import orjson

    audit = orjson.loads(path.read_bytes())
    binary = (audit.get("agreement") or {}).get("binary") or {}
    if any((binary.get(name) or {}).get("value") is None for name in ("sensitivity", "specificity")):
        return None
    return {
        "sensitivity": binary["sensitivity"]["value"], "m1": binary["sensitivity"]["n"],
        "specificity": binary["specificity"]["value"], "m0": binary["specificity"]["n"],
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Corrected:
    """A share after correction, or the share as the judge gave it with the reason why it stays so."""

    estimate: Estimate
    trusted: bool
    reason: str | None
    naive: Estimate | None = None


def corrected(
    found: Estimate,
    fails: Sequence[bool | None],
    passed: Sequence[bool | None],
    trust: Trust,
    *,
    of_passes: bool = False,
) -> Corrected:
    """A share of failing (`of_passes`: passing) cases, corrected by Rogan-Gladen where the judge is calibrated.

    `fails`: which side each case is on here; `passed`: the pass or fail that the audit measured. The error rates apply
    only where the two say the same of every case. Not corrected: the estimate as it is, untrusted, with the reason.
    """
    if not trust.calibrated:
        return Corrected(found, False, f"{trust.rubric or 'refusal phrases'}: {trust.state}")
    if trust.rates is None:
        return Corrected(found, False, f"{trust.rubric}: calibrated, but no audit with error rates is in the run")
    both = [(bad, good) for bad, good in zip(fails, passed, strict=True) if bad is not None and good is not None]
    differ = sum(bad == good for bad, good in both)
    if differ:
        reason = f"{trust.rubric}: its audit is of pass and fail, which differ from the sides here on {differ} cases"
        return Corrected(found, False, reason)
    if not both:
        return Corrected(found, False, "no_values")
    n = len(both)
    rate = rogan_gladen(sum(good for _, good in both) / n, n, **trust.rates)
    if rate.value is None:
        return Corrected(found, False, f"{trust.rubric}: the audit allows no correction ({rate.reason})")
    warned = ("clusters_not_in_interval",) if found.n_clusters is not None else ()
    rate = replace(rate, n_dropped=len(fails) - n, warnings=(*rate.warnings, *warned))
    return Corrected(rate if of_passes else _complement(rate), True, None, found)


def _complement(rate: Estimate) -> Estimate:
    def other(value: float | None) -> float | None:
        return None if value is None else 1 - value

    return replace(rate, value=other(rate.value), ci_low=other(rate.ci_high), ci_high=other(rate.ci_low))
