"""When a finished run is not good enough: thresholds declared beforehand, decided on lower bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from judge.errors import UsageError
from judge.imports.native import did_you_mean

DONE, GATE_FAILED, TOO_MANY_ERRORS, INTERRUPTED = 0, 1, 3, 130


def parse_thresholds(given: Sequence[str], option: str) -> dict[str, float]:
    """["faithfulness=4.2"] as {"faithfulness": 4.2}."""
    found = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            found[name.strip()] = float(value)
            if not isfinite(found[name.strip()]):
                raise ValueError
        except ValueError:
            raise UsageError(f"{option} {text!r}: give NAME=NUMBER, such as faithfulness=4.2 or kappa=.6") from None
    return found


def refuse_unknown(gates: Iterable[str], names: Sequence[str], what: str = "rubric") -> None:
    """Raises UsageError for a gate on what will not be in the summary; called before anything is spent."""
    for name in gates:
        if name not in names:
            near = did_you_mean(name, names)
            raise UsageError(f"gate on {name!r}: no such {what} here (there are: {', '.join(names)}){near}")


def failures(
    summary: Mapping[str, Any], lower: Mapping[str, float], points: Mapping[str, float], *, calibrated: bool = False
) -> list[str]:
    """The gates that failed, each in a sentence. A bound that is undefined fails; an unknown rubric is a UsageError.

    `lower` compares the lower confidence bound of the mean, `points` the mean itself, both on the rubric's scale.
    `calibrated` requires a matching calibration for every rubric that does not call the judge not usable.
    """
    failed = estimate_failures({name: found["mean"] for name, found in summary["rubrics"].items()}, lower, points)
    if calibrated:
        for name, found in summary["rubrics"].items():
            state = found.get("calibration", "uncalibrated")
            if state != "calibrated":
                failed.append(f"{name}: {state}; --require-calibration wants a matching audit (judge audit --save)")
            elif found.get("calibration_verdict") == "not_usable":
                failed.append(f"{name}: calibrated, and the audit found the judge not usable for it")
    return failed


def estimate_failures(found: Mapping[str, Any], lower: Mapping[str, float], points: Mapping[str, float]) -> list[str]:
    """The thresholds that the Estimates among the values of `found` do not reach; other values cannot be gated."""
    known = {name: one for name, one in found.items() if isinstance(one, Mapping) and {"value", "ci_low"} <= set(one)}
    failed = []
    for thresholds, bound, words in ((lower, "ci_low", "lower bound"), (points, "value", "value")):
        for name, least in thresholds.items():
            if name not in known:
                raise UsageError(f"gate on {name!r}: no such number in this run (it has: {', '.join(known) or 'none'})")
            value = known[name][bound]
            if value is None:
                reason = known[name]["reason"]
                failed.append(f"{name}: the {words} is undefined ({reason}), so it cannot be shown to reach {least:g}")
            elif value < least:
                failed.append(f"{name}: the {words} is {value:.3f}, below {least:g}")
    return failed


def exit_code(summary: Mapping[str, Any], failed: Sequence[str], max_error_rate: float) -> int:
    """130 interrupted, 3 too many errors or stopped by --max-cost, 1 a gate failed, 0 done; 3 beats 1."""
    if summary.get("stopped") == "interrupted":
        return INTERRUPTED
    rate = summary["error_rate"]
    if summary.get("stopped") == "max_cost" or (rate is not None and not rate <= max_error_rate):
        return TOO_MANY_ERRORS
    return GATE_FAILED if failed else DONE
