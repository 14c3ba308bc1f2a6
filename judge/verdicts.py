"""Whether a judge may be trusted for a rubric: thresholds declared beforehand, held against lower bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from calibration.agreement import Agreement
from calibration.budget import labels_for_kappa
from calibration.estimate import Estimate, undefined
from calibration.tables import Weights
from judge.errors import UsageError

Verdict = Literal["trusted", "usable_with_correction", "not_usable", "too_few_labels"]

DEFAULTS = {"kappa": 0.6, "ceiling": 0.1}
RANGES = {
    "kappa": (-1, 1), "ceiling": (0, 2), "percent_agreement": (0, 1), "within_1": (0, 1), "spearman": (-1, 1),
    "auc": (0, 1), "sensitivity": (0, 1), "specificity": (0, 1),
}  # fmt: skip
PLANNED_HALF_WIDTH = 0.1
UNDECIDED_BELOW = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One threshold: what was measured, which bound counts, and whether it is reached (None: cannot be told)."""

    name: str
    threshold: float
    measured: Estimate
    reached: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """The verdict, in one word and in plain ones, with the checks it follows from."""

    verdict: Verdict
    because: str
    checks: tuple[Check, ...]


def thresholds_of(given: Mapping[str, float] | None) -> dict[str, float]:
    """The thresholds declared by the user over the defaults; UsageError for an unknown name or an impossible value.

    `kappa`: least chance-corrected agreement. `ceiling`: how far judge-human kappa may lie below human-human kappa.
    The others are least values of the statistic of that name.
    """
    for name, value in (given or {}).items():
        if name not in RANGES:
            raise UsageError(f"--threshold {name}: no such threshold (there are: {', '.join(RANGES)})")
        low, high = RANGES[name]
        if not low <= value <= high:
            raise UsageError(f"--threshold {name}={value:g}: must lie between {low} and {high}")
    return DEFAULTS | dict(given or {})


def headline_weights(levels: int) -> Weights:
    """The weights of the kappa that a verdict rests on: quadratic on three levels or more, else none."""
    return "quadratic" if levels > 2 else "none"


def rule(
    page: Agreement, passes: Agreement, thresholds: Mapping[str, float], *, auc: Estimate, spearman: Estimate
) -> Ruling:
    """The verdict on lower bounds.

    Every threshold reached: trusted. Else kappa surely above 0: usable_with_correction (a corrected mean is right
    whatever the judge's errors, single scores are not). Else kappa surely below its threshold: not_usable. Else, and
    below 10 items, and where kappa has no value: too_few_labels. `page` compares what the rubric gives (levels, or
    pass and fail), `passes` pass and fail.
    """
    binary = passes.binary or {}
    measured = {
        "kappa": page.kappa[headline_weights(len(page.scale))], "ceiling": page.human_ceiling.delta,
        "percent_agreement": page.percent_agreement,
        "within_1": page.within_1, "spearman": spearman, "auc": auc,
        "sensitivity": binary.get("sensitivity", undefined("no_data")),
        "specificity": binary.get("specificity", undefined("no_data")),
    }  # fmt: skip
    several = page.human_ceiling.delta.reason != "one_human"
    checks = tuple(
        _check(name, thresholds[name], measured[name]) for name in thresholds if name != "ceiling" or several
    )
    kappa, wanted = measured["kappa"], thresholds["kappa"]
    if page.n < UNDECIDED_BELOW or kappa.ci_low is None or kappa.ci_high is None:
        return Ruling(verdict="too_few_labels", because=_too_few(page, kappa), checks=checks)
    bounds = f"between {kappa.ci_low:z.2f} and {kappa.ci_high:z.2f} on {page.n} items"
    if all(check.reached for check in checks):
        because = f"agreement beyond chance (kappa) is {bounds}, all of it above the {wanted:g} asked for"
        others = [check.name for check in checks if check.name != "kappa"]
        more = f"; reached too: {', '.join(others)}" if others else ""
        return Ruling(verdict="trusted", because=because + more, checks=checks)
    missed = "; ".join(_missed(check) for check in checks if not check.reached)
    if kappa.ci_low > 0:
        because = f"it agrees with people more than chance would (kappa {bounds}), but {missed}"
        return Ruling(verdict="usable_with_correction", because=because, checks=checks)
    if kappa.ci_high < wanted:
        because = f"its agreement with people may be no better than chance (kappa {bounds}), surely below {wanted:g}"
        return Ruling(verdict="not_usable", because=because, checks=checks)
    because = f"kappa lies {bounds}: that can be no agreement at all or all that was asked for; {_more_labels(page)}"
    return Ruling(verdict="too_few_labels", because=because, checks=checks)


def _check(name: str, threshold: float, measured: Estimate) -> Check:
    least = -threshold if name == "ceiling" else threshold
    reached = None if measured.ci_low is None else measured.ci_low >= least
    return Check(name=name, threshold=threshold, measured=measured, reached=reached)


def _missed(check: Check) -> str:
    low = check.measured.ci_low
    if low is None:
        return f"{check.name} has no lower bound ({(check.measured.reason or '').replace('_', ' ')})"
    if check.name == "ceiling":
        return f"it may lie {-low:z.2f} below the agreement among people, more than the {check.threshold:g} allowed"
    return f"{check.name} is only shown to reach {low:z.2f}, not {check.threshold:g}"


def _too_few(page: Agreement, kappa: Estimate) -> str:
    if page.n >= UNDECIDED_BELOW and kappa.reason == "single_class":
        return (
            f"judge and people gave all {page.n} items the same label: nothing shows that the judge would notice "
            "another; label some that should get one"
        )
    why = "" if page.n < UNDECIDED_BELOW else f" ({(kappa.reason or '').replace('_', ' ')})"
    return f"{page.n} labelled items carry no verdict{why}; {_more_labels(page)}"


def _more_labels(page: Agreement) -> str:
    """How many labels would decide it: kappa .6 within 0.1, at the observed share of the commonest label."""
    share = min(max(page.constant_judge_accuracy, 0.5), 0.9)
    return f"about {labels_for_kappa(0.6, PLANNED_HALF_WIDTH, share)} labels would tell kappa to within 0.1"


def to_dict(ruling: Ruling) -> list[dict[str, Any]]:
    """The checks as plain JSON."""
    return [
        {"name": one.name, "threshold": one.threshold, "reached": one.reached, "measured": one.measured.to_dict()}
        for one in ruling.checks
    ]
