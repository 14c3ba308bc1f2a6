"""Our own rows: cells read, unknown fields moved under metadata, scores of passages moved to the ranking."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from judge.imports.cells import parse_cell, text_or_list
from judge.imports.rows import FieldError, shown

FIELDS = (
    "id", "question", "answer", "contexts", "reference", "notes", "nuggets", "answerable", "lang", "history",
    "retrieved", "relevant", "evidence", "expected_citations", "feedback", "latency_s", "cost_usd", "as_of",
    "system", "split", "tags", "metadata", "labels",
)  # fmt: skip
_KNOWN = frozenset(FIELDS)
_STRUCTURED = ("contexts", "nuggets", "history", "retrieved", "relevant", "expected_citations", "metadata", "labels")
_PASSAGE_KEYS = frozenset({"id", "text", "doc", "start", "end", "title", "author", "year", "joined"})
_SPOKEN = {"true": True, "false": False}


def from_cells(row: Mapping[str, str]) -> dict[str, Any]:
    """Typed values out of the text cells of a native CSV row; an empty cell is an absent value, other text stays."""
    made: dict[str, Any] = {name: cell for name, cell in row.items() if cell != ""}
    for name in _STRUCTURED:
        if name in made:
            made[name] = parse_cell(name, made[name])
    for name in ("reference", "tags"):
        if name in made:
            made[name] = text_or_list(made[name])
    for name in ("answerable", "feedback"):
        if name in made:
            made[name] = _SPOKEN.get(made[name].strip().lower(), made[name])
    if isinstance(made.get("feedback"), str):
        made["feedback"] = _number("feedback", made["feedback"])
    return made


def _number(field: str, cell: str) -> float:
    try:
        value = orjson.loads(cell)
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, int | float):
        return value
    raise FieldError(f"{field}: {shown(cell)}, a number, true or false is needed")


def settle(row: dict[str, Any], unknown: Counter[str]) -> dict[str, Any]:
    """A native row that `Case` accepts: what has no place of its own goes under metadata and is counted.

    A `score` in a context becomes the ranking when none is given; other extra keys of a context are kept in
    `metadata.context_fields`, by context id. A null field is an absent one.
    """
    if None in row.values():
        row = {name: value for name, value in row.items() if value is not None}
    if not _KNOWN.issuperset(row):
        row = _with_metadata(row, {k: v for k, v in row.items() if k not in _KNOWN}, unknown)
    contexts = row.get("contexts")
    if isinstance(contexts, list) and any(isinstance(c, dict) and not _PASSAGE_KEYS.issuperset(c) for c in contexts):
        row = _with_plain_passages(row, contexts, unknown)
    return row


def _with_metadata(row: dict[str, Any], extra: dict[str, Any], unknown: Counter[str]) -> dict[str, Any]:
    metadata = row.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise FieldError(f"metadata: {shown(metadata)}, an object is needed")
    twice = next((name for name in extra if name in metadata), None)
    if twice is not None:
        raise FieldError(f"{twice}: {shown(extra[twice])}, also a key of metadata; rename one of the two")
    unknown.update(extra.keys())
    return {**{k: v for k, v in row.items() if k in _KNOWN}, "metadata": {**metadata, **extra}}


def _with_plain_passages(row: dict[str, Any], contexts: list[Any], unknown: Counter[str]) -> dict[str, Any]:
    passages, scores, kept = [], [], {}
    for n, item in enumerate(contexts, 1):
        if not isinstance(item, dict):
            passages.append(item)
            scores.append({"id": f"c{n}"})
            continue
        name = f"c{n}" if item.get("id") is None else item["id"]
        passages.append({k: v for k, v in item.items() if k in _PASSAGE_KEYS})
        scores.append({"id": name} | ({} if item.get("score") is None else {"score": item["score"]}))
        extra = {k: v for k, v in item.items() if k not in _PASSAGE_KEYS and k != "score"}
        unknown.update(f"contexts.{k}" for k in extra)
        if extra:
            kept[str(name)] = extra
    made = {**row, "contexts": passages}
    if row.get("retrieved") is None and any("score" in s for s in scores):
        made["retrieved"] = scores
    return _with_metadata({**made, "context_fields": kept}, {"context_fields": kept}, Counter()) if kept else made


def did_you_mean(name: str, known: Iterable[str] = FIELDS) -> str:
    """`" (did you mean `answer`?)"`, or nothing when no name is near."""
    near = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.75)
    return f" (did you mean `{near[0]}`?)" if near and near[0] != name else ""
