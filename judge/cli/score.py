"""judge score."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import common
from judge.cli.common import GATES, JUDGE

if TYPE_CHECKING:
    from judge.api import Options
    from judge.scoring import Forecast


def score(
    cases: Annotated[
        str, typer.Argument(help="JSONL, JSON, CSV, Parquet, a peer's export, a BEIR folder, or - (stdin).")
    ],
    rubrics: common.Rubrics = None,
    model: common.Model = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The run directory. Default: runs/CASES-MODEL-MODE.")
    ] = None,
    mode: common.Mode = None,
    rubrics_dir: common.RubricsDir = None,
    config: common.Config = None,
    api_base: common.ApiBase = None,
    layout: Annotated[
        str,
        typer.Option(help="rubric_first (cheap with prompt caching) or item_first; recorded.", rich_help_panel=JUDGE),
    ] = "rubric_first",
    generated_by: common.GeneratedBy = None,
    allow_uncalibrated: common.AllowUncalibrated = False,
    format: common.Format = None,
    map: common.Map = None,
    limit: common.Limit = None,
    sample: common.Sample = None,
    seed: common.Seed = 0,
    repeats: common.Repeats = 1,
    concurrency: common.Concurrency = None,
    timeout: common.Timeout = None,
    max_cost: common.MaxCost = None,
    dry_run: common.DryRun = False,
    cache: common.Cache = None,
    no_cache: common.NoCache = False,
    quiet: common.Quiet = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit 1 unless the lower confidence bound reaches it: faithfulness=4.2.", rich_help_panel=GATES
        ),
    ] = None,
    fail_under_point: Annotated[
        list[str] | None, typer.Option(help="Exit 1 unless the mean itself reaches it.", rich_help_panel=GATES)
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            help="Folder of calibrations (judge audit --save). Default: ./calibrations.", rich_help_panel=GATES
        ),
    ] = None,
    require_calibration: Annotated[
        bool,
        typer.Option("--require-calibration", help="Exit 1 unless every rubric is calibrated.", rich_help_panel=GATES),
    ] = False,
    max_error_rate: common.MaxErrorRate = 0.05,
    json: common.Json = False,
) -> None:
    """Score answers by rubrics, in batch. The same command again resumes.

    Example: judge score cases.jsonl --rubrics faithfulness,answer_relevance --model openai/gpt-4o-mini --out run1
    """
    from judge.api import Options, forecast_options, score_options
    from judge.background import Stop, run
    from judge.cli.model import fetch_if_missing
    from judge.config import find_judge
    from judge.gates import exit_code, failures, parse_thresholds, refuse_unknown
    from judge.report import page, scores
    from judge.report.progress import Progress
    from judge.runs import manifest

    names = common.listed(rubrics)
    if not names:
        common.say(["no --rubrics given: scoring faithfulness (see `judge rubrics list`)"])
    run_dir = out or default_out(cases, model, mode)
    options = Options(
        rubrics=names or ("faithfulness",), rubrics_dir=tuple(rubrics_dir or ()), model=model, config=config,
        out=run_dir, out_by_name=out is None, mode=common.choice(mode, "--mode", ("full", "quick")),
        repeats=repeats, layout=common.choice(layout, "--layout", ("rubric_first", "item_first")),
        concurrency=concurrency, api_base=api_base, timeout=timeout, max_cost=max_cost,
        cache=False if no_cache else cache, limit=limit, sample=sample, seed=seed, format=format,
        map=common.mapping(map), generated_by=generated_by, calibration=calibration,
        allow_uncalibrated=allow_uncalibrated,
    )  # fmt: skip
    lower = parse_thresholds(fail_under or (), "--fail-under")
    points = parse_thresholds(fail_under_point or (), "--fail-under-point")
    earlier = manifest(run_dir)["rubrics"] if (run_dir / "run.json").exists() else {}
    refuse_unknown([*lower, *points], list(dict.fromkeys([*options.rubrics, *earlier])))
    if dry_run:
        show_forecast(forecast_options(cases, options, Progress(quiet)), options, json)
        return
    if find_judge(model, config).model == "local":
        fetch_if_missing()
    stop = Stop()
    with Progress(quiet) as progress:
        result = run(score_options(cases, options, stop=stop, watcher=progress), stop)
    failed = failures(result.summary, lower, points, calibrated=require_calibration)
    if json:
        common.emit_json(result.summary)
    else:
        page.show(scores.sections(result.run, result.summary), common.console())
        print(f"run directory: {page.visible(str(result.run))}")
    common.say(f"gate failed: {sentence}" for sentence in failed)
    common.say(common.stopped_early(stop.why, progress, max_cost))
    raise typer.Exit(exit_code(result.summary, failed, max_error_rate))


def default_out(cases: str, model: str | None, mode: str | None) -> Path:
    """A name that the same command gets again, so that it resumes."""
    stem = "stdin" if cases == "-" else Path(cases).stem
    return Path("runs") / run_name(stem, model or "default", mode or "")


def run_name(*parts: str) -> str:
    """Parts joined into a directory name."""
    import re

    return "-".join(re.sub(r"[^\w.]+", "_", part) for part in parts if part)


def show_forecast(forecast: Forecast, options: Options, json: bool, words: str = "judgments") -> None:
    """The page of --dry-run; `words` says what would be made."""
    from judge.config import find_judge
    from judge.report.page import Section, show

    if json:
        common.emit_json(asdict(forecast))
        return
    cost = "unknown price" if forecast.max_cost_usd is None else f"at most ${forecast.max_cost_usd:.4f}"
    notes = [
        f"{forecast.judgments} {words}: {forecast.without_call} decided by code, {forecast.calls} calls to send"
        f"{_least(forecast)}, {forecast.in_cache} calls already in the cache or the run",
        f"about {forecast.input_tokens:,} tokens in, at most {forecast.max_output_tokens:,} out; {cost}",
        "nothing was sent",
    ]
    by = find_judge(options.model, options.config).model
    show([Section(f"Dry run: {', '.join(options.rubrics)} by {by}", notes=notes)], common.console())


def _least(forecast: Forecast) -> str:
    return "" if forecast.least_calls is None else f" (or as few as {forecast.least_calls} by --second-order auto)"
