"""Ratings: who gave which item which label, on a scale that is declared and never guessed."""

from __future__ import annotations

import csv
import difflib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.estimate import FloatArray

if TYPE_CHECKING:
    import pandas as pd

Level = Literal["nominal", "ordinal", "interval"]
SHOWN_PROBLEMS = 20
LONG_FORM = ("item", "rater", "label")
NOT_RATERS = ("cluster", "slice")


@dataclass(frozen=True, slots=True)
class Scale:
    """The ordered labels that raters may use. `declared` is False when they are only the labels seen in the data."""

    labels: tuple[str, ...]
    level: Level = "ordinal"
    declared: bool = True

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """The labels as numbers when every one of them is a number."""
        parsed = [_number(label) for label in self.labels]
        return None if None in parsed else tuple(number for number in parsed if number is not None)

    @property
    def values(self) -> FloatArray:
        """What each label counts for: its number, or its step 0..K-1 on a scale of words."""
        return np.array(self.numbers if self.numbers is not None else range(len(self.labels)), dtype=np.float64)

    @property
    def ordered(self) -> bool:
        return self.declared and self.level != "nominal"

    def code(self, label: str) -> int | None:
        """The place of a label, 0..K-1; `1`, `1.0` and ` 1 ` are one label when the scale is numeric."""
        text = label.strip()
        if text in self.labels:
            return self.labels.index(text)
        number = _number(text)
        if number is None or self.numbers is None or number not in self.numbers:
            return None
        return self.numbers.index(number)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def declare_scale(labels: str | Sequence[Any], level: Level = "ordinal") -> Scale:
    """A declared scale from `1,2,3,4,5`, a JSON array, or a sequence, lowest first; two labels or more.

    Labels are distinct; numbers ascend. `level` interval needs numbers; nominal gives up the order.
    """
    if isinstance(labels, str):
        labels = json.loads(labels) if labels.lstrip().startswith("[") else labels.split(",")
    texts = tuple(str(label).strip() for label in labels)
    shown = ",".join(texts)
    if level not in ("nominal", "ordinal", "interval"):
        raise CalibrationError(f"level is {level!r}: choose nominal, ordinal or interval")
    if len(texts) < 2 or "" in texts:
        raise CalibrationError(f"scale is {shown!r}: name two labels or more, lowest first, such as 1,2,3,4,5")
    scale = Scale(texts, level)
    numbers = scale.numbers
    if len(set(numbers or texts)) < len(texts):
        raise CalibrationError(f"scale is {shown!r}: every label may occur only once")
    if numbers is not None and list(numbers) != sorted(numbers):
        raise CalibrationError(f"scale is {shown!r}: numbers must ascend; write {','.join(sorted(texts, key=float))}")
    if level == "interval" and numbers is None:
        raise CalibrationError(f"scale is {shown!r} with level interval: words have no distances; use ordinal")
    return scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """Labels of raters on items. `codes` (items, raters) holds places on the scale, -1 where a label is missing."""

    items: tuple[str, ...]
    raters: tuple[str, ...]
    codes: npt.NDArray[np.int64]
    scale: Scale
    clusters: tuple[str, ...] | None = None
    slices: tuple[str, ...] | None = None

    def of(self, rater: str) -> npt.NDArray[np.int64]:
        """One rater's codes; an unknown name is an error that lists the known ones."""
        if rater not in self.raters:
            close = difflib.get_close_matches(rater, self.raters, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            known = ", ".join(repr(name) for name in self.raters)
            raise CalibrationError(f"no rater is called {rater!r}; the raters are {known}.{hint}")
        column: npt.NDArray[np.int64] = self.codes[:, self.raters.index(rater)]
        return column

    def only(self, kept: npt.NDArray[np.bool_]) -> Ratings:
        """The same ratings on some of the items."""
        places = np.flatnonzero(kept)
        return Ratings(
            items=tuple(self.items[place] for place in places), raters=self.raters, codes=self.codes[kept],
            scale=self.scale, clusters=_pick(self.clusters, places), slices=_pick(self.slices, places),
        )  # fmt: skip

    def dropped(self, judge: str, humans: Sequence[str]) -> list[tuple[str, str]]:
        """Items that no judge-human pair covers, each with the reason."""
        judged = self.of(judge) >= 0
        labelled = np.any([self.of(human) >= 0 for human in humans], axis=0)
        reasons = {(False, True): "no_judge_label", (True, False): "no_human_label", (False, False): "no_label"}
        missing = np.flatnonzero(~(judged & labelled))
        return [(self.items[i], reasons[bool(judged[i]), bool(labelled[i])]) for i in missing]


def _pick(column: tuple[str, ...] | None, places: npt.NDArray[np.intp]) -> tuple[str, ...] | None:
    return None if column is None else tuple(column[place] for place in places)


def choose_raters(
    ratings: Ratings, judge: str | None = None, humans: Sequence[str] | None = None
) -> tuple[str, tuple[str, ...]]:
    """The judge (default: the rater called `judge`) and the humans (default: everybody else)."""
    judge = judge or "judge"
    if judge == "judge" and judge not in ratings.raters:
        known = ", ".join(repr(name) for name in ratings.raters)
        raise CalibrationError(f"no rater is called 'judge'; name the judge with --judge: the raters are {known}")
    ratings.of(judge)
    chosen = tuple(humans) if humans else tuple(name for name in ratings.raters if name != judge)
    for human in chosen:
        ratings.of(human)
    if judge in chosen:
        raise CalibrationError(f"{judge!r} is named as judge and as human: agreement with oneself says nothing")
    if not chosen:
        raise CalibrationError(f"{judge!r} is the only rater: agreement needs a second one, a person")
    return judge, chosen


def ratings_of(
    items: Sequence[Any],
    raters: Sequence[str],
    labels: Sequence[Any],
    *,
    scale: Scale | None = None,
    clusters: Sequence[Any] | None = None,
    slices: Sequence[Any] | None = None,
) -> Ratings:
    """Ratings from parallel columns, one rating each: item, rater, label (None when missing).

    Same rules as a CSV in long form: unknown labels, repeated (item, rater) pairs and an item in two clusters are
    errors. Without a scale the labels seen make a nominal one.
    """
    import pandas as pd

    columns = {"item": list(items), "rater": list(raters), "label": ["" if v is None else str(v) for v in labels]}
    columns |= {"cluster": list(clusters)} if clusters is not None else {}
    columns |= {"slice": list(slices)} if slices is not None else {}
    if len({len(column) for column in columns.values()}) > 1:
        sizes = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise CalibrationError(f"columns differ in length ({sizes}): give one entry per rating")
    texts = {name: [str(cell) for cell in column] for name, column in columns.items()}
    return _from_long(pd.DataFrame(texts, dtype=object), scale)


def read_ratings(
    path: str | Path, *, scale: Scale | None = None, raters: Sequence[str] | None = None, item: str = "item"
) -> Ratings:
    """Ratings from a CSV: long form with columns item, rater, label, else wide form with one column per rater.

    `cluster` and `slice` columns are taken along. In wide form `raters` names the columns to read (default: all
    others). Labels are text; an empty cell is a missing label; every other unknown label is an error with its line.
    """
    header = _header(Path(path))
    if all(name in header for name in LONG_FORM):
        return _from_long(read_table(path), scale)
    if item not in header:
        raise CalibrationError(f"{path}: no column {item!r} among {', '.join(header)}; name the id column with --item")
    columns = list(raters) if raters else [name for name in header if name not in (item, *NOT_RATERS)]
    absent = [name for name in columns if name not in header]
    if absent:
        raise CalibrationError(f"{path}: no column {absent[0]!r}; the columns are {', '.join(header)}")
    return _from_wide(read_table(path).rename(columns={item: "item"}), columns, scale)


def _header(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            header = [name.strip() for name in next(csv.reader(lines), [])]
    except OSError as error:
        raise CalibrationError(f"{path}: cannot be read ({error.strerror}); name a CSV file") from None
    except UnicodeDecodeError:
        raise CalibrationError(f"{path}: is not UTF-8 text; save the table as CSV in UTF-8") from None
    if not header:
        raise CalibrationError(f"{path}: is empty; the first line names the columns")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise CalibrationError(f"{path}: column {twice[0]!r} occurs twice; every column needs its own name")
    return header


def read_table(path: str | Path) -> pd.DataFrame:
    """A CSV as text, cell by cell; every row has the columns of the header, missing cells at its end are empty."""
    import warnings

    import pandas as pd

    header = _header(Path(path))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path, names=header, header=0, index_col=False, dtype=object,
                keep_default_na=False, encoding="utf-8-sig", skipinitialspace=True,
            )  # fmt: skip
    except (pd.errors.ParserError, pd.errors.ParserWarning, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise CalibrationError(f"{path}: {reason}; every line needs the columns of the first") from None
    filled = len(frame)
    while filled and not any(str(cell).strip() for cell in frame.iloc[filled - 1]):  # a spreadsheet pads the end
        filled -= 1
    if filled == 0:
        raise CalibrationError(f"{path}: has a header and no rows")
    return frame.iloc[:filled]


def _from_long(frame: pd.DataFrame, scale: Scale | None) -> Ratings:
    import pandas as pd

    items, names = _named(frame, "item")
    raters, rater_names = _named(frame, "rater")
    labels = [pd.factorize(frame["label"])]
    scale = scale or _seen_scale(labels)
    codes = _encode(
        "label", *labels[0], scale, lambda row: f"item {frame['item'].iloc[row]}, {frame['rater'].iloc[row]}"
    )
    key = items * len(rater_names) + raters
    _refuse_repeated(
        key, lambda row: f"({frame['item'].iloc[row]}, {frame['rater'].iloc[row]})", "one label per item and rater"
    )
    grid = np.full(len(names) * len(rater_names), -1, dtype=np.int64)
    grid[key] = codes
    return Ratings(
        items=tuple(names), raters=tuple(rater_names),
        codes=grid.reshape(len(names), len(rater_names)), scale=scale,
        clusters=_one_per_item(frame, "cluster", items, names), slices=_one_per_item(frame, "slice", items, names),
    )  # fmt: skip


def _from_wide(frame: pd.DataFrame, columns: Sequence[str], scale: Scale | None) -> Ratings:
    import pandas as pd

    items, names = _named(frame, "item")
    _refuse_repeated(items, lambda row: str(frame["item"].iloc[row]), "one row per item")
    labels = [pd.factorize(frame[name]) for name in columns]
    scale = scale or _seen_scale(labels)
    codes = [
        _encode(name, *column, scale, lambda row: f"item {frame['item'].iloc[row]}")
        for name, column in zip(columns, labels, strict=True)
    ]
    return Ratings(
        items=tuple(names), raters=tuple(columns), codes=np.stack(codes, axis=1), scale=scale,
        clusters=_one_per_item(frame, "cluster", items, names), slices=_one_per_item(frame, "slice", items, names),
    )  # fmt: skip


def _seen_scale(columns: Sequence[tuple[Any, Any]]) -> Scale:
    seen = {str(label).strip() for _, labels in columns for label in labels} - {""}
    numbers = {text: _number(text) for text in seen}
    if seen and None not in numbers.values():
        merged = {number: text for text, number in sorted(numbers.items(), reverse=True)}
        labels = [merged[number] for number in sorted(merged, key=lambda value: value or 0.0)]
    else:
        labels = sorted(seen)
    if len(labels) < 2:
        raise CalibrationError(f"the labels are {labels}: declare the scale with --scale, two labels or more")
    return Scale(tuple(labels), "nominal", declared=False)


def _encode(
    name: str, places: npt.NDArray[np.integer[Any]], labels: Any, scale: Scale, where: Callable[[int], str]
) -> npt.NDArray[np.int64]:
    """Codes of a column given as places in its distinct labels; labels off the scale are listed with their lines."""
    texts = [str(label).strip() for label in labels]
    known = [-1 if text == "" else scale.code(text) for text in texts]
    lookup = np.array([-2 if code is None else code for code in known] + [-1], dtype=np.int64)
    codes: npt.NDArray[np.int64] = lookup[places]
    broken = np.flatnonzero(codes == -2)
    if len(broken):
        rows = [f"line {row + 2} ({where(row)}): {texts[places[row]]!r}" for row in broken[:SHOWN_PROBLEMS]]
        more = f"\n... and {len(broken) - SHOWN_PROBLEMS} more" if len(broken) > SHOWN_PROBLEMS else ""
        raise CalibrationError(
            f"{len(broken)} labels in {name!r} are not on the scale {','.join(scale.labels)}; correct them, "
            f"declare a --scale that has them, or leave the cell empty when missing:\n" + "\n".join(rows) + more
        )
    return codes


def _named(frame: pd.DataFrame, name: str) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Places and distinct names of a column in which no cell may be empty."""
    import pandas as pd

    places, names = pd.factorize(frame[name])
    texts = ["" if text is None else str(text) for text in names]
    blank = np.flatnonzero(places == (texts.index("") if "" in texts else -1))
    if len(blank):
        raise CalibrationError(f"line {blank[0] + 2}: {name} is empty; every row names its {name}")
    return places, texts


def _refuse_repeated(key: npt.NDArray[np.integer[Any]], name: Callable[[int], str], rule: str) -> None:
    if np.bincount(key).max() == 1:
        return
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    again = np.flatnonzero(np.arange(len(key)) != first[inverse])
    rows = [f"line {row + 2}: {name(row)}" for row in again[:SHOWN_PROBLEMS]]
    raise CalibrationError(f"{len(again)} repeated rows; {rule}, remove or rename these:\n" + "\n".join(rows))


def _one_per_item(
    frame: pd.DataFrame, column: str, items: npt.NDArray[np.integer[Any]], names: Any
) -> tuple[str, ...] | None:
    if column not in frame.columns:
        return None
    texts = frame[column].fillna("").astype(str).str.strip().to_numpy(dtype=object)
    value = np.full(len(names), "", dtype=object)
    filled = texts != ""
    value[items[filled]] = texts[filled]
    conflicts = np.flatnonzero(filled & (texts != value[items]))
    if len(conflicts):
        row = conflicts[0]
        raise CalibrationError(
            f"line {row + 2}: item {names[items[row]]} has {column} {texts[row]!r} and {value[items[row]]!r}; "
            f"an item has one {column}"
        )
    if column == "cluster" and (value == "").any():
        item = names[np.flatnonzero(value == "")[0]]
        raise CalibrationError(f"item {item} has no cluster while others have one: fill it, the id itself will do")
    return tuple(value)
