"""Pointwise scoring in batch: cases in, one finished run directory out. Running the same command again resumes.

cases --normalise--> RUN/cases.jsonl --plan--> calls --ask--> replies --settle--> RUN/judgments.jsonl --> summary
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from judge.archive import Run
from judge.background import Stop
from judge.batch import run_pool
from judge.cases import load_normalised
from judge.errors import UsageError
from judge.lines import write_json
from judge.llm.budget import Budget, OverBudget
from judge.llm.client import Client
from judge.llm.request import Reply, Request
from judge.pointwise import Mode, PairMode, Plan, Task, plan, settle
from judge.runs import questions_of
from judge.summary import summarize, totals
from rubrics.model import Layout, Rubric


class Watcher(Protocol):
    """Somebody who looks on: a progress bar, or nobody."""

    def say(self, lines: Sequence[str]) -> None: ...
    def start(self, total: int) -> None: ...
    def judged(self, row: dict[str, Any], *, kept: bool) -> None: ...


class Nobody:
    def say(self, lines: Sequence[str]) -> None: ...
    def start(self, total: int) -> None: ...
    def judged(self, row: dict[str, Any], *, kept: bool) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one invocation does, once all names are resolved to values."""

    rubrics: tuple[Rubric, ...]
    mode: Mode
    repeats: int = 1
    layout: Layout = "rubric_first"
    workers: int = 32
    secret: bytes
    judge: str

    def tasks(self, cases: Path) -> Iterator[Task]:
        """Case by case, so that the calls about one case follow each other; the stream never sits in memory."""
        for case in load_normalised(cases):
            for rubric in self.rubrics:
                for repeat in range(self.repeats):
                    yield Task(case, rubric, repeat)


@dataclass(slots=True)
class Invocation:
    """One invocation at work on an open run: what takes each task from its calls to its written line."""

    run: Run
    client: Client
    stop: Stop
    watcher: Watcher
    started: float = field(default_factory=time.time)
    returned: set[str] = field(default_factory=set)

    async def replies(
        self, identity: Mapping[str, Any], key: str, rubric: Rubric, requests: Sequence[Request]
    ) -> list[Reply] | None:
        """The replies to a task's calls; None where its line is finished, or where the budget ends before them."""
        if self.run.finished(identity) == (bytes.fromhex(key), rubric.rubric_hash):
            self.watcher.judged({}, kept=True)
            return None
        try:
            return await asyncio.gather(*(self._reply(request) for request in requests))
        except OverBudget:
            self.stop.request("max_cost")
            return None

    async def _reply(self, request: Request) -> Reply:
        """The archived reply of this run where there is one, else the client's (cache or call), archived at once."""
        archived = self.run.reply(self.client.key(request))
        if archived is not None:
            return archived
        reply = await self.client.ask(request)
        if reply.model_returned:
            self.returned.add(reply.model_returned)
        self.run.append_reply(request, reply)
        return reply

    def write(self, row: dict[str, Any], status: str) -> None:
        self.run.append(row)
        self.watcher.judged({**row, "status": status}, kept=False)

    def close(self) -> None:
        """Adds this invocation to run.json: when, how long, why it ended, which model versions answered."""
        run = self.run
        judge = run.manifest["judge"]
        judge["model_returned"] = sorted({*judge.get("model_returned", []), *self.returned})
        run.manifest["resolved"] = self.client.resolved
        wall = round(time.time() - self.started, 3)
        run.manifest["invocations"].append(
            {"started": round(self.started, 3), "wall_s": wall, "stopped": self.stop.why}
        )
        run.save()


async def score_run(
    run: Run, job: Job, client: Client, *, n_cases: int, stop: Stop, watcher: Watcher | None = None
) -> dict[str, Any]:
    """Judges what is missing in an open run, compacts it, and returns its summary (also written as summary.json)."""
    watcher = watcher or Nobody()
    watcher.start(n_cases * len(job.rubrics) * job.repeats)
    invocation = Invocation(run, client, stop, watcher)

    async def work(task: Task) -> None:
        planned = plan(task, client, mode=job.mode, secret=job.secret, layout=job.layout)
        replies = await invocation.replies(task.identity(), planned.key, task.rubric, planned.requests)
        if replies is not None:
            judgment = settle(planned, replies, judge=job.judge, mode=job.mode)
            invocation.write(judgment.to_row(), judgment.outcome.status)

    try:
        await run_pool(job.tasks(run.path / "cases.jsonl"), work, workers=job.workers, stop=stop)
    finally:
        invocation.close()
    run.compact(_every_identity(run, max(job.repeats, run.manifest.get("repeats", 1))))
    summary = summarize(run.path)
    summary["stopped"] = stop.why
    run.manifest["totals"] = summary["totals"]
    run.save()
    write_json(run.path / "summary.json", summary)
    return summary


def _every_identity(run: Run, repeats: int) -> Iterator[dict[str, Any]]:
    """What every line of a whole run is about, case by case, in the order of the cases file."""
    for case in questions_of(run.path):
        for rubric in run.manifest["rubrics"]:
            for repeat in range(repeats):
                yield {"case_id": case, "rubric": rubric, "repeat": repeat}


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would send: nothing was sent to learn it. Tokens are estimates; cost is None at an unknown price.

    `least_calls`: the fewest calls, where a rule may skip some of `calls` on the way; None without such a rule.
    """

    judgments: int
    without_call: int
    calls: int
    in_cache: int
    input_tokens: int
    max_output_tokens: int
    max_cost_usd: float | None
    least_calls: int | None = None


def plans(job: Job, cases: Path, client: Client) -> Iterator[Plan]:
    """Every task of a job with its calls."""
    for task in job.tasks(cases):
        yield plan(task, client, mode=job.mode, secret=job.secret, layout=job.layout)


def forecast(work: Iterable[Sequence[Request]], client: Client, finished: Run | None = None) -> Forecast:
    """Counts the calls of some work without sending any; cached and finished calls are counted apart."""
    judgments = without = calls = cached = tokens = room = 0
    for requests in work:
        judgments += 1
        without += not requests
        for request in requests:
            key = client.key(request)
            if client.cached(key) or (finished is not None and finished.reply(key) is not None):
                cached += 1
                continue
            calls += 1
            tokens += client.count_tokens(request)
            room += request.max_tokens
    price = client.price()
    cost = None if price is None else tokens * price.input_per_token + room * price.output_per_token
    return Forecast(judgments, without, calls, cached, tokens, room, cost)


def suited(rubrics: Sequence[Rubric], mode: PairMode, local: bool) -> None:
    """Refuses, before anything is spent, a rubric that this mode or judge cannot carry.

    `local`: the embedded judge, held to what the rubrics say about it.
    """
    if mode == "score":
        raise UsageError(
            "--mode score rates two answers side by side: it is a mode of `judge compare`. Here: full, quick"
        )
    for rubric in rubrics:
        if rubric.mode == "pairwise":
            raise UsageError(f"rubric {rubric.id!r} compares two answers: use `judge compare`, or a pointwise rubric")
        if mode == "quick" and rubric.quick is None:
            raise UsageError(
                f"rubric {rubric.id!r} has no quick form, and quick is the mode of this command. Two ways out: add a "
                "`quick` block to the rubric file, or use --mode full (on `local`: grammar-enforced JSON, uncalibrated)"
            )
        if mode == "quick":
            refuse_unfit(rubric, local)


def refuse_unfit(rubric: Rubric, local: bool) -> None:
    """Refuses a quick form that its rubric calls unfit for the embedded judge (`local: refuse`)."""
    if local and rubric.quick is not None and rubric.quick.local == "refuse":
        raise UsageError(
            f"rubric {rubric.id!r}: its quick form says `local: refuse`, so the embedded judge does not answer it. "
            "Three ways out: --allow-uncalibrated, --mode full, or another --model"
        )


def make_budget(max_cost: float | None, client: Client, run: Path) -> Budget | None:
    """A budget for the whole run, what earlier invocations spent included; None without --max-cost.

    An unknown price cannot be bounded and is refused.
    """
    if max_cost is None:
        return None
    price = client.price()
    if price is None:
        raise UsageError(
            f"--max-cost {max_cost}: the price of {client.spec.model!r} is unknown, so cost cannot be bounded. "
            "Give `price` for this judge in judge.toml, or drop --max-cost"
        )
    budget = Budget(max_cost, price)
    if (run / "run.json").exists():
        budget.spent = totals(run)["cost_usd"] or 0.0
    return budget
