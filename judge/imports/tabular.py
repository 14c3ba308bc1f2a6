"""Records out of containers: JSONL, JSON, CSV, Parquet, a DataFrame, or dicts. No meaning is read here."""

from __future__ import annotations

import csv
import io
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

import orjson
from pydantic import BaseModel

from judge.errors import InputError, UsageError
from judge.imports.rows import Problem, Row, Source, Stream, shown
from judge.llm.request import legible

CONTAINERS = ("jsonl", "json", "csv", "tsv", "parquet")
SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
_NO_TABLE = {
    b"\x1f\x8b": "is compressed (gzip): unpack it first",
    b"PK\x03\x04": "is an Excel workbook or a zip archive: save the sheet as CSV in UTF-8",
    b"\xd0\xcf\x11\xe0": "is an Excel workbook: save the sheet as CSV in UTF-8",
}
_BOM = b"\xef\xbb\xbf"
_SEPARATOR_LINE = re.compile(r"sep=[,;\t|]", re.IGNORECASE)


def open_table(source: Any, container: str | None) -> Source:
    """Records of a path, `-` (standard input), a DataFrame, or an iterable of dicts; files are read as they stream."""
    if not isinstance(source, str | Path):
        return _from_python(source)
    if str(source) == "-":
        if sys.stdin is None:
            raise InputError("<stdin>: standard input is closed; give the path of a cases file")
        return _open_stream("<stdin>", sys.stdin.buffer, container)
    path = Path(source)
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the path of a cases file, or `-` for standard input")
    container = container or SUFFIXES.get(path.suffix.lower())
    if container == "parquet":
        return Source(path.name, "row", _parquet_rows(path))
    return _open_stream(path.name, path.open("rb"), container)


def _open_stream(name: str, raw: BinaryIO, container: str | None) -> Source:
    stream = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)  # type: ignore[type-var]
    head = stream.peek(4096)[:4096]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{name}: the file is UTF-16; save it as UTF-8")
    for mark, why in _NO_TABLE.items():
        if head.startswith(mark):
            raise InputError(f"{name}: {why}")
    start = head.removeprefix(_BOM).lstrip()[:1]
    container = container or {b"[": "json", b"{": "jsonl"}.get(start, "csv")
    if container == "json":
        return _json_source(name, stream)
    if container == "jsonl":
        return Source(name, "line", _jsonl_rows(name, stream))
    if container in ("csv", "tsv"):
        return _csv_source(name, stream, "\t" if container == "tsv" else None)
    raise UsageError(f"{name}: parquet cannot be read from standard input; give a file path")


def _not_utf8(name: str, line: int, error: UnicodeDecodeError) -> InputError:
    byte = error.object[error.start]
    return InputError(f"{name}:{line}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8")


def _decoded(name: str, lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            yield (line.removeprefix(_BOM) if number == 1 else line).decode("utf-8")
        except UnicodeDecodeError as error:
            raise _not_utf8(name, number, error) from None


def _jsonl_rows(name: str, stream: BinaryIO) -> Stream:
    with stream:
        for number, line in enumerate(stream, 1):
            if number == 1:
                line = line.removeprefix(_BOM)
            if line.isspace() or not line:
                continue
            try:
                data = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as bad:
                    raise _not_utf8(name, number, bad) from None
                yield Problem(number, f"row: {shown(line.decode().strip())}, not JSON ({error.msg}); one object a line")
                continue
            yield _object(number, data)


def _object(at: int, data: Any) -> Row | Problem:
    if isinstance(data, dict):
        return Row(at, data)
    return Problem(at, f"row: {shown(data)}, a JSON object is needed")


def _json_source(name: str, stream: BinaryIO) -> Source:
    with stream:
        content = stream.read().removeprefix(_BOM)
    try:
        data = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as bad:
            raise _not_utf8(name, content[: bad.start].count(b"\n") + 1, bad) from None
        if content.lstrip().startswith(b"{") and content.strip().count(b"\n"):
            return Source(name, "line", _jsonl_rows(name, io.BytesIO(content)))
        raise InputError(f"{name}:{error.lineno}: not JSON ({error.msg}, column {error.colno})") from None
    records = data if isinstance(data, list) else _unwrapped(name, data)
    return Source(name, "item", (_object(n, record) for n, record in enumerate(records, 1)))


def _unwrapped(name: str, data: Any) -> list[Any]:
    """Records of a JSON object: a list inside a wrapper, or columns {name: [...]} and {name: {"0": ...}}."""
    if isinstance(data, dict) and data:
        data = next((data[name] for name in ("data", "testRunData") if isinstance(data.get(name), dict)), data)
        for name in ("examples", "testCases"):
            if isinstance(data.get(name), list):
                return list(data[name])
        columns = {key: list(v.values()) if isinstance(v, dict) else v for key, v in data.items()}
        same_keys = len({tuple(v) for v in data.values() if isinstance(v, dict)}) <= 1
        lengths = {len(v) if isinstance(v, list) else -1 for v in columns.values()}
        if same_keys and len(lengths) == 1 and -1 not in lengths:
            return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        if "question" in data or "user_input" in data or "input" in data:
            return [data]
    raise InputError(f"{name}: {shown(data)}, a JSON array of objects or an object of equally long columns is needed")


def _csv_source(name: str, stream: BinaryIO, delimiter: str | None) -> Source:
    csv.field_size_limit(2**31 - 1)
    lines = _decoded(name, stream)
    header_line, before = next(lines, ""), 0
    if _SEPARATOR_LINE.fullmatch(header_line.rstrip()):
        delimiter, header_line, before = header_line[len("sep=")], next(lines, ""), 1
    warnings: list[str] = []
    if delimiter is None:
        delimiter = next((d for d in ",;\t" if d in header_line), ",")
        if delimiter != ",":
            warnings.append(f"{name}: columns are separated by {delimiter!r}, as in the header line")
    reader = csv.reader(_chained(header_line, lines), strict=True, delimiter=delimiter)
    return Source(name, "line", _csv_rows(name, stream, reader, before, warnings), cells=True, warnings=warnings)


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from rest


def _csv_rows(name: str, stream: BinaryIO, reader: Any, before: int, warnings: list[str]) -> Stream:
    """Records under their header; `before` lines stand above it. Rows without content are counted in `warnings`."""
    header: list[str] | None = None
    line, blank = before + 1, 0
    with stream:
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                yield Problem(line, f"row: not CSV ({error}); {_mend(str(error))}")
                return
            if cells is None:
                break
            if header is None:
                header = [cell.strip() for cell in cells]
            elif any(cell.strip() for cell in cells):
                yield _csv_record(line, header, cells)
            else:
                blank += bool(cells)
            line = before + reader.line_num + 1
    if blank:
        warnings.append(f"{name}: {blank} rows without any content left out")


def _mend(error: str) -> str:
    if error.startswith("new-line character"):
        return "a carriage return alone ends a line; save the file with the line ends of Windows or Unix"
    return "quote cells and double the quotes inside"


def _csv_record(line: int, header: list[str], cells: list[str]) -> Row | Problem:
    if len(cells) != len(header):
        return Problem(line, f"row: {len(cells)} cells, the header has {len(header)}; quote cells that hold commas")
    data: dict[str, str] = {}
    for column, cell in zip(header, cells, strict=True):
        if data.get(column, cell) != cell:
            return Problem(line, f"{column}: {shown(cell)}, the header names this column twice with differing values")
        data[column] = cell
    data.pop("", None)
    return Row(line, data)


def _parquet_rows(path: Path) -> Stream:
    try:
        import pyarrow.parquet as parquet
        from pyarrow import ArrowInvalid
    except ImportError:
        raise UsageError(
            f"{path.name}: reading Parquet needs pyarrow; run: pip install 'calibrated-judge[parquet]'"
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            records = chain.from_iterable(batch.to_pylist() for batch in file.iter_batches(batch_size=256))
            for at, record in enumerate(records, 1):
                record.pop("__index_level_0__", None)
                yield _plain_row(at, record)
    except ArrowInvalid as error:
        raise InputError(f"{path.name}: not a Parquet file that can be read ({error})") from None


def _from_python(source: Any) -> Source:
    if hasattr(source, "columns") and hasattr(source, "itertuples"):
        indexes = [name for name in source.index.names if name is not None and name not in source.columns]
        frame = source.reset_index(level=indexes) if indexes else source
        columns = [str(column) for column in frame.columns]
        twice = next((name for n, name in enumerate(columns) if name in columns[:n]), None)
        if twice is not None:
            raise InputError(f"DataFrame: {twice!r} names two columns; rename or drop one")
        records: Iterable[Any] = (dict(zip(columns, v, strict=True)) for v in frame.itertuples(index=False, name=None))
        return Source("DataFrame", "row", (_plain_row(n, record) for n, record in enumerate(records, 1)))
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise UsageError(f"cases: {shown(source)}, a path, a DataFrame or a list of dicts is needed")
    return Source("cases", "item", (_mapping(n, record) for n, record in enumerate(source, 1)))


def _mapping(at: int, record: Any) -> Row | Problem:
    if isinstance(record, Mapping):
        return _plain_row(at, record)
    return Problem(at, f"row: {shown(record)}, a dict is needed")


def _plain_row(at: int, record: Mapping[Any, Any]) -> Row | Problem:
    made: dict[str, Any] = {}
    for name, value in record.items():
        try:
            made[plain(str(name))] = plain(value)
        except (ValueError, RecursionError) as error:
            said = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            return Problem(at, f"{ascii(name)[1:-1]}: {said}")
    return Row(at, made)


def plain(value: Any) -> Any:
    """Plain JSON types out of numpy, pandas and datetime values; every kind of missing value becomes None.

    Raises ValueError for what JSON cannot hold.
    """
    if isinstance(value, str):
        if not value.isascii() and legible(value) != value:
            raise ValueError(f"{ascii(value)[:60]}, holds half a surrogate pair, which is no character")
        return value
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    if isinstance(value, Mapping):
        return {plain(str(k)): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, bytes | bytearray | memoryview | set | frozenset):
        raise ValueError(f"{shown(value)}, text, a number, a list or an object is needed")
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, BaseModel | Decimal | UUID):
        return value
    raise ValueError(f"{shown(value)}, text, a number, a list or an object is needed")
