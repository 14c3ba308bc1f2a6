"""What users said online, as a share with interval, or why it cannot be read."""

from __future__ import annotations

from dataclasses import dataclass

from calibration.estimate import Estimate
from judge.diagnosing.scenario import Diagnosed
from judge.diagnosing.verdicts import average, share


@dataclass(frozen=True, slots=True)
class Satisfaction:
    """An estimate on 0..1, or None with the reason."""

    estimate: Estimate | None
    reason: str | None = None


def satisfaction(run: Diagnosed) -> Satisfaction:
    """Mean `feedback` of the cases that have it: true and false are 1 and 0, numbers are taken from their scale."""
    low, high = run.feedback_scale
    told = [(case, float(case.case.feedback)) for case in run.cases if case.case.feedback is not None]
    if not told:
        return Satisfaction(None, "no case has `feedback` from users: no online data")
    scaled = [
        (value if isinstance(case.case.feedback, bool) else (value - low) / (high - low), case) for case, value in told
    ]
    outside = [case.case.feedback for value, case in scaled if not 0 <= value <= 1]
    if outside:
        return Satisfaction(
            None, f"feedback {outside[0]:g} lies outside {low:g} to {high:g}: name the scale with --feedback-scale 1,5"
        )
    clusters = [run.cluster(case) for _, case in scaled]
    values = [value for value, _ in scaled]
    if set(values) <= {0.0, 1.0}:
        return Satisfaction(share([bool(value) for value in values], clusters))
    return Satisfaction(average(values, clusters))
