"""The lines of a run's files: how one is read and checked, what names its work, how a small file is replaced."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from judge.errors import InputError
from judge.imports import shown
from judge.llm.request import legible

FINISHED = frozenset({"scored", "undefined", "not_applicable", "cannot_judge"})
JUDGMENTS = "judgments.jsonl"
STATUSES = FINISHED | {"error"}
_MARKS = frozenset({"case_id", "key", "question"})  # of a comparison, a reply, a case
_NUMBER, _MAYBE = (float, int, type(None)), (str, type(None))
_LINE: Mapping[str, tuple[type, ...]] = {
    "case_id": (str,), "rubric": (str,), "rubric_hash": (str,), "prompt_hash": _MAYBE, "judge": (str,), "mode": (str,),
    "repeat": (int,), "status": (str,), "score": _NUMBER, "normalized": _NUMBER, "passed": (bool, type(None)),
    "errors": (list,), "flags": (list,), "details": (dict,), "quotes": (dict,), "rationale": _MAYBE, "reason": _MAYBE,
    "error_kind": _MAYBE, "key": (str,),
}  # fmt: skip


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every complete JSON line of a file with its byte offset; nothing when the file does not exist.

    Raises InputError at a damaged line: passing over it would silently change every number made from the file.
    """
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n") and line.strip():
                yield offset, _object(path, number, line)
            offset += len(line)


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = orjson.loads(line)
    except orjson.JSONDecodeError:
        found = {}
    wrong = _wrong(found, path.name)
    if wrong is None:
        return found
    raise InputError(
        f"{path}:{number}: damaged line {shown(line[:60])} ({wrong}). Delete that line and run the command that made "
        "the run again: what is missing is judged again, and paid for again only where its reply is lost too"
    )


def _wrong(row: Any, file: str) -> str | None:
    """What a line lacks that its readers rely on: in a judgment each field of its kind, numbers where it is scored."""
    if not isinstance(row, dict) or not row.keys() & _MARKS:
        return "no line of a run"
    if file != JUDGMENTS:
        return None
    for name, kinds in _LINE.items():
        if type(row.get(name)) not in kinds:
            return f"{name}: {shown(row.get(name))}"
    if row["status"] not in STATUSES:
        return f"status: {shown(row['status'])}"
    without = [name for name in ("score", "normalized", "passed") if row[name] is None]
    return f"scored without {without[0]}" if row["status"] == "scored" and without else None


def work_key(row: Mapping[str, Any]) -> str:
    """The key of the work behind a line: its own, or for a comparison that of its calls in order."""
    if "calls" not in row:
        return str(row["key"])
    twins = row.get("pointwise") or {}
    keys = [*(call["key"] for call in row["calls"]), *(twins.get("keys") or ())]
    return hashlib.sha256("\n".join(keys).encode()).hexdigest()


def identity_of(row: Mapping[str, Any]) -> bytes:
    systems = f"\x1f{row['a']}\x1f{row['b']}" if "a" in row else ""
    name = f"{row['case_id']}\x1f{row['rubric']}\x1f{row['repeat']}{systems}"
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file in one step: readers see the old one or the new one, never half."""
    temporary = path.with_suffix(path.suffix + ".part")
    try:
        content = orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except TypeError:  # a lone surrogate, as in the name of a folder that is not UTF-8
        content = legible(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)).encode()
    temporary.write_bytes(content + b"\n")
    temporary.replace(path)
