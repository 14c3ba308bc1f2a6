"""The short forms of the input contract, turned into the long form that a `Case` holds. Types are checked later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel


def text_id(value: Any) -> Any:
    """A whole number used as an id becomes text; everything else is left for the type check."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def passages(value: Any) -> Any:
    """Contexts: a string becomes {id: c<n>, text}."""
    return _identified(value, "text", 'a list of passages is needed, write ["..."]; null = not recorded, [] = none')


def ranking(value: Any) -> Any:
    """Retrieved items: an id becomes {id}; an item without id is named c<n>, as in `contexts`."""
    return _identified(value, "id", "a list of ids or items in rank order is needed")


def labels(value: Any) -> Any:
    """Relevance labels: an id becomes {doc}."""
    if value is None:
        return None
    made = []
    for item in _listed(value, "a list of labels is needed: ids, or objects with doc, chunk or text"):
        fields = {"doc": item} if isinstance(item, str | int) else item
        if isinstance(fields, Mapping):
            fields = {name: text_id(v) if name in ("doc", "chunk") else v for name, v in fields.items()}
        made.append(fields)
    return made


def nuggets(value: Any) -> Any:
    """Nuggets: a string becomes {nugget}, which is vital."""
    if value is None:
        return None
    items = _listed(value, "a list of strings or {nugget, importance} is needed")
    return [{"nugget": item} if isinstance(item, str) else item for item in items]


def texts(value: Any) -> Any:
    """Accepted answers, tags: one string is a list of one."""
    return [value] if isinstance(value, str) else value


def answerable(value: Any) -> Any:
    """true and false are yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value


def rated(value: Any) -> Any:
    """Labels that travel with the case: a bare label is by the rater `human`; null labels are left out."""
    if not isinstance(value, Mapping):
        raise ValueError("{rubric: label} or {rubric: {rater: label}} is needed")
    by_rater = {rubric: v if isinstance(v, Mapping) else {"human": v} for rubric, v in value.items()}
    given = {rubric: {rater: v for rater, v in raters.items() if v is not None} for rubric, raters in by_rater.items()}
    return {rubric: raters for rubric, raters in given.items() if raters}


def _listed(value: Any, rule: str) -> Iterable[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(rule)
    return value


def _identified(value: Any, bare: Literal["id", "text"], rule: str) -> Any:
    if value is None:
        return None
    made = []
    for n, item in enumerate(_listed(value, rule), 1):
        if isinstance(item, BaseModel) or (type(item) is dict and type(item.get("id")) is str):
            made.append(item)
            continue
        fields = dict(item) if isinstance(item, Mapping) else {bare: item}
        given = fields.get("id")
        made.append({**fields, "id": f"c{n}" if given is None else text_id(given)})
    return made
