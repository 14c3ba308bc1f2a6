"""From a share with its interval to a verdict: established, suspected, not_shown, ruled_out or too_few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal

from calibration.compare import holm
from calibration.estimate import Estimate, clustered_proportion, mean, proportion

Verdict = Literal["established", "suspected", "not_shown", "ruled_out", "too_few"]
WEAKEST_FIRST: tuple[Verdict, ...] = ("too_few", "ruled_out", "not_shown", "suspected", "established")
ALPHA = 0.05
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A number that must lie beyond its threshold for a scenario to hold.

    `above`: beyond is larger. `reached`: exactly at the threshold counts as beyond. `trusted`: measured by labels, or
    by a judge whose calibration matches and whose share was corrected; `rejected`: by one that its audit found not
    usable. `bounds`: ends of the scale of a mean.
    """

    what: str
    estimate: Estimate
    threshold: float
    above: bool = True
    reached: bool = False
    trusted: bool = True
    rejected: bool = False
    bounds: tuple[float, float] = (0.0, 1.0)
    naive: Estimate | None = None

    def beyond(self, value: float) -> bool:
        gap = (value - self.threshold) * (1 if self.above else -1)
        return gap >= -ROUNDING if self.reached else gap > ROUNDING

    def verdict(self, min_n: int = 20) -> Verdict:
        """The verdict on this number alone, before the number of tests is allowed for.

        established: the whole interval lies beyond the threshold; ruled_out: none of it; suspected: the value does.
        Fewer than `min_n` cases: too_few. Without an interval, or untrusted: at most suspected, never ruled_out.
        """
        found = self.estimate
        if found.n < min_n or found.value is None:
            return "too_few"
        low, high = found.ci_low, found.ci_high
        if self.trusted and low is not None and high is not None:
            near, far = (low, high) if self.above else (high, low)
            if self.beyond(near):
                return "established"
            if not self.beyond(far):
                return "ruled_out"
        return "suspected" if self.beyond(found.value) else "not_shown"

    def p_value(self) -> float:
        """Twice the one-sided p that the true number is not beyond the threshold, at most 1; 1 without a value.

        Shares: score test with the effective size. Means: normal. All values alike: twice the chance to see no other
        value in n draws if the true mean were at the threshold and the others lay at the far end of the scale.
        """
        found, limit = self.estimate, self.threshold
        if found.value is None or found.n == 0:
            return 1.0
        gap = (found.value - limit) * (1 if self.above else -1)
        if found.method.startswith("wilson_zero"):
            return 1.0 if gap <= 0 else _unseen(found, limit, self.bounds)
        if found.method.startswith("wilson"):
            spread = limit * (1 - limit) / _effective(found)
            return _doubled(gap / math.sqrt(spread)) if spread > 0 else 1.0
        return _doubled(gap / found.se) if found.se else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "what": self.what, "estimate": self.estimate.to_dict(), "threshold": self.threshold,
            "direction": "above" if self.above else "below", "trusted": self.trusted, "p_value": self.p_value(),
            "naive": self.naive.to_dict() if self.naive else None,
        }  # fmt: skip


def _doubled(z: float) -> float:
    return min(1.0, 2 * NormalDist().cdf(-z))


def _effective(found: Estimate) -> float:
    share = found.value or 0.0
    if found.method == "wilson":
        return found.n
    if 0 < share < 1 and found.se:
        return min(float(found.n), share * (1 - share) / found.se**2)
    return float(found.n_clusters or found.n)


def _unseen(found: Estimate, limit: float, bounds: tuple[float, float]) -> float:
    value = found.value or 0.0
    far = bounds[0] if limit < value else bounds[1]
    needed = (limit - value) / (far - value) if far != value else 1.0
    return min(1.0, 2 * (1 - min(max(needed, 0.0), 1.0)) ** (found.n_clusters or found.n))


def together(conditions: Sequence[Condition], min_n: int) -> tuple[Verdict, float]:
    """Verdict and p when all conditions must hold: the weakest verdict and the largest p (intersection-union test)."""
    verdicts = [condition.verdict(min_n) for condition in conditions]
    p = max(condition.p_value() for condition in conditions)
    return next(verdict for verdict in WEAKEST_FIRST if verdict in verdicts), p


def allow_for_many(verdicts: Sequence[tuple[Verdict, float]]) -> list[tuple[Verdict, float | None]]:
    """(verdict, Holm's p) in the order given: established needs p <= .05 among all that had enough cases."""
    tested = [place for place, (verdict, _) in enumerate(verdicts) if verdict != "too_few"]
    adjusted = dict(zip(tested, holm([verdicts[place][1] for place in tested]), strict=True))
    made: list[tuple[Verdict, float | None]] = []
    for place, (verdict, _) in enumerate(verdicts):
        p = adjusted.get(place)
        weak = verdict == "established" and p is not None and p > ALPHA
        made.append(("suspected" if weak else verdict, p))
    return made


def share(outcomes: Sequence[bool | None], clusters: Sequence[str]) -> Estimate:
    """The share of yes among the known outcomes, clustered where cases share a cluster; None is dropped."""
    known = [(outcome, cluster) for outcome, cluster in zip(outcomes, clusters, strict=True) if outcome is not None]
    dropped = len(outcomes) - len(known)
    if len({cluster for _, cluster in known}) < len(known):
        found = clustered_proportion([outcome for outcome, _ in known], clusters=[name for _, name in known])
        return replace(found, n_dropped=dropped)
    return proportion(sum(outcome for outcome, _ in known), len(known), n_dropped=dropped)


def average(
    values: Sequence[float | None], clusters: Sequence[str], bounds: tuple[float, float] | None = (0.0, 1.0)
) -> Estimate:
    """The mean of the known values, clustered where cases share a cluster."""
    names = [cluster for value, cluster in zip(values, clusters, strict=True) if value is not None]
    return mean(values, clusters=clusters if len(set(names)) < len(names) else None, bounds=bounds)
