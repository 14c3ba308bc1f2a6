"""Cases: what a judge is shown, as frozen values, and the readers that make them from files.

    file or table --judge.imports--> native rows --Case--> cases --normalise--> one canonical JSONL copy

A `Case` accepts the short forms of the input contract (a string for a passage, a nugget, an accepted answer) and
always holds the long form, so later code meets one shape. `to_row` writes that shape, `Case.from_row` reads it back.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from judge.errors import InputError
from judge.imports import Problem, Row, Source, open_source, short, shown
from judge.imports.native import did_you_mean
from judge.imports.problems import broken_rules

HASHED_FIELDS = frozenset({
    "question", "answer", "contexts", "reference", "notes", "nuggets", "answerable", "lang", "history", "retrieved",
    "relevant", "evidence", "expected_citations", "as_of",
})  # fmt: skip


Id = Annotated[str, Field(min_length=1)]
Offset = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Context(_Part):
    """One passage shown to the pipeline. `start`, `end` are code points in `doc`, half-open.

    `joined` is true when the text may glue several passages; per-passage rubrics refuse such a context.
    """

    id: Id
    text: str
    doc: Id | None = None
    start: Offset | None = None
    end: Offset | None = None
    title: str | None = None
    author: str | None = None
    year: int | None = None
    joined: bool = False


class RetrievedItem(_Part):
    """One item of the ranking, best first; `text` is there only when the input gave it. Duplicates are kept."""

    id: Id
    score: float | None = None
    text: str | None = None
    doc: Id | None = None
    start: Offset | None = None
    end: Offset | None = None
    title: str | None = None
    author: str | None = None
    year: int | None = None


class Label(_Part):
    """One relevance label: a document, a chunk, a passage text, or an offset range of a document.

    `grade` is kept as given (0 and below: judged not relevant). Source of the four forms: spec of retrieval labels.
    """

    doc: Id | None = None
    chunk: Id | None = None
    text: str | None = None
    start: Offset | None = None
    end: Offset | None = None
    grade: float = 1.0

    @property
    def kind(self) -> Literal["doc", "chunk", "text", "offset"]:
        if self.chunk is not None:
            return "chunk"
        if self.text is not None:
            return "text"
        return "doc" if self.start is None else "offset"

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        offsets = (self.start is not None) + (self.end is not None)
        if self.chunk is not None and (self.doc is not None or self.text is not None or offsets):
            raise ValueError("a label with `chunk` takes only `grade` beside it")
        if self.text is not None and offsets:
            raise ValueError("a label has either `text` or `start` and `end`, not both")
        if offsets and (offsets == 1 or self.doc is None):
            raise ValueError("an offset label needs `doc`, `start` and `end`")
        if offsets and self.start >= self.end:  # type: ignore[operator]
            raise ValueError("`start` must be below `end`")
        if self.chunk is None and self.text is None and self.doc is None:
            raise ValueError("a label needs `doc`, `chunk`, `text`, or `doc` with `start` and `end`")
        return self


class Nugget(_Part):
    """One thing a good answer has to say; a plain string is `vital`."""

    nugget: str
    importance: Literal["vital", "okay"] = "vital"


class Turn(_Part):
    """One earlier message of the conversation."""

    role: str
    content: str


Text = str | None


class Case(_Part):
    """One question with the answer to judge and all that was recorded about it.

    `answer` None or empty is a declared outcome, not an error. `contexts` None = not recorded, `()` = nothing was
    retrieved. A missing `id` becomes the first 12 hex digits of the content hash.
    """

    id: Annotated[str, BeforeValidator(short.text_id)] = ""
    question: str
    answer: Text = None
    contexts: Annotated[tuple[Context, ...] | None, BeforeValidator(short.passages)] = None
    reference: Annotated[tuple[str, ...] | None, BeforeValidator(short.texts)] = None
    notes: Text = None
    nuggets: Annotated[tuple[Nugget, ...] | None, BeforeValidator(short.nuggets)] = None
    answerable: Annotated[Literal["yes", "partly", "no"] | None, BeforeValidator(short.answerable)] = None
    lang: Text = None
    history: tuple[Turn, ...] | None = None
    retrieved: Annotated[tuple[RetrievedItem, ...] | None, BeforeValidator(short.ranking)] = None
    relevant: Annotated[tuple[Label, ...] | None, BeforeValidator(short.labels)] = None
    evidence: Literal["all", "any"] | None = None
    expected_citations: tuple[Id, ...] | None = None
    feedback: bool | float | None = None
    latency_s: Annotated[float, Field(ge=0)] | None = None
    cost_usd: Annotated[float, Field(ge=0)] | None = None
    as_of: datetime.date | None = None
    system: Text = None
    split: Text = None
    tags: Annotated[tuple[str, ...], BeforeValidator(short.texts)] = ()
    metadata: dict[str, Any] = {}
    labels: Annotated[dict[str, dict[str, bool | int | float | str]], BeforeValidator(short.rated)] = {}

    @model_validator(mode="after")
    def _checked(self) -> Self:
        if self.contexts and len({c.id for c in self.contexts}) < len(self.contexts):
            ids = [c.id for c in self.contexts]
            twice = next(i for i in ids if ids.count(i) > 1)
            raise ValueError(f"contexts: id {shown(twice)} occurs twice; ids of the contexts of a case are unique")
        if not self.question.strip():
            raise ValueError(f"question: {shown(self.question)}, must not be blank")
        if not self.id:
            self.__dict__["id"] = self.content_hash()[:12]
        return self

    def content_hash(self) -> str:
        """SHA-256 (hex) over the canonical JSON of what a judge or a measure can see.

        Left out, so that they can change without making another case: id, labels, feedback, latency_s, cost_usd,
        system, split, tags, metadata.
        """
        seen = self.model_dump(mode="json", include=set(HASHED_FIELDS), exclude_defaults=True)
        return hashlib.sha256(orjson.dumps(seen, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def ranking(self) -> tuple[RetrievedItem, ...] | None:
        """The retrieved items in rank order: `retrieved`, else the contexts; None when neither was recorded."""
        if self.retrieved is not None or self.contexts is None:
            return self.retrieved
        return tuple(RetrievedItem(**c.model_dump(exclude={"joined"}, exclude_defaults=True)) for c in self.contexts)

    def to_row(self) -> dict[str, Any]:
        """The canonical form: plain JSON types, fields at their default left out."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Case:
        """A case from one native row (short or canonical form); pydantic's ValidationError lists every bad field."""
        return cls.model_validate(row)


def read_cases(
    path: Any,
    format: str | None = None,
    map: Mapping[str, str] | None = None,
    *,
    notes: list[str] | None = None,
) -> Iterator[Case]:
    """Cases of a file, folder, DataFrame or list of dicts, one at a time.

    `path`: JSONL, JSON, CSV or Parquet path, `-` for standard input, a BEIR folder, a DataFrame, dicts. `format`
    names the container or the tool that wrote it; `map` gives the column of a case field, {"answer": "my_col"}.
    What was mapped and warned about is appended to `notes`, or given to `warnings.warn` when there is no list.
    After a bad row no further case comes; reading goes on to the end and InputError lists all bad rows.
    """
    opened = open_source(path, format, dict(map or {}))
    return _told(opened, notes)


def _told(opened: Source, notes: list[str] | None) -> Iterator[Case]:
    say = notes.append if notes is not None else (lambda text: warnings.warn(text, stacklevel=3))
    if opened.note:
        say(opened.note)
    yield from _checked_cases(opened)
    for text in opened.warnings:
        say(text)


def _checked_cases(opened: Source, per_system: bool = False) -> Iterator[Case]:
    """Valid cases with unique ids; at the end the warnings of the source are complete, or InputError lists bad rows."""
    problems: list[str] = []
    first_at: dict[int, int] = {}
    copies: dict[int, int] = {}
    missing = total = 0
    for row in opened.rows:
        total += 1
        made = _case_of(row) if isinstance(row, Row) else row
        if isinstance(row, Problem) or isinstance(made, Problem):
            problems.append(f"{opened.place(row.at)} {made.text}")  # type: ignore[union-attr]
            continue
        if not row.data.get("id"):
            missing += 1
            made = _numbered(made, first_at, copies)
        key = hash((made.id, made.system) if per_system else made.id)
        if key in first_at:
            within = f" within system {shown(made.system)}" if per_system else ""
            rule = f"used before at {opened.place(first_at[key])}; ids are unique{within}, rename one"
            problems.append(f"{opened.place(row.at)} id: {shown(made.id)}, {rule}")
            continue
        first_at[key] = row.at
        if not problems:
            yield made
    if problems:
        raise InputError(f"{opened.name}: {len(problems)} of {total} rows cannot be used; nothing was spent", problems)
    if not total:
        raise InputError(f"{opened.name}: no cases in it; one row with at least `question` is needed")
    opened.warnings.extend(_final_warnings(opened, missing))


def _case_of(row: Row) -> Case | Problem:
    try:
        return Case.model_validate(row.data)
    except ValidationError as error:
        return Problem(row.at, "; ".join(broken_rules(error, row.data)))


def _numbered(case: Case, first_at: dict[int, int], copies: dict[int, int]) -> Case:
    key, name = hash(case.id), case.id
    while hash(name) in first_at:
        copies[key] = copies.get(key, 1) + 1
        name = f"{case.id}#{copies[key]}"
    return case if name == case.id else case.model_copy(update={"id": name})


def _final_warnings(opened: Source, missing: int) -> list[str]:
    made = []
    if opened.unknown:
        names = ", ".join(f"`{name}`{did_you_mean(name)}" for name in sorted(opened.unknown))
        made.append(f"{opened.name}: unknown fields kept under metadata: {names}")
    if missing:
        made.append(f"{opened.name}: {missing} cases without id got the first 12 digits of their content hash")
    return made


@dataclass(frozen=True, slots=True)
class Normalised:
    """What `normalise` wrote: number of cases, SHA-256 of the copy, what was mapped, and warnings for the user."""

    n: int
    fingerprint: str
    note: str | None
    warnings: tuple[str, ...]


def normalise(
    source: Any,
    destination: str | Path,
    format: str | None = None,
    map: Mapping[str, str] | None = None,
    *,
    per_system: bool = False,
) -> Normalised:
    """Read `source` once, check every row, and write the canonical JSONL copy (mode 0600, atomically).

    `per_system`: an id may occur once for each `system`. Raises InputError that lists all bad rows; `destination` is
    then untouched. `load_normalised` reads the copy.
    """
    destination = Path(destination)
    opened = open_source(source, format, dict(map or {}))
    digest, n = hashlib.sha256(), 0
    handle, temporary = tempfile.mkstemp(prefix=f".{destination.name}.", dir=destination.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for case in _checked_cases(opened, per_system):
                line = case.model_dump_json(exclude_defaults=True).encode() + b"\n"
                digest.update(line)
                file.write(line)
                n += 1
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, destination)
    except BaseException:
        os.unlink(temporary)
        raise
    return Normalised(n, digest.hexdigest(), opened.note, tuple(opened.warnings))


def load_normalised(path: str | Path) -> Iterator[Case]:
    """Cases of a copy that `normalise` wrote, in order, one at a time. Raises InputError at a damaged line."""
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield Case.model_validate_json(line)
            except ValidationError as error:
                raise InputError(f"{path}:{number}: damaged normalised copy ({error.errors()[0]['msg']})") from None
