"""How far a judge-based share can be trusted: its calibration, and the correction that an audit allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from calibration.estimate import Estimate
from calibration.rogan_gladen import rogan_gladen
from judge.calibrations import CALIBRATED, DEFAULT, NOT_TRUSTED, UNCALIBRATED, in_short, load, state_of
from judge.diagnosing.judged import ROOTS, rubric_for
from judge.errors import InputError
from rubrics.model import Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """One judge-based input: its rubric, `calibrated | uncalibrated | stale`, and the error rates of its audit.

    `verdict` is the audit's. `rates` are specificity with m0 human-negative and sensitivity with m1 human-positive
    items.
    """

    rubric: str | None
    state: str
    verdict: str | None = None
    rates: Mapping[str, Any] | None = None

    @property
    def calibrated(self) -> bool:
        """Whether an audit of this very judge found it usable."""
        return self.state == CALIBRATED and self.verdict not in NOT_TRUSTED

    @property
    def rejected(self) -> bool:
        """Whether an audit of this very judge found it not usable; one with too few labels has found nothing yet."""
        return self.state == CALIBRATED and self.verdict == "not_usable"

    @property
    def said(self) -> str:
        """The rubric and its state in words."""
        return f"{self.rubric or 'refusal phrases'}: {in_short(self.state, self.verdict)}"


def trusts(
    run: Path, made: Mapping[str, Any], rubrics: Mapping[str, Rubric], folder: Path | None = None
) -> dict[str, Trust]:
    """Input name (faithfulness, correct, complete, citation, refused) -> Trust; `made` is the content of run.json.

    The state is that of summary.json, where a calibration was found when the run was scored, or calibrated when
    RUN/audit or the calibrations of `folder` (default ./calibrations) hold this rubric, prompt and judge.
    """
    summary = _json(run / "summary.json", "score").get("rubrics", {})
    summary = _object(summary, run / "summary.json", "score")
    saved, _ = load(folder or DEFAULT)
    found = {}
    for name, root in ROOTS.items():
        rubric = rubric_for(root, rubrics)
        if rubric is None:
            found[name] = Trust(rubric=None, state=UNCALIBRATED)
            continue
        audit = _json(run / "audit" / f"{rubric.id}.json", "audit")
        known = _object(summary.get(rubric.id, {}), run / "summary.json", "score")
        found[name] = _trust(rubric, made["judge"], known, [audit, *saved])
    return found


def _trust(
    rubric: Rubric, judge: Mapping[str, Any], known: Mapping[str, Any], audits: Sequence[Mapping[str, Any]]
) -> Trust:
    """The first audit counts that is of this rubric, prompt and judge; the first of `audits` is the run's own."""
    state, verdict = known.get("calibration", UNCALIBRATED), known.get("calibration_verdict")
    rates = error_rates(audits[0])
    for audit in audits:
        if not {"rubric", "judge", "verdict"} <= set(audit):
            continue
        held = state_of(rubric.id, rubric.rubric_hash, known.get("prompt_hashes", ()), judge, [audit])
        if held.word == CALIBRATED:
            state, verdict, rates = CALIBRATED, held.verdict, rates or error_rates(audit)
            break
    return Trust(rubric=rubric.id, state=state, verdict=verdict, rates=rates)


def _json(path: Path, verb: str) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        loaded = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        loaded = None
    return _object(loaded, path, verb)


def _object(value: Any, path: Path, verb: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{path}: damaged; run the judge {verb} command that made it again, which costs nothing")
    return value


def error_rates(audit: Mapping[str, Any]) -> dict[str, Any] | None:
    """Sensitivity and specificity of an audit, on pass and fail; None when it has none."""
    binary = (audit.get("pass_fail") or audit.get("agreement") or {}).get("binary") or {}
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
        return Corrected(found, False, trust.said)
    if trust.rates is None:
        return Corrected(
            found, False, f"{trust.rubric}: calibrated, but without error rates; run judge audit on this run"
        )
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
