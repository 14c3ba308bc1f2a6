"""Pairwise comparison in batch: two systems' answers in, one finished run directory out; the same command resumes.

sources --join--> RUN/cases.jsonl --plan--> calls in both orders --ask--> replies --settle--> RUN/comparisons.jsonl
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rubrics as rubric_files
from judge.api import Options, Resolved, Result, begin, open_client, options_of, resolve
from judge.background import Stop, run
from judge.batch import run_pool
from judge.errors import UsageError
from judge.joining import Joined, Names, Selection, join, pairs_of
from judge.llm.budget import OverBudget
from judge.llm.client import Client
from judge.pairsummary import LINES, Settings, summarize_pairs
from judge.pairwise import PairTask, plan_pair, settle_comparison
from judge.pointwise import Mode
from judge.preferences import preferences_of_cases, read_preferences
from judge.report import comparison
from judge.runs import Run, write_json
from judge.scoring import Forecast, Nobody, Watcher, ask_all, forecast, make_budget, note_invocation
from rubrics.model import Layout, Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class PairJob:
    """What one invocation compares, once all names are resolved to values."""

    rubric: Rubric
    mode: Mode
    pairs: tuple[Names, ...]
    chosen: dict[Names, frozenset[str]] | None
    pointwise: Rubric | None
    repeats: int
    layout: Layout
    workers: int
    secret: bytes
    judge: str

    def tasks(self, cases: Path) -> Iterator[PairTask]:
        """Question by question, so that the calls about one question follow each other."""
        for pair in pairs_of(cases, self.pairs, self.chosen):
            for repeat in range(self.repeats):
                yield PairTask(pair, self.rubric, repeat, self.pointwise)


@dataclass(slots=True)
class Compare:
    """The work on one run: `work` is the life of one task, from plan to written line."""

    job: PairJob
    run: Run
    client: Client
    stop: Stop
    watcher: Watcher
    returned: set[str] = field(default_factory=set)

    async def work(self, task: PairTask) -> None:
        job = self.job
        planned = plan_pair(task, self.client, mode=job.mode, secret=job.secret, layout=job.layout)
        if self.run.finished(task.identity()) == (bytes.fromhex(planned.key), task.rubric.rubric_hash):
            self.watcher.judged({}, kept=True)
            return
        try:
            replies = await ask_all(self.run, self.client, planned.requests, self.returned)
        except OverBudget:
            self.stop.request("max_cost")
            return
        row = settle_comparison(planned, replies, judge=job.judge, mode=job.mode).to_row()
        self.run.append(row)
        status = "error" if row["outcome"] == "incomplete" else "scored"
        self.watcher.judged({"status": status, "cost_usd": row["cost_usd"]}, kept=False)


def compare(
    a: Any,
    b: Any = None,
    rubric: str = "preference",
    model: str | None = None,
    *,
    systems: Sequence[str] = (),
    all_pairs: bool = False,
    baseline: str | None = None,
    pairs: int | None = None,
    labels: str | Path | None = None,
    label_design: str = "unknown",
    **options: Any,
) -> Result:
    """Compares the answers of two systems, every pair in both orders, and returns the finished run.

    `a`, `b`: case files (or DataFrames, or lists of dicts) joined on `id`; or `a` alone with a `system` field, then
    `systems` names the ones to compare (more than two: `all_pairs` or `baseline`). `pairs` draws that many comparisons.
    `labels`: a file of human preferences (case_id, label); `label_design` "random" where the labelled pairs are a
    random sample, which allows a corrected win rate. `options`: the fields of `judge.Options` that fit.
    The summary's `conclusion` says in words what may be said. Raises UsageError or InputError before anything is spent.
    """
    chosen = options_of([rubric], model, options)
    selection = Selection(
        systems=tuple(systems), all_pairs=all_pairs, baseline=baseline, pairs=pairs, limit=chosen.limit,
        sample=chosen.sample, seed=chosen.seed,
    )  # fmt: skip
    sources = [a] if b is None else [a, b]
    stop = Stop()
    given = None if labels is None else Path(labels)
    return run(compare_options(sources, chosen, selection, stop=stop, labels=given, label_design=label_design), stop)


async def compare_options(
    sources: Sequence[Any],
    options: Options,
    selection: Selection,
    *,
    stop: Stop,
    watcher: Watcher | None = None,
    labels: Path | None = None,
    label_design: str = "unknown",
    slice_by: Sequence[str] = (),
) -> Result:
    """Resolves names, joins the files, compares what is missing, writes summary and page."""
    resolved = resolve(options, suited_pair)
    out = options.out or Path(tempfile.mkdtemp(prefix="judge-compare-"))
    _no_scores(out)
    with Run(out, LINES) as archive:
        fresh = out / "cases.jsonl.new"
        client = None
        try:
            joined = join(sources, fresh, selection, format=options.format, map=options.map)
            humans = read_preferences(labels, joined.pairs) if labels is not None else None
            client, secret = open_client(resolved.spec, options, archive.manifest.get("resolved"))
            client.budget = make_budget(options.max_cost, client, archive.path)
            dataset = {"n": joined.n_questions, "fingerprint": joined.fingerprint, "systems": list(joined.systems)}
            secret = begin(archive, resolved, options, client, secret, dataset=dataset)
            job = _job(resolved, options, joined, secret)
            archive.renew(fresh, {job.rubric.id: job.rubric.rubric_hash})
            await _compare_run(archive, job, client, n=joined.n_pairs, stop=stop, watcher=watcher)
            if humans is None:
                humans = preferences_of_cases(out / "cases.jsonl", job.rubric.id, job.pairs)
            settings = Settings(
                pairs=job.pairs, chosen=job.chosen, seed=options.seed, slice_by=tuple(slice_by), humans=humans,
                label_design=label_design,
            )  # fmt: skip
            summary = summarize_pairs(out, settings, (task.identity() for task in job.tasks(out / "cases.jsonl")))
        finally:
            fresh.unlink(missing_ok=True)
            if client is not None:
                await client.aclose()
        notes = [*joined.notes, *_said(joined), *resolved.notes, *client.warnings]
        summary |= {
            "rubric": job.rubric.id,
            "judge": job.judge,
            "unmatched": dict(joined.unmatched),
            "stopped": stop.why,
            "warnings": notes,
        }
        archive.manifest["totals"] = summary["totals"]
        archive.save()
        write_json(out / "summary.json", summary)
        comparison.write(out, summary)
    return Result(out, summary, notes)


def forecast_pairs(sources: Sequence[Any], options: Options, selection: Selection) -> Forecast:
    """What `compare` would send, without sending anything; the run directory is left as it is."""
    resolved = resolve(options, suited_pair)
    with tempfile.TemporaryDirectory(prefix="judge-dry-") as scratch:
        cases = Path(scratch) / "cases.jsonl"
        joined = join(sources, cases, selection, format=options.format, map=options.map)
        if options.out is not None and (options.out / "run.json").exists():
            with Run(options.out, LINES) as archive:
                client, _ = open_client(resolved.spec, options, archive.manifest.get("resolved"))
                job = _job(resolved, options, joined, bytes.fromhex(archive.manifest["secret"]))
                return forecast(_requests(job, cases, client), client, archive)
        client, secret = open_client(resolved.spec, options, None)
        return forecast(_requests(_job(resolved, options, joined, secret), cases, client), client)


def suited_pair(chosen: Sequence[Rubric], mode: Mode, local: bool) -> None:
    """Refuses, before anything is spent, what cannot be a criterion of a comparison in this mode."""
    if len(chosen) != 1:
        raise UsageError(f"--rubric: {len(chosen)} rubrics given; a comparison has exactly one criterion")
    rubric = chosen[0]
    if rubric.mode == "passages":
        raise UsageError(f"rubric {rubric.id!r} judges passages, not answers: it cannot compare two answers")
    if mode == "quick" and rubric.root != "preference":
        raise UsageError(
            f"rubric {rubric.id!r}: quick mode asks one fixed question, which answer is the better reply, so its only "
            f"criterion is `preference`. Two ways out: --mode full, or score both files (judge score --rubrics "
            f"{rubric.id}) and judge runs diff"
        )


async def _compare_run(
    archive: Run, job: PairJob, client: Client, *, n: int, stop: Stop, watcher: Watcher | None
) -> None:
    started = time.time()
    work = Compare(job, archive, client, stop, watcher or Nobody())
    work.watcher.start(n * job.repeats)
    cases = archive.path / "cases.jsonl"
    try:
        await run_pool(job.tasks(cases), work.work, workers=job.workers, stop=stop)
    finally:
        note_invocation(archive, client, started, stop, work.returned)
    archive.compact(task.identity() for task in job.tasks(cases))


def _job(resolved: Resolved, options: Options, joined: Joined, secret: bytes) -> PairJob:
    return PairJob(
        rubric=resolved.rubrics[0],
        mode=resolved.mode,
        pairs=joined.pairs,
        chosen=None if joined.chosen is None else dict(joined.chosen),
        pointwise=_twin(joined) if resolved.mode == "quick" else None,
        repeats=options.repeats,
        layout=options.layout,
        workers=resolved.spec.limits.concurrency,
        secret=secret,
        judge=resolved.spec.model,
    )


def _twin(joined: Joined) -> Rubric:
    """The rubric whose quick scores stand beside a quick comparison: what all its cases can be scored on."""
    if joined.has_contexts:
        return rubric_files.load("faithfulness")
    return rubric_files.load("answer_correctness" if joined.has_reference else "answer_relevance")


def _requests(job: PairJob, cases: Path, client: Client) -> Iterator[Sequence[Any]]:
    for task in job.tasks(cases):
        yield plan_pair(task, client, mode=job.mode, secret=job.secret, layout=job.layout).requests


def _no_scores(out: Path) -> None:
    if (out / "judgments.jsonl").exists():
        raise UsageError(f"{out} is a run of `judge score`: give another --out for comparisons")


def _said(joined: Joined) -> list[str]:
    said = [
        f"{name}: {len(ids)} ids without a partner, left out: {', '.join(ids[:20])}"
        + (f" and {len(ids) - 20} more (all in summary.json)" if len(ids) > 20 else "")
        for name, ids in joined.unmatched.items()
        if ids
    ]
    if joined.differing:
        said.append(
            f"{len(joined.differing)} questions have different references, notes or the like in the systems' files; "
            f"the first system's are shown to the judge: {', '.join(joined.differing[:20])}"
        )
    return said
