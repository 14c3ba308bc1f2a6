"""judge demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli import common


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The run directory; the same one again is instant.")] = Path(
        "runs/demo"
    ),
    cache: common.Cache = None,
    json: common.Json = False,
) -> None:
    """Score a dozen bundled cases with the embedded judge. Shows what it can and cannot do; no key needed.

    The model (1.1 GB) is fetched once, after saying so. Example: judge demo
    """
    from judge.api import Options, score_options
    from judge.audits import audit
    from judge.background import Stop, run
    from judge.cli.model import fetch_if_missing
    from judge.demo import RUBRICS, audit_sections, demo_cases, sections
    from judge.gates import exit_code
    from judge.llm.llama import runtime
    from judge.report import page, scores
    from judge.report.progress import Progress

    runtime()
    fetch_if_missing()
    stop = Stop()
    options = Options(rubrics=RUBRICS, model="local", out=out, cache=cache)
    with Progress() as progress:
        result = run(score_options(demo_cases(), options, stop=stop, watcher=progress), stop)
    scored = any(found["n_scored"] for found in result.summary["rubrics"].values())
    audits = audit(result.run, rater="author", replicates=1999).rubrics if scored and not stop.why else {}
    if json:
        common.emit_json({**result.summary, "audit": audits})
    else:
        console = common.console()
        page.show(scores.sections(result.run, result.summary)[:1], console)
        page.show(sections(result.run), console)
        page.show(audit_sections(audits) if audits else [], console)
        print(f"run directory: {result.run}   look inside a case: judge show {result.run} ex-01")
        print(f"the whole audit: judge audit {result.run} --rater author")
    common.say(common.stopped_early(stop.why, progress))
    raise typer.Exit(exit_code(result.summary, [], 0.05))
