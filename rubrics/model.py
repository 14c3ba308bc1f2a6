"""What is asked of the judge (Rubric), about what (Item), with which words (Prompt), and what came of it (Outcome).

An item is any object with the attributes of `Item`: the rubrics never import the package that reads cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

Status = Literal["scored", "undefined", "not_applicable", "cannot_judge", "error"]
ScoreSource = Literal["computed", "holistic", "logit", "precheck"]
Mode = Literal[
    "ordinal", "binary", "checklist", "claims", "sentences", "nuggets", "citations", "passages", "facts", "matrix",
    "pairwise",
]  # fmt: skip
Layout = Literal["rubric_first", "item_first"]
Message = dict[str, str]


class Passage(Protocol):
    """One retrieved text, as the judge may see it."""

    @property
    def id(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def author(self) -> str | None: ...
    @property
    def year(self) -> int | None: ...


class WeightedNugget(Protocol):
    """A point that the answer should make; importance is vital or okay."""

    @property
    def nugget(self) -> str: ...
    @property
    def importance(self) -> str: ...


class Turn(Protocol):
    """An earlier turn of the conversation; untrusted like all item text."""

    @property
    def role(self) -> str: ...
    @property
    def content(self) -> str: ...


class Item(Protocol):
    """The case as the rubrics see it. None means absent, an empty sequence means present and empty."""

    @property
    def id(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def answer(self) -> str | None: ...
    @property
    def contexts(self) -> Sequence[Passage] | None: ...
    @property
    def reference(self) -> Sequence[str] | None: ...
    @property
    def notes(self) -> str | None: ...
    @property
    def nuggets(self) -> Sequence[WeightedNugget] | None: ...
    @property
    def answerable(self) -> str | None: ...
    @property
    def history(self) -> Sequence[Turn] | None: ...


class RubricError(ValueError):
    """A rubric file cannot be used; `problems` holds one line per mistake ("file:line: what, rule, next step")."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class Prompt:
    """One call to the judge as a value.

    `output` is the reply's model (None: a one-token quick call answered by one of `tokens`, the good one first).
    `marker` is the keyed mark to be masked in the cache key. `aliases` maps ids as shown to ids of the item.
    `sanitised` lists what was made visible in the data ("answer: U+200B x2").
    """

    messages: tuple[Message, ...]
    prompt_hash: str
    output: type[BaseModel] | None = None
    tokens: tuple[str, ...] = ()
    marker: str | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    sanitised: tuple[str, ...] = ()
    max_tokens: int = 4096


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of a quick judgment: a text, and the call that decides it, or `p` when code decided without a call.

    `p` is like a reply's: the probability of the good answer token. `group` ties units together: with aggregate
    max_then_mean the cited sentence (best passage of a sentence counts, then the mean over sentences); with min and
    mean the accepted reference that the unit was compared with, counted from 0 (aggregate within a group, then the best
    group counts). `question` names the quick question where a rubric has two (refusal_correctness: "answerable", p =
    the passages answer; "declines", p = the answer gives the information, so declining is 1 - p), else "".
    """

    text: str
    prompt: Prompt | None
    p: float | None = None
    group: int = 0
    question: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What settling made of a reply: a score, or a named non-answer.

    Only status "scored" has `score`, `normalized` (0..1, higher is better) and `passed`; every other status has
    `reason`. `details` holds the rates the score was computed from; `quotes` counts total, exact, near, failed.
    """

    status: Status
    score: float | None = None
    normalized: float | None = None
    passed: bool | None = None
    score_source: ScoreSource | None = None
    computed_score: float | None = None
    holistic_score: float | None = None
    errors: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    quotes: Mapping[str, int] = field(default_factory=lambda: {"total": 0, "exact": 0, "near": 0, "failed": 0})
    rationale: str | None = None
    reason: str | None = None
    error_kind: str | None = None


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Scale(Strict):
    """The declared scale; prompt, schema, validation, normalisation and kappa order all derive from it."""

    min: int
    max: int
    pass_at: int
    higher_is_better: Literal[True] = True

    @property
    def levels(self) -> tuple[int, ...]:
        return tuple(range(self.min, self.max + 1))

    def normalize(self, score: float) -> float:
        return (score - self.min) / (self.max - self.min)


class Check(Strict):
    """One yes/no question of a checklist rubric."""

    id: str
    ask: str
    weight: float = 1.0
    core: bool = False


class QuickBlock(Strict):
    head: str
    of: tuple[str, ...]  # question | answer | contexts | reference | unit


class Quick(Strict):
    """The one-token form (CONTRACTS 7): a short question per unit, probabilities aggregated as declared."""

    unit: Literal["answer", "sentence", "passage", "point", "cited_pair"]
    blocks: tuple[QuickBlock, ...]
    ask: str
    good: str = "yes"
    aggregate: Literal["min", "mean", "max_then_mean"]
    threshold: float = 0.5
    local: Literal["default", "calibrate", "refuse"]


class Rubric(Strict):
    """One rubric file: settings (front matter) and instructions (body).

    `root` is the id at the end of the `extends` chain (its own id when it extends nothing): the two behaviours that
    live in code (hallucination's five verdicts, refusal's two quick questions) follow it.
    """

    id: str
    version: str
    title: str
    language: str = "en"
    requires: tuple[str, ...]
    mode: Mode
    scale: Scale
    anchors: Mapping[int, str]
    errors: Mapping[str, str] = field(default_factory=dict)
    weight: float = 1.0
    checks: tuple[Check, ...] = ()
    bands: Mapping[int, float] = field(default_factory=dict)
    examples: tuple[Mapping[str, Any], ...] = ()
    extends: str | None = None
    quick: Quick | None = None
    on_refusal: Literal["undefined", "score", "lowest"] = "undefined"
    core_no_caps_at: int | None = None
    citations_required: bool = True
    memory_allowed: bool = False
    citation_scope: Literal["sentence", "paragraph"] = "sentence"
    source: str | None = None
    body: str
    root: str
    rubric_hash: str
