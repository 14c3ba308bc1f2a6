"""Pointwise scoring in batch: cases in, one finished run directory out. Running the same command again resumes.

cases --normalise--> RUN/cases.jsonl --plan--> calls --ask--> replies --settle--> RUN/judgments.jsonl --> summary
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from judge.background import Stop
from judge.batch import run_pool
from judge.cases import load_normalised
from judge.errors import UsageError
from judge.llm.budget import Budget, OverBudget
from judge.llm.client import Client
from judge.llm.request import Reply, Request
from judge.pointwise import Judgment, Mode, Plan, Task, plan, settle
from judge.runs import Run, questions_of, write_json
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
class Score:
    """The work on one run: `work` is the life of one task, from plan to written line."""

    job: Job
    run: Run
    client: Client
    stop: Stop
    watcher: Watcher
    returned: set[str] = field(default_factory=set)

    async def work(self, task: Task) -> None:
        planned = plan(task, self.client, mode=self.job.mode, secret=self.job.secret, layout=self.job.layout)
        done = self.run.finished({"case_id": task.case.id, "rubric": task.rubric.id, "repeat": task.repeat})
        if done == (bytes.fromhex(planned.key), task.rubric.rubric_hash):
            self.watcher.judged({}, kept=True)
            return
        try:
            replies = await ask_all(self.run, self.client, planned.requests, self.returned)
        except OverBudget:
            self.stop.request("max_cost")
            return
        self.write(settle(planned, replies, judge=self.job.judge, mode=self.job.mode))

    def write(self, judgment: Judgment) -> None:
        row = judgment.to_row()
        self.run.append(row)
        self.watcher.judged(row, kept=False)


async def ask_all(run: Run, client: Client, requests: Sequence[Request], returned: set[str]) -> list[Reply]:
    """The archived reply of this run where there is one, else the client's (cache or call), each archived at once."""

    async def ask(request: Request) -> Reply:
        archived = run.reply(client.key(request))
        if archived is not None:
            return archived
        reply = await client.ask(request)
        if reply.model_returned:
            returned.add(reply.model_returned)
        run.append_reply(request, reply)
        return reply

    return await asyncio.gather(*(ask(request) for request in requests))


async def score_run(
    run: Run, job: Job, client: Client, *, n_cases: int, stop: Stop, watcher: Watcher | None = None
) -> dict[str, Any]:
    """Judges what is missing in an open run, compacts it, and returns its summary (also written as summary.json)."""
    started = time.time()
    watcher = watcher or Nobody()
    watcher.start(n_cases * len(job.rubrics) * job.repeats)
    score = Score(job, run, client, stop, watcher)
    tasks = job.tasks(run.path / "cases.jsonl")
    try:
        await run_pool(tasks, score.work, workers=job.workers, stop=stop)
    finally:
        note_invocation(run, client, started, stop, score.returned)
    run.compact(_every_identity(run, max(job.repeats, run.manifest.get("repeats", 1))))
    summary = summarize(run.path)
    summary["stopped"] = stop.why
    run.manifest["totals"] = summary["totals"]
    run.save()
    write_json(run.path / "summary.json", summary)
    return summary


def note_invocation(run: Run, client: Client, started: float, stop: Stop, returned: set[str]) -> None:
    """Adds this invocation to run.json: when, how long, why it ended, which model versions answered."""
    judge = run.manifest["judge"]
    judge["model_returned"] = sorted({*judge.get("model_returned", []), *returned})
    run.manifest["resolved"] = client.resolved
    run.manifest["invocations"].append(
        {"started": round(started, 3), "wall_s": round(time.time() - started, 3), "stopped": stop.why}
    )
    run.save()


def _every_identity(run: Run, repeats: int) -> Iterator[dict[str, Any]]:
    """What every line of a whole run is about, case by case, in the order of the cases file."""
    for case in questions_of(run.path):
        for rubric in run.manifest["rubrics"]:
            for repeat in range(repeats):
                yield {"case_id": case, "rubric": rubric, "repeat": repeat}


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would send: nothing was sent to learn it. Tokens are estimates; cost is None at an unknown price."""

    judgments: int
    without_call: int
    calls: int
    in_cache: int
    input_tokens: int
    max_output_tokens: int
    max_cost_usd: float | None


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


def suited(rubrics: Sequence[Rubric], mode: Mode, local: bool) -> None:
    """Refuses, before anything is spent, a rubric that this mode or judge cannot carry."""
    for rubric in rubrics:
        if rubric.mode == "pairwise":
            raise UsageError(f"rubric {rubric.id!r} compares two answers: use `judge compare`, or a pointwise rubric")
        if mode == "quick" and (rubric.quick is None or (local and rubric.quick.local == "refuse")):
            raise UsageError(
                f"rubric {rubric.id!r} has no quick form, and quick is the mode of this command. Two ways out: add a "
                "`quick` block to the rubric file, or use --mode full (on `local`: grammar-enforced JSON, uncalibrated)"
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
