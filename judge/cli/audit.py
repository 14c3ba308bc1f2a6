"""judge audit, judge sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from judge.cli import common

FURTHER = "More questions"
PROBING = "Bias probes"


def audit(
    run: Annotated[Path, typer.Argument(help="A run directory of judge score.")],
    labels: Annotated[
        str | None,
        typer.Argument(
            help="CSV or JSONL: case_id,rater,rubric,label, or case_id and one column per rubric. "
            "Left out: the labels that the cases carry."
        ),
    ] = None,
    rubrics: common.RunRubrics = None,
    rater: Annotated[
        list[str] | None,
        typer.Option("--rater", help="Whose labels count (default all); names the person where the file does not."),
    ] = None,
    label_design: Annotated[
        str,
        typer.Option(
            help="How the labelled cases were chosen, which decides whether there is a corrected mean: random (from "
            "these judged cases), stratified (by the judge's score, as judge sheet does), propensity (chances in "
            "the column propensity), external (they stand for others), unknown."
        ),
    ] = "unknown",
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold",
            help="Declared before looking, held against lower bounds: kappa=.6 (default), ceiling=.1 (default), "
            "percent_agreement, within_1, spearman, auc, sensitivity, specificity.",
        ),
    ] = None,
    also: Annotated[
        list[Path] | None, typer.Option(help="Another run on the same cases whose scores are compared.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="An older run on the same labelled cases: has the judge changed?", rich_help_panel=FURTHER),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="Harmless shift of the mean, in marks (default 5% of the scale), also of --transport.",
            rich_help_panel=FURTHER,
        ),
    ] = None,
    looks: Annotated[
        int, typer.Option(help="Comparisons planned in all; each spends its share.", rich_help_panel=FURTHER)
    ] = 1,
    earlier: Annotated[
        list[str] | None,
        typer.Option(help="p of the comparisons before this one, comma-separated.", rich_help_panel=FURTHER),
    ] = None,
    transport: Annotated[
        Path | None,
        typer.Option(help="A run on other cases: do the calibrated scores hold there?", rich_help_panel=FURTHER),
    ] = None,
    transport_labels: Annotated[
        str | None,
        typer.Option(help="Its labels. Default: those that its cases carry.", rich_help_panel=FURTHER),
    ] = None,
    panel: Annotated[
        list[Path] | None,
        typer.Option(help="Another judge's run on the same cases; joined into a panel.", rich_help_panel=FURTHER),
    ] = None,
    dawid_skene: Annotated[
        bool,
        typer.Option(
            "--dawid-skene", help="Panel: latent labels, assuming independent errors.", rich_help_panel=FURTHER
        ),
    ] = False,
    fit_bands: Annotated[
        bool,
        typer.Option(
            "--fit-bands", help="Fit the bands to 100 labels or more; writes a rubric.", rich_help_panel=FURTHER
        ),
    ] = False,
    rubrics_dir: Annotated[
        Path | None, typer.Option(help="Where --fit-bands writes the rubric.", rich_help_panel=FURTHER)
    ] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            "--probe",
            help="Edit cases of the run and judge them again: verbosity, formatting, authority, fake_citation, "
            "assertiveness, passage_order, number_damage, negation, name_swap, prompt_wording, or all. Costs calls.",
            rich_help_panel=PROBING,
        ),
    ] = None,
    probe_variants: Annotated[
        Path | None,
        typer.Option(
            help="A case file with ids of the run, edited by you in a way that must not matter (translated, "
            "paraphrased): judged as one more probe.",
            rich_help_panel=PROBING,
        ),
    ] = None,
    probe_n: Annotated[int, typer.Option(help="Cases per probe.", rich_help_panel=PROBING)] = 80,
    dry_run: common.DryRun = False,
    config: common.Config = None,
    api_base: common.ApiBase = None,
    concurrency: common.Concurrency = None,
    timeout: common.Timeout = None,
    max_cost: common.MaxCost = None,
    cache: common.Cache = None,
    no_cache: common.NoCache = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: RUN/audit.")] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Keep the result as a calibration that judge score looks up.")
    ] = False,
    calibration: Annotated[Path | None, typer.Option(help="Folder of calibrations. Default: ./calibrations.")] = None,
    seed: common.Seed = 0,
    json: common.Json = False,
) -> None:
    """Learn from people's labels if a judge can be trusted. For each rubric: the verdict, why, the corrected mean.

    Example: judge audit runs/cases-local labels.csv --label-design random --threshold kappa=.6
    """
    from judge.audits import audit as audit_run
    from judge.errors import UsageError
    from judge.gates import parse_thresholds
    from judge.report import audit as audit_page
    from judge.report.page import show

    if probe or probe_variants:
        if labels is not None:
            raise UsageError("--probe takes no labels: it asks the judge again; audit with labels in a second command")
        calls = {"config": config, "api_base": api_base, "concurrency": concurrency, "timeout": timeout,
                 "max_cost": max_cost, "cache": False if no_cache else cache}  # fmt: skip
        asked = {"rubrics": common.listed(rubrics), "variants": probe_variants, "n": probe_n, "seed": seed}
        _probe(run, common.listed(probe), asked, dry_run, json, calls)
        return
    if dry_run:
        raise UsageError("--dry-run: an audit sends nothing; it is for --probe")
    if transport_labels is not None and transport is None:
        raise UsageError("--transport-labels belongs to --transport RUN: name the run that was labelled")
    if fit_bands and rubrics_dir is None:
        raise UsageError("--fit-bands writes a rubric file: say where with --rubrics-dir FOLDER")
    found = audit_run(
        run,
        labels,
        rubrics=common.listed(rubrics),
        rater=common.listed(rater),
        label_design=label_design,
        thresholds=parse_thresholds(threshold or (), "--threshold"),
        also=also or (),
        out=out,
        save=save,
        calibration=calibration,
        against=against,
        margin=margin,
        looks=looks,
        earlier=common.p_values(earlier, "--earlier"),
        transport=transport,
        transport_labels=transport_labels,
        panel=panel or (),
        dawid_skene=dawid_skene,
        fit_bands=rubrics_dir if fit_bands else None,
        seed=seed,
    )
    common.say(found.notes)
    if json:
        common.emit_json(found.rubrics)
        return
    if len(found.rubrics) > 1:
        show(audit_page.across(found.rubrics), common.console())
    for audited in found.rubrics.values():
        show(audit_page.sections(audited), common.console())
    print(f"written to {found.out}: audit.md, one JSON and one review sheet per rubric")


def _probe(
    run: Path, names: list[str], asked: dict[str, Any], dry_run: bool, json: bool, calls: dict[str, Any]
) -> None:
    from judge.api import Options
    from judge.background import Stop
    from judge.cli.score import show_forecast
    from judge.probes import VARIANTS
    from judge.probing import forecast_probes, probe
    from judge.report import probes as page
    from judge.report.page import show
    from judge.report.progress import Progress
    from judge.runs import manifest

    if dry_run:
        forecast = forecast_probes(run, names, **asked, **calls)
        show_forecast(forecast, Options(rubrics=names or [VARIANTS], model=manifest(run)["judge"]["model"]), json)
        return
    stop = Stop()
    with Progress(json) as progress:
        probed = probe(run, names, **asked, watcher=progress, stop=stop, **calls)
    common.say(probed.notes)
    if stop.why is not None:
        common.say(common.stopped_early(stop.why, progress, calls["max_cost"]))
        raise typer.Exit(130 if stop.why == "interrupted" else 3)
    if json:
        common.emit_json(probed.found)
        return
    show(page.sections(probed.found), common.console())
    print(f"written to {probed.out}: probes.md, probes.json, one run per probe under probes/")


def sheet(
    run: Annotated[Path, typer.Argument(help="A run directory of judge score.")],
    n: Annotated[int, typer.Option("--n", "-n", help="Cases per rubric.")] = 100,
    design: Annotated[
        str,
        typer.Option(help="random, or stratified by the judge's score (finds rare levels)."),
    ] = "random",
    out: Annotated[Path, typer.Option("--out", "-o", help="The sheet, a CSV.")] = Path("sheet.csv"),
    rubrics: common.RunRubrics = None,
    seed: common.Seed = 0,
    json: common.Json = False,
) -> None:
    """Draw cases for people to label, blind to the judge. The filled sheet is a LABELS file.

    Example: judge sheet runs/cases-local --n 100 --design random --seed 7 --out sheet.csv
    """
    from judge.sheet import unjudged, write_sheet

    chosen = common.choice(design, "--design", ("random", "stratified"))
    drawn = write_sheet(run, out, n=n, design=chosen, seed=seed, rubrics=common.listed(rubrics))
    common.say(
        f"{name}: {left} of {n_cases} cases have no judgment yet: finish the run first, the sheet leaves them out"
        for name, (left, n_cases) in unjudged(run, list(drawn)).items()
    )
    if json:
        common.emit_json({"out": str(out), "design": design, "seed": seed, "drawn": drawn})
        return
    print(f"{out}: {', '.join(f'{count} cases for {name}' for name, count in drawn.items())}")
    fewer = [name for name, count in drawn.items() if count < n]
    if fewer:
        print(f"fewer than {n}: all that have a score for {', '.join(fewer)}")
    print(f"fill `label` (and `rater`), then: judge audit {run} {out} --label-design {design}")
