"""Read a rubric file into settings and body, keeping the line of every setting for messages."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

Where = tuple[str | int, ...]  # a number is a place in a list
_PLAIN_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")}


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a rubric file; a warning does not keep the rubric from being used."""

    line: int
    what: str
    severity: Literal["error", "warning"] = "error"


@dataclass(slots=True)
class Document:
    """A rubric file taken apart. `lines` maps a setting's path, such as ("scale", "min"), to its line in the file."""

    settings: dict[str, Any] = field(default_factory=dict)
    lines: dict[Where, int] = field(default_factory=dict)
    body: str = ""
    body_line: int = 1
    problems: list[Problem] = field(default_factory=list)

    def line(self, where: Where) -> int:
        """The line of a setting, else of the nearest setting around it, else the first line."""
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where, 1)


_QUOTES = "put a text that holds any of : # ? , [ ] { } in quotes"


def has_front_matter(text: str) -> bool:
    return text.split("\n", 1)[0].rstrip() == "---"


def split(raw: bytes) -> Document:
    """Take a rubric file apart: UTF-8 (a byte order mark is ignored), CRLF read as LF, YAML between two `---` lines."""
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        return Document(problems=[Problem(line, "the file is not UTF-8: save it with that encoding")])
    if not has_front_matter(text):
        return Document(
            problems=[Problem(1, "no front matter: the first line must be `---`, followed by the settings")]
        )
    lines = text.split("\n")
    ends = [number for number, line in enumerate(lines[1:], start=1) if line.rstrip() == "---"]
    if not ends:
        return Document(problems=[Problem(1, "the front matter is not closed: put a line `---` after the settings")])
    document = Document(body="\n".join(lines[ends[0] + 1 :]), body_line=ends[0] + 2)
    _read_settings("\n".join(lines[1 : ends[0]]), document)
    document.lines.setdefault(("body",), document.body_line)
    return document


class _Loader(yaml.SafeLoader):
    """Plain YAML only: no aliases (they can blow up a small file) and no dates (a version may look like one)."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":merge", ":value"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event: yaml.Event = self.get_event()  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not supported", problem_mark=event.start_mark)  # type: ignore[arg-type]
        return super().compose_node(parent, index)


def _read_settings(text: str, document: Document) -> None:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 2
        document.problems.append(
            Problem(line, f"not readable as YAML: the character U+{ord(text[error.position]):04X}")
        )
        return
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 2
        document.problems.append(Problem(line, f"not readable as YAML: {error.problem or error.context}; {_QUOTES}"))
        return
    except (yaml.YAMLError, RecursionError) as error:
        document.problems.append(Problem(2, f"not readable as YAML: {error}"))
        return
    if not isinstance(node, yaml.MappingNode):
        document.problems.append(Problem(2, "the front matter must be a list of settings, `name: value`"))
        return
    document.settings = _value(loader, node, (), document)


def _value(loader: _Loader, node: yaml.Node, where: Where, document: Document) -> Any:
    line = node.start_mark.line + 2
    document.lines.setdefault(where, line)
    if node.tag not in _PLAIN_TAGS:
        document.problems.append(Problem(line, f"{dotted(where)}: the YAML tag {node.tag} is not supported"))
        return None
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, where, document)
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, item, (*where, n), document) for n, item in enumerate(node.value)]
    try:
        value = loader.construct_object(node)
    except (yaml.YAMLError, ValueError) as error:
        document.problems.append(Problem(line, f"{dotted(where)}: {error}"))
        return None
    if isinstance(value, float) and not math.isfinite(value):
        document.problems.append(Problem(line, f"{dotted(where)}: {node.value} is not a finite number"))
        return None
    return value


def _mapping(loader: _Loader, node: yaml.MappingNode, where: Where, document: Document) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 2
        if not isinstance(key_node, yaml.ScalarNode):
            document.problems.append(Problem(line, f"{dotted(where)}: a key must be a word or a number"))
            continue
        key = str(key_node.value)
        path = (*where, key)
        if key in result:
            first = document.lines[path]
            document.problems.append(Problem(line, f"{dotted(path)} is given twice (first in line {first}): keep one"))
            continue
        document.lines[path] = line
        result[key] = _value(loader, value_node, path, document)
    return result


def dotted(where: Where) -> str:
    """A setting's path as people write it: examples[2].reply (counted from 1)."""
    text = ""
    for part in where:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "front matter"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean "weight"?` for a near miss, else nothing."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f'; did you mean "{near[0]}"?' if near else ""
