"""Pieces that the readers of other tools' files share: text, lists, nested user keys, documents, foreign scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from judge.imports.cells import parse_cell, text_or_list
from judge.imports.rows import FieldError, shown


@dataclass(frozen=True, slots=True)
class Options:
    """`cells`: values are CSV text. `mapped`: case fields that --map provides. `delimiter`: opt-in for glued lists."""

    cells: bool = False
    mapped: frozenset[str] = frozenset()
    delimiter: str | None = None


def filled(data: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """The row with empty CSV cells as None: CSV cannot tell null from empty text."""
    return {k: None if options.cells and v == "" else v for k, v in data.items()}


def reference(value: Any, options: Options) -> Any:
    """Accepted answers; a CSV cell is a list only when it is written as a list of strings."""
    return text_or_list(value) if options.cells and isinstance(value, str) else value


def texts(field: str, value: Any, options: Options) -> list[str] | None:
    """A list of strings out of a list or a CSV cell; None stays None."""
    if value is None:
        return None
    items = parse_cell(field, value) if options.cells and isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise FieldError(f"{field}: {shown(value)}, a list of strings is needed")
    return items


def structure(field: str, value: Any, options: Options) -> Any:
    """A list or object out of a CSV cell; other values as they are."""
    return parse_cell(field, value) if options.cells and isinstance(value, str) else value


def pick(column: str, values: Any, name: str, field: str, accept: type | tuple[type, ...] = str) -> Any:
    """The one usable value among keys that a user chose, as in `inputs` and `outputs`.

    `name` wins when it is there; else exactly one value of a type in `accept` is used. None when nothing was recorded.
    """
    if values is None or isinstance(values, accept):
        return values
    if not isinstance(values, Mapping):
        raise FieldError(f"{column}: {shown(values)}, an object is needed")
    if name in values:
        return values[name]
    fitting = [
        key for key, value in values.items() if isinstance(value, accept) and key not in ("contexts", "documents")
    ]
    if len(fitting) == 1:
        return values[fitting[0]]
    if all(value is None for value in values.values()):
        return None
    raise FieldError(
        f"{column}: keys {', '.join(map(str, values)) or '(none)'}, not one clear {field}; "
        f"pass --map {field}={column}.KEY"
    )


def documents(column: str, items: Any) -> list[Any] | None:
    """Passages out of strings or LangChain document dumps, with ids, scores and metadata when they are there.

    One text in place of a list may glue several passages: it becomes one joined passage.
    """
    if items is None:
        return None
    if isinstance(items, str):
        return joined(items)
    if not isinstance(items, list):
        raise FieldError(f"{column}: {shown(items)}, a list of documents is needed")
    return [_document(column, item) for item in items]


def _document(column: str, item: Any) -> Any:
    if isinstance(item, str):
        return item
    fields = item.get("kwargs", item) if isinstance(item, Mapping) else None
    if not isinstance(fields, Mapping) or not isinstance(fields.get("page_content"), str):
        raise FieldError(f"{column}: {shown(item)}, text or an object with page_content is needed")
    metadata = dict(fields.get("metadata") or {})
    made = {"id": fields.get("id"), "text": fields["page_content"], "score": metadata.pop("score", None)}
    return {k: v for k, v in {**made, "metadata": metadata or None}.items() if v is not None}


def joined(text: Any) -> list[Any]:
    """One passage that may glue several; no text at all is an empty list, and a list stays as it is."""
    if isinstance(text, list):
        return text
    return [{"text": text, "joined": True}] if text else []


def gold(passages: Iterable[str] | None) -> list[dict[str, str]] | None:
    """Gold passages as relevance labels."""
    return None if passages is None else [{"text": text} for text in passages]


def number(value: Any) -> float | None:
    """A finite number out of a value or its text; None when it is none."""
    try:
        made = float(value)
    except (TypeError, ValueError):
        return None
    return made if made - made == 0 else None


def with_foreign(
    metadata: Mapping[str, Any] | None,
    *,
    scores: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
    fields: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The user's metadata, with another tool's scores, labels and further columns apart under `foreign`."""
    kept = {k: v for k, v in (fields or {}).items() if v is not None and v != "" and v != [] and v != {}}
    parts = {"scores": dict(scores or {}), "labels": dict(labels or {}), "fields": kept}
    found = {name: part for name, part in parts.items() if part}
    return {**(metadata or {}), **({"foreign": found} if found else {})}
