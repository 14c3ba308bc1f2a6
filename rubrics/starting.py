"""A commented first file for a user's own rubric, for every mode; it passes `check` as it stands."""

from __future__ import annotations

from re import fullmatch

from rubrics.frontmatter import did_you_mean
from rubrics.model import Mode, RubricError
from rubrics.rules import ID, ID_RULE

_PARENTS: dict[Mode, str] = {
    "claims": "faithfulness",
    "sentences": "answer_relevance",
    "nuggets": "completeness",
    "citations": "citation_accuracy",
    "passages": "context_relevance",
    "facts": "answer_correctness",
    "matrix": "refusal_correctness",
    "pairwise": "preference",
}

_HEAD = """\
---
id: {id:<23} # the same as the file's name
version: 0.1.0              # for people; results are tied to a hash of the whole file
title: {title}
"""

_EXTENDING = """\
# Everything that is not given here comes from the bundled rubric {parent} (`judge rubrics show {parent}`).
extends: {parent}
mode: {mode}                # what the judge returns; the score map comes with it
# language: en              # language of the instructions; answers may be in any
# weight: 1                 # share in a combined score; 0 = report only
# scale: {{min: 1, max: 5, pass_at: 4}}       # a new scale needs new anchors (and bands, where the rubric has them)
# anchors:                  # what the levels mean; both ends at least
#   5: "..."
#   1: "..."
# errors:                   # labels that the judge may attach to what is wrong
#   my_label: "..."
---
"""

_OWN = """\
language: en                # language of the instructions; answers may be in any
requires: [question, answer]  # what the judge sees, of: question, answer, contexts, reference, notes, nuggets
mode: {mode}
scale: {scale}
weight: 1                   # share in a combined score; 0 = report only
on_refusal: undefined       # what an answer that only declines gets: undefined | score | lowest
anchors:
{anchors}
{extra}examples:                   # two to four, passing and failing, about other topics than your cases
  - question: "Why was I charged twice?"
    answer: "Sorry about that. The first charge is a hold of your bank and disappears within three days."
    {good}
    reason: "Friendly, and it says what happens next."
  - question: "Why was I charged twice?"
    answer: "Read the terms."
    {bad}
    reason: "Brusque, and no help. An answer's own praise of itself would not change that."
---
You rate the tone of an answer from customer support. Whether it is true is not your concern here.

{list}
"""

_LEVELS = "{% for level, text in rubric.anchors.items() %}{{ level }} - {{ text }}\n{% endfor %}"
_CHECKS = "{% for check in rubric.checks %}- {{ check.id }}: {{ check.ask }}\n{% endfor %}\nLevels\n" + _LEVELS
_FIVE = """\
  5: Friendly and clear throughout.
  4: Friendly; one phrase is stiff.
  3: Neutral.
  2: Stiff or impatient in places.
  1: Brusque or blaming."""
_TWO = """\
  1: Friendly and clear enough to send.
  0: Must not be sent as it is."""
_OWN_CHECKS = """\
checks:                     # yes/no questions; the score is the share of weight answered yes, mapped by bands
  - {id: friendly, ask: "Is the answer friendly?", weight: 2, core: true}
  - {id: next_step, ask: "Does it say what happens next?", weight: 1}
bands: {5: 0.95, 4: 0.75, 3: 0.5, 2: 0.2}   # lowest share for each level
core_no_caps_at: 2          # a core check answered no allows this level at most
"""


def starter(id: str, mode: str) -> str:
    """The text of a first rubric file. RubricError for an unusable id or an unknown mode."""
    if not fullmatch(ID, id):
        raise RubricError([f'"{id}" is not a usable id: {ID_RULE}'])
    modes = ("ordinal", "binary", "checklist", *_PARENTS)
    if mode not in modes:
        raise RubricError([f'unknown mode "{mode}"; choose {", ".join(modes)}{did_you_mean(mode, modes)}'])
    head = _HEAD.format(id=id, title=id.replace("_", " ").capitalize())
    for name, parent in _PARENTS.items():
        if name == mode:
            return head + _EXTENDING.format(parent=parent, mode=mode)
    five = {"scale": "{min: 1, max: 5, pass_at: 4}", "anchors": _FIVE, "list": _LEVELS, "extra": ""}
    parts = {
        "ordinal": five | {"good": "level: 5", "bad": "level: 1"},
        "binary": five
        | {"scale": "{min: 0, max: 1, pass_at: 1}", "anchors": _TWO, "good": "level: 1", "bad": "level: 0"},
        "checklist": five
        | {
            "extra": _OWN_CHECKS,
            "list": _CHECKS,
            "good": "checks: {friendly: yes, next_step: yes}",
            "bad": "checks: {friendly: no, next_step: no}",
        },
    }[mode]
    return head + _OWN.format(mode=mode, **parts)
