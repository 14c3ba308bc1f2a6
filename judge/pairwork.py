"""The work on one comparison run: pairs in, written lines out; with a second-order rule the pilot comes first."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from judge.archive import Run
from judge.background import Stop
from judge.batch import run_pool
from judge.combining import ORDERS, Side
from judge.joining import Names, pairs_of
from judge.llm.client import Client
from judge.llm.request import Request
from judge.pairlines import read_records
from judge.pairwise import PairTask, decided, plan_pair, settle_comparison
from judge.pointwise import PairMode
from judge.scoring import Invocation, Nobody, Watcher
from judge.second_order import Decision, Design, decide, draw
from rubrics.model import Layout, Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class PairJob:
    """What one invocation compares, once all names are resolved to values.

    `dataset` is the fingerprint of the cases. `auto` leaves the second order to the rule of `judge.second_order`;
    `once` names the pairs that it has left with one order, and the side shown first.
    """

    rubric: Rubric
    mode: PairMode
    pairs: tuple[Names, ...]
    chosen: Mapping[Names, frozenset[str]] | None
    pointwise: Rubric | None
    repeats: int
    layout: Layout
    workers: int
    secret: bytes
    judge: str
    seed: int
    dataset: str
    auto: bool = False
    once: Mapping[Names, Mapping[str, Side]] = field(default_factory=dict)

    def tasks(self, cases: Path) -> Iterator[PairTask]:
        """Question by question, so that the calls about one question follow each other."""
        for pair in pairs_of(cases, self.pairs, self.chosen):
            first = self.once.get((pair.a, pair.b), {}).get(pair.case.id)
            orders = ORDERS if first is None else (first,)
            for repeat in range(self.repeats):
                yield PairTask(pair, self.rubric, repeat, self.pointwise, orders)

    def requests(self, cases: Path, client: Client) -> Iterator[Sequence[Request]]:
        """The calls of every task."""
        for task in self.tasks(cases):
            yield plan_pair(task, client, mode=self.mode, secret=self.secret, layout=self.layout).requests

    def design(self, cases: Path) -> Design:
        """The pilot and the orders of the rest, drawn by the job's seed."""
        needs: dict[Names, dict[str, bool]] = {pair: {} for pair in self.pairs}
        for pair in pairs_of(cases, self.pairs, self.chosen):
            needs[pair.a, pair.b][pair.case.id] = decided(pair, self.rubric) is None
        return draw(needs, self.seed)

    def following(self, design: Design, decisions: Sequence[Decision]) -> PairJob:
        """The job once the rule has decided."""
        names = [(one.a, one.b) for one in decisions if one.one_order]
        return replace(self, once={pair: design.once[pair] for pair in names})


async def compare_run(
    run: Run, job: PairJob, client: Client, *, n_pairs: int, stop: Stop, watcher: Watcher | None
) -> list[Decision] | None:
    """Judges what is missing in an open run and compacts it; returns what the second-order rule decided, if it did."""
    watcher = watcher or Nobody()
    watcher.start(n_pairs * job.repeats)
    cases = run.path / "cases.jsonl"
    invocation = Invocation(run, client, stop, watcher)

    async def work(task: PairTask) -> None:
        planned = plan_pair(task, client, mode=job.mode, secret=job.secret, layout=job.layout)
        replies = await invocation.replies(task.identity(), planned.key, task.rubric, planned.requests)
        if replies is not None:
            comparison = settle_comparison(planned, replies, judge=job.judge, mode=job.mode)
            invocation.write(comparison.to_row(), "error" if comparison.outcome == "incomplete" else "scored")

    async def judge(some: PairJob) -> None:
        await run_pool(some.tasks(cases), work, workers=job.workers, stop=stop)

    decisions = None
    try:
        if not job.auto:
            await judge(job)
        else:
            design = job.design(cases)
            await judge(replace(job, chosen=design.pilot))
            if stop.why is None:
                decisions = settled_decisions(run, job, design)
                await judge(replace(job.following(design, decisions), chosen=design.others))
    finally:
        invocation.close()
    run.compact(task.identity() for task in job.tasks(cases))
    return decisions


def settled_decisions(run: Run, job: PairJob, design: Design) -> list[Decision]:
    """What the rule decides on the judged pilot: once for a design, then as recorded in run.json."""
    known = recorded_decisions(run, job, design)
    if known is None:
        pilot = replace(job, chosen=design.pilot)
        wanted = (task.identity() for task in pilot.tasks(run.path / "cases.jsonl"))
        records, _ = read_records(run.path, job.pairs, wanted, chosen=design.pilot)
        known = decide(design, records, job.seed)
        run.manifest["second_order"] = {"design": _name(job, design), "decisions": [one.to_dict() for one in known]}
        run.save()
    return known


def recorded_decisions(run: Run, job: PairJob, design: Design) -> list[Decision] | None:
    """The decisions that run.json holds for exactly this design, rubric and cases, else None."""
    record = run.manifest.get("second_order") or {}
    if record.get("design") != _name(job, design):
        return None
    return [Decision(**one) for one in record["decisions"]]


def _name(job: PairJob, design: Design) -> str:
    drawn = [[a, b, sorted(ids), sorted(design.once[a, b].items())] for (a, b), ids in design.pilot.items()]
    named = [job.rubric.rubric_hash, job.dataset, job.seed, drawn]
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()
