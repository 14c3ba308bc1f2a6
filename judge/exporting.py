"""Judgment lines as tables for other programs; cells that a spreadsheet would run as a formula are made text."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.runs import rows

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
FILES = ("run.json", "cases.jsonl", "judgments.jsonl", "comparisons.jsonl", "replies.jsonl", "summary.json",
         "summary.md")  # fmt: skip
FORMATS = ("csv", "parquet", "jsonl")


def export(run: Path, format: str, out: Path) -> int:
    """Writes the judgments of a run as csv, parquet or jsonl; returns the number of rows.

    CSV and Parquet hold one flat column per field (`details.support_rate`, `usage.input_tokens`); lists are JSON text.
    In CSV, text that starts with = + - @, a tab or a line break gets an apostrophe in front: no spreadsheet runs it.
    Raises UsageError for an unknown format, a file of the run as target, or without the parquet extra.
    """
    if format not in FORMATS:
        raise UsageError(f"--format {format!r}: choose {' or '.join(FORMATS)}")
    if out.resolve().parent == run.resolve() and out.name in FILES:
        raise UsageError(f"--out {out}: is a file of the run; give another name, such as {run / f'export.{format}'}")
    lines = "comparisons.jsonl" if (run / "comparisons.jsonl").exists() else "judgments.jsonl"
    if format == "jsonl":
        return _jsonl(list(rows(run, lines)), out)
    flat = [flattened(row) for row in rows(run, lines)]
    columns = list(dict.fromkeys(name for row in flat for name in row))
    if format == "csv":
        with out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows({name: inert(value) for name, value in row.items()} for row in flat)
    else:
        _parquet(flat, columns, out)
    return len(flat)


def flattened(row: dict[str, Any]) -> dict[str, Any]:
    """A judgment line as one flat row: objects become dotted columns, lists JSON text."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": _cell(inner) for key, inner in value.items()}
        else:
            flat[name] = _cell(value)
    return flat


def inert(value: Any) -> Any:
    """The value, with an apostrophe in front of text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def uninert(text: str) -> str:
    """The text as it was before `inert`."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA) else text


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _jsonl(lines: list[dict[str, Any]], out: Path) -> int:
    with out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in lines)
    return len(lines)


def _parquet(flat: list[dict[str, Any]], columns: list[str], out: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError("--format parquet needs the extra: pip install 'calibrated-judge[parquet]'") from None
    table = {name: [row.get(name) for row in flat] for name in columns}
    for name, values in table.items():
        kinds = {type(value) for value in values if value is not None}
        if kinds == {int, float}:
            table[name] = [None if value is None else float(value) for value in values]
        elif len(kinds) > 1:
            table[name] = [None if value is None else str(value) for value in values]
    pq.write_table(pa.table(table), out)
