"""Which family a model belongs to, by its name, and which one wrote the answer of a case."""

from __future__ import annotations

import re

from judge.cases import Case

FIELDS = ("generator", "model", "generated_by")


def family(model: str) -> str:
    """The family of a model string: "openai/gpt-4o" is "gpt", "local" the embedded judge's "qwen"."""
    name = model.rsplit("/", 1)[-1].lower()
    if name.partition(":")[0] == "local":
        return "qwen"
    return (re.match(r"[a-z]+", name) or [name])[0]


def generator_of(case: Case, own: str) -> str | None:
    """The family that wrote the answer: of `metadata.generator`, `model` or `generated_by`, else the system's name.

    A system whose name has the judge's family `own` as a word ("rag-gpt-4o") belongs to that family.
    """
    for name in FIELDS:
        value = case.metadata.get(name)
        if isinstance(value, str) and value.strip():
            return family(value.strip())
    if not case.system:
        return None
    return own if own in re.findall(r"[a-z]+", case.system.lower()) else case.system
