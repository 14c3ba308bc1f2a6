"""What the judge returns, one pydantic model per mode. Field order is the reasoning order: evidence first, score last.

Replies are read strictly: unknown keys, out-of-range levels, booleans for numbers and NaN are refused, never repaired.
`injection_attempts` (orders to the rater found in the material) is asked of every judge; a reply without it is read as
none found. Providers that enforce a schema require every key; null stands for absent.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from rubrics.model import Rubric


class Reply(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Evidence(Reply):
    context_id: str
    quote: str


class Claim(Reply):
    span: str
    claim: str
    role: Literal["core", "detail"]
    evidence: list[Evidence]
    reason: str
    verdict: Literal["supported", "contradicted", "not_found"]
    error: str | None


class HallucinationClaim(Reply):
    span: str
    claim: str
    role: Literal["core", "detail"]
    evidence: list[Evidence]
    reason: str
    verdict: Literal["supported", "reference_backed", "common_knowledge", "unverified", "conflicting"]
    error: str | None


class Sentence(Reply):
    span: str
    on_topic: bool
    why: str


class NuggetVerdict(Reply):
    nugget: str
    importance: Literal["vital", "okay"]
    answer_quote: str | None
    verdict: Literal["full", "partial", "missing"]


class MarkerVerdict(Reply):
    k: int
    verdict: Literal["supports", "partial", "irrelevant", "contradicts"]


class Statement(Reply):
    n: int
    checkworthy: bool
    quotes: list[Evidence]
    support: Literal["full", "partial", "none"]
    citations: list[MarkerVerdict]
    better_source: str | None
    reason: str


class PassageGrade(Reply):
    id: str
    quote: str | None
    reason: str
    grade: Literal[0, 1, 2, 3]


class Fact(Reply):
    fact: str
    role: Literal["core", "detail"]
    answer_quote: str | None
    verdict: Literal["matched", "partly", "missing", "conflict"]


class CheckVerdict(Reply):
    id: str
    quote: str | None
    reason: str
    met: bool


class Note(Reply):
    quote: str
    point: str


_NOTES: dict[str, Any] = {
    "notes_first": (list[Note], ...),
    "notes_second": (list[Note], ...),
    "decisive_difference": (str, ...),
}
_BODY: dict[str, dict[str, Any]] = {
    "ordinal": {},
    "binary": {},
    "checklist": {"checks": (list[CheckVerdict], ...)},
    "claims": {"only_declines": (bool, ...), "claims": (list[Claim], ...)},
    "sentences": {
        "only_declines": (bool, ...),
        "sentences": (list[Sentence], ...),
        "target": (Literal["exact", "loose", "adjacent", "unrelated"], ...),
    },
    "nuggets": {"nuggets": (list[NuggetVerdict], ...)},
    "citations": {"only_declines": (bool, ...), "statements": (list[Statement], ...)},
    "passages": {"passages": (list[PassageGrade], ...), "sufficiency": (Literal["full", "partial", "none"], ...)},
    "facts": {"facts": (list[Fact], ...), "extra_conflicts": (int, Field(ge=0))},
    "matrix": {
        "answerable": (Literal["yes", "partly", "no"], ...),
        "behaviour": (Literal["answered", "caveated", "clarify", "refused", "empty"], ...),
    },
    "pairwise": {
        **_NOTES,
        "verdict": (Literal["first", "second", "tie", "both_fail"], ...),
        "margin": (Literal["slight", "clear", "none"], ...),
    },
    "ratings": _NOTES,
}


@cache
def _model(mode: str, low: int, high: int, five_verdicts: bool) -> type[BaseModel]:
    levels = Literal[tuple(range(low, high + 1))]  # type: ignore[valid-type]
    fields: dict[str, Any] = {"injection_attempts": (list[str], Field(default_factory=list)), **_BODY[mode]}
    if five_verdicts:
        fields["claims"] = (list[HallucinationClaim], ...)
    if mode in ("ordinal", "binary"):
        fields |= {"rationale": (str, ...), "cannot_judge": (str | None, ...), "level": (levels, ...)}
    elif mode == "pairwise":
        fields |= {"cannot_judge": (str | None, None)}
    elif mode == "ratings":
        fields |= {"cannot_judge": (str | None, ...), "rating_first": (levels, ...), "rating_second": (levels, ...)}
    else:
        fields |= {
            "rationale": (str, ...),
            "cannot_judge": (str | None, ...),
            "holistic_score": (levels | None, ...),
        }
    model: type[BaseModel] = create_model(f"{mode.title()}Reply", __base__=Reply, **fields)
    return model


def output_model(rubric: Rubric) -> type[BaseModel]:
    """The reply model of a rubric: its mode's verdicts, then rationale, cannot_judge and the level on its scale.

    The same class object is returned for the same mode and scale, so that schemas are built once per process.
    Hallucination and its extensions get five verdicts instead of three.
    """
    if rubric.mode == "pairwise":
        return pair_output_model()
    return _model(rubric.mode, rubric.scale.min, rubric.scale.max, rubric.root == "hallucination")


def pair_output_model() -> type[BaseModel]:
    """The reply model of every comparison by verdict: it has no level, so it is the same for all rubrics."""
    return _model("pairwise", 0, 1, False)


def ratings_output_model(rubric: Rubric) -> type[BaseModel]:
    """The reply model of a comparison by ratings: notes on both replies, then a level of the scale for each."""
    return _model("ratings", rubric.scale.min, rubric.scale.max, False)
