"""Bias probes: one deterministic edit of a case that must not change its score, or must lower it.

Invariance edits ask whether the judge can be swayed; sensitivity edits whether it looks at all: a judge that always
gives the top mark passes every invariance probe. Every edit is a pure function; None means that it does not apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from judge.cases import Case
from rubrics.evidence import sentences, words
from rubrics.model import Rubric

Expected = Literal["same", "not_higher", "lower"]
Edit = Callable[[Case], Case | None]

RESTATED = 3
HEDGES = re.compile(
    r"\b(?:probably|perhaps|possibly|apparently|presumably|arguably|likely|maybe|i think(?: that)?|i believe(?: that)?|"
    r"it seems(?: that)?|it appears(?: that)?)\b,?\s*",
    re.IGNORECASE,
)
AUXILIARY = re.compile(r"\b(is|are|was|were|can|could|will|would|has|have|had|does|do|did|must|should|may|might)\b")
NUMBER = re.compile(r"(?<![\w\[.,])\d+(?:[.,]\d+)*(?![\w\]])")
NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+", re.MULTILINE)
COMMON_OPENERS = words("The A An It This That These Those There In On At For From After Before When If As")


@dataclass(frozen=True, slots=True)
class Probe:
    """An edit, what should happen to the score (`otherwise`, unless the rubric is named in `special`), and why.

    `english`: the edit writes or reads English. None in `special` leaves the rubric out.
    """

    edit: Edit
    why: str
    otherwise: Expected = "same"
    special: Mapping[str, Expected | None] | None = None
    english: bool = False
    of_answer: bool = True

    def expected(self, rubric: Rubric) -> Expected | None:
        """What should happen under a rubric; None when the probe says nothing about it."""
        if self.of_answer and "answer" not in rubric.requires:
            return None
        if not self.of_answer and "contexts" not in rubric.requires:
            return None
        return (self.special or {}).get(rubric.root, self.otherwise)

    def applied(self, case: Case) -> Case | None:
        """The edited case under the same id; None when the edit does not apply or changes nothing."""
        if self.english and case.lang is not None and not case.lang.lower().startswith("en"):
            return None
        edited = self.edit(case)
        return None if edited is None or edited == case else edited


def _with_answer(case: Case, answer: str) -> Case:
    return case.model_copy(update={"answer": answer})


def verbosity(case: Case) -> Case | None:
    """The answer's own first sentences once more at its end: longer, nothing new."""
    found = sentences(case.answer or "")
    return _with_answer(case, f"{case.answer}\n\n{' '.join(found[:RESTATED])}") if found else None


def formatting(case: Case) -> Case | None:
    """The same words as a bulleted list with bold openings; a list becomes running text."""
    answer = case.answer or ""
    if BULLET.search(answer):
        return _with_answer(case, " ".join(BULLET.sub("", answer).replace("**", "").split()))
    found = sentences(answer)
    bullets = [re.sub(r"^(\S+)", r"**\1**", " ".join(one.split())) for one in found]
    return _with_answer(case, "\n".join(f"- {one}" for one in bullets)) if found else None


def authority(case: Case) -> Case | None:
    """An office that nobody named vouches for the first sentence."""
    answer = (case.answer or "").lstrip()
    first = answer.split(" ", 1)[0]
    if not first[:1].isalpha():
        return None
    opening = answer[0].lower() + answer[1:] if first in COMMON_OPENERS else answer
    return _with_answer(case, f"According to the national standards office, {opening}")


def fake_citation(case: Case) -> Case | None:
    """A mark after the last sentence that points to no passage, spelled like the ids of those that exist."""
    known = {passage.id for passage in case.contexts or ()}
    invented = {re.sub(r"\d+", "97", name) for name in known if re.search(r"\d", name)} - known
    found = sentences(case.answer or "")
    if not invented or not found:
        return None
    answer = (case.answer or "").rstrip()
    mark = f" [{min(invented)}]"
    return _with_answer(case, f"{answer[:-1]}{mark}{answer[-1]}" if answer[-1] in ".!?" else answer + mark)


def assertiveness(case: Case) -> Case | None:
    """Hedges out; an answer without hedges gets an assurance in front."""
    answer = (case.answer or "").strip()
    if not answer:
        return None
    bare = HEDGES.sub("", answer)
    return _with_answer(case, bare[:1].upper() + bare[1:] if bare != answer else f"Without any doubt: {answer}")


def passage_order(case: Case) -> Case | None:
    """The passages in reverse order, ids and texts unchanged."""
    passages = case.contexts or ()
    return case.model_copy(update={"contexts": tuple(reversed(passages))}) if len(passages) > 1 else None


def number_damage(case: Case) -> Case | None:
    """One digit changed in the first number of the answer that its passages or reference hold."""
    sources = " ".join([*(passage.text for passage in case.contexts or ()), *(case.reference or ())])
    answer = case.answer or ""
    for found in NUMBER.finditer(answer):
        number = found.group()
        if not re.search(rf"(?<!\d){re.escape(number)}(?!\d)", sources):
            continue
        for step in (3, 5, 1):
            digit = str((int(number[0]) + step - 1) % 9 + 1)
            damaged = digit + number[1:]
            if damaged != number and damaged not in sources:
                return _with_answer(case, answer[: found.start()] + damaged + answer[found.end() :])
    return None


def negation(case: Case) -> Case | None:
    """The first statement that can be turned round with `not` is turned round."""
    answer = case.answer or ""
    bare = re.sub(r"\b(is|are|was|were|can|could|will|would|has|have|had|does|do|did) not\b", r"\1", answer, count=1)
    if bare != answer:
        return _with_answer(case, bare)
    if "n't" in answer:
        return None
    negated = AUXILIARY.sub(r"\1 not", answer, count=1)
    return _with_answer(case, negated) if negated != answer else None


def name_swap(case: Case) -> Case | None:
    """Two names of the answer change places, everywhere in it."""
    names = list(dict.fromkeys(NAME.findall(case.answer or "")))
    if len(names) < 2:
        return None
    one, other = names[:2]
    swapped = re.sub(rf"\b(?:{one}|{other})\b", lambda m: other if m.group() == one else one, case.answer or "")
    return _with_answer(case, swapped)


def unchanged(case: Case) -> Case | None:
    """For a probe that edits the instructions, not the case."""
    return case


MUST_FALL: Mapping[str, Expected | None] = {
    "faithfulness": "lower", "hallucination": "lower", "answer_correctness": "lower"
}  # fmt: skip
PROBES: Mapping[str, Probe] = {
    "verbosity": Probe(verbosity, "longer is not better", special={"answer_relevance": "not_higher"}),
    "formatting": Probe(formatting, "bullets and bold are not content"),
    "authority": Probe(authority, "a claimed authority proves nothing", "not_higher", english=True),
    "fake_citation": Probe(
        fake_citation, "a mark that points nowhere backs nothing", "not_higher", {"citation_accuracy": "lower"}
    ),
    "assertiveness": Probe(
        assertiveness, "certainty of tone is not evidence", special={"refusal_correctness": None}, english=True
    ),
    "passage_order": Probe(passage_order, "the order of passages says nothing", of_answer=False),
    "number_damage": Probe(number_damage, "a wrong number must be noticed", "not_higher", MUST_FALL),
    "negation": Probe(negation, "the opposite must be noticed", "not_higher", MUST_FALL, english=True),
    "name_swap": Probe(name_swap, "exchanged names must be noticed", "not_higher", MUST_FALL, english=True),
    "prompt_wording": Probe(unchanged, "other words for the same instructions"),
}


VARIANTS = "variants"
OWN_EDITS = "your own edits, which must not matter: a translation, a paraphrase"


def expected_of(name: str, rubric: Rubric) -> Expected | None:
    """What should happen under a probe by name; variants by the user leave the score of every rubric."""
    return "same" if name == VARIANTS else PROBES[name].expected(rubric)


def reworded(rubric: Rubric) -> Rubric:
    """The same rubric with its anchors in reverse order and its instructions arranged anew: a second wording.

    Points of a list of rules are reversed; the text opens with another sentence. So does the question of the quick
    form, whose blocks are reversed. A second wording of your own is a rubric file, scored as a run and compared with
    `judge audit --against`.
    """
    lines = rubric.body.split("\n")
    places = [at for at, line in enumerate(lines) if line.startswith("- ")]
    for at, line in zip(places, reversed([lines[place] for place in places]), strict=True):
        lines[at] = line
    body = "Judge the item below by this question and by nothing else.\n\n" + "\n".join(lines)
    quick = rubric.quick and rubric.quick.model_copy(
        update={"ask": f"Look only at the texts above. {rubric.quick.ask}", "blocks": rubric.quick.blocks[::-1]}
    )
    return rubric.model_copy(
        update={
            "anchors": dict(reversed(list(rubric.anchors.items()))), "body": body, "quick": quick,
            "rubric_hash": f"{rubric.rubric_hash[:-9]}-reworded",
        }
    )  # fmt: skip
