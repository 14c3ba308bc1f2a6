"""judge diagnose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from judge.cli import common
from judge.errors import UsageError

RETRIEVAL = "How evidence is matched"
REPLAYS = "Replays"


def diagnose(
    run: Annotated[Path, typer.Argument(help="A run directory of judge score.")],
    threshold: Annotated[
        list[str] | None,
        typer.Option("--threshold", "-t", help="NAME=VALUE, repeated: recall=0.9, S2=0.3, min_n=30. All are echoed."),
    ] = None,
    evidence: Annotated[
        str, typer.Option(help="What a case with several labels needs: all, or any.", rich_help_panel=RETRIEVAL)
    ] = "all",
    doc_pattern: Annotated[
        str | None,
        typer.Option(help=r"Document part of an item id, in brackets: '^(.*)#\d+$'.", rich_help_panel=RETRIEVAL),
    ] = None,
    chunk_map: Annotated[
        Path | None, typer.Option(help="JSON or JSONL: chunk id -> doc, start, end, text.", rich_help_panel=RETRIEVAL)
    ] = None,
    tau: Annotated[
        float | None,
        typer.Option(help="Share of a labelled passage that must be there (0.8).", rich_help_panel=RETRIEVAL),
    ] = None,
    cluster: Annotated[
        str, typer.Option(help="Cases that depend on each other share a question, or a labelled document.")
    ] = "question",
    feedback_scale: Annotated[str, typer.Option(help="Lowest and highest value of `feedback`: 1,5.")] = "0,1",
    calibration: Annotated[
        Path | None, typer.Option(help="Folder of calibrations (judge audit --save). Default: ./calibrations.")
    ] = None,
    counterfactuals: Annotated[
        Path | None,
        typer.Option(help="Write the case files of the replays into this directory.", rich_help_panel=REPLAYS),
    ] = None,
    replay: Annotated[
        list[str] | None,
        typer.Option(
            help="Read a replay back: NAME=RUN with oracle-context, no-context, cut-k or rerank.",
            rich_help_panel=REPLAYS,
        ),
    ] = None,
    json: common.Json = False,
) -> None:
    """Learn which stage to fix: retrieval or generation. From a scored run, with how sure it is; no model, no network.

    Writes diagnosis.json and diagnosis.md into the run. Score faithfulness, answer_correctness, completeness,
    citation_accuracy and refusal_correctness first; cases carry `relevant` labels.

    Examples:

        judge diagnose runs/cases-local

        judge diagnose runs/cases-local --counterfactuals replays

        judge diagnose runs/cases-local --replay oracle-context=runs/oracle-local
    """
    from judge.diagnosing.document import diagnose as diagnose_run
    from judge.diagnosing.replays import named
    from judge.report import diagnosis
    from judge.report.page import show

    if calibration is not None and not calibration.is_dir():
        raise UsageError(f"--calibration {calibration}: no such folder; `judge audit --save` makes one")
    retrieval: dict[str, Any] = {"doc_pattern": doc_pattern, "chunk_map": chunk_map, "tau": tau}
    document = diagnose_run(
        run,
        thresholds=dict(_pair(text) for text in threshold or ()),
        evidence=evidence,
        cluster=cluster,
        feedback_scale=_scale(feedback_scale),
        retrieval={name: value for name, value in retrieval.items() if value is not None},
        calibration=calibration,
        counterfactuals=counterfactuals,
        replay=named(replay or ()),
    )
    diagnosis.write(run, document)
    if json:
        common.emit_json(document)
        return
    show(diagnosis.sections(document), common.console())
    print(f"written: {run / 'diagnosis.md'}, {run / 'diagnosis.json'}")


def _pair(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise UsageError(f"--threshold {text!r}: give NAME=NUMBER, such as recall=0.9") from None


def _scale(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--feedback-scale {text!r}: give the lowest and the highest value, such as 1,5") from None
    return low, high
