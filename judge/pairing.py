"""A run and labels brought together: for each labelled case what the judge said, what people said, or why no pair."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np

from calibration.ratings import Ratings, Scale, declare_scale
from judge.cases import Case
from judge.errors import InputError, UsageError
from judge.imports import shown
from judge.labels import JUDGE, Form, HumanLabel, scale_of, values_of
from judge.sheet import stratum_of
from judge.summary import majority
from rubrics.model import Rubric

MANY_RATERS = 8
PASS_FAIL = declare_scale(("fail", "pass"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """One labelled case that the judge scored: its scored lines (one per repeat) and a value per person.

    `people` holds levels of the scale, or 1 and 0 when the labels are pass and fail.
    """

    case: Case
    lines: tuple[Mapping[str, Any], ...]
    people: Mapping[str, int]

    @property
    def score(self) -> float:
        return fmean(line["score"] for line in self.lines)

    @property
    def p(self) -> float:
        return fmean(line["normalized"] for line in self.lines)

    @property
    def passed(self) -> bool:
        return majority(line["passed"] for line in self.lines)

    @property
    def label(self) -> float:
        """What people said on average."""
        return fmean(self.people.values())


@dataclass(frozen=True, slots=True)
class Judged:
    """What the judge said of a case: score (mean of repeats), verdict, and the stratum that a sheet draws it from.

    `question` is a hash: cases that share one are a cluster.
    """

    score: float
    passed: bool
    stratum: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Everything that an audit of one rubric needs.

    `judged`: all cases with a score, by id. `propensities`: of labelled cases, where recorded. `dropped`: labelled
    cases without a score, each with the reason. `slots` names the votes when there are too many raters to be treated
    one by one.
    """

    rubric: Rubric
    form: Form
    quick: bool
    rated: tuple[Rated, ...]
    judged: Mapping[str, Judged]
    propensities: Mapping[str, float]
    dropped: tuple[tuple[str, str], ...]
    raters: Mapping[str, int]
    prompt_hash: str | None
    warnings: tuple[str, ...] = ()
    slots: tuple[str, ...] = field(default=())

    @property
    def on_passes(self) -> bool:
        """Whether judge and people are compared on pass and fail, not on levels."""
        return self.quick or self.form == "pass_fail" or len(self.rubric.scale.levels) == 2

    @property
    def clusters(self) -> list[str] | None:
        """The question of each rated case, where several cases share one."""
        questions = [_short(one.case.question) for one in self.rated]
        return questions if len(set(questions)) < len(questions) else None

    def person_passes(self, value: float) -> bool:
        """Whether a label is a pass."""
        return value >= (1 if self.form == "pass_fail" else self.rubric.scale.pass_at)

    def people_pass(self, rated: Rated) -> bool | None:
        """Whether most people pass the case; None when they are split evenly."""
        passes = sum(self.person_passes(value) for value in rated.people.values())
        return None if 2 * passes == len(rated.people) else 2 * passes > len(rated.people)

    def pass_share(self, rated: Rated) -> float:
        return fmean(self.person_passes(value) for value in rated.people.values())


def pair(
    rows: Iterable[Mapping[str, Any]], cases: Iterable[Case], labels: Sequence[HumanLabel], rubric: Rubric
) -> Pairing:
    """Joins judgment lines, cases and labels of one rubric on the case id.

    Raises UsageError when no labelled case was judged, InputError for labels off the scale.
    """
    form, values = values_of(labels, rubric)
    people: dict[str, dict[str, int]] = {}
    for (case_id, rater), value in values.items():
        people.setdefault(case_id, {})[rater] = value
    raters = Counter(rater for _, rater in values)
    slots: tuple[str, ...] = ()
    if len(raters) > MANY_RATERS:
        people = {case: {f"vote {n}": v for n, v in enumerate(given.values(), 1)} for case, given in people.items()}
        slots = tuple(f"vote {n + 1}" for n in range(max(len(given) for given in people.values())))
    found: dict[str, Case] = {}
    questions: dict[str, str] = {}
    for case in cases:
        questions[case.id] = _short(case.question)
        if case.id in people:
            found[case.id] = case
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["rubric"] == rubric.id and row["case_id"] in questions:
            lines.setdefault(row["case_id"], []).append(row)
    scored = {name: [row for row in group if row["status"] == "scored"] for name, group in lines.items()}
    _refuse_off_scale(scored, rubric)
    rated = tuple(
        Rated(case=found[name], lines=tuple(scored[name]), people=given)
        for name, given in people.items()
        if scored.get(name) and name in found
    )
    alike = _lookalikes(people, questions)
    if not rated:
        raise UsageError(_nothing_shared(people, lines, rubric, alike))
    unjudged = sum(name not in lines for name in questions)
    return Pairing(
        rubric=rubric,
        form=form,
        quick=any(row["mode"] == "quick" for group in lines.values() for row in group),
        rated=rated,
        judged={
            name: Judged(
                fmean(row["score"] for row in group),
                majority(row["passed"] for row in group),
                stratum_of(group[0]),
                questions[name],
            )
            for name, group in scored.items()
            if group
        },
        propensities=_propensities(labels),
        dropped=tuple((name, _why(lines.get(name), alike.get(name))) for name in people if not scored.get(name)),
        raters=dict(sorted(raters.items())),
        prompt_hash=_prompt_hash(lines),
        warnings=(
            *([f"crowd: {len(raters)} raters are taken as {len(slots)} votes per case"] if slots else []),
            *([f"unfinished_run: {unjudged} of {len(questions)} cases have no judgment yet"] if unjudged else []),
        ),
        slots=slots,
    )


def ratings(pairing: Pairing, *, passes: bool) -> tuple[Ratings, tuple[str, ...]]:
    """The labels as ratings of the judge and the people, one item per case and repeat, and the names of the people.

    `passes`: pass and fail instead of levels. Repeats of a case, and cases of a question, form a cluster.
    """
    scale = PASS_FAIL if passes else scale_of(pairing.rubric)
    names = pairing.slots or tuple(pairing.raters)
    items, codes, groups, shared = [], [], [], pairing.clusters is not None
    for one in pairing.rated:
        people = [_code(pairing, one.people.get(name), scale) for name in names]
        for line in one.lines:
            judged = int(line["passed"]) if passes else scale.code(f"{line['score']:g}")
            items.append(one.case.id if len(one.lines) == 1 else f"{one.case.id} #{line['repeat']}")
            codes.append([-1 if judged is None else judged, *people])
            groups.append(_short(one.case.question) if shared else one.case.id)
    clustered = len(set(groups)) < len(groups)
    made = Ratings(
        items=tuple(items), raters=(JUDGE, *names), codes=np.array(codes, dtype=np.int64), scale=scale,
        clusters=tuple(groups) if clustered else None,
    )  # fmt: skip
    return made, names


def _code(pairing: Pairing, value: int | None, scale: Scale) -> int:
    if value is None:
        return -1
    return int(pairing.person_passes(value)) if scale is PASS_FAIL else pairing.rubric.scale.levels.index(value)


def _refuse_off_scale(scored: Mapping[str, Sequence[Mapping[str, Any]]], rubric: Rubric) -> None:
    low, high = rubric.scale.min, rubric.scale.max
    for name, group in scored.items():
        for row in group:
            if not low <= row["score"] <= high:
                raise InputError(
                    f"the run's judgment of {name} by {rubric.id} is {row['score']:g}, off the scale {low}..{high}: "
                    "the line was changed; take it out and run the command that made the run again"
                )


def _propensities(labels: Sequence[HumanLabel]) -> dict[str, float]:
    found: dict[str, float] = {}
    for label in labels:
        if label.propensity is None:
            continue
        if found.setdefault(label.case_id, label.propensity) != label.propensity:
            raise InputError(
                f"{label.place}: {shown(label.case_id)} has propensity {found[label.case_id]:g} and "
                f"{label.propensity:g}: a case is drawn with one chance"
            )
    return found


def _lookalikes(people: Iterable[str], known: Mapping[str, Any]) -> dict[str, str]:
    """Labelled ids that no case has, with the id of a case that a spreadsheet would write so ("1" for "001")."""
    strange = [name for name in people if name not in known]
    if not strange:
        return {}
    spelled = {_loosely(name): name for name in known}
    return {name: spelled[_loosely(name)] for name in strange if _loosely(name) in spelled}


def _loosely(name: str) -> str:
    text = unicodedata.normalize("NFKC", name).casefold().strip()
    try:
        return repr(float(text))
    except ValueError:
        return text


def _why(lines: Sequence[Mapping[str, Any]] | None, alike: str | None = None) -> str:
    if not lines:
        return "not_judged" + (f": the run has {shown(alike)}, is that the same case?" if alike is not None else "")
    last = lines[-1]
    return f"{last['status']}: {last['error_kind'] or last['reason']}"


def _prompt_hash(lines: Mapping[str, Sequence[Mapping[str, Any]]]) -> str | None:
    """The hash of the instructions sent; of all of them when a run holds several."""
    hashes = sorted({row["prompt_hash"] for group in lines.values() for row in group if row["prompt_hash"]})
    return hashes[0] if len(hashes) == 1 else "+".join(hashes) or None


def _nothing_shared(
    people: Mapping[str, Any], lines: Mapping[str, Any], rubric: Rubric, alike: Mapping[str, str]
) -> str:
    labelled, judged = [*alike, *people][:3], [*alike.values(), *lines][:3]
    both = [name for name in people if name in lines]
    if both:
        why = "; ".join(f"{name}: {_why(lines[name])}" for name in both[:5])
        return f"{rubric.id}: none of the {len(both)} labelled cases has a score from the judge ({why}); label others"
    return (
        f"{rubric.id}: none of the {len(people)} labelled cases is in the run: the labels have ids like "
        f"{', '.join(map(shown, labelled))}, the run like {', '.join(map(shown, judged)) or 'none'}; "
        "the case ids must be spelled the same"
        f"{'; a spreadsheet may have rewritten them: read the id column as text there' if alike else ''}"
    )


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
