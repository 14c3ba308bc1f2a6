"""Numbers per item from a CSV: scores, labels, or values of one system."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibration.errors import CalibrationError
from calibration.ratings import SHOWN_PROBLEMS, Scale, read_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """One number per item, None where the cell is empty, and the item's cluster when the file names one."""

    numbers: dict[str, float | None]
    clusters: dict[str, str] | None


def read_values(path: str | Path, column: str, *, scale: Scale | None = None) -> Values:
    """The columns `item`, `column` and, when present, `cluster` of a CSV.

    Cells are finite numbers; on a declared scale of words they are labels and count as steps 0..K-1. Repeated items,
    empty ids and anything else are errors that name the line.
    """
    frame = read_table(path)
    for name in ("item", column):
        if name not in frame.columns:
            raise CalibrationError(f"{path}: no column {name!r} among {', '.join(frame.columns)}")
    items = [str(item).strip() for item in frame["item"]]
    cells = [str(cell).strip() for cell in frame[column]]
    _refuse(path, [f"line {row + 2}: item is empty" for row, item in enumerate(items) if not item], "name every item")
    if len(set(items)) < len(items):
        first: dict[str, int] = {}
        again = [f"line {row + 2}: {item}" for row, item in enumerate(items) if first.setdefault(item, row) != row]
        _refuse(path, again, "one row per item, remove or rename these")
    read = _reader(scale)
    numbers = [None if cell == "" else read(cell) for cell in cells]
    broken = [
        f"line {row + 2} (item {items[row]}): {cells[row]!r}"
        for row, number in enumerate(numbers)
        if number is not None and math.isnan(number)
    ]
    on = f"labels of the scale {','.join(scale.labels)}" if scale else "finite numbers (or labels of a --scale)"
    _refuse(path, broken, f"cells of {column!r} are {on}, or empty when missing")
    clusters = None
    if "cluster" in frame.columns:
        names = [str(name).strip() for name in frame["cluster"]]
        blank = [f"line {row + 2}: cluster is empty" for row, name in enumerate(names) if not name]
        _refuse(path, blank, "when clusters are given every item has one")
        clusters = dict(zip(items, names, strict=True))
    return Values(numbers=dict(zip(items, numbers, strict=True)), clusters=clusters)


def _reader(scale: Scale | None) -> Callable[[str], float]:
    """Text to number; NaN marks a cell that is refused later."""
    if scale is not None and scale.numbers is None:
        steps = {label: float(step) for step, label in enumerate(scale.labels)}
        return lambda text: steps.get(text, math.nan)

    def number(text: str) -> float:
        try:
            parsed = float(text)
        except ValueError:
            return math.nan
        return parsed if math.isfinite(parsed) else math.nan

    return number


def _refuse(path: str | Path, problems: list[str], rule: str) -> None:
    if problems:
        more = f"\n... and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
        shown = "\n".join(problems[:SHOWN_PROBLEMS])
        raise CalibrationError(f"{path}: {len(problems)} rows are wrong; {rule}:\n{shown}{more}")


def clusters_of_both(judged: Values, labels: Values) -> dict[str, str] | None:
    """Item -> cluster of the judged items; the file of labels may repeat the column but not stand in for it."""
    if labels.clusters is None or judged.clusters is None:
        if labels.clusters is not None:
            raise CalibrationError("only the labels have a column 'cluster': give it for every judged item")
        return judged.clusters
    for item, name in labels.clusters.items():
        if judged.clusters.get(item, name) != name:
            raise CalibrationError(
                f"item {item} is in cluster {judged.clusters[item]!r} in the judged file, {name!r} in the labels"
            )
    return judged.clusters


def read_labels(path: str | Path, columns: Sequence[str]) -> tuple[dict[str, str | None], dict[str, str] | None]:
    """Item -> label as text (None where empty) from the first of `columns` that the CSV has, and item -> cluster."""
    frame = read_table(path)
    present = [name for name in columns if name in frame.columns]
    if "item" not in frame.columns or not present:
        raise CalibrationError(f"{path}: the columns are {', '.join(frame.columns)}; give item and {columns[0]}")
    items = [str(item).strip() for item in frame["item"]]
    first: dict[str, int] = {}
    again = [f"line {row + 2}: {item}" for row, item in enumerate(items) if first.setdefault(item, row) != row]
    _refuse(path, again, "one row per item, remove or rename these")
    labels = {item: str(cell).strip() or None for item, cell in zip(items, frame[present[0]], strict=True)}
    if "cluster" not in frame.columns:
        return labels, None
    return labels, {item: str(cell).strip() or item for item, cell in zip(items, frame["cluster"], strict=True)}
