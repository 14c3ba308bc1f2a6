"""What is wrong with a rubric file: shapes and characters here, then the rules of rubrics/rules.py.

All rules run, so that one reading shows every mistake; a rule is left out only when a setting that it reads is itself
broken or missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from rubrics import templating
from rubrics.frontmatter import Document, Problem, Where, did_you_mean, dotted
from rubrics.model import Check, Quick, QuickBlock, Rubric, Scale
from rubrics.rules import RULES, Found, balance
from rubrics.sanitising import visible

SETTINGS = tuple(name for name in Rubric.model_fields if name not in ("body", "root", "rubric_hash"))
REQUIRED = ("id", "version", "title", "requires", "mode", "scale", "anchors")
MAX_TEXT = 2000


def problems(
    document: Document, settings: Mapping[str, Any], body: str, root: str, rubric_hash: str
) -> tuple[Rubric | None, list[Problem]]:
    """The rubric that (merged) settings and body make, and everything that is wrong with them.

    The rubric is None when there is an error; with warnings only it is usable.
    """
    found = [*document.problems]
    broken: set[str] = set()

    def report(where: Where, what: str) -> None:
        broken.add(str(where[0]) if where else "")
        found.append(Problem(document.line(_own(document, where)), what))

    for where, what in (*_shapes(settings), *_hidden(settings)):
        report(where, what)
    for line, what in _body(body):
        found.append(Problem(document.body_line + line - 1 if document.body.strip() else document.body_line - 1, what))
        broken.add("body")
    whole = _stand_in(settings, broken) | {"body": body, "root": root, "rubric_hash": rubric_hash}
    try:
        rubric = Rubric.model_validate_json(json.dumps(whole), strict=True)
    except ValidationError as error:  # a shape that only shows once the rest stands; report and stop
        found += [Problem(document.line(tuple(one["loc"])), one["msg"]) for one in error.errors()]
        return None, _sorted(found)
    for rule, reads in RULES:
        if not broken & reads:
            for where, what in list(rule(rubric)):
                report(where, what)
    if not broken & {"mode", "scale", "checks", "errors", "examples"}:
        for warning in balance(rubric):
            found.append(Problem(document.line(("examples",)), warning, "warning"))
    failed = any(problem.severity == "error" for problem in found)
    return None if failed else rubric, _sorted(found)


def _own(document: Document, where: Where) -> Where:
    """Where to point at: an inherited setting is reported at the line of `extends`."""
    return where if where[:1] in document.lines or ("extends",) not in document.lines else ("extends",)


def _sorted(found: list[Problem]) -> list[Problem]:
    return sorted(dict.fromkeys(found), key=lambda problem: (problem.line, problem.severity, problem.what))


def _shapes(settings: Mapping[str, Any]) -> Found:
    """Unknown and missing keys, wrong types: what pydantic sees, in plain words."""
    for key in REQUIRED:
        if key not in settings:
            yield (key,), f"{key} is missing: every rubric needs {', '.join(REQUIRED)} (or `extends`)"
    for key in settings:
        if key not in SETTINGS:
            yield (key,), f'unknown key "{key}"; allowed: {", ".join(SETTINGS)}{did_you_mean(key, SETTINGS)}'
    known = {key: value for key, value in settings.items() if key in SETTINGS}
    filled = {key: value for key, value in _PLACEHOLDERS.items() if key not in known}
    try:
        Rubric.model_validate_json(
            json.dumps(known | filled | {"body": "", "root": "", "rubric_hash": ""}), strict=True
        )
    except ValidationError as error:
        for one in error.errors():
            where = tuple(part for part in one["loc"] if part != "[key]")
            yield where, _plainly(where, dict(one))


def _plainly(where: Where, error: Mapping[str, Any]) -> str:
    name, value = dotted(where), error["input"]
    if error["type"] == "extra_forbidden":
        models: dict[Any, Any] = {"scale": Scale, "checks": Check, "quick": QuickBlock if "blocks" in where else Quick}
        allowed = tuple(models[where[0]].model_fields)
        return f"{name}: unknown key; allowed: {', '.join(allowed)}{did_you_mean(str(where[-1]), allowed)}"
    if error["type"] == "missing":
        return f"{name} is missing"
    if error["type"] == "string_type" and isinstance(value, bool):
        hint = 'YAML reads yes, no, on and off as true and false; put the word in quotes, such as "no"'
        return f"{name} must be text but is {str(value).lower()}: {hint}"
    if error["type"] == "string_type" and isinstance(value, int | float):
        return f'{name} must be text but is the number {value}: put it in quotes, "{value}"'
    if error["type"] == "literal_error":
        expected = error["ctx"]["expected"].replace("'", "")
        near = did_you_mean(str(value), expected.replace(" or ", ", ").split(", "))
        return f'{name} is "{value}"; allowed: {expected}{near}'
    shown = json.dumps(value, ensure_ascii=False)
    return f"{name}: {error['msg'].lower()} (seen: {shown if len(shown) < 80 else shown[:77] + '...'})"


def _hidden(settings: Mapping[str, Any]) -> Found:
    """Hidden characters, chat-template tokens and overlong texts in the settings, examples included."""
    for where, text in _texts(settings, ()):
        _, log = visible(text)
        if log:
            yield (
                where,
                f"{dotted(where)} holds characters or chat tokens that must not reach a prompt: {', '.join(log)}",
            )
        if len(text) > MAX_TEXT and where[0] != "examples":
            yield where, f"{dotted(where)} has {len(text)} characters; at most {MAX_TEXT} are allowed"
    for key in templating.LISTS:
        value = settings.get(key)
        if isinstance(value, list | dict) and len(value) > templating.MAX_ENTRIES:
            yield (key,), f"{key} has {len(value)} entries; at most {templating.MAX_ENTRIES} are allowed"


def _texts(value: Any, where: Where) -> Iterator[tuple[Where, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, (*where, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _texts(inner, (*where, place))


def _body(body: str) -> Iterator[tuple[int, str]]:
    if not body.strip():
        yield 1, "the body is empty: write the instructions for the judge after the second `---`"
        return
    yield from templating.mistakes(body)
    for number, line in enumerate(body.split("\n"), start=1):
        _, log = visible(line)
        if log:
            yield number, f"the line holds characters or chat tokens that must not reach a prompt: {', '.join(log)}"


_PLACEHOLDERS: dict[str, Any] = {
    "id": "placeholder",
    "version": "0",
    "title": "placeholder",
    "requires": ["question", "answer"],
    "mode": "claims",
    "scale": {"min": 1, "max": 5, "pass_at": 4},
    "anchors": {"5": "good", "1": "bad"},
}


def _stand_in(settings: Mapping[str, Any], broken: set[str]) -> dict[str, Any]:
    sound = {key: value for key, value in settings.items() if key in SETTINGS and key not in broken}
    return {key: value for key, value in _PLACEHOLDERS.items() if key not in sound} | sound
