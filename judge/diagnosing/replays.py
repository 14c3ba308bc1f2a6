"""Replays read back: the same cases answered again with other passages, and what that settles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.cases import Case, Context
from judge.diagnosing.counterfactuals import REPLAYS, replayed
from judge.diagnosing.examined import Examined
from judge.diagnosing.outcomes import OUTCOMES
from judge.diagnosing.verdicts import share
from judge.errors import UsageError


@dataclass(frozen=True, slots=True)
class Settles:
    """What a replay asks of each case, and the two things its answer can say."""

    question: str
    if_yes: str
    if_no: str
    do_yes: str
    do_no: str


SETTLES = {
    "oracle-context": Settles(
        "pass with the labelled passages only", "noise or order of the context", "the generator",
        "rerank or cut k", "tighten the grounding instruction, ask for every part, or take a stronger model",
    ),
    "no-context": Settles(
        "still right without any passage", "the model answers from memory", "the passages were used after all",
        "require citations and tighten grounding; do not count these answers as retrieval's",
        "check the faithfulness judgments of these cases (judge show)",
    ),
    "cut-k": Settles(
        "pass with fewer passages", "too many passages", "the number of passages is not it", "cut k",
        "keep k and try the oracle context",
    ),
    "rerank": Settles(
        "pass with the labelled passages first", "the order of the passages", "the order is not it",
        "add a reranker", "look at the generator",
    ),
}  # fmt: skip


def named(given: Sequence[str]) -> dict[str, str]:
    """["oracle-context=RUN2"] as {"oracle-context": "RUN2"}; UsageError for another name or form."""
    made = {}
    for text in given:
        name, equals, run = text.partition("=")
        if not equals or not run or name not in REPLAYS:
            raise UsageError(f"--replay {text!r}: give NAME=RUN with NAME one of {', '.join(REPLAYS)}")
        made[name] = run
    return made


def read_back(
    name: str, before: Sequence[Examined], after: Sequence[Examined], best_k: int | None = None
) -> dict[str, Any]:
    """What a replay settles: of the cases that name it and were answered again, how many are now right.

    A case is settled when its new answer is decided: for no-context when correctness is known, else when its outcome
    is; a case that declined before also when it answers now. `cases`: id -> yes, no or undecided. `no_replay`: cases
    that stand in the run with another question or other passages than the replay's; they settle nothing. `best_k`: the
    k' of cut-k.
    """
    asked = {case.case.id: case for case in before if name in OUTCOMES[case.outcome].replays}
    again = {case.case.id: case for case in after}
    there = [case_id for case_id in asked if case_id in again]
    other = [c for c in there if not _is_replay(name, asked[c].case, again[c].case, best_k)]
    answers = {c: _answer(name, asked[c], again[c]) for c in there if c not in set(other)}
    found = share(list(answers.values()), [" ".join(asked[c].case.question.casefold().split()) for c in answers])
    settled = {case: {True: "yes", False: "no", None: "undecided"}[answer] for case, answer in answers.items()}
    return {
        "replay": name, "asked": len(asked), "answered": len(answers), "yes": found.to_dict(),
        "question": SETTLES[name].question, "cases": settled, "no_replay": other,
        "sentence": _sentence(name, len(asked), answers) + _left_out(other),
    }  # fmt: skip


def _is_replay(name: str, before: Case, after: Case, best_k: int | None) -> bool:
    """Whether a case is the other one with the passages of the replay; where those cannot be built, with other ones."""
    if before.question.split() != after.question.split():
        return False
    planned = replayed(before, name, best_k)
    if isinstance(planned, str):
        return _texts(after.contexts, name) != _texts(before.contexts, name)
    return _texts(after.contexts, name) == _texts(planned, name)


def _texts(passages: Sequence[Context] | None, name: str) -> list[str]:
    """The passages without regard to spacing; their order counts only where it is what the replay changes."""
    texts = [" ".join(passage.text.split()) for passage in passages or ()]
    return texts if name == "rerank" else sorted(texts)


def _left_out(other: Sequence[str]) -> str:
    if not other:
        return ""
    named = ", ".join(other[:5]) + (" ..." if len(other) > 5 else "")
    return f"; {len(other)} left out, their question or passages are not those of the replay's file ({named})"


def _answer(name: str, before: Examined, after: Examined) -> bool | None:
    if after.side("empty") == "yes":
        return None
    if name == "no-context":
        if after.side("refused") == "yes":
            return False
        return {"high": True, "low": False}.get(after.side("correct"))
    if not after.decided:
        return True if before.outcome == "over_refusal" and after.side("refused") == "no" else None
    return OUTCOMES[after.outcome].good


def _sentence(name: str, asked: int, answers: Mapping[str, bool | None]) -> str:
    words = SETTLES[name]
    yes, no = (sum(answer is wanted for answer in answers.values()) for wanted in (True, False))
    open_ = len(answers) - yes - no
    if not answers:
        return f"none of the {asked} cases that this replay is for was answered again: fill {name}.jsonl and score it"
    if not yes + no:
        return f"{len(answers)} of {asked} cases were answered again, none is decided: judge them by the same rubrics"
    parts = [f"{yes} of {yes + no} {words.question}"]
    if yes:
        parts.append(f"for these {yes} it is {words.if_yes}: {words.do_yes}")
    if no:
        parts.append(f"for the other {no} it is {words.if_no}: {words.do_no}")
    if open_ or len(answers) < asked:
        parts.append(f"{open_} undecided, {asked - len(answers)} not answered again")
    return "; ".join(parts)
