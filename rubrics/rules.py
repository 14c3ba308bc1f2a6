"""The rules for a rubric whose shape is sound: each is a small function that yields (where, what is wrong)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from re import fullmatch

from rubrics import examples, templating
from rubrics.blocks import SHOWABLE, WITHHELD
from rubrics.frontmatter import Where, did_you_mean
from rubrics.model import Mode, Rubric
from rubrics.outputs import output_model

ID_RULE = "2 to 41 characters a-z, 0-9 and _, beginning with a letter"
ID = r"[a-z][a-z0-9_]{1,40}"
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
MAX_LEVELS = 7

Found = Iterator[tuple[Where, str]]


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
RULES: tuple[tuple[Callable[[Rubric], Found], set[str]], ...] = (
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


def balance(rubric: Rubric) -> Iterator[str]:
    levels = [examples.level_of(rubric, example) for example in rubric.examples]
    passed = [level >= rubric.scale.pass_at for level in levels if level is not None]
    if rubric.mode == "pairwise":
        verdicts = {example.get("reply", {}).get("verdict") for example in rubric.examples}
        if not {"first", "second"} <= verdicts:
            yield "no balanced examples: give one where the first reply is better and one where the second is"
    elif len(set(passed)) < 2:
        seen = "none" if not passed else "only passing ones" if passed[0] else "only failing ones"
        yield f"examples: at least one that passes and one that fails helps the judge; seen: {seen}"
