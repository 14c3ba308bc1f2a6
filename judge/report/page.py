"""A page as a value: sections of tables and notes, shown on a terminal or written as Markdown from the same rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
GAP = 3  # characters between two columns of a table


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
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    for section in sections:
        title = brief(section.title, console.width)
        if section.columns:
            table = Table(title=Text(title, "table.title"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
            rows = [[visible(cell) for cell in row] for row in section.rows]
            room = console.width - 2 - GAP * (len(section.columns) - 1)
            for column, width in zip(section.columns, widths([section.columns, *rows], room), strict=True):
                table.add_column(Text(column), justify="left", overflow="fold", width=width)
            for row in rows:
                table.add_row(*map(Text, row))
            console.print(table)
        else:
            console.print(Text(title, "bold"))
        for note in section.notes:
            console.print(Padding(Text(visible(note)), (0, 0, 0, 2), expand=False))
        console.print()


def widths(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Column widths that sum to at most `room` (at least 1 each), the narrow columns served first.

    Every column gets what it needs where there is room; else the widest ones wrap, no further than to their longest
    word; where even the longest words do not fit, those of the widest columns are folded.
    """
    from rich.cells import cell_len

    columns = list(zip(*rows, strict=True))
    natural = [max(max(map(cell_len, cell.split("\n"))) for cell in column) for column in columns]
    words = [max((cell_len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    for least in (words, [1] * len(columns)):
        for most in range(max(natural), 0, -1):
            fitted = [max(low, min(full, most), 1) for low, full in zip(least, natural, strict=True)]
            if sum(fitted) <= room:
                return _filled(fitted, natural, room - sum(fitted))
    return [1] * len(columns)


def _filled(fitted: list[int], natural: Sequence[int], left: int) -> list[int]:
    """One character more for the first columns that still need it, `left` in all; a level more for all had no room."""
    short = [n for n, width in enumerate(fitted) if width < natural[n]][:left]
    return [width + (n in short) for n, width in enumerate(fitted)]


def _md(text: str) -> str:
    escaped = re.sub(r"([\\`*_\[\]|<>#~&])", r"\\\1", visible(text))
    return " ".join(escaped.split())
