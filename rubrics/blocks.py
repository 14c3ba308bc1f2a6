"""The material of a case as named blocks: which fields a rubric shows, under which names, sanitised.

A rubric shows the fields that it `requires` and those that its body asks about (`item.has_reference` and so on), less
those that its mode withholds so that they cannot leak into the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rubrics.citations import CitedStatement, statements
from rubrics.model import Item, Mode, Passage, Rubric
from rubrics.sanitising import one_line, visible
from rubrics.templating import flags_used

SHOWABLE = ("question", "answer", "contexts", "reference", "notes", "nuggets", "history")
WITHHELD: dict[Mode, frozenset[str]] = {
    "sentences": frozenset({"contexts", "reference", "nuggets"}),
    "passages": frozenset({"answer", "reference", "nuggets"}),
    "facts": frozenset({"contexts", "nuggets"}),
}
_SAFE_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


@dataclass(frozen=True, slots=True)
class Block:
    """One field of the case under its name; `text` is sanitised and stands in the prompt whole."""

    label: str
    text: str


@dataclass(slots=True)
class Material:
    """Blocks in the order shown; a plain string between them is a remark of ours. See Prompt for the other two."""

    parts: list[Block | str] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    sanitised: list[str] = field(default_factory=list)

    def add(self, label: str, text: str) -> None:
        clean, log = visible(text)
        self.parts.append(Block(label, clean))
        self.sanitised.extend(f"{label}: {entry}" for entry in log)

    def add_rows(self, label: str, rows: Iterable[tuple[str, str]]) -> None:
        """A table in one block, one line a row: our own opening, then the text with its line breaks made visible."""
        lines = []
        for opening, text in rows:
            clean, log = visible(text)
            lines.append(f"{opening}: {one_line(clean)}")
            self.sanitised.extend(f"{label}: {entry}" for entry in log)
        self.parts.append(Block(label, "\n".join(lines)))


def fields_shown(rubric: Rubric, mode: Mode) -> frozenset[str]:
    """The fields of a case that this rubric shows to the judge (answer stands for both replies in a pair)."""
    asked = {flag.removeprefix("has_") for flag in flags_used(rubric.body)}
    shown = {name for name in (*rubric.requires, *asked, "history") if name in SHOWABLE}
    return frozenset(shown - WITHHELD.get(mode, frozenset()))


def flags_of(item: Item) -> frozenset[str]:
    """What the item has, as the names of the booleans that a body may ask for; blank text counts as absent."""
    present = {
        "has_reference": any(text.strip() for text in item.reference or ()),
        "has_notes": bool((item.notes or "").strip()),
        "has_contexts": any(passage.text.strip() for passage in item.contexts or ()),
        "has_nuggets": bool(item.nuggets),
        "has_history": bool(item.history),
    }
    return frozenset(name for name, there in present.items() if there)


def material(rubric: Rubric, item: Item, shown: frozenset[str], answers: Sequence[tuple[str, str]] = ()) -> Material:
    """The case as this rubric shows it; `answers` (label, text) replace the item's own answer in a comparison."""
    case = Material()
    shown = shown - _unused_sources(rubric, item, shown)
    names = _shown_ids(item.contexts or (), case.aliases)
    if "history" in shown:
        for number, turn in enumerate(item.history or (), start=1):
            role = turn.role if turn.role in ("user", "assistant", "system", "tool") else "other"
            case.add(f"earlier turn {number} ({role})", turn.content)
    if "question" in shown:
        case.add("question", item.question)
    cited = (
        list(statements(item.answer or "", item.contexts or (), rubric.citation_scope))
        if _cites(rubric, answers)
        else []
    )
    if "contexts" in shown:
        _passages(case, item.contexts or (), names, cited)
    if "nuggets" in shown and item.nuggets:
        case.add_rows(
            "needed points", ((f"{n} ({_importance(p.importance)})", p.nugget) for n, p in enumerate(item.nuggets, 1))
        )
    if "reference" in shown and item.reference:
        many = len(item.reference) > 1
        for number, text in enumerate(item.reference, start=1):
            case.add(f"reference {number}" if many else "reference", text)
        if many:
            case.parts.append("Each reference is an accepted answer; compare with the one that fits best.")
    if "notes" in shown and item.notes:
        case.add("grading notes", item.notes)
    if answers:
        for label, text in answers:
            case.add(label, text)
    elif _cites(rubric, answers):
        case.add_rows("statements of the answer", ((_row_opening(one, names), one.text) for one in cited))
    elif "answer" in shown:
        case.add("answer", item.answer or "")
    return case


def nugget_source(item: Item) -> str | None:
    """Where the needed points come from, the best source first: "nuggets", "reference", "contexts", or None."""
    flags = flags_of(item)
    return next((name for name in ("nuggets", "reference", "contexts") if f"has_{name}" in flags), None)


def _unused_sources(rubric: Rubric, item: Item, shown: frozenset[str]) -> frozenset[str]:
    if rubric.mode != "nuggets":
        return frozenset()
    return frozenset({"nuggets", "reference", "contexts"}) - {nugget_source(item) or ""}


def _cites(rubric: Rubric, answers: Sequence[tuple[str, str]]) -> bool:
    return rubric.mode == "citations" and not answers


def _importance(word: str) -> str:
    return word if word in ("vital", "okay") else "vital"


def _shown_ids(passages: Sequence[Passage], aliases: dict[str, str]) -> dict[str, str]:
    """The id shown for each passage: its own, or c1..cn where that has odd characters (recorded in `aliases`)."""
    taken = {passage.id for passage in passages}
    free: Iterator[str] = (name for n in range(1, 10**9) if (name := f"c{n}") not in taken)
    names: dict[str, str] = {}
    for passage in passages:
        if _SAFE_ID.fullmatch(passage.id):
            names[passage.id] = passage.id
        elif passage.id not in names:
            names[passage.id] = alias = next(free)
            aliases[alias] = passage.id
    return names


def _passages(case: Material, passages: Sequence[Passage], names: dict[str, str], cited: list[CitedStatement]) -> None:
    first = {citation.id for statement in cited for citation in statement.citations}
    ordered = [p for p in passages if p.id in first] + [p for p in passages if p.id not in first] if first else passages
    for passage in ordered:
        about = [(name, getattr(passage, name)) for name in ("title", "author", "year")]
        if any(value for _, value in about):
            case.add_rows(f"source of passage {names[passage.id]}", ((n, str(value)) for n, value in about if value))
        case.add(f"passage {names[passage.id]}", passage.text)
    if not passages:
        case.parts.append("No passages were supplied.")


def _row_opening(statement: CitedStatement, names: dict[str, str]) -> str:
    marks = []
    for k, citation in enumerate(statement.citations, start=1):
        if citation.id is not None:
            marks.append(f"k{k} = {names[citation.id]}")
        else:
            marks.append(f"k{k} = no such passage, leave it out")
    return f"{statement.n} ({'; '.join(marks) or 'no citation'})"
