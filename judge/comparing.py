"""Pairwise comparison in batch: two systems' answers in, one finished run directory out; the same command resumes.

sources --join--> RUN/cases.jsonl --plan--> calls in both orders --ask--> replies --settle--> RUN/comparisons.jsonl
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import rubrics as rubric_files
from judge.api import Options, Resolved, Result, begin, open_client, options_of, resolve
from judge.archive import Run
from judge.background import Stop, run
from judge.errors import UsageError
from judge.joining import Joined, Selection, join
from judge.lines import write_json
from judge.llm.client import Client
from judge.pairlines import LINES
from judge.pairsummary import Settings, summarize_pairs
from judge.pairwork import PairJob, compare_run, recorded_decisions
from judge.pointwise import PairMode
from judge.preferences import preferences_of_cases, read_preferences
from judge.report import comparison
from judge.scoring import Forecast, Nobody, Watcher, forecast, make_budget, refuse_unfit
from rubrics.model import Rubric


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
    second_order: str = "always",
    **options: Any,
) -> Result:
    """Compares the answers of two systems, every pair in both orders, and returns the finished run.

    `a`, `b`: case files (or DataFrames, or lists of dicts) joined on `id`; or `a` alone with a `system` field, then
    `systems` names the ones to compare (more than two: `all_pairs` or `baseline`). `pairs` draws that many comparisons.
    `labels`: a file of human preferences (case_id, label); `label_design` "random" where the labelled pairs are a
    random sample, which allows a corrected win rate. `second_order` "auto" leaves the second order out for all but a
    random pilot where the pilot allows it (`judge.second_order`). `options`: the fields of `judge.Options` that fit;
    `mode` is full (a verdict in each order), score (both answers rated, the ratings averaged) or quick (one token).
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
    work = compare_options(
        sources, chosen, selection, stop=stop, labels=given, label_design=label_design, second_order=second_order
    )
    return run(work, stop)


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
    second_order: str = "always",
) -> Result:
    """Resolves names, joins the files, compares what is missing, writes summary and page."""
    resolved = resolve(options, suited_pair)
    refuse_second_order(second_order, resolved.mode, options.repeats)
    out = options.out or Path(tempfile.mkdtemp(prefix="judge-compare-"))
    _no_scores(out)
    with Run(out, LINES) as archive:
        fresh = out / "cases.jsonl.new"
        client = None
        try:
            joined = join(sources, fresh, selection, format=options.format, map=options.map)
            if options.out_by_name:
                archive.refuse_other_cases(fresh)
            humans = read_preferences(labels, joined.pairs) if labels is not None else None
            client, secret = open_client(resolved.spec, options, archive.manifest.get("resolved"))
            client.budget = make_budget(options.max_cost, client, archive.path)
            dataset = {"n": joined.n_questions, "fingerprint": joined.fingerprint, "systems": list(joined.systems)}
            secret = begin(archive, resolved, options, client, secret, dataset=dataset)
            job = _job(resolved, options, joined, secret, second_order)
            archive.renew(fresh, {job.rubric.id: job.rubric.rubric_hash})
            decisions = await compare_run(archive, job, client, n_pairs=joined.n_pairs, stop=stop, watcher=watcher)
            if humans is None:
                humans = preferences_of_cases(out / "cases.jsonl", job.rubric.id, job.pairs)
            settings = Settings(
                pairs=job.pairs, scale=job.rubric.scale, mode=job.mode, chosen=job.chosen, seed=options.seed,
                slice_by=tuple(slice_by), humans=humans, label_design=label_design,
                decisions={(one.a, one.b): one for one in decisions or ()} if job.auto else None,
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


def forecast_pairs(
    sources: Sequence[Any],
    options: Options,
    selection: Selection,
    second_order: str = "always",
    watcher: Watcher | None = None,
) -> Forecast:
    """What `compare` would send, without sending anything; the run directory is left as it is."""
    resolved = resolve(options, suited_pair)
    refuse_second_order(second_order, resolved.mode, options.repeats)
    with tempfile.TemporaryDirectory(prefix="judge-dry-") as scratch:
        cases = Path(scratch) / "cases.jsonl"
        joined = join(sources, cases, selection, format=options.format, map=options.map)
        (watcher or Nobody()).say([*joined.notes, *_said(joined), *resolved.notes])
        if options.out is not None and (options.out / "run.json").exists():
            with Run(options.out, LINES) as archive:
                if options.out_by_name:
                    archive.refuse_other_cases(cases)
                client, _ = open_client(resolved.spec, options, archive.manifest.get("resolved"))
                secret = bytes.fromhex(archive.manifest["secret"])
                return _forecast(_job(resolved, options, joined, secret, second_order), cases, client, archive)
        client, secret = open_client(resolved.spec, options, None)
        return _forecast(_job(resolved, options, joined, secret, second_order), cases, client, None)


def _forecast(job: PairJob, cases: Path, client: Client, archive: Run | None) -> Forecast:
    """With a second-order rule that has not decided yet: all calls, and the least that it may leave."""
    if not job.auto:
        return forecast(job.requests(cases, client), client, archive)
    design = job.design(cases)
    known = recorded_decisions(archive, job, design) if archive is not None else None
    if known is not None:
        return forecast(job.following(design, known).requests(cases, client), client, archive)
    least = forecast(replace(job, once=design.once).requests(cases, client), client, archive)
    return replace(forecast(job.requests(cases, client), client, archive), least_calls=least.calls)


def refuse_second_order(second_order: str, mode: PairMode, repeats: int) -> None:
    """Refuses, before anything is spent, a rule for the second order that is none or has no sense here."""
    if second_order not in ("always", "auto"):
        raise UsageError(f"--second-order {second_order!r}: choose always or auto")
    if second_order == "auto" and mode == "quick":
        raise UsageError(
            "--second-order auto: a quick judge is decided by the mean probability over both orders, and one order "
            "alone says little more than which answer came first. Leave it at always, or give --mode full or score"
        )
    if second_order == "auto" and repeats > 1:
        raise UsageError(
            f"--second-order auto with --repeats {repeats}: repeats spend what the rule saves. Give one of the two"
        )


def suited_pair(chosen: Sequence[Rubric], mode: PairMode, local: bool) -> None:
    """Refuses, before anything is spent, what cannot be a criterion of a comparison in this mode."""
    if len(chosen) != 1:
        raise UsageError(f"--rubric: {len(chosen)} rubrics given; a comparison has exactly one criterion")
    rubric = chosen[0]
    if rubric.mode == "passages":
        raise UsageError(f"rubric {rubric.id!r} judges passages, not answers: it cannot compare two answers")
    if mode == "quick" and rubric.root != "preference":
        raise UsageError(
            f"rubric {rubric.id!r}: quick mode asks one fixed question, which answer is the better reply, so its only "
            f"criterion is `preference`. Two ways out: --mode full or score, or score each file (judge score --rubrics "
            f"{rubric.id}) and judge runs diff"
        )
    if mode == "quick":
        refuse_unfit(rubric, local)


def _job(resolved: Resolved, options: Options, joined: Joined, secret: bytes, second_order: str) -> PairJob:
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
        seed=options.seed,
        dataset=joined.fingerprint,
        auto=second_order == "auto",
    )


def _twin(joined: Joined) -> Rubric:
    """The rubric whose quick scores stand beside a quick comparison: what all its cases can be scored on."""
    if joined.has_contexts:
        return rubric_files.load("faithfulness")
    return rubric_files.load("answer_correctness" if joined.has_reference else "answer_relevance")


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
