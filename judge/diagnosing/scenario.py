"""A scenario as a value: what it rests on, its verdict, and the sentence that says both and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judge.cases import Case
from judge.diagnosing.examined import Examined
from judge.diagnosing.found import Found
from judge.diagnosing.thresholds import Threshold
from judge.diagnosing.trust import Trust
from judge.diagnosing.verdicts import Condition, Verdict

NOT_TESTED = "not_tested"
SAID = {
    "established": "established", "suspected": "suspected", "not_shown": "not shown", "ruled_out": "ruled out",
    "too_few": "too few cases", NOT_TESTED: "not tested",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """What the summary of a run works on. `clusters`: case id -> what it shares with others, for the intervals."""

    cases: Sequence[Examined]
    found: Found
    limits: Mapping[str, Threshold]
    trusts: Mapping[str, Trust]
    clusters: Mapping[str, str]
    feedback_scale: tuple[float, float] = (0.0, 1.0)

    def cluster(self, case: Examined) -> str:
        return self.clusters[case.case.id]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One pattern over many cases. No conditions: not tested, and the notes say why, or `verdict` was decided apart."""

    id: str
    title: str
    stage: str
    conditions: tuple[Condition, ...]
    next: str
    base: str
    notes: Sequence[str] = ()
    verdict: Verdict | Literal["not_tested"] = "not_tested"
    p_holm: float | None = None
    needed: int = 20
    details: Mapping[str, Any] = field(default_factory=dict)

    def decided(self, verdict: Verdict, p_holm: float | None, *, before: Verdict, needed: int) -> Scenario:
        """With the verdict after Holm; `before` is the one without, `needed` the cases that a verdict takes."""
        notes = list(self.notes)
        if verdict != before:
            notes.append(f"its own interval lies beyond, but Holm's p {p_holm:.3f} over all tests does not reach .05")
        return replace(self, verdict=verdict, p_holm=p_holm, notes=notes, needed=needed)

    def sentence(self) -> str:
        """The finding with its numbers, on how many cases it rests, and the next step."""
        if not self.conditions:
            return f"{SAID[self.verdict]}: {'; '.join(self.notes)}. Next: {self.following()}"
        parts = "; ".join(_numbers(condition, self.base) for condition in self.conditions)
        return f"{SAID[self.verdict]}: {parts}. Next: {self.following()}"

    def following(self) -> str:
        """What to do now."""
        if self.verdict == "suspected":
            return f"{self._doubt() or 'add cases'} to be sure; {self.next}"
        if self.verdict == "not_shown":
            doubt = self._doubt()
            return f"nothing yet; {doubt} to rule it out" if doubt else "nothing yet"
        return {
            "ruled_out": "nothing", "too_few": f"add such cases, at least {self.needed} are needed for a verdict",
            NOT_TESTED: "supply what is missing to test it",
        }.get(self.verdict, self.next)  # fmt: skip

    def _doubt(self) -> str | None:
        """What would make its judge one to rely on; None where nothing is wanting."""
        if any(condition.rejected for condition in self.conditions):
            return "take another judge (the audit found this one not usable)"
        if all(condition.trusted for condition in self.conditions):
            return None
        return "calibrate the judge (judge sheet, judge audit)"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "id": self.id, "title": self.title, "stage": self.stage, "verdict": self.verdict,
            "n": min((c.estimate.n for c in self.conditions), default=0), "base": self.base,
            "conditions": [condition.to_dict() for condition in self.conditions], "p_holm": self.p_holm,
            "notes": list(self.notes), "details": dict(self.details), "next": self.following(),
            "sentence": self.sentence(),
        }  # fmt: skip


def _numbers(condition: Condition, base: str) -> str:
    from judge.report.page import estimated

    found = condition.estimate
    side = ("at least" if condition.reached else "above") if condition.above else "below"
    asked = f"a finding {side} {100 * condition.threshold:.0f}%"
    unknown = f"; {found.n_dropped} more are uncertain or not judged" if found.n_dropped else ""
    return f"{condition.what}: {estimated(found.to_dict(), percent=True)} of {found.n} {base} ({asked}{unknown})"


def clusters_of(cases: Sequence[Case], by: str) -> dict[str, str]:
    """Case id -> cluster: the same question, or (`document`) any labelled document in common."""
    if by == "question":
        return {case.id: " ".join(case.question.casefold().split()) for case in cases}
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for case in cases:
        for label in case.relevant or ():
            document = label.doc or label.chunk or label.text or ""
            parent[root(f"document {document}")] = root(f"case {case.id}")
    return {case.id: root(f"case {case.id}") for case in cases}
