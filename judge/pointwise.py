"""The pointwise protocol: a case and a rubric become calls, the replies become a judgment.

Task --plan--> Plan (calls to make, or an outcome decided by code) --ask--> replies --settle--> Judgment
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import rubrics
from judge.cases import Case
from judge.llm.request import Reply, Request
from rubrics.model import Layout, Outcome, Prompt, Rubric, Unit

Mode = Literal["full", "quick"]
PairMode = Literal["full", "quick", "score"]
LOW_MASS = 1e-6


@dataclass(frozen=True, slots=True)
class Task:
    """One judgment to make."""

    case: Case
    rubric: Rubric
    repeat: int = 0

    def identity(self) -> dict[str, Any]:
        return {"case_id": self.case.id, "rubric": self.rubric.id, "repeat": self.repeat}


@dataclass(frozen=True, slots=True)
class Plan:
    """A task with its calls. `outcome` is set when code decides without a call; `key` identifies the work."""

    task: Task
    key: str
    outcome: Outcome | None = None
    prompt: Prompt | None = None
    units: tuple[Unit, ...] = ()
    requests: tuple[Request, ...] = ()

    @property
    def prompt_hash(self) -> str | None:
        prompts = [self.prompt] if self.prompt else [unit.prompt for unit in self.units if unit.prompt]
        return prompts[0].prompt_hash if prompts and prompts[0] else None


@dataclass(frozen=True, slots=True)
class Judgment:
    """One line of judgments.jsonl (CONTRACTS 3): who was judged by which rubric, and what came of it."""

    plan: Plan
    judge: str
    mode: Mode
    outcome: Outcome
    replies: tuple[Reply, ...]

    def to_row(self) -> dict[str, Any]:
        task, outcome, replies = self.plan.task, self.outcome, self.replies
        return {
            "case_id": task.case.id,
            "rubric": task.rubric.id,
            "rubric_version": task.rubric.version,
            "rubric_hash": task.rubric.rubric_hash,
            "prompt_hash": self.plan.prompt_hash,
            "judge": self.judge,
            "mode": self.mode,
            "repeat": task.repeat,
            "status": outcome.status,
            "score": outcome.score,
            "normalized": outcome.normalized,
            "passed": outcome.passed,
            "score_source": outcome.score_source,
            "computed_score": outcome.computed_score,
            "holistic_score": outcome.holistic_score,
            "errors": list(outcome.errors),
            "flags": list(outcome.flags),
            "details": dict(outcome.details),
            "quotes": dict(outcome.quotes),
            "rationale": outcome.rationale,
            "reason": outcome.reason,
            "error_kind": outcome.error_kind,
            **spent(replies),
            "cached": bool(replies) and all(reply.cached for reply in replies),
            "http_calls": sum(len(reply.http_calls) for reply in replies),
            "latency_s": round(sum(reply.latency_s for reply in replies), 4),
            "key": self.plan.key,
        }


class Keys(Protocol):
    """What can name a request: the client of the judge."""

    def key(self, request: Request) -> str: ...


def plan(task: Task, client: Keys, *, mode: Mode, secret: bytes, layout: Layout = "rubric_first") -> Plan:
    """The calls that a task needs, rendered and named; no call is made.

    Full mode has one call; quick mode one per unit, its key the SHA-256 of the units' keys (hex) joined in order. Where
    code decides (empty answer, missing input) there is no call and the key is that of the case's content under the
    rubric.
    """
    case, rubric = task.case, task.rubric
    outcome = rubrics.precheck(rubric, case, mode)
    if outcome is not None:
        made = f"precheck:{rubric.rubric_hash}:{mode}:{case.content_hash()}"
        return Plan(task, sha256(made), outcome=outcome)
    if mode == "full":
        prompt = rubrics.render(rubric, case, secret=secret, layout=layout)
        request = request_of(prompt, task.repeat)
        return Plan(task, client.key(request), prompt=prompt, requests=(request,))
    units = tuple(rubrics.render_quick(rubric, case))
    requests = tuple(request_of(unit.prompt, task.repeat) for unit in units if unit.prompt is not None)
    keys = [client.key(request) for request in requests] or [case.content_hash(), rubric.rubric_hash]
    return Plan(task, sha256("".join(keys)), units=units, requests=requests)


def settle(planned: Plan, replies: Sequence[Reply], *, judge: str, mode: Mode) -> Judgment:
    """The judgment that follows from a plan and its replies; pure, so a fixed score map costs no new calls."""
    outcome = planned.outcome or _failed(planned, replies) or _settled(planned, replies, mode)
    return Judgment(planned, judge, mode, outcome, tuple(replies))


def probability(reply: Reply, tokens: Sequence[str]) -> tuple[float, float]:
    """P(good answer) among the answer tokens and the probability mass that all of them hold.

    Tokens are compared stripped and lower-cased; `tokens[0]` is the good answer. Mass 0 gives (0.0, 0.0).
    """
    masses = dict.fromkeys((token.lower() for token in tokens), 0.0)
    for token, logprob in reply.token_logprobs or ():
        name = token.strip().lower()
        if name in masses:
            masses[name] += math.exp(logprob)
    total = sum(masses.values())
    return (masses[tokens[0].lower()] / total if total else 0.0), total


def _settled(planned: Plan, replies: Sequence[Reply], mode: Mode) -> Outcome:
    task = planned.task
    if mode == "full":
        assert planned.prompt is not None
        return rubrics.settle(task.rubric, task.case, replies[0].parsed or {}, planned.prompt)
    answered = iter(replies)
    values: list[float | None] = []
    masses: list[float | None] = []
    keys: list[str | None] = []
    for unit in planned.units:
        if unit.prompt is None:
            values.append(unit.p)
            masses.append(None)
            keys.append(None)
            continue
        reply = next(answered)
        p, mass = probability(reply, unit.prompt.tokens)
        if mass < LOW_MASS:
            reason = f"the judge's one token was none of {'/'.join(unit.prompt.tokens)}, asked about {unit.text[:80]!r}"
            return Outcome(status="error", error_kind="unparsable", reason=reason)
        values.append(p)
        masses.append(mass)
        keys.append(reply.key)
    outcome = rubrics.settle_quick(task.rubric, task.case, planned.units, values, masses)
    units = outcome.details.get("units")
    if not units:
        return outcome
    named = [{**unit, "key": key} for unit, key in zip(units, keys, strict=True)]
    return replace(outcome, details={**outcome.details, "units": named})


def _failed(planned: Plan, replies: Sequence[Reply]) -> Outcome | None:
    for reply in replies:
        if reply.error_kind is not None:
            return Outcome(status="error", error_kind=reply.error_kind, reason=reply.error or reply.error_kind)
    return None


def spent(replies: Sequence[Reply]) -> dict[str, Any]:
    """Usage and cost of some replies together, as fields of a line; the cost is None when one is unknown."""
    costs = [reply.cost_usd for reply in replies]
    return {
        "usage": {
            name: sum(reply.usage.get(name) or 0 for reply in replies)
            for name in ("input_tokens", "output_tokens", "reasoning_tokens")
        },
        "cost_usd": None if any(cost is None for cost in costs) else sum(cost for cost in costs if cost),
    }


def request_of(prompt: Prompt, repeat: int) -> Request:
    """The request that sends a prompt."""
    return Request(
        messages=prompt.messages,
        output=prompt.output,
        tokens=prompt.tokens,
        marker=prompt.marker,
        max_tokens=prompt.max_tokens,
        repeat=repeat,
    )


def sha256(text: str) -> str:
    """Hex digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
