"""The pairwise protocol: two answers are shown in both orders, and what is said of them becomes one outcome.

PairTask --plan--> PairPlan (a call per order, or an outcome decided by code) --ask--> replies --settle--> Comparison

full   a verdict in each order; the two combine by a table
score  both answers rated in each order; the ratings are averaged, and the difference decides (BPC: Wang et al. 2023)
quick  one token in each order; the mean of the two probabilities decides
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import rubrics
from judge.cases import Case
from judge.combining import ORDERS, Call, Side, by_difference, combine, mapped, mean_difference, mean_p_a, other
from judge.lines import work_key
from judge.llm.request import Reply, Request
from judge.pointwise import LOW_MASS, Keys, PairMode, Plan, Task, plan, probability, request_of, settle, spent
from rubrics.model import Layout, Prompt, Rubric
from rubrics.settling_pair import PairVerdict

FLAGGED_MASS = 0.9


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
    """One comparison to make. `pointwise` is a rubric whose quick scores of both answers stand beside it, or None.

    `orders` are the sides to be shown first: both, or one where the second order is left out.
    """

    pair: Pair
    rubric: Rubric
    repeat: int = 0
    pointwise: Rubric | None = None
    orders: tuple[Side, ...] = ORDERS

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
class Comparison:
    """One line of comparisons.jsonl (CONTRACTS 3), in score mode with `difference`, a minus b in levels.

    A line with one call where both orders could have been asked says `second_order: "skipped"`.
    """

    plan: PairPlan
    judge: str
    mode: PairMode
    calls: tuple[Call, ...]
    outcome: str
    lean: Side | None
    p_a: float | None
    difference: float | None
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
        if self.pointwise is not None:
            row["pointwise"] = dict(self.pointwise)
        if self.mode == "score":
            row["difference"] = self.difference
        if len(self.calls) == 1:
            row["second_order"] = "skipped"
        return row


def plan_pair(
    task: PairTask, client: Keys, *, mode: PairMode, secret: bytes, layout: Layout = "rubric_first"
) -> PairPlan:
    """The calls of a comparison (one per order), rendered and named; no call is made.

    Identical answers (after Unicode composition and white space) are a tie without a call. A case that lacks what the
    criterion requires is incomplete without a call. In quick mode each call asks for one token, A or B; in score mode
    for a rating of either reply on the rubric's scale.
    """
    known = decided(task.pair, task.rubric)
    if known is not None:
        return PairPlan(task, work_key({"calls": ()}), decided=known)
    prompts = tuple(_prompt(task, first, mode, secret, layout) for first in task.orders)
    requests = tuple(request_of(prompt, task.repeat) for prompt in prompts)
    keys = tuple(client.key(request) for request in requests)
    twins = _twins(task, client, secret) if mode == "quick" and task.pointwise else ()
    named = {"calls": [{"key": key} for key in keys], "pointwise": {"keys": [twin.key for twin in twins]}}
    return PairPlan(
        task, work_key(named), prompts=prompts, keys=keys, twins=twins,
        requests=(*requests, *(request for twin in twins for request in twin.requests)),
    )  # fmt: skip


def _prompt(task: PairTask, first: Side, mode: PairMode, secret: bytes, layout: Layout) -> Prompt:
    case, shown = task.pair.case, task.pair.shown(first)
    if mode == "quick":
        return rubrics.render_pair_quick(case, *shown)
    ask: Literal["verdict", "ratings"] = "verdict" if mode == "full" else "ratings"
    return rubrics.render_pair(task.rubric, case, *shown, secret=secret, layout=layout, ask=ask)


def settle_comparison(planned: PairPlan, replies: Sequence[Reply], *, judge: str, mode: PairMode) -> Comparison:
    """The comparison that follows from a plan and its replies, the orders mapped back to the sides and combined.

    Full mode combines by the table. Score and quick mode average over the orders instead, so that a contradiction is
    weighed and not counted as such; there the table only says that an order without a verdict makes it incomplete.
    """
    pair = planned.task.pair
    if planned.decided is not None:
        outcome, reason = planned.decided
        same = 0.0 if outcome == "tie" else None
        return Comparison(planned, judge, mode, (), outcome, None, None, same, reason, pair.flags, None, ())
    one_call = {"full": _full_call, "score": _rated_call, "quick": _quick_call}[mode]
    n_calls = len(planned.prompts)
    calls = tuple(one_call(planned, n, replies[n]) for n in range(n_calls))
    outcome, lean = combine(calls)
    p_a, difference = mean_p_a(calls), mean_difference(calls)
    if p_a is not None:
        outcome, lean = ("tie" if p_a == 0.5 else "a" if p_a > 0.5 else "b"), None
    if difference is not None:
        outcome, lean = by_difference(difference)
    flags = dict.fromkeys((*pair.flags, *(flag for call in calls for flag in call.flags)))
    if mode == "quick":
        flags["calibrate_first"] = None
    failed = [f"order {ORDERS.index(call.first) + 1} ({call.first} first): {call.reason}"
              for call in calls if call.reason]  # fmt: skip
    return Comparison(
        planned, judge, mode, calls, outcome, lean, p_a, difference, "; ".join(failed) or None, tuple(flags),
        _settled_twins(planned, replies[n_calls:], judge), tuple(replies),
    )  # fmt: skip


def same_text(one: str, two: str) -> bool:
    """Whether two answers differ in nothing but Unicode composition and white space."""
    return unicodedata.normalize("NFC", one).split() == unicodedata.normalize("NFC", two).split()


def decided(pair: Pair, rubric: Rubric) -> tuple[str, str] | None:
    """Outcome and reason of a pair that needs no call, or None."""
    if same_text(pair.answer_a, pair.answer_b):
        return "tie", "identical_answers"
    needed = [name for name in ("contexts", "reference") if name in rubric.requires]
    lacking = [name for name in needed if not getattr(pair.case, name)]
    return ("incomplete", f"missing_{lacking[0]}") if lacking else None


def _full_call(planned: PairPlan, n: int, reply: Reply) -> Call:
    return _called(planned, n, reply, rubrics.settle_pair)


def _rated_call(planned: PairPlan, n: int, reply: Reply) -> Call:
    return _called(planned, n, reply, rubrics.settle_ratings)


def _called(planned: PairPlan, n: int, reply: Reply, settled: Callable[..., PairVerdict]) -> Call:
    task, key = planned.task, planned.keys[n]
    first = task.orders[n]
    if reply.error_kind is not None:
        return _failed(first, key, reply.error_kind, reply.error)
    found = settled(task.rubric, task.pair.case, reply.parsed or {}, planned.prompts[n], *task.pair.shown(first))
    if found.error_kind is not None:
        return _failed(first, key, found.error_kind, found.reason)
    if found.verdict is None:
        return Call(first, "cannot_judge", key, reason=found.reason, flags=found.flags)
    ratings = None if found.ratings is None else dict(zip((first, other(first)), found.ratings, strict=True))
    return Call(first, "scored", key, found.verdict, mapped(found.verdict, first), found.margin, ratings=ratings,
                flags=found.flags)  # fmt: skip


def _quick_call(planned: PairPlan, n: int, reply: Reply) -> Call:
    first, prompt = planned.task.orders[n], planned.prompts[n]
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
