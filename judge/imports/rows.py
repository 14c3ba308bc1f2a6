"""What flows between a file and a case: rows, problems, and the source they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One record and the place it came from (line number, item number)."""

    at: int
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """A record that cannot be used: where, and "field: value seen, rule, next step"."""

    at: int
    text: str


class FieldError(ValueError):
    """A field of one record breaks a rule; becomes a `Problem` of that record."""


Stream = Iterator[Row | Problem]


@dataclass(slots=True)
class Source:
    """Records of one input; `unit` is what `Row.at` counts ("line", "item").

    `cells` is true when every value is a text cell (CSV). `note` says what was mapped. `unknown` counts fields kept
    under metadata and fills up while `rows` is read.
    """

    name: str
    unit: str
    rows: Stream
    cells: bool = False
    note: str | None = None
    warnings: list[str] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)

    def place(self, at: int) -> str:
        return f"{self.name}:{at}" if self.unit == "line" else f"{self.name} {self.unit} {at}"


def shown(value: Any, limit: int = 60) -> str:
    """A value for a message: its repr on one line, cut at `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def each(rows: Iterable[Row | Problem], convert: Callable[[dict[str, Any]], dict[str, Any]]) -> Stream:
    """Convert record by record; a `FieldError` turns that record into a `Problem` and the rest goes on."""
    for row in rows:
        if isinstance(row, Problem):
            yield row
            continue
        try:
            yield Row(row.at, convert(row.data))
        except FieldError as error:
            yield Problem(row.at, str(error))


def at_path(data: Mapping[str, Any], path: str) -> Any:
    """The value of a column, or of a dotted path into nested objects; None when it is not there."""
    if path in data:
        return data[path]
    head, _, rest = path.partition(".")
    inner = data.get(head)
    return at_path(inner, rest) if rest and isinstance(inner, Mapping) else None
