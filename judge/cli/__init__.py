"""The command `judge`: one function per verb, no rule lives here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated

import typer

from judge.cli import model, retrieval, rubrics, runs
from judge.cli.audit import audit, sheet
from judge.cli.compare import compare, diff
from judge.cli.demo import demo
from judge.cli.diagnose import diagnose
from judge.cli.score import score
from judge.errors import JudgeError

app = typer.Typer(
    name="judge",
    help="Score RAG answers with a language model as judge, and learn how far every number can be trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(show: bool) -> None:
    if show:
        from judge import __version__

        print(f"calibrated-judge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _group(name: str, help: str, **verbs: Callable[..., None]) -> None:
    group = typer.Typer(help=help, no_args_is_help=True, rich_markup_mode=None)
    for verb, function in verbs.items():
        group.command(verb)(function)
    app.add_typer(group, name=name)


app.command("demo")(demo)
app.command("score")(score)
app.command("show")(runs.show)
app.command("export")(runs.export)
app.command("doctor")(runs.doctor)
app.command("retrieval")(retrieval.retrieval)
app.command("diagnose")(diagnose)
app.command("compare")(compare)
app.command("audit")(audit)
app.command("sheet")(sheet)
_group("runs", "Finished runs.", diff=diff)
_group(
    "rubrics",
    "Bundled rubrics and your own.",
    list=rubrics.list_rubrics,
    show=rubrics.show_rubric,
    check=rubrics.check_rubrics,
    new=rubrics.new_rubric,
)
_group("dataset", "Work on case files.", relabel=retrieval.relabel)
_group("model", "The embedded model on this machine.", pull=model.pull, list=model.list_models)


def main() -> None:
    """Runs the command line. Errors meant for people end with exit code 2 and no traceback, Ctrl-C with 130."""
    import warnings

    from calibration.errors import CalibrationError
    from judge.background import left_behind
    from judge.gates import INTERRUPTED
    from judge.report.page import visible
    from rubrics import RubricError

    # litellm leaves such a coroutine behind when a refused key ends the calls that are still in its queue
    warnings.filterwarnings("ignore", r"coroutine '\w+\.acompletion' was never awaited", RuntimeWarning)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        app(prog_name="judge")
    except (JudgeError, RubricError, CalibrationError) as error:
        print(visible(f"error: {error}"), file=sys.stderr)
    except OSError as error:
        print(visible(f"error: {error.filename or 'output'}: {error.strerror or error}"), file=sys.stderr)
    except SystemExit:
        if left_behind():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        raise
    else:
        return
    sys.exit(2)
