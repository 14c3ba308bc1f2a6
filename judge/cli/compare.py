"""judge compare, judge runs diff."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli import common
from judge.cli.common import CASES, GATES, JUDGE, RUNNING

WHO = "Who is compared"


def compare(
    cases: Annotated[
        list[str],
        typer.Argument(help="Two case files joined on `id` (A, then B), or one file with a `system` field."),
    ],
    rubric: Annotated[
        list[str] | None,
        typer.Option(
            "--rubric",
            "--rubrics",
            "-r",
            help="The criterion, exactly one: preference (default), or a pointwise rubric.",
            rich_help_panel=JUDGE,
        ),
    ] = None,
    model: common.Model = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The run directory. Default: runs/A-vs-B-RUBRIC-MODEL.")
    ] = None,
    systems: Annotated[
        str | None,
        typer.Option(help="Of one file: the systems to compare. Of several: what to call them.", rich_help_panel=WHO),
    ] = None,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="More than two systems: each against each.", rich_help_panel=WHO)
    ] = False,
    baseline: Annotated[
        str | None, typer.Option(help="More than two systems: each against this one.", rich_help_panel=WHO)
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(help="Only N comparisons, spread evenly over systems and questions.", rich_help_panel=WHO),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="What people preferred: case_id,label[,rater][,a,b]; a label is a system, tie or both_fail."),
    ] = None,
    label_design: Annotated[
        str, typer.Option(help="How the labelled questions were chosen: random, or unknown (no corrected figure).")
    ] = "unknown",
    slice_by: Annotated[
        list[str] | None,
        typer.Option(help="Further slices: a field of the case or of its metadata.", rich_help_panel=CASES),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="full (a verdict with quotes), score (both replies rated, the ratings averaged over the orders) or "
            "quick (one token, needs logprobs). Default: quick for local, else full.",
            rich_help_panel=JUDGE,
        ),
    ] = None,
    second_order: Annotated[
        str,
        typer.Option(
            help="always, or auto: a random pilot (a tenth, at least 60 pairs) is judged in both orders; where it "
            "shows a steady judge, the others get one order each, drawn at random. The report says what that saved.",
            rich_help_panel=RUNNING,
        ),
    ] = "always",
    rubrics_dir: common.RubricsDir = None,
    config: common.Config = None,
    api_base: common.ApiBase = None,
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
        typer.Option(help="Exit 1 unless the lower bound reaches it: win_rate_a=0.5.", rich_help_panel=GATES),
    ] = None,
    fail_under_point: Annotated[
        list[str] | None, typer.Option(help="Exit 1 unless the value itself reaches it.", rich_help_panel=GATES)
    ] = None,
    require_calibration: Annotated[
        bool,
        typer.Option(
            "--require-calibration",
            help="Exit 1: comparisons have no calibrations yet, only the agreement with --labels.",
            rich_help_panel=GATES,
        ),
    ] = False,
    max_error_rate: common.MaxErrorRate = 0.05,
    json: common.Json = False,
) -> None:
    """Compare two systems' answers, each pair in both orders. Tells how position-biased the judge was, too.

    Example: judge compare old.jsonl new.jsonl --rubric preference --model openai/gpt-4o-mini --out pair1

    Rated instead: judge compare old.jsonl new.jsonl --mode score --repeats 3 --model openai/gpt-4o-mini --out pair2

    Cheaper: judge compare old.jsonl new.jsonl --second-order auto --model openai/gpt-4o-mini --out pair3
    """
    from judge.api import Options
    from judge.background import Stop, run
    from judge.cli.score import show_forecast
    from judge.comparing import compare_options, forecast_pairs
    from judge.gates import estimate_failures, exit_code, parse_thresholds, refuse_unknown
    from judge.joining import Selection
    from judge.pairsummary import GATED
    from judge.report import comparison, page
    from judge.report.progress import Progress

    names = common.listed(rubric)
    if not names:
        common.say(["no --rubric given: comparing by `preference` (see `judge rubrics list`)"])
    options = Options(
        rubrics=names or ("preference",), rubrics_dir=tuple(rubrics_dir or ()), model=model, config=config,
        out=out or default_out(cases, names, model, mode), out_by_name=out is None,
        mode=common.choice(mode, "--mode", ("full", "score", "quick")), repeats=repeats,
        concurrency=concurrency, api_base=api_base, timeout=timeout, max_cost=max_cost,
        cache=False if no_cache else cache, limit=limit, sample=sample, seed=seed, format=format,
        map=common.mapping(map), generated_by=generated_by, allow_uncalibrated=allow_uncalibrated,
    )  # fmt: skip
    selection = Selection(
        systems=tuple(common.listed([systems] if systems else None)), all_pairs=all_pairs, baseline=baseline,
        pairs=pairs, limit=limit, sample=sample, seed=seed,
    )  # fmt: skip
    lower = parse_thresholds(fail_under or (), "--fail-under")
    points = parse_thresholds(fail_under_point or (), "--fail-under-point")
    refuse_unknown([*lower, *points], GATED, "number")
    design = common.choice(label_design, "--label-design", ("random", "unknown"))
    if dry_run:
        forecast = forecast_pairs(cases, options, selection, second_order, Progress(quiet))
        show_forecast(forecast, options, json, "comparisons")
        return
    stop = Stop()
    with Progress(quiet) as progress:
        work = compare_options(
            cases, options, selection, stop=stop, watcher=progress, labels=labels, label_design=design,
            slice_by=common.listed(slice_by), second_order=second_order,
        )  # fmt: skip
        result = run(work, stop)
    common.say(result.notes)
    failed = estimate_failures(result.summary, lower, points)
    if require_calibration:
        failed.append("--require-calibration: comparisons have no calibrations yet")
    if json:
        common.emit_json(result.summary)
    else:
        page.show(comparison.sections(result.run, result.summary), common.console())
        print(f"run directory: {result.run}")
    common.say(f"gate failed: {sentence}" for sentence in failed)
    common.say(common.stopped_early(stop.why, progress, max_cost))
    raise typer.Exit(exit_code(result.summary, failed, max_error_rate))


def default_out(cases: list[str], rubrics: list[str], model: str | None, mode: str | None) -> Path:
    """A name that the same command gets again, so that it resumes."""
    from judge.cli.score import run_name

    stems = "-vs-".join("stdin" if name == "-" else Path(name).stem for name in cases)
    return Path("runs") / run_name(stems, *rubrics, model or "default", mode or "")


def diff(
    a: Annotated[Path, typer.Argument(help="The run directory of system A.")],
    b: Annotated[Path, typer.Argument(help="The run directory of system B.")],
    rubrics: common.RunRubrics = None,
    allow_different: Annotated[
        bool,
        typer.Option("--allow-different", help="Compare although judge or rubric differ between the runs."),
    ] = False,
    seed: common.Seed = 0,
    json: common.Json = False,
) -> None:
    """Compare two scored runs case by case. What changed, how sure that is, and which cases moved most.

    Example: judge runs diff runs/old runs/new --rubrics faithfulness
    """
    from judge.diffing import diff_runs, sections
    from judge.report.page import show

    found = diff_runs(a, b, common.listed(rubrics), allow_different=allow_different, seed=seed)
    if json:
        common.emit_json(found)
    else:
        show(sections(found), common.console())
