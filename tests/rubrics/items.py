"""Small cases for the rubric tests: plain values with the attributes of `rubrics.Item`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "rubrics"
ATTACKS = [json.loads(line) for line in (DATA / "attacks.jsonl").read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True)
class Text:
    id: str
    text: str
    title: str | None = None
    author: str | None = None
    year: int | None = None


@dataclass(frozen=True)
class Point:
    nugget: str
    importance: str = "vital"


@dataclass(frozen=True)
class Said:
    role: str
    content: str


@dataclass(frozen=True)
class Case:
    id: str = "case"
    question: str = "How long does the kiln stay hot?"
    answer: str | None = "Nine hours [d1]. It burns ash wood."
    contexts: tuple[Text, ...] | None = (
        Text("d1", "The kiln stays hot for nine hours."),
        Text("d2", "It was built in 1902."),
    )
    reference: tuple[str, ...] | None = ("Nine hours.",)
    notes: str | None = None
    nuggets: tuple[Point, ...] | None = None
    answerable: str | None = None
    history: tuple[Said, ...] | None = None


def attacked(attack: dict[str, Any]) -> Case:
    """A case with the attack's text in its field; attacks on pairs go to the answer."""
    text, field = attack["text"], attack["field"]
    if field == "context":
        return Case(contexts=(Text("d1", text), Text("d2", "It was built in 1902.")))
    if field == "context_id":
        return Case(contexts=(Text(text, "The kiln stays hot for nine hours."),))
    if field == "reference":
        return Case(reference=(text,))
    if field == "question":
        return Case(question=text)
    return Case(answer=text)
