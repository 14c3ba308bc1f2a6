"""A rubric and a case become one call to the judge: the Prompt value of full mode.

The system message is one constant. The user message holds the rubric (instructions, reply guide, examples), rendered
once per rubric, then the case in blocks between lines that carry a keyed mark, then one closing line of ours. Item text
is joined in by concatenation only: it never passes a template or a format string.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from pydantic import BaseModel

from rubrics.blocks import Block, Material, fields_shown, flags_of, material
from rubrics.examples import shown as shown_examples
from rubrics.guides import CLOSING, PAIR, RATE, SYSTEM, guide
from rubrics.model import Item, Layout, Mode, Prompt, Rubric
from rubrics.outputs import output_model, pair_output_model, ratings_output_model
from rubrics.templating import flags_used, render_body

Form = Literal[Mode, "ratings"]

RENDERER = "1"
_MAX_TOKENS: dict[Form, int] = {"ordinal": 1024, "binary": 1024, "matrix": 1024, "pairwise": 2048, "ratings": 2048}


@dataclass(frozen=True, slots=True)
class _Instructions:
    """The part of a prompt that is the same for all cases with the same fields present."""

    text: str
    fields: frozenset[str]
    prompt_hash: str
    output: type[BaseModel]


_rendered: dict[tuple[int, frozenset[str], Layout, Form], tuple[Rubric, _Instructions]] = {}


def render(rubric: Rubric, item: Item, *, secret: bytes, layout: Layout = "rubric_first") -> Prompt:
    """The call that judges one case by one pointwise rubric.

    Deterministic: the same rubric, item and secret give the same bytes. `prompt_hash` covers what reaches the model and
    is the same for all items. The keyed mark occurs 1 + 2 x blocks times and in no text of the item. Absent fields give
    no block; an absent answer gives an empty one. Errors: ValueError for a pairwise rubric (use `render_pair`).
    """
    if rubric.mode == "pairwise":
        raise ValueError(f"{rubric.id} compares two answers: use render_pair")
    instructions = _instructions(rubric, flags_of(item), layout, rubric.mode)
    case = material(rubric, item, instructions.fields)
    return _prompt(instructions, case, _mark(item, (), secret), layout, rubric.mode)


def render_pair(
    rubric: Rubric,
    item: Item,
    first_answer: str,
    second_answer: str,
    *,
    secret: bytes,
    layout: Layout = "rubric_first",
    ask: Literal["verdict", "ratings"] = "verdict",
) -> Prompt:
    """The call that compares two answers to one question, shown as first and second; call it again with them swapped.

    `ask` for a verdict (which is better), or for ratings of both on the rubric's scale. A pairwise rubric's body is the
    criterion, for ratings with its described levels; of a pointwise rubric the title and the levels are. The two
    orders differ in nothing but the two blocks: mark, instructions and prompt_hash are the same.
    Errors: ValueError for a rubric that judges passages.
    """
    if rubric.mode == "passages":
        raise ValueError(f"{rubric.id} judges the passages, not the answers: it cannot compare two answers")
    form: Form = "pairwise" if ask == "verdict" else "ratings"
    instructions = _instructions(rubric, flags_of(item), layout, form)
    answers = (first_answer, second_answer)
    case = material(rubric, item, instructions.fields, (("first reply", first_answer), ("second reply", second_answer)))
    return _prompt(instructions, case, _mark(item, sorted(answers), secret), layout, form)


def instructions_text(rubric: Rubric, flags: frozenset[str] = frozenset()) -> str:
    """The instructions as the judge sees them for an item that has what `flags` name (has_reference, ...)."""
    return _instructions(rubric, flags, "rubric_first", rubric.mode).text


def _instructions(rubric: Rubric, flags: frozenset[str], layout: Layout, form: Form) -> _Instructions:
    key = (id(rubric), flags, layout, form)
    known = _rendered.get(key)
    if known is not None and known[0] is rubric:
        return known[1]
    fields = fields_shown(rubric, "pairwise" if form == "ratings" else form)
    asked = sorted(flags_used(rubric.body))
    variants = [frozenset(some) for size in range(len(asked) + 1) for some in combinations(asked, size)]
    texts = {",".join(sorted(some)): _text(rubric, some, form, fields) for some in variants}
    output = _output(rubric, form)
    reaches = [RENDERER, layout, "full", SYSTEM, CLOSING, texts, output.model_json_schema()]
    result = _Instructions(texts[",".join(sorted(flags & set(asked)))], fields, digest(reaches), output)
    if len(_rendered) > 1000:
        _rendered.clear()
    _rendered[key] = (rubric, result)
    return result


def _output(rubric: Rubric, form: Form) -> type[BaseModel]:
    if form == "ratings":
        return ratings_output_model(rubric)
    return pair_output_model() if form == "pairwise" else output_model(rubric)


def _text(rubric: Rubric, flags: frozenset[str], form: Form, fields: frozenset[str]) -> str:
    title = f"RUBRIC: {rubric.title}"
    if form == rubric.mode:
        body, pair = render_body(rubric, flags), PAIR if form == "pairwise" else ""
        parts = [title, body, pair, guide(rubric), shown_examples(rubric, fields)]
    else:
        body = render_body(rubric, flags) if rubric.mode == "pairwise" else ""
        levels = "\n".join(f"{level} - {text}" for level, text in sorted(rubric.anchors.items(), reverse=True))
        criterion = f"The criterion, as levels of one reply:\n{levels}"
        parts = [title, body, PAIR, RATE if form == "ratings" else "", criterion, guide(rubric, form)]
    return "\n\n".join(part for part in parts if part)


def _mark(item: Item, answers: Sequence[str], secret: bytes) -> str:
    """12 hex digits, keyed on secret and item: its author cannot guess them, a replay finds them again.

    Drawn again as long as they occur in a text of the item.
    """
    texts = [item.question, item.answer or "", item.notes or "", *(item.reference or ()), *answers]
    texts += [
        part for p in item.contexts or () for part in (p.id, p.text, p.title or "", p.author or "", str(p.year or ""))
    ]
    texts += [part for nugget in item.nuggets or () for part in (nugget.nugget, nugget.importance)]
    texts += [part for turn in item.history or () for part in (turn.role, turn.content)]
    content = "".join(f"{len(text)}:{text}" for text in texts).encode("utf-8", "surrogatepass")
    mark = hmac.digest(secret, content, "sha256").hex()[:12]
    while mark.encode() in content:
        mark = hmac.digest(secret, mark.encode() + content, "sha256").hex()[:12]
    return mark


def _prompt(instructions: _Instructions, case: Material, mark: str, layout: Layout, form: Form) -> Prompt:
    pieces = [f"CASE\nThe mark of this case is {mark}."]
    for part in case.parts:
        if isinstance(part, Block):
            pieces.append(f"=== BEGIN {part.label} | {mark} ===\n{part.text}\n=== END {part.label} | {mark} ===")
        else:
            pieces.append(part)
    shown = "\n\n".join(pieces)
    order = (instructions.text, shown) if layout == "rubric_first" else (shown, instructions.text)
    user = "\n\n".join((*order, CLOSING))
    return Prompt(
        messages=({"role": "system", "content": SYSTEM}, {"role": "user", "content": user}),
        prompt_hash=instructions.prompt_hash,
        output=instructions.output,
        marker=mark,
        aliases=case.aliases,
        sanitised=tuple(case.sanitised),
        max_tokens=_MAX_TOKENS.get(form, 4096),
    )


def digest(value: object) -> str:
    """SHA-256 of the canonical JSON of a value, as hex."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
