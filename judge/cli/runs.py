"""judge show, judge export, judge doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli import common
from judge.errors import UsageError


def show(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    case: Annotated[str, typer.Argument(help="The id of a case.")],
    rubrics: common.RunRubrics = None,
    json: common.Json = False,
) -> None:
    """Show exactly how a case was judged. Prompt, raw reply, checks, the way to the score, labels.

    Example: judge show runs/cases-local case-05 --rubrics faithfulness
    """
    from judge.report.page import show as show_page
    from judge.showing import opened, sections

    found = opened(run, case, common.listed(rubrics))
    if json:
        common.emit_json(found)
    else:
        show_page(sections(found), common.console())


def export(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    format: Annotated[str, typer.Option("--format", "-f", help="csv, parquet or jsonl.")] = "csv",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: RUN/export.FORMAT.")] = None,
    json: common.Json = False,
) -> None:
    """Write the results of a run as a table.

    Example: judge export runs/cases-local --format csv --out scores.csv
    """
    from judge.exporting import export as export_rows

    if out == Path("-"):
        raise UsageError("--out -: an export is a file; give its name, such as scores.csv")
    target = out or run / f"export.{format}"
    n = export_rows(run, format, target)
    if json:
        common.emit_json({"rows": n, "out": str(target)})
    else:
        print(f"{n} rows written to {target}")


def doctor(
    model: common.Model = None,
    config: common.Config = None,
    api_base: common.ApiBase = None,
    cache: common.Cache = None,
    json: common.Json = False,
) -> None:
    """Check a judge before a run. What it supports, one probe call, price known or not, cache state.

    Example: judge doctor --model openai/gpt-4o-mini
    """
    from judge.background import Stop, run
    from judge.doctoring import examine, sections
    from judge.report.page import show as show_page

    found = run(examine(model, config, api_base, cache), Stop())
    if json:
        common.emit_json(found)
    else:
        show_page(sections(found), common.console())
    if not found["probe"]["ok"]:
        raise typer.Exit(2)
