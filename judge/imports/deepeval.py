"""DeepEval goldens and test cases.

`retrieval_context` is what was retrieved, `context` is gold. Only its JSON keeps lists: CSV and JSONL glue them with
`|`, unescaped. A cell with `|` is refused, unless every passage carries DeepEval's source marker or the user opts in.
"""

from __future__ import annotations

import re
from typing import Any

from judge.imports.foreign import Options, filled, gold, reference, structure, texts, with_foreign
from judge.imports.rows import FieldError, shown

_MARKED = re.compile(r"deepeval_source=(.*?),deepeval_context=(.*)", re.DOTALL)
_USED = {"input", "actual_output", "expected_output", "retrieval_context", "context", "name", "additional_metadata"}
_STRUCTURED = {"tools_called", "expected_tools", "custom_column_key_values", "expectations"}


def golden(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """One golden or test case; an empty glued cell is an empty list, null is not recorded."""
    row = filled(data, options)
    others = {k: structure(k, v, options) if k in _STRUCTURED else v for k, v in row.items() if k not in _USED}
    passages = _passages("retrieval_context", data.get("retrieval_context"), options)
    return {
        "id": row.get("name"),
        "question": row.get("input"),
        "answer": row.get("actual_output"),
        "contexts": None if passages is None else [_unmarked(text) for text in passages],
        "reference": reference(row.get("expected_output"), options),
        "relevant": gold(_passages("context", data.get("context"), options)),
        "metadata": with_foreign(
            structure("additional_metadata", row.get("additional_metadata"), options), fields=others
        ),
    }


def test_case(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """One test case of a saved test run: camel-case names, and the metrics that were measured."""
    measured = {m["name"]: m.get("score") for m in data.get("metricsData") or [] if isinstance(m, dict) and "name" in m}
    names = {
        "input": "input", "actualOutput": "actual_output", "expectedOutput": "expected_output", "name": "name",
        "retrievalContext": "retrieval_context", "context": "context", "additionalMetadata": "additional_metadata",
    }  # fmt: skip
    made = golden({names[k]: v for k, v in data.items() if k in names}, options)
    others = {k: v for k, v in data.items() if k not in names and k != "metricsData"}
    return {**made, "metadata": with_foreign(made["metadata"], scores=measured, fields=others)}


def _passages(column: str, value: Any, options: Options) -> list[str] | None:
    if not isinstance(value, str):
        return texts(column, value, options)
    if value == "":
        return []
    marked = value.split("|deepeval_source=")
    if value.startswith("deepeval_source="):
        return [marked[0], *(f"deepeval_source={rest}" for rest in marked[1:])]
    if options.delimiter:
        return value.split(options.delimiter)
    if "|" in value:
        raise FieldError(
            f"{column}: {shown(value)}, passages are glued with '|' and cannot be told apart from text; "
            "export as .json, or pass --map context_delimiter='|' to split at every '|'"
        )
    return [value]


def _unmarked(text: str) -> Any:
    found = _MARKED.fullmatch(text)
    return {"id": found[1], "text": found[2]} if found else text
