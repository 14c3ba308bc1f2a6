"""Pydantic's complaints about a case, said as "field: value seen, rule, next step"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from judge.imports.native import did_you_mean
from judge.imports.rows import shown

_RULES = {
    "string_type": "must be text",
    "missing": "is needed here",
    "extra_forbidden": "no such key here",
    "tuple_type": "must be a list",
    "dict_type": "must be an object {...}",
    "model_type": "must be an object {...}",
    "string_too_short": "must not be empty",
    "finite_number": "must be a finite number",
}
_ONE_OF_SEVERAL_TYPES = {
    "feedback": "must be a number, true or false",
    "labels": "must be text, a number, true or false; {rubric: label} or {rubric: {rater: label}}",
}


def broken_rules(error: ValidationError, row: Mapping[str, Any]) -> list[str]:
    """One sentence for each bad field of a row, in field order."""
    said: dict[str, str] = {}
    for item in error.errors(include_url=False, include_context=False):
        path = [str(part) for part in item["loc"]]
        root = path[0] if path else ""
        if root == "question" and item["type"] == "missing":
            said[root] = _no_question(row)
        elif root in _ONE_OF_SEVERAL_TYPES and item["type"] != "value_error":
            said.setdefault(root, f"{root}: {shown(row.get(root))}, {_ONE_OF_SEVERAL_TYPES[root]}")
        else:
            rule = _RULES.get(item["type"]) or item["msg"].removeprefix("Value error, ")
            if item["type"] == "string_type" and isinstance(item["input"], int | float):
                rule = "must be text; write it in quotes"
            field = ".".join(path)
            said.setdefault(field, f"{field}: {shown(item['input'])}, {rule}" if path else rule)
    return list(said.values())


def _no_question(row: Mapping[str, Any]) -> str:
    near = next((name for name in row.get("metadata") or {} if did_you_mean(name, ["question"])), None)
    if near:
        return f"question: missing, `{near}` looks like it; rename it or pass --map question={near}"
    return "question: missing, every case needs one; add it or pass --map question=COLUMN"
