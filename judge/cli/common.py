"""What the verbs share: options, output, and the mapping from text options to values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from judge.report.progress import Progress

JUDGE = "Which judge"
CASES = "Which cases"
RUNNING = "How it runs"
GATES = "When to fail"

Rubrics = Annotated[
    list[str] | None,
    typer.Option(
        "--rubrics",
        "--rubric",
        "-r",
        help="Rubric ids, comma-separated or repeated (judge rubrics list). Default: faithfulness.",
        rich_help_panel=JUDGE,
    ),
]
RunRubrics = Annotated[
    list[str] | None,
    typer.Option(
        "--rubrics", "--rubric", "-r", help="Rubrics of the run, comma-separated or repeated. Default: all of them."
    ),
]
RubricsDir = Annotated[
    list[Path] | None,
    typer.Option(
        help="Folder with your own rubric files; they add to the bundled ones and win on the same id.",
        rich_help_panel=JUDGE,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="A litellm model string (openai/gpt-4o-mini), local, local:/path/to.gguf, or a judge named in judge.toml. "
        "Default: the default of judge.toml, else local.",
        rich_help_panel=JUDGE,
    ),
]
Config = Annotated[Path | None, typer.Option(help="A judge.toml in another place.", rich_help_panel=JUDGE)]
Mode = Annotated[
    str | None,
    typer.Option(
        help="full (verdicts with quotes) or quick (one token, needs logprobs). Default: quick for local, else full.",
        rich_help_panel=JUDGE,
    ),
]
ApiBase = Annotated[
    str | None, typer.Option(help="Address of an OpenAI-style server, http://127.0.0.1:8000/v1.", rich_help_panel=JUDGE)
]
GeneratedBy = Annotated[
    str | None,
    typer.Option(help="The model that wrote the answers: warns of self-preference.", rich_help_panel=JUDGE),
]
AllowUncalibrated = Annotated[
    bool,
    typer.Option(
        "--allow-uncalibrated",
        help="Let the embedded judge answer rubrics whose quick form says local: refuse.",
        rich_help_panel=JUDGE,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Format of the cases where it cannot be told: ragas, deepeval, trulens, langsmith, phoenix, mlflow, beir, "
        "trec, jsonl, csv, ...",
        rich_help_panel=CASES,
    ),
]
Map = Annotated[
    list[str] | None,
    typer.Option("--map", help="Where a field stands in your file: --map answer=my_column.", rich_help_panel=CASES),
]
Limit = Annotated[int | None, typer.Option(help="Only the first N cases.", rich_help_panel=CASES)]
Sample = Annotated[int | None, typer.Option(help="Only N cases drawn at random (see --seed).", rich_help_panel=CASES)]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random draw; recorded.", rich_help_panel=RUNNING)]
Concurrency = Annotated[
    int | None, typer.Option(help="Most calls in flight; adapts itself below it.", rich_help_panel=RUNNING)
]
Repeats = Annotated[int, typer.Option(help="Judgments per case and rubric.", rich_help_panel=RUNNING)]
MaxCost = Annotated[
    float | None,
    typer.Option(help="Stop before more than this many US dollars are spent; resumable.", rich_help_panel=RUNNING),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Count calls, tokens and price; send nothing.", rich_help_panel=RUNNING)
]
Cache = Annotated[
    Path | None,
    typer.Option(
        help="Cache of paid replies. Default: the user's cache directory.",
        envvar="JUDGE_CACHE",
        rich_help_panel=RUNNING,
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor write a cache.", rich_help_panel=RUNNING)]
Timeout = Annotated[
    float | None, typer.Option(help="Seconds a call may take (60; local 600).", rich_help_panel=RUNNING)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.", rich_help_panel=RUNNING)]
MaxErrorRate = Annotated[
    float,
    typer.Option(min=0, max=1, help="Exit 3 when more than this share of judgments are errors.", rich_help_panel=GATES),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else there.")]


def listed(values: Sequence[str] | None) -> list[str]:
    """Comma-separated and repeated values as one list."""
    return [part.strip() for value in values or () for part in value.split(",") if part.strip()]


def p_values(values: Sequence[str] | None, option: str) -> list[float]:
    """Comma-separated and repeated p values."""
    try:
        return [float(part) for part in listed(values)]
    except ValueError:
        raise UsageError(f"{option} {','.join(values or ())!r}: give p values, such as .2,.04") from None


def mapping(values: Sequence[str] | None) -> dict[str, str] | None:
    """["answer=my_column"] as {"answer": "my_column"}."""
    found = {}
    for value in values or ():
        name, equals, column = value.partition("=")
        if not equals or not name:
            raise UsageError(f"--map {value!r}: give FIELD=COLUMN, such as answer=my_column")
        found[name.strip()] = column.strip()
    return found or None


def choice(value: str | None, option: str, allowed: Sequence[str]) -> Any:
    """The value when it is one of `allowed` (or None); UsageError names the choices."""
    if value is not None and value not in allowed:
        raise UsageError(f"{option} {value!r}: choose {' or '.join(allowed)}")
    return value


def console() -> Console:
    """Standard output; colours only on a terminal, full lines elsewhere."""
    from rich.console import Console

    return Console(soft_wrap=False) if sys.stdout.isatty() else Console(width=140, color_system=None)


def emit_json(value: Any) -> None:
    """One JSON document; NaN and infinity cannot appear."""
    import json

    unicode = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    print(json.dumps(value, ensure_ascii=not unicode, indent=2, allow_nan=False))


def stopped_early(why: str | None, progress: Progress, max_cost: float | None = None) -> list[str]:
    """How far a run came that was stopped, and how it goes on; nothing for a finished one."""
    if why is None:
        return []
    if why == "max_cost":
        return [f"stopped by --max-cost {max_cost}: the same command with a higher one resumes"]
    return [f"interrupted at {progress.done} of {progress.total}: the same command resumes"]


def say(lines: Iterable[str]) -> None:
    """Notes and warnings, on standard error."""
    from judge.report.page import visible

    for line in lines:
        print(visible(line), file=sys.stderr)
