"""Run directories: the archive of a batch, safe to kill, resume, tail and read without any cache or model.

run.json            who judged what with which settings; invocations and totals
cases.jsonl         normalised copy of the cases
judgments.jsonl     one line per (case, rubric, repeat); append-only while running, later line wins
replies.jsonl       every reply with its messages, raw text, usage and HTTP calls; never rewritten
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from judge.cases import Case, load_normalised
from judge.errors import InputError, UsageError
from judge.lines import JUDGMENTS, identity_of, read_lines
from rubrics.model import Rubric

MANIFEST = frozenset({"judge", "rubrics"})
_RESTORE = "Restore it from a copy, or judge into another --out: the cache makes that free where it is kept"
FIXED = ("model", "endpoint", "params", "mode", "layout", "output")


def manifest(run: Path) -> dict[str, Any]:
    """The content of run.json; UsageError when the directory is no run."""
    path = run / "run.json"
    if not path.exists():
        raise UsageError(f"{run} is not a run directory: it has no run.json. Give the --out of a `judge score` command")
    try:
        loaded = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: damaged ({error.msg}). {_RESTORE}") from None
    if not isinstance(loaded, dict) or any(not isinstance(loaded.get(name), dict) for name in MANIFEST):
        raise InputError(f"{path}: damaged (it needs {', '.join(sorted(MANIFEST))}). {_RESTORE}")
    return loaded


def rubrics_of(run: Path) -> dict[str, Rubric]:
    """The rubrics of a run as they were when they judged."""
    found = {}
    for name, dump in manifest(run)["rubrics"].items():
        try:
            found[name] = Rubric.model_validate(dump)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(
                f"{run / 'run.json'}: rubric {name!r} cannot be read ({'.'.join(map(str, first['loc']))}: "
                f"{first['msg']}); a newer version may have made the run: read it with that one. Else: {_RESTORE}"
            ) from None
    return found


def rows(run: Path, lines: str = JUDGMENTS) -> Iterator[dict[str, Any]]:
    """The lines that stand: for each (case, rubric, repeat) the last one, in file order.

    Raises InputError for a judgment by a rubric, judge or mode that is not of this run.
    """
    path, made = run / lines, manifest(run)
    last = {identity_of(row): offset for offset, row in read_lines(path)}
    for number, (offset, row) in enumerate(read_lines(path), 1):
        if lines == JUDGMENTS:
            _refuse_foreign(row, made, f"{path}:{number}")
        if last[identity_of(row)] == offset:
            yield row


def _refuse_foreign(row: Mapping[str, Any], made: Mapping[str, Any], place: str) -> None:
    judge = made["judge"]
    if row["rubric"] in made["rubrics"] and (row["judge"], row["mode"]) == (judge.get("model"), judge.get("mode")):
        return
    raise InputError(
        f"{place}: a line of another run: {row['case_id']} on {row['rubric']} by {row['judge']} ({row['mode']}), "
        f"this run has {', '.join(made['rubrics'])} by {judge.get('model')} ({judge.get('mode')}). Delete that line"
    )


def to_frame(run: Path, lines: str = JUDGMENTS) -> Any:
    """The lines that stand as a pandas DataFrame, one row each; nested values stay objects."""
    import pandas as pd

    return pd.DataFrame(list(rows(run, lines)))


def questions_of(run: Path) -> dict[str, str]:
    """Case id -> question, in file order."""
    with (run / "cases.jsonl").open("rb") as file:
        return {row["id"]: row["question"] for row in map(orjson.loads, file)}


def cases_of(run: Path) -> Iterator[Case]:
    """The cases of a run, streamed."""
    return load_normalised(run / "cases.jsonl")
