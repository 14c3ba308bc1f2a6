"""Render the body of a rubric: sandboxed Jinja over the rubric's own settings, never over the text of an item.

Rubric files come from users, so a body is code-like input. Three fences, from the inside out:

1. Before anything runs the body is parsed and only harmless constructs are let through: output, `if`, comparisons,
   a few filters with short constant arguments, and `for` over the rubric's own short lists. No arithmetic, calls
   (but `.items()`), assignment, macro, include or import; names are `rubric`, `item` and loop variables.
2. Size: body at most 20,000 characters, loops at most two deep, lists at most 50 entries, rendered text at most
   32,000 characters. A body can therefore not hang or fill the memory, and no worker or clock is needed.
3. `ImmutableSandboxedEnvironment` with `StrictUndefined`, no globals and no loader.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from rubrics.frontmatter import did_you_mean
from rubrics.model import Rubric

ITEM_FLAGS = ("has_reference", "has_notes", "has_contexts", "has_nuggets", "has_history")
MAX_BODY, MAX_RENDERED, MAX_ENTRIES, MAX_DEPTH = 20_000, 32_000, 50, 2
FILTERS = ("join", "lower", "upper", "trim", "length", "sort", "dictsort")
_HIDDEN_FIELDS = {"body", "examples", "quick", "root", "rubric_hash", "source"}
RUBRIC_FIELDS = tuple(sorted(set(Rubric.model_fields) - _HIDDEN_FIELDS))
LISTS = ("anchors", "bands", "checks", "errors", "requires")
_HARMLESS = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.Name, nodes.Getattr, nodes.Getitem,
    nodes.Filter, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Const, nodes.CondExpr,
    nodes.Tuple, nodes.List, nodes.Call, nodes.Test,
)  # fmt: skip
_TESTS = ("defined", "none", "even", "odd")


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False, trim_blocks=False
    )
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in FILTERS}
    environment.tests = {name: environment.tests[name] for name in (*_TESTS, "eq", "ne", "in")}
    return environment


@lru_cache(maxsize=256)
def mistakes(body: str) -> tuple[tuple[int, str], ...]:
    """What a body does that it may not, each with its line (counted from 1 within the body)."""
    if len(body) > MAX_BODY:
        return ((1, f"the body has {len(body)} characters; at most {MAX_BODY} are allowed"),)
    try:
        tree = _environment().parse(body)
    except TemplateSyntaxError as error:
        return ((error.lineno, f"template: {error.message}"),)
    except (TemplateError, RecursionError) as error:
        return ((1, f"template: {error}"),)
    return tuple(sorted(set(_walk(tree, frozenset(), 0))))


def flags_used(body: str) -> frozenset[str]:
    """The booleans about the item that a body (one without mistakes) asks for, such as has_reference."""
    return frozenset(
        node.attr
        for node in _environment().parse(body).find_all(nodes.Getattr)
        if isinstance(node.node, nodes.Name) and node.node.name == "item"
    )


def render_body(rubric: Rubric, flags: frozenset[str]) -> str:
    """The instructions of a rubric for an item that has what `flags` name.

    Errors: ValueError when the body is not allowed, uses something undefined or renders to too much text.
    """
    found = mistakes(rubric.body)
    if found:
        raise ValueError("; ".join(f"body line {line}: {what}" for line, what in found))
    settings = rubric.model_dump(include=set(RUBRIC_FIELDS))
    settings["anchors"] = dict(sorted(rubric.anchors.items(), reverse=True))
    pieces, length = [], 0
    template = _environment().from_string(rubric.body)
    try:
        for piece in template.generate(rubric=settings, item={name: name in flags for name in ITEM_FLAGS}):
            pieces.append(piece)
            length += len(piece)
            if length > MAX_RENDERED:
                raise ValueError(f"the body renders to more than {MAX_RENDERED} characters")
    except TemplateError as error:
        raise ValueError(f"template: {error}") from None
    except TypeError as error:
        raise ValueError(f"template: {error}") from None
    lines = [line.rstrip() for line in "".join(pieces).strip().split("\n")]
    return "\n".join(line for n, line in enumerate(lines) if line or lines[n - 1])


def _walk(node: nodes.Node, bound: frozenset[str], depth: int) -> Iterator[tuple[int, str]]:
    line = node.lineno
    if not isinstance(node, _HARMLESS):
        yield (
            line,
            f"{type(node).__name__.lower()} is not allowed in a rubric body (allowed: text, if, for, {{{{ name }}}})",
        )
        return
    if isinstance(node, nodes.For):
        yield from _loop(node, bound, depth)
        return
    if isinstance(node, nodes.Call):
        yield line, "only `.items()` may be called, and only as what a `for` runs over"
        return
    if isinstance(node, nodes.Name) and node.name not in bound | {"rubric", "item"}:
        yield line, f'unknown name "{node.name}": a body sees `rubric` and `item` only'
    if isinstance(node, nodes.Getattr | nodes.Getitem):
        yield from _access(node)
    if isinstance(node, nodes.Filter):
        yield from _filter(node)
    if isinstance(node, nodes.Test) and node.name not in _TESTS:
        yield line, f'the test "{node.name}" is not allowed; allowed: {", ".join(_TESTS)}'
    for child in node.iter_child_nodes():
        yield from _walk(child, bound, depth)


def _loop(node: nodes.For, bound: frozenset[str], depth: int) -> Iterator[tuple[int, str]]:
    source = node.iter
    if isinstance(source, nodes.Filter) and source.name in ("sort", "dictsort") and not source.args:
        source = source.node or source
    if isinstance(source, nodes.Call) and isinstance(source.node, nodes.Getattr) and source.node.attr == "items":
        source = source.node.node
    ours = isinstance(source, nodes.Getattr) and isinstance(source.node, nodes.Name) and source.node.name == "rubric"
    if not (ours and source.attr in LISTS):  # type: ignore[attr-defined]
        yield node.lineno, f"a loop may run over {', '.join(f'rubric.{name}' for name in LISTS)} only"
    if node.recursive or depth >= MAX_DEPTH:
        yield node.lineno, f"loops may be at most {MAX_DEPTH} deep and not recursive"
        return
    names = {target.name for target in node.target.find_all(nodes.Name)}
    names |= {node.target.name} if isinstance(node.target, nodes.Name) else set()
    inner = bound | names | {"loop"}
    for child in (*node.body, *node.else_, *([node.test] if node.test else ())):
        yield from _walk(child, inner, depth + 1)


def _access(node: nodes.Getattr | nodes.Getitem) -> Iterator[tuple[int, str]]:
    if isinstance(node, nodes.Getitem):
        if not isinstance(node.arg, nodes.Const) or str(node.arg.value).startswith("_"):
            yield node.lineno, "an index must be a plain number or word"
        return
    if node.attr.startswith("_"):
        yield node.lineno, f'"{node.attr}" is not allowed: names that begin with _ are internal'
    owner = node.node.name if isinstance(node.node, nodes.Name) else None
    if owner == "item" and node.attr not in ITEM_FLAGS:
        yield (
            node.lineno,
            f"item.{node.attr} does not exist: the text of an item never reaches a body (code adds it, in marked "
            f"blocks); a body may ask for item.{', item.'.join(ITEM_FLAGS)}{did_you_mean(node.attr, ITEM_FLAGS)}",
        )
    if owner == "rubric" and node.attr not in RUBRIC_FIELDS:
        yield (
            node.lineno,
            f"rubric.{node.attr} does not exist; a body sees {', '.join(RUBRIC_FIELDS)}"
            f"{did_you_mean(node.attr, RUBRIC_FIELDS)}",
        )


def _filter(node: nodes.Filter) -> Iterator[tuple[int, str]]:
    if node.name not in FILTERS:
        yield node.lineno, f'the filter "{node.name}" is not allowed; allowed: {", ".join(FILTERS)}'
    if isinstance(node.node, nodes.Filter):
        yield node.lineno, "filters cannot be chained"
    arguments = [*node.args, *(keyword.value for keyword in node.kwargs)]
    if any(not isinstance(value, nodes.Const) or len(str(value.value)) > 20 for value in arguments):
        yield node.lineno, "a filter's arguments must be plain words or numbers of at most 20 characters"
