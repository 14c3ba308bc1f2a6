"""How a table is laid out on a terminal: the gap between its columns and their widths, so that words stay whole."""

from __future__ import annotations

from collections.abc import Sequence


def layout(rows: Sequence[Sequence[str]], width: int) -> tuple[int, list[int]]:
    """The gap between columns and the width of each, for a table `width` characters wide; `rows` hold the header too.

    The gap is the widest of 3 and 2 with which no cell wraps, else the widest of 3, 2 and 1 with which every word stays
    whole, else 1.
    """
    from rich.cells import cell_len

    columns = list(zip(*rows, strict=True))
    natural = [max(max(map(cell_len, cell.split("\n"))) for cell in column) for column in columns]
    words = [max((cell_len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    tries = ((3, natural), (2, natural), (3, words), (2, words))
    between = len(columns) - 1
    gap = next((gap for gap, needed in tries if sum(needed) + gap * between <= width), 1)
    return gap, widths(natural, words, width - gap * between)


def widths(natural: Sequence[int], words: Sequence[int], room: int) -> list[int]:
    """Column widths that sum to at most `room` (but are at least 1 each), the narrow columns served first.

    `natural` is the width that a column takes on one line, `words` that of its longest word. Where there is room every
    column gets its natural width; else the widest columns wrap, no further than to their longest word; where even the
    longest words do not fit, those of the widest columns are folded.
    """
    nothing = [1] * len(natural)
    for least, full in ((words, natural), (nothing, words)):
        for most in range(max(full), 0, -1):
            fitted = [max(low, min(high, most), 1) for low, high in zip(least, full, strict=True)]
            if sum(fitted) <= room:
                return _filled(fitted, full, room - sum(fitted))
    return nothing


def _filled(fitted: list[int], full: Sequence[int], left: int) -> list[int]:
    """One character more for the first columns that still need it, `left` in all: a level more for all had no room."""
    short = [n for n, width in enumerate(fitted) if width < full[n]][:left]
    return [width + (n in short) for n, width in enumerate(fitted)]
