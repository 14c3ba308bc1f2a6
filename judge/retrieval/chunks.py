"""Chunks and the documents they come from: the chunk map, declared id patterns, and labels that went stale."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.errors import InputError
from judge.retrieval.inputs import id_text
from judge.retrieval.options import Options

if TYPE_CHECKING:
    from judge.cases import Label, RetrievedItem


@dataclass(frozen=True, slots=True)
class Chunk:
    """Where a chunk comes from: document, code points [start, end) in it, and its text; None when not known."""

    doc: str | None = None
    start: int | None = None
    end: int | None = None
    text: str | None = None


ChunkMap = Mapping[str, Chunk]


def chunk_map_of(given: Any) -> ChunkMap:
    """The chunk map from a mapping chunk id -> {doc, start, end, text} (or doc id), or the path of such a file.

    Files: JSON object of that form, or JSON lines {"id": ..., "doc": ..., "start": ..., "end": ..., "text": ...}.
    """
    if isinstance(given, str | Path):
        given = _read(Path(given))
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        raise InputError(f"chunk_map is a {kind}: give chunk id -> {{doc, start, end}}, or the path of a file")
    return {id_text(chunk, "chunk_map"): _chunk(chunk, value) for chunk, value in given.items()}


def _read(path: Path) -> dict[str, Any]:
    import orjson

    try:
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise InputError(f"chunk_map {path}: cannot be read ({error.strerror}): check the path") from None
    try:
        whole = orjson.loads(data)
        if isinstance(whole, dict) and "id" not in whole:
            return whole
        rows = whole if isinstance(whole, list) else [whole]
    except orjson.JSONDecodeError:
        rows = []
        for n, line in enumerate(data.splitlines(), 1):
            if line.strip():
                try:
                    rows.append(orjson.loads(line))
                except orjson.JSONDecodeError as error:
                    raise InputError(f"chunk_map {path}:{n}: no JSON ({error}): one object a line") from None
    made: dict[str, Any] = {}
    for n, row in enumerate(rows, 1):
        if not isinstance(row, dict) or "id" not in row:
            example = "{'id': 'c1', 'doc': 'D1', 'start': 0, 'end': 80}"
            raise InputError(f"chunk_map {path}: entry {n} has no id: write {example}")
        chunk = id_text(row["id"], f"chunk_map {path}: entry {n}")
        if chunk in made:
            raise InputError(f"chunk_map {path}: chunk {chunk!r} occurs twice: keep one entry")
        made[chunk] = {key: value for key, value in row.items() if key != "id"}
    return made


def _chunk(chunk: str, value: Any) -> Chunk:
    if isinstance(value, Chunk):
        return value
    fields = {"doc": value} if isinstance(value, str) else value
    if not isinstance(fields, Mapping) or not set(fields) <= {"doc", "start", "end", "text"}:
        raise InputError(f"chunk_map: chunk {chunk!r} is {value!r}: give doc, and start and end, and text if known")
    made = Chunk(**fields)
    if made.doc is not None and not isinstance(made.doc, str):
        raise InputError(f"chunk_map: chunk {chunk!r} has doc {made.doc!r}: document ids are text")
    if (made.start is None and made.end is None) or _is_range(made.start, made.end):
        return made
    raise InputError(f"chunk_map: chunk {chunk!r} has start {made.start!r}, end {made.end!r}: needs 0 <= start < end")


def _is_range(start: Any, end: Any) -> bool:
    return type(start) is int and type(end) is int and 0 <= start < end


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved item with all that is known about it; `doc` is None when nothing declares a document."""

    id: str
    doc: str | None = None
    start: int | None = None
    end: int | None = None
    text: str | None = None
    score: float | None = None

    @property
    def document(self) -> str:
        """The declared document, else the item is its own document."""
        return self.id if self.doc is None else self.doc


def first_of_each(passages: Iterable[Passage], key: Callable[[Passage], str]) -> list[Passage]:
    """The passages whose key did not come before, in order."""
    kept: dict[str, Passage] = {}
    for passage in passages:
        kept.setdefault(key(passage), passage)
    return list(kept.values())


@dataclass(frozen=True, slots=True)
class Origins:
    """Says where an item comes from: the item itself, then the chunk map, then the declared pattern of its id."""

    chunks: ChunkMap | None
    pattern: re.Pattern[str] | None

    @classmethod
    def of(cls, options: Options) -> Origins:
        return cls(options.chunk_map, None if options.doc_pattern is None else re.compile(options.doc_pattern))

    @property
    def declared(self) -> bool:
        return self.chunks is not None or self.pattern is not None

    def document(self, item: str) -> str | None:
        """The declared document of an id, None when nothing declares one."""
        known = (self.chunks or {}).get(item)
        if known is not None and known.doc is not None:
            return known.doc
        match = self.pattern.match(item) if self.pattern else None
        return match.group(1) if match else None

    def passage(self, item: RetrievedItem | str) -> Passage:
        """Everything known about a retrieved item."""
        name = item if isinstance(item, str) else item.id
        known = (self.chunks or {}).get(name, Chunk())
        if isinstance(item, str):
            return Passage(name, self.document(name), known.start, known.end, known.text)
        start, end = (known.start, known.end) if item.start is None else (item.start, item.end)
        doc = self.document(name) if item.doc is None else item.doc
        return Passage(name, doc, start, end, known.text if item.text is None else item.text, item.score)


def check_stale(
    labelled: Mapping[str, Sequence[str]], retrieved: Iterable[str], origins: Origins, stale: str
) -> list[str]:
    """Warnings about chunk labels that no chunk has any more; an InputError with `stale=error`.

    `labelled` maps a query to its chunk labels, `retrieved` are all retrieved ids. With a chunk map a label is stale
    when the map does not know it. Without one nothing can say so for a single label, but when not one of the chunk
    labels was ever retrieved they are taken for stale.
    """
    rows = [(query, chunk) for query, chunks in labelled.items() for chunk in chunks]
    if not rows:
        return []
    if origins.chunks is not None:
        gone = [(query, chunk) for query, chunk in rows if chunk not in origins.chunks]
        said = f"{len(gone)} of {len(rows)} chunk labels are not in the chunk map"
    else:
        seen = set(retrieved)
        gone = rows if seen and not any(chunk in seen for _, chunk in rows) else []
        said = f"none of the {len(rows)} chunk labels was ever retrieved, and no chunk map says which chunks exist"
    if not gone:
        return []
    listed = [f"query {query!r}: chunk {chunk!r}" for query, chunk in gone]
    if stale == "error":
        raise InputError(
            f"stale chunk labels: {said}. After a re-chunking, relabel with the old chunk map (judge dataset relabel); "
            "or pass the current chunk_map; or stale=zero to count them as not found",
            listed,
        )
    return [f"{said}: counted as not found (stale=zero)"]


def check_offsets(labels: Mapping[str, Sequence[Label]], origins: Origins) -> None:
    """Offset labels that reach beyond the last known chunk of their document are an error."""
    ends: dict[str, int] = {}
    for chunk in (origins.chunks or {}).values():
        if chunk.doc is not None and chunk.end is not None:
            ends[chunk.doc] = max(ends.get(chunk.doc, 0), chunk.end)
    rows = [
        f"query {query!r}: {label.doc}[{label.start},{label.end}), but its chunks end at {ends[label.doc]}"
        for query, given in labels.items()
        for label in given
        if label.end is not None and label.doc in ends and label.end > ends[label.doc]
    ]
    if rows:
        raise InputError("offset labels reach beyond their document: label or chunk map is of another version", rows)
