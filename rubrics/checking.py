"""The rules that a rubric file has to keep, each as a small function that yields (where, what is wrong).

All rules run, so that one reading shows every mistake; a rule is left out only when a setting that it reads is itself
broken or missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, pairwise
from re import fullmatch
from typing import Any

from pydantic import ValidationError

from rubrics import examples, templating
from rubrics.blocks import SHOWABLE, WITHHELD
from rubrics.frontmatter import Document, Problem, Where, did_you_mean, dotted
from rubrics.model import Check, Mode, Quick, QuickBlock, Rubric, Scale
from rubrics.outputs import output_model
from rubrics.sanitising import visible

ID_RULE = "2 to 41 characters a-z, 0-9 and _, beginning with a letter"
ID = r"[a-z][a-z0-9_]{1,40}"
SETTINGS = tuple(name for name in Rubric.model_fields if name not in ("body", "root", "rubric_hash"))
REQUIRED = ("id", "version", "title", "requires", "mode", "scale", "anchors")
NEEDS: dict[Mode, tuple[str, ...]] = {
    "claims": ("answer",),
    "sentences": ("question", "answer"),
    "nuggets": ("question", "answer"),
    "citations": ("answer", "contexts"),
    "passages": ("question", "contexts"),
    "facts": ("question", "answer", "reference"),
    "matrix": ("question", "answer", "contexts"),
    "pairwise": ("question",),
}
BANDED: tuple[Mode, ...] = ("checklist", "claims", "nuggets", "citations", "facts")
QUICK_SOURCES = ("question", "answer", "contexts", "reference", "unit")
MAX_TEXT, MAX_LEVELS = 2000, 7

Found = Iterator[tuple[Where, str]]


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
    for rule, reads in _RULES:
        if not broken & reads:
            for where, what in list(rule(rubric)):
                report(where, what)
    if not broken & {"mode", "scale", "checks", "errors", "examples"}:
        for warning in _balance(rubric):
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


# --- rules: rubric in, mistakes out ----------------------------------------------------------------------------------


def _names(rubric: Rubric) -> Found:
    named: list[tuple[Where, str]] = [(("id",), rubric.id), *((("errors", name), name) for name in rubric.errors)]
    named += [(("checks", n, "id"), check.id) for n, check in enumerate(rubric.checks)]
    for where, name in named:
        if not fullmatch(ID, name):
            yield where, f'"{name}" is not a usable name: {ID_RULE}'
    if not fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", rubric.language):
        yield ("language",), f'language is "{rubric.language}"; write a language code such as en, de or pt-BR'
    for key, text in (("version", rubric.version), ("title", rubric.title)):
        if not text.strip() or "\n" in text.strip():
            yield (key,), f"{key} must be one line of text"
    if rubric.weight < 0:
        yield ("weight",), f"weight is {rubric.weight}; it must be 0 or more"


def _requires(rubric: Rubric) -> Found:
    allowed = (*SHOWABLE[:-1], "answerable")
    for place, name in enumerate(rubric.requires):
        if name not in allowed:
            yield (
                ("requires", place),
                f'requires: "{name}" is no field of a case; allowed: {", ".join(allowed)}{did_you_mean(name, allowed)}',
            )
        if name in rubric.requires[:place]:
            yield ("requires", place), f'requires: "{name}" is listed twice'
    missing = [name for name in NEEDS.get(rubric.mode, ()) if name not in rubric.requires]
    if missing:
        yield ("requires",), f"mode {rubric.mode} needs {', '.join(missing)}: add it to requires"
    if not rubric.requires:
        yield ("requires",), "requires is empty: name the fields that the judge sees, such as [question, answer]"


def _withheld(rubric: Rubric) -> Found:
    hidden = WITHHELD.get(rubric.mode, frozenset())
    for place, name in enumerate(rubric.requires):
        if name in hidden:
            yield (
                ("requires", place),
                f"mode {rubric.mode} never shows {name}, so that it cannot leak into the verdict: remove it",
            )


def _scale(rubric: Rubric) -> Found:
    scale = rubric.scale
    count = scale.max - scale.min + 1
    if not 2 <= count <= MAX_LEVELS:
        yield ("scale",), f"scale {scale.min} to {scale.max} has {max(count, 0)} levels; a scale has 2 to {MAX_LEVELS}"
    elif not scale.min < scale.pass_at <= scale.max:
        yield ("scale",), f"scale.pass_at is {scale.pass_at}; it must lie above {scale.min} and not above {scale.max}"
    if rubric.mode == "binary" and count != 2:
        yield (
            ("scale",),
            f"mode binary needs two levels, such as {{min: 0, max: 1, pass_at: 1}}; seen: {scale.min} to {scale.max}",
        )


def _anchors(rubric: Rubric) -> Found:
    scale = rubric.scale
    if not 2 <= scale.max - scale.min + 1 <= MAX_LEVELS:
        return
    for level, text in rubric.anchors.items():
        if level not in scale.levels:
            yield ("anchors", str(level)), f"anchors: level {level} is not on the scale {scale.min} to {scale.max}"
        if not text.strip():
            yield ("anchors", str(level)), f"anchors: level {level} has no description"
    wanted = scale.levels if rubric.mode in ("ordinal", "binary") else (scale.min, scale.max)
    missing = [str(level) for level in wanted if level not in rubric.anchors]
    if missing:
        rule = "every level" if rubric.mode in ("ordinal", "binary") else "both ends of the scale"
        yield ("anchors",), f"anchors: {rule} must be described; missing: {', '.join(missing)}"


def _bands(rubric: Rubric) -> Found:
    scale, bands = rubric.scale, rubric.bands
    above = list(range(scale.min + 1, scale.max + 1))
    if rubric.mode not in BANDED:
        if bands:
            yield ("bands",), f"mode {rubric.mode} has no bands: remove them (modes with bands: {', '.join(BANDED)})"
        return
    if not bands:
        return
    if sorted(bands) != above:
        yield (
            ("bands",),
            f"bands must give the lowest share for each level but the lowest, {above}; seen: {sorted(bands)}",
        )
    for level, share in bands.items():
        if not 0 < share <= 1:
            yield (
                ("bands", str(level)),
                f"bands: the share of level {level} is {share}; it must lie above 0 and not above 1",
            )
    ordered = [bands[level] for level in sorted(bands)]
    if any(low >= high for low, high in pairwise(ordered)):
        yield ("bands",), f"bands must rise with the level; seen from low to high: {', '.join(map(str, ordered))}"


def _checks(rubric: Rubric) -> Found:
    if rubric.mode != "checklist":
        for key in ("checks", "core_no_caps_at"):
            if getattr(rubric, key):
                yield (key,), f"{key} is for mode checklist only; this rubric has mode {rubric.mode}"
        return
    if not rubric.checks:
        yield ("checks",), 'mode checklist needs checks: a list of {id: ..., ask: "...?"}'
    for place, check in enumerate(rubric.checks):
        if check.id in [other.id for other in rubric.checks[:place]]:
            yield ("checks", place, "id"), f'checks: the name "{check.id}" is used twice'
        if not check.ask.strip():
            yield ("checks", place, "ask"), f"checks: {check.id} asks nothing"
        if check.weight < 0:
            yield (
                ("checks", place, "weight"),
                f"checks: the weight of {check.id} is {check.weight}; it must be 0 or more",
            )
    if rubric.checks and not any(check.weight > 0 for check in rubric.checks):
        yield ("checks",), "checks: at least one weight must be above 0"
    cap = rubric.core_no_caps_at
    if cap is not None and cap not in range(rubric.scale.min, rubric.scale.max + 1):
        yield (
            ("core_no_caps_at",),
            f"core_no_caps_at is {cap}; it must be a level of the scale {rubric.scale.min} to {rubric.scale.max}",
        )
    if cap is not None and not any(check.core for check in rubric.checks):
        yield ("core_no_caps_at",), "core_no_caps_at has no effect: no check is marked `core: true`"


def _quick(rubric: Rubric) -> Found:
    quick = rubric.quick
    if quick is None:
        return
    if quick.good not in ("yes", "no"):
        yield ("quick", "good"), f'quick.good is "{quick.good}"; it must be "yes" or "no"'
    if not quick.ask.strip() or "yes or no" not in quick.ask:
        yield ("quick", "ask"), "quick.ask must be a question that ends in `Reply with one word: yes or no.`"
    if not 0 < quick.threshold < 1:
        yield ("quick", "threshold"), f"quick.threshold is {quick.threshold}; it must lie between 0 and 1"
    if (quick.unit == "cited_pair") != (quick.aggregate == "max_then_mean"):
        yield ("quick", "aggregate"), "quick.aggregate max_then_mean goes with unit cited_pair, and with no other"
    heads = [block.head for block in quick.blocks]
    if len(set(heads)) != len(heads) or not heads:
        yield ("quick", "blocks"), "quick.blocks must be a list of blocks with different heads"
    for place, block in enumerate(quick.blocks):
        where: Where = ("quick", "blocks", place)
        if not fullmatch(r"[A-Z][A-Z ]{0,30}", block.head) or block.head == "CHECK":
            yield (*where, "head"), f'quick: the head "{block.head}" must be capital letters, and not CHECK'
        wrong = [name for name in block.of if name not in QUICK_SOURCES]
        if wrong or not block.of:
            yield (
                (*where, "of"),
                f"quick: `of` must list some of {', '.join(QUICK_SOURCES)}; seen: {', '.join(wrong) or 'nothing'}",
            )
    used = {name for block in quick.blocks for name in block.of}
    if not used & ({"unit", "answer"} if quick.unit == "answer" else {"unit"}):
        yield ("quick", "blocks"), f"quick: no block shows the unit ({quick.unit}): add `unit` to one"


def _examples(rubric: Rubric) -> Found:
    output = output_model(rubric)
    for number in range(len(rubric.examples)):
        yield from examples.mistakes(rubric, number, output)


def _renders(rubric: Rubric) -> Found:
    asked = sorted(templating.flags_used(rubric.body))
    for size in range(len(asked) + 1):
        for flags in combinations(asked, size):
            try:
                templating.render_body(rubric, frozenset(flags))
            except ValueError as error:
                yield ("body",), f"the body cannot be rendered: {error}"
                return


_EVERYTHING = {
    "id",
    "version",
    "title",
    "requires",
    "mode",
    "scale",
    "anchors",
    "bands",
    "checks",
    "errors",
    "body",
    "quick",
}
_RULES: tuple[tuple[Callable[[Rubric], Found], set[str]], ...] = (
    (_names, {"id", "errors", "checks", "language", "version", "title", "weight"}),
    (_requires, {"requires", "mode"}),
    (_withheld, {"requires", "mode"}),
    (_scale, {"scale", "mode"}),
    (_anchors, {"scale", "anchors", "mode"}),
    (_bands, {"scale", "bands", "mode"}),
    (_checks, {"checks", "core_no_caps_at", "scale", "mode"}),
    (_quick, {"quick"}),
    (_examples, {"examples", "mode", "scale", "checks", "errors"}),
    (_renders, _EVERYTHING),
)


def _balance(rubric: Rubric) -> Iterator[str]:
    levels = [examples.level_of(rubric, example) for example in rubric.examples]
    passed = [level >= rubric.scale.pass_at for level in levels if level is not None]
    if rubric.mode == "pairwise":
        verdicts = {example.get("reply", {}).get("verdict") for example in rubric.examples}
        if not {"first", "second"} <= verdicts:
            yield "no balanced examples: give one where the first reply is better and one where the second is"
    elif len(set(passed)) < 2:
        seen = "none" if not passed else "only passing ones" if passed[0] else "only failing ones"
        yield f"examples: at least one that passes and one that fails helps the judge; seen: {seen}"
