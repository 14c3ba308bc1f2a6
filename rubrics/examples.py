"""Worked examples of a rubric file: checked like real replies and shown as question, material, answer and reply.

An example has fields of a case (question, answer, contexts, reference, notes, nuggets; first and second for a pair)
and either `reply`, the complete JSON that a good judge returns, or for ordinal, binary and checklist rubrics the short
form: `level` or `checks`, with `quotes`, `errors` and `reason`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from rubrics.blocks import Material, material
from rubrics.frontmatter import Where, did_you_mean
from rubrics.model import Rubric
from rubrics.scoring import band

Found = Iterator[tuple[Where, str]]
CASE_FIELDS = ("question", "answer", "contexts", "reference", "notes", "nuggets", "first", "second")
SHORT_FIELDS = ("level", "checks", "quotes", "errors", "reason")
_QUOTES_FROM_ANSWER = ("answer_quote", "span")


@dataclass(frozen=True, slots=True)
class _Passage:
    id: str
    text: str
    title: str | None = None
    author: str | None = None
    year: int | None = None


@dataclass(frozen=True, slots=True)
class _Point:
    nugget: str
    importance: str


@dataclass(frozen=True, slots=True)
class _Item:
    id: str
    question: str
    answer: str | None
    contexts: tuple[_Passage, ...] | None
    reference: tuple[str, ...] | None
    notes: str | None
    nuggets: tuple[_Point, ...] | None
    answerable: str | None = None
    history: tuple[Any, ...] = ()


def case_of(example: Mapping[str, Any]) -> _Item:
    """The example as an item. ValueError in plain words when a field has the wrong shape."""
    for name in ("question", "answer", "notes", "first", "second"):
        if not isinstance(example.get(name), str | None):
            raise ValueError(f"{name} must be text (put it in quotes)")
    contexts = example.get("contexts")
    if contexts is not None and not isinstance(contexts, Mapping):
        raise ValueError('contexts must map ids to texts: contexts: {d1: "...", d2: "..."}')
    reference = example.get("reference")
    texts = [reference] if isinstance(reference, str) else reference
    for name, values in (("contexts", (contexts or {}).values()), ("reference", texts or ())):
        if isinstance(values, str) or not all(isinstance(value, str) for value in values):
            raise ValueError(f"{name} must hold texts (put them in quotes)")
    nuggets = example.get("nuggets")
    if nuggets is not None and not (isinstance(nuggets, list) and all(isinstance(n, str) for n in nuggets)):
        raise ValueError("nuggets must be a list of texts")
    return _Item(
        id="example",
        question=example.get("question") or "",
        answer=example.get("answer"),
        contexts=None if contexts is None else tuple(_Passage(str(i), text) for i, text in contexts.items()),
        reference=None if texts is None else tuple(texts),
        notes=example.get("notes"),
        nuggets=None if nuggets is None else tuple(_Point(text, "vital") for text in nuggets),
    )


def reply_of(rubric: Rubric, example: Mapping[str, Any]) -> dict[str, Any]:
    """The complete reply of an example; the short form is filled up."""
    if "reply" in example:
        return dict(example["reply"])
    reason = example.get("reason") or ""
    start: dict[str, Any] = {"injection_attempts": []}
    if rubric.mode in ("ordinal", "binary"):
        return start | {"rationale": reason, "cannot_judge": None, "level": example.get("level")}
    given, quotes = example.get("checks") or {}, list(example.get("quotes") or [])
    start["checks"] = [
        {
            "id": check.id,
            "quote": quotes.pop(0) if quotes and not given.get(check.id) else None,
            "reason": "It holds." if given.get(check.id) else reason,
            "met": given.get(check.id),
        }
        for check in rubric.checks
    ]
    level = example.get("level", _checklist_level(rubric, given))
    return start | {"rationale": reason, "cannot_judge": None, "holistic_score": level}


def _checklist_level(rubric: Rubric, given: Mapping[str, Any]) -> int:
    met = sum(check.weight for check in rubric.checks if given.get(check.id))
    level = band(rubric, met / (sum(check.weight for check in rubric.checks) or 1))
    core_failed = any(check.core and not given.get(check.id) for check in rubric.checks)
    return min(level, rubric.core_no_caps_at) if core_failed and rubric.core_no_caps_at is not None else level


def shown(rubric: Rubric, fields: frozenset[str]) -> str:
    """The examples as they stand in the prompt: each text quoted on one line, then the reply as JSON."""
    pieces = []
    for number, example in enumerate(rubric.examples, start=1):
        answers = [(f"{name} reply", example[name]) for name in ("first", "second") if name in example]
        case: Material = material(rubric, case_of(example), fields, answers)
        lines = [part if isinstance(part, str) else f"{part.label}: {_quoted(part.text)}" for part in case.parts]
        pieces.append("\n".join([f"Example {number}", *lines, f"reply: {_json(reply_of(rubric, example))}"]))
    return "\n\n".join(pieces)


def mistakes(rubric: Rubric, number: int, output: type[BaseModel]) -> Found:
    """What is wrong with example `number` (from 0): fields, shape of the reply, quotes, labels."""
    example, where = rubric.examples[number], ("examples", number)
    allowed = (
        (*CASE_FIELDS, "reply")
        if rubric.mode not in ("ordinal", "binary", "checklist")
        else (*CASE_FIELDS, "reply", *SHORT_FIELDS)
    )
    for key in example:
        if key not in allowed:
            yield (
                (*where, key),
                f'unknown key "{key}" in an example; allowed: {", ".join(allowed)}{did_you_mean(key, allowed)}',
            )
    if not isinstance(example.get("reply", {}), Mapping):
        yield (*where, "reply"), "reply must be the JSON object that the judge should return"
        return
    if "reply" not in example and rubric.mode not in ("ordinal", "binary", "checklist"):
        yield (
            where,
            f"an example of a {rubric.mode} rubric needs `reply`, the complete JSON that the judge should return",
        )
        return
    if any(
        not isinstance(example.get(key, kind()), kind)
        for key, kind in (("checks", dict), ("quotes", list), ("errors", list))
    ):
        yield where, "checks must be `name: yes|no`, quotes and errors must be lists"
        return
    if "reply" not in example and rubric.mode == "checklist":
        wrong = list(_check_names(rubric, example.get("checks") or {}, where))
        yield from wrong
        if wrong:
            return
    try:
        case = case_of(example)
        output.model_validate_json(json.dumps(reply_of(rubric, example)))
    except ValidationError as error:
        for one in error.errors():
            path = ".".join(str(part) for part in one["loc"])
            yield (
                (*where, "reply", *one["loc"]),
                f"the reply does not fit: {path}: {one['msg']} (seen: {one['input']!r})",
            )
        return
    except ValueError as error:
        yield where, str(error)
        return
    yield from _quotes(example, reply_of(rubric, example), case, where)
    yield from _labels(rubric, example, where)


def level_of(rubric: Rubric, example: Mapping[str, Any]) -> int | None:
    """The level that an example's reply ends with, or None."""
    reply = reply_of(rubric, example)
    return reply.get("level", reply.get("holistic_score"))


def _quotes(example: Mapping[str, Any], reply: Mapping[str, Any], case: _Item, where: Where) -> Found:
    answer = " ".join(str(example.get(name) or "") for name in ("answer", "first", "second"))
    passages = {passage.id: passage.text for passage in case.contexts or ()}
    everything = "\n".join([case.question, answer, *passages.values(), *(case.reference or ()), case.notes or ""])
    for place, quote in enumerate(example.get("quotes") or []):
        if str(quote) not in everything:
            yield (
                (*where, "quotes", place),
                f'the quote "{quote}" does not stand in the example: copy it letter by letter',
            )
    for path, entry in _entries(reply, (*where, "reply")):
        for key in _QUOTES_FROM_ANSWER:
            if isinstance(entry.get(key), str) and entry[key] not in answer:
                yield (*path, key), f'{key} "{entry[key]}" does not stand in the answer of the example'
        if isinstance(entry.get("quote"), str):
            source = passages.get(str(entry.get("context_id", entry.get("id"))), everything)
            if entry["quote"] not in source:
                yield (*path, "quote"), f'the quote "{entry["quote"]}" does not stand in the example\'s material'
        if "context_id" in entry and entry["context_id"] not in passages:
            yield (*path, "context_id"), f'context_id "{entry["context_id"]}" is no passage of the example'


def _labels(rubric: Rubric, example: Mapping[str, Any], where: Where) -> Found:
    known = tuple(rubric.errors)
    used = [((*where, "errors", n), label) for n, label in enumerate(example.get("errors") or [])]
    used += [
        ((*path, "error"), e["error"])
        for path, e in _entries(reply_of(rubric, example), (*where, "reply"))
        if e.get("error")
    ]
    for path, label in used:
        if label not in known:
            yield path, f'error label "{label}" is not declared under errors{did_you_mean(str(label), known)}'
    if rubric.mode == "checklist" and "reply" in example:
        found = [check["id"] for check in example["reply"]["checks"]]
        if found != [check.id for check in rubric.checks]:
            yield (
                (*where, "reply", "checks"),
                f"the reply must answer each check once and in order; seen: {', '.join(found)}",
            )


def _check_names(rubric: Rubric, given: Mapping[str, Any], where: Where) -> Found:
    names = [check.id for check in rubric.checks]
    for name in given:
        if name not in names:
            yield (
                (*where, "checks", name),
                f'check "{name}" is not declared under checks{did_you_mean(name, names)}',
            )
    missing = [name for name in names if name not in given]
    if missing:
        yield where, f"the example gives no verdict for {', '.join(missing)}: add it to its checks"


def _entries(value: Any, path: Where) -> Iterator[tuple[Where, Mapping[str, Any]]]:
    if isinstance(value, Mapping):
        yield path, value
        for key, inner in value.items():
            yield from _entries(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _entries(inner, (*path, place))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
