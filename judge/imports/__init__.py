"""From the files other tools write (and our own) to native rows; the only place that knows their column names.

open_source = container (tabular) -> which tool wrote it (detect) -> that tool's reader -> --map -> native rows
"""

from __future__ import annotations

from itertools import chain, islice
from typing import Any

from judge.errors import UsageError
from judge.imports import native
from judge.imports.rows import FieldError, Problem, Row, Source, Stream, at_path, each, shown
from judge.imports.tabular import CONTAINERS, open_table

__all__ = ["FieldError", "Problem", "Row", "Source", "open_source", "shown"]

PEEKED = 100


def open_source(source: Any, format: str | None = None, map: dict[str, str] | None = None) -> Source:
    """Native rows of `source`. Raises InputError when it cannot be told which tool wrote it, UsageError for options."""
    mapping = dict(map or {})
    table = open_table(source, format if format in CONTAINERS else None)
    head = list(islice(table.rows, PEEKED))
    table.rows = chain(head, table.rows)
    columns = {name for row in head if isinstance(row, Row) for name in row.data}
    _check_mapping(table.name, mapping, columns, [row.data for row in head if isinstance(row, Row)])
    table.rows = _native_rows(table, mapping)
    return table


def _check_mapping(name: str, mapping: dict[str, str], columns: set[str], sample: list[dict[str, Any]]) -> None:
    for field, column in mapping.items():
        if field not in native.FIELDS:
            raise UsageError(
                f"--map {field}={column}: no such case field{native.did_you_mean(field)}; "
                f"fields: {', '.join(native.FIELDS)}"
            )
        if sample and all(at_path(row, column) is None for row in sample) and column not in columns:
            raise UsageError(
                f"--map {field}={column}: {name} has no column {column!r}{native.did_you_mean(column, columns)}; "
                f"columns: {', '.join(sorted(columns))}"
            )


def _native_rows(table: Source, mapping: dict[str, str]) -> Stream:
    used = set(mapping.values())

    def convert(data: dict[str, Any]) -> dict[str, Any]:
        if mapping:
            data = {k: v for k, v in data.items() if k not in used} | {f: at_path(data, c) for f, c in mapping.items()}
        return native.settle(native.from_cells(data) if table.cells else data, table.unknown)

    return each(table.rows, convert)
