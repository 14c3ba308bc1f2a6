"""From the files other tools write (and our own) to native rows; the only place that knows their column names.

open_source = container (tabular) -> which tool wrote it (detect) -> that tool's reader -> --map -> native rows
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.imports import detect, ir, native
from judge.imports.foreign import Options
from judge.imports.rows import FieldError, Problem, Row, Source, Stream, at_path, each, shown
from judge.imports.tabular import CONTAINERS, SUFFIXES, open_table

__all__ = ["FieldError", "Problem", "Row", "Source", "open_source", "shown"]

PEEKED = 100


def open_source(source: Any, format: str | None = None, map: dict[str, str] | None = None) -> Source:
    """Native rows of `source`. Raises InputError when it cannot be told which tool wrote it, UsageError for options.

    `map` gives the column (or dotted path) of a case field; its key `context_delimiter` lets DeepEval's glued
    passages be split.
    """
    mapping = dict(map or {})
    delimiter = mapping.pop("context_delimiter", None)
    if isinstance(source, str | Path) and str(source) != "-":
        path = Path(source)
        if format == "beir" or path.is_dir():
            return _folder(path, mapping)
        if path.is_file() and (format == "trec" or (format is None and path.suffix.lower() not in SUFFIXES)):
            ir.refuse_trec(path)
    table = open_table(source, format if format in CONTAINERS else None)
    head = list(islice(table.rows, PEEKED))
    seen = detect.look(head)
    table = replace(table, rows=chain(head, table.rows))
    if not seen.columns:
        return table
    _check_mapping(table.name, mapping, seen, head)
    wanted = None if format in CONTAINERS else format
    chosen = detect.choose(table.name, seen, wanted, frozenset(mapping))
    if delimiter is not None and chosen.family != "deepeval":
        raise UsageError(f"--map context_delimiter: only for DeepEval files; {table.name} is {chosen.id}")
    return _converted(table, chosen, mapping, Options(table.cells, frozenset(mapping), delimiter))


def _folder(path: Path, mapping: dict[str, str]) -> Source:
    if mapping:
        raise UsageError(f"--map: {path.name} is a BEIR folder, whose fields are fixed; leave --map out")
    folder = ir.open_beir(path)
    return replace(folder, rows=each(folder.rows, lambda data: native.settle(data, folder.unknown)))


def _check_mapping(name: str, mapping: dict[str, str], seen: detect.Look, head: list[Row | Problem]) -> None:
    rows = [row.data for row in head if isinstance(row, Row)]
    for field, column in mapping.items():
        if field not in native.FIELDS:
            known = ", ".join(native.FIELDS)
            raise UsageError(f"--map {field}={column}: no such case field{native.did_you_mean(field)}; fields: {known}")
        if column not in seen.columns and all(at_path(row, column) is None for row in rows):
            raise UsageError(
                f"--map {field}={column}: {name} has no column {column!r} in its first {PEEKED} rows"
                f"{native.did_you_mean(column, seen.columns)}; columns: {', '.join(sorted(seen.columns))}"
            )


def _converted(table: Source, chosen: detect.Format, mapping: dict[str, str], options: Options) -> Source:
    own = chosen is detect.NATIVE
    said = [] if own else [f"read as {chosen.id}: {chosen.note}"]
    if table.cells and not own:
        alternatives = ", a reference written as a list of strings holds alternatives"
        said.append(f"empty text cells are null{alternatives if 'reference <-' in chosen.note else ''}")
    said += [f"mapped {', '.join(f'{field} <- {column}' for field, column in mapping.items())}"] if mapping else []
    note = f"{table.name}: {'; '.join(said)}" if said else None
    rows = _own_rows(table, mapping) if own else _foreign_rows(table, chosen, mapping, options)
    return replace(table, rows=rows, note=note)


def _own_rows(table: Source, mapping: dict[str, str]) -> Stream:
    columns = set(mapping.values())

    def convert(data: dict[str, Any]) -> dict[str, Any]:
        if mapping:
            kept = {name: value for name, value in data.items() if name not in columns}
            data = kept | {field: at_path(data, column) for field, column in mapping.items()}
        return native.settle(native.from_cells(data) if table.cells else data, table.unknown)

    return each(table.rows, convert)


def _foreign_rows(table: Source, chosen: detect.Format, mapping: dict[str, str], options: Options) -> Stream:
    assert chosen.read is not None
    originals: dict[int, dict[str, Any]] = {}

    def remembered() -> Stream:
        for row in table.rows:
            if mapping and isinstance(row, Row):
                originals[row.at] = row.data
            yield row

    for row in chosen.read(remembered(), options):
        if isinstance(row, Problem):
            yield row
            continue
        original = originals.pop(row.at, {})
        given = {field: at_path(original, column) for field, column in mapping.items()}
        fields = native.from_cells({k: v or "" for k, v in given.items()}) if table.cells else given
        try:
            yield Row(row.at, native.settle({**row.data, **fields}, Counter()))
        except FieldError as error:
            yield Problem(row.at, str(error))
