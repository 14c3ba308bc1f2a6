"""Text cells that hold lists or objects: JSON, or the Python literal that other tools write.

Nothing is ever evaluated. Three traps are closed: `['a' 'b']` (numpy prints lists without commas, and Python would
join the two strings), `...` (numpy shortens long arrays), and constructors such as `Document(...)`.
"""

from __future__ import annotations

import ast
import io
import tokenize
from itertools import pairwise
from typing import Any

import orjson

from judge.imports.rows import FieldError, shown

_SKIPPED = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}


def parse_cell(field: str, cell: str) -> Any:
    """The list, object or scalar written in a cell. Raises FieldError when it is neither JSON nor a plain literal."""
    try:
        return orjson.loads(cell)
    except orjson.JSONDecodeError:
        pass
    text = cell.strip()
    if not text.startswith(("[", "{", "(")):
        raise FieldError(f'{field}: {shown(cell)}, the cell must hold JSON; write ["..."] or {{...}}')
    if _glued(field, text):
        return _numpy_list(field, text)
    try:
        value = ast.literal_eval(text)
        orjson.dumps(value)
        return value
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise FieldError(
            f"{field}: {shown(cell)}, neither JSON nor a plain Python list; constructor calls are not read; "
            "export as JSON or JSONL, or map another column"
        ) from None


def text_or_list(cell: str) -> str | list[str]:
    """A cell that may be one text or a list of texts: a list only when it is written as a list of strings."""
    if not cell.lstrip().startswith("["):
        return cell
    try:
        value = parse_cell("cell", cell)
    except FieldError:
        return cell
    return value if isinstance(value, list) and value and all(isinstance(v, str) for v in value) else cell


def _tokens(field: str, text: str) -> list[tokenize.TokenInfo]:
    try:
        tokens = tokenize.generate_tokens(io.StringIO(f"({text}\n)", newline="\n").readline)
        return [t for t in tokens if t.type not in _SKIPPED][1:-1]
    except (tokenize.TokenError, SyntaxError):
        raise FieldError(f"{field}: {shown(text)}, not a complete list; export as JSON or JSONL") from None


def _glued(field: str, text: str) -> bool:
    tokens = _tokens(field, text)
    if any(t.string == "..." for t in tokens):
        raise FieldError(
            f"{field}: {shown(text)}, the list was shortened with '...' on export; export as JSON or JSONL"
        )
    literals = (tokenize.STRING, tokenize.NUMBER)
    return any(a.type in literals and b.type in literals for a, b in pairwise(tokens))


def _numpy_list(field: str, text: str) -> list[Any]:
    tokens = _tokens(field, text)
    inner = tokens[1:-1]
    flat = tokens[0].string == "[" and tokens[-1].string == "]" and all(t.type == tokenize.STRING for t in inner)
    if not flat:
        raise FieldError(f"{field}: {shown(text)}, list items without commas; export as JSON or JSONL")
    return [ast.literal_eval(t.string) for t in inner]
