"""The pairwise protocol: two answers are shown in both orders, and the two verdicts become one outcome.

PairTask --plan--> PairPlan (two calls, or an outcome decided by code) --ask--> replies --settle--> Comparison
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import rubrics
from calibration.verdicts import COMBINE
from judge.cases import Case
from judge.llm.request import Reply, Request
from judge.pointwise import LOW_MASS, Keys, Mode, Plan, Task, plan, probability, request_of, settle, spent
from judge.runs import work_key
from rubrics.model import Layout, Prompt, Rubric

Side = Literal["a", "b"]
Winner = Literal["a", "b", "tie", "both_fail"]

ORDERS: tuple[Side, Side] = ("a", "b")
FLAGGED_MASS = 0.9

LEANS: Mapping[tuple[str, str], Side] = {
    ("a", "tie"): "a", ("b", "tie"): "b", ("a", "both_fail"): "a", ("b", "both_fail"): "b"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one question. `case` holds what both share (its own answer is None); `a`, `b` name the systems."""

    case: Case
    a: str
    b: str
    answer_a: str
    answer_b: str
    flags: tuple[str, ...] = ()

    def shown(self, first: Side) -> tuple[str, str]:
        """The answers in the order in which they are shown."""
        return (self.answer_a, self.answer_b) if first == "a" else (self.answer_b, self.answer_a)


@dataclass(frozen=True, slots=True)
class PairTask:
    """One comparison to make. `pointwise` is a rubric whose quick scores of both answers stand beside it, or None."""

    pair: Pair
    rubric: Rubric
    repeat: int = 0
    pointwise: Rubric | None = None

    def identity(self) -> dict[str, Any]:
        pair = self.pair
        return {
            "case_id": pair.case.id, "rubric": self.rubric.id, "repeat": self.repeat, "a": pair.a, "b": pair.b
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PairPlan:
    """A task with its calls: one for each order, then the pointwise twins. No calls: `decided` says why."""

    task: PairTask
    key: str
    decided: tuple[str, str] | None = None
    prompts: tuple[Prompt, ...] = ()
    keys: tuple[str, ...] = ()
    twins: tuple[Plan, ...] = ()
    requests: tuple[Request, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """What one order said: `first` is the side shown first, `winner` the verdict mapped back to the sides."""

    first: Side
    status: Literal["scored", "cannot_judge", "error"]
    key: str
    verdict: str | None = None
    winner: Winner | None = None
    margin: str | None = None
    p_first: float | None = None
    reason: str | None = None
    flags: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        names = ("first", "status", "verdict", "winner", "margin", "p_first", "key")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of comparisons.jsonl (CONTRACTS 3)."""

    plan: PairPlan
    judge: str
    mode: Mode
    calls: tuple[Call, ...]
    outcome: str
    lean: Side | None
    p_a: float | None
    reason: str | None
    flags: tuple[str, ...]
    pointwise: Mapping[str, Any] | None
    replies: tuple[Reply, ...]

    def to_row(self) -> dict[str, Any]:
        task = self.plan.task
        row: dict[str, Any] = {
            **task.identity(),
            "rubric_hash": task.rubric.rubric_hash,
            "prompt_hash": self.plan.prompts[0].prompt_hash if self.plan.prompts else None,
            "judge": self.judge,
            "mode": self.mode,
            "calls": [call.to_dict() for call in self.calls],
            "outcome": self.outcome,
            "lean": self.lean,
            "p_a": self.p_a,
            "reason": self.reason,
            "flags": list(self.flags),
            **spent(self.replies),
        }
        return row if self.pointwise is None else {**row, "pointwise": dict(self.pointwise)}


def plan_pair(task: PairTask, client: Keys, *, mode: Mode, secret: bytes, layout: Layout = "rubric_first") -> PairPlan:
    """The two calls of a comparison (one per order), rendered and named; no call is made.

    Identical answers (after Unicode composition and white space) are a tie without a call. A case that lacks what the
    criterion requires is incomplete without a call. In quick mode each call asks for one token, A or B.
    """
    pair = task.pair
    decided = _decided(task)
    if decided is not None:
        return PairPlan(task, work_key({"calls": ()}), decided=decided)
    if mode == "full":
        shown = [pair.shown(first) for first in ORDERS]
        prompts = tuple(
            rubrics.render_pair(task.rubric, pair.case, *answers, secret=secret, layout=layout) for answers in shown
        )
    else:
        prompts = tuple(rubrics.render_pair_quick(pair.case, *pair.shown(first)) for first in ORDERS)
    requests = tuple(request_of(prompt, task.repeat) for prompt in prompts)
    keys = tuple(client.key(request) for request in requests)
    twins = _twins(task, client, secret) if mode == "quick" and task.pointwise else ()
    named = {"calls": [{"key": key} for key in keys], "pointwise": {"keys": [twin.key for twin in twins]}}
    return PairPlan(
        task, work_key(named), prompts=prompts, keys=keys, twins=twins,
        requests=(*requests, *(request for twin in twins for request in twin.requests)),
    )  # fmt: skip


def settle_comparison(planned: PairPlan, replies: Sequence[Reply], *, judge: str, mode: Mode) -> Comparison:
    """The comparison that follows from a plan and its replies, both orders mapped back to the sides and combined."""
    pair = planned.task.pair
    if planned.decided is not None:
        outcome, reason = planned.decided
        return Comparison(planned, judge, mode, (), outcome, None, None, reason, pair.flags, None, ())
    order = _full_call if mode == "full" else _quick_call
    calls = tuple(order(planned, n, replies[n]) for n in range(len(ORDERS)))
    outcome, lean = combine(calls)
    p_a = mean_p_a(calls)
    if p_a is not None:
        outcome, lean = ("tie" if p_a == 0.5 else "a" if p_a > 0.5 else "b"), None
    flags = dict.fromkeys((*pair.flags, *(flag for call in calls for flag in call.flags)))
    if mode == "quick":
        flags["calibrate_first"] = None
    failed = [f"order {n} ({call.first} first): {call.reason}" for n, call in enumerate(calls, 1) if call.reason]
    return Comparison(
        planned, judge, mode, calls, outcome, lean, p_a, "; ".join(failed) or None, tuple(flags),
        _settled_twins(planned, replies[len(ORDERS) :], judge), tuple(replies),
    )  # fmt: skip


def combine(calls: Sequence[Call]) -> tuple[str, Side | None]:
    """Outcome and lean of both orders together, by the tables COMBINE and LEANS; no verdict makes it incomplete."""
    one, two = (call.winner for call in calls)
    if one is None or two is None:
        return "incomplete", None
    order = (one, two) if (one, two) in COMBINE else (two, one)
    return COMBINE[order], LEANS.get(order)


def mean_p_a(calls: Sequence[Call]) -> float | None:
    """The probability of a, averaged over both orders (quick mode): (p1 + 1 - p2) / 2, else None."""
    ps = [call.p_first if call.first == "a" else 1 - call.p_first for call in calls if call.p_first is not None]
    return sum(ps) / 2 if len(ps) == len(ORDERS) else None


def mapped(verdict: str, first: Side) -> Winner:
    """A positional verdict as the side that won."""
    second: Side = "b" if first == "a" else "a"
    table: Mapping[str, Winner] = {"first": first, "second": second, "tie": "tie", "both_fail": "both_fail"}
    return table[verdict]


def same_text(one: str, two: str) -> bool:
    """Whether two answers differ in nothing but Unicode composition and white space."""
    return unicodedata.normalize("NFC", one).split() == unicodedata.normalize("NFC", two).split()


def _decided(task: PairTask) -> tuple[str, str] | None:
    if same_text(task.pair.answer_a, task.pair.answer_b):
        return "tie", "identical_answers"
    needed = [name for name in ("contexts", "reference") if name in task.rubric.requires]
    lacking = [name for name in needed if not getattr(task.pair.case, name)]
    return ("incomplete", f"missing_{lacking[0]}") if lacking else None


def _full_call(planned: PairPlan, n: int, reply: Reply) -> Call:
    first, pair = ORDERS[n], planned.task.pair
    if reply.error_kind is not None:
        return _failed(first, planned.keys[n], reply.error_kind, reply.error)
    found = rubrics.settle_pair(
        planned.task.rubric, pair.case, reply.parsed or {}, planned.prompts[n], *pair.shown(first)
    )
    if found.error_kind is not None:
        return _failed(first, planned.keys[n], found.error_kind, found.reason)
    if found.verdict is None:
        return Call(first, "cannot_judge", planned.keys[n], reason=found.reason, flags=found.flags)
    winner = mapped(found.verdict, first)
    return Call(first, "scored", planned.keys[n], found.verdict, winner, found.margin, flags=found.flags)


def _quick_call(planned: PairPlan, n: int, reply: Reply) -> Call:
    first, prompt = ORDERS[n], planned.prompts[n]
    if reply.error_kind is not None:
        return _failed(first, planned.keys[n], reply.error_kind, reply.error)
    p, mass = probability(reply, prompt.tokens)
    if mass < LOW_MASS:
        return _failed(first, planned.keys[n], "unparsable", f"the one token was none of {'/'.join(prompt.tokens)}")
    verdict = "tie" if p == 0.5 else "first" if p > 0.5 else "second"
    flags = ("low_answer_mass",) if mass < FLAGGED_MASS else ()
    return Call(first, "scored", planned.keys[n], verdict, mapped(verdict, first), None, p, flags=flags)


def _failed(first: Side, key: str, kind: str, words: str | None) -> Call:
    return Call(first, "error", key, reason=kind if not words or words == kind else f"{kind}: {words}")


def _twins(task: PairTask, client: Keys, secret: bytes) -> tuple[Plan, ...]:
    assert task.pointwise is not None
    answers = (task.pair.answer_a, task.pair.answer_b)
    tasks = [Task(task.pair.case.model_copy(update={"answer": text}), task.pointwise, task.repeat) for text in answers]
    return tuple(plan(twin, client, mode="quick", secret=secret) for twin in tasks)


def _settled_twins(planned: PairPlan, replies: Sequence[Reply], judge: str) -> dict[str, Any] | None:
    """The quick pointwise scores of both answers (0..1, None without a score), to stand beside the comparison."""
    if not planned.twins:
        return None
    found: dict[str, Any] = {"rubric": planned.twins[0].task.rubric.id}
    for name, twin in zip(ORDERS, planned.twins, strict=True):
        own, replies = replies[: len(twin.requests)], replies[len(twin.requests) :]
        found[name] = settle(twin, own, judge=judge, mode="quick").outcome.normalized
    return found | {"keys": [twin.key for twin in planned.twins]}
