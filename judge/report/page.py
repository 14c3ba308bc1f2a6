"""A page as a value: sections of tables and notes, shown on a terminal or written as Markdown from the same rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judge.report.columns import layout

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Section:
    """A titled table with sentences under it. Cells are plain text and may hold untrusted words."""

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()


def visible(text: str) -> str:
    """Untrusted text made safe for a terminal: control and direction characters become a visible mark."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def brief(text: str | None, width: int = 90) -> str:
    """One line of at most `width` characters."""
    line = " ".join(visible(text or "").split())
    return line if len(line) <= width else line[: width - 1] + "…"


def figure(value: float | None, digits: int = 2, percent: bool = False) -> str:
    """A number for people; a dash where there is none."""
    if value is None:
        return "–"
    return f"{100 * value:z.{max(digits - 2, 0)}f}%" if percent else f"{value:z.{digits}f}"


def estimated(estimate: Mapping[str, Any] | None, digits: int = 2, percent: bool = False) -> str:
    """An Estimate for people: "4.20 [3.91, 4.49]", or why there is no number."""
    if estimate is None:
        return "–"
    if estimate["value"] is None:
        return f"undefined ({(estimate['reason'] or '').replace('_', ' ')})"
    value = figure(estimate["value"], digits, percent)
    if estimate["ci_low"] is None:
        return f"{value} [no interval: {(estimate['reason'] or '').replace('_', ' ')}]"
    return f"{value} [{figure(estimate['ci_low'], digits, percent)}, {figure(estimate['ci_high'], digits, percent)}]"


def counted(counts: Mapping[str, int], most: int = 6) -> str:
    """Counts for people: "wrong_number 4, extra 2"."""
    shown = [f"{name} {n}" for name, n in list(counts.items())[:most]]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f", {more} more kinds" if more > 0 else "")


def markdown(title: str, sections: Iterable[Section]) -> str:
    """The page as Markdown; cells are escaped so that data can neither break the table nor inject HTML."""
    lines = [f"# {_md(title)}", ""]
    for section in sections:
        lines += [f"## {_md(section.title)}", ""]
        if section.columns:
            lines.append("| " + " | ".join(map(_md, section.columns)) + " |")
            lines.append("|" + " --- |" * len(section.columns))
            lines += ["| " + " | ".join(map(_md, row)) + " |" for row in section.rows]
            lines.append("")
        lines += [f"- {_md(note)}" for note in section.notes]
        if section.notes:
            lines.append("")
    return "\n".join(lines)


def show(sections: Iterable[Section], console: Console) -> None:
    """The page on a terminal; colours only where the console has them, words whole where there is room for them."""
    from rich.padding import Padding
    from rich.text import Text

    for section in sections:
        title = brief(section.title, console.width)
        console.print(Text(title, "italic" if section.columns else "bold"))
        if section.columns:
            console.print()
            console.print(Padding(_table(section, console.width - 1), (0, 0, 0, 1), expand=False))
            console.print()
        for note in section.notes:
            for line in Text(visible(note)).wrap(console, max(console.width - 2, 1)):
                line.pad_left(2)
                line.rstrip()
                console.print(line)
        if section.notes or not section.columns:
            console.print()


def _table(section: Section, width: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = [[visible(cell) for cell in row] for row in (section.columns, *section.rows)]
    gap, widths = layout(rows, width)
    beside = (0, int(gap > 1), 0, int(gap > 2))  # the third character of a gap is the box's own
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=beside)
    for column, wide in zip(rows[0], widths, strict=True):
        table.add_column(Text(column), justify="left", overflow="fold", width=wide)
    for row in rows[1:]:
        table.add_row(*map(Text, row))
    return table


def _md(text: str) -> str:
    escaped = re.sub(r"([\\`*_\[\]|<>#~&])", r"\\\1", visible(text))
    return " ".join(escaped.split())
