"""A judge's verdicts on pairs in both orders, and what two orders say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibration.errors import CalibrationError
from calibration.ratings import read_table

Codes = npt.NDArray[np.int64]

VERDICTS = ("a", "b", "tie", "both_fail", "error", "identical", "unasked")
A, B, TIE, BOTH_FAIL, ERROR, IDENTICAL, UNASKED = range(7)
OUTCOMES = ("a", "b", "tie", "both_fail", "inconsistent", "incomplete")
COMBINE: Mapping[tuple[str, str], str] = {
    ("a", "a"): "a",
    ("b", "b"): "b",
    ("tie", "tie"): "tie",
    ("both_fail", "both_fail"): "both_fail",
    ("identical", "identical"): "tie",
    ("a", "tie"): "tie",
    ("b", "tie"): "tie",
    ("tie", "both_fail"): "tie",
    ("a", "b"): "inconsistent",
    ("a", "both_fail"): "inconsistent",
    ("b", "both_fail"): "inconsistent",
    ("a", "unasked"): "a",
    ("b", "unasked"): "b",
    ("tie", "unasked"): "tie",
    ("both_fail", "unasked"): "both_fail",
}
POINTS = np.array([1.0, 0.0, 0.5, np.nan, 0.5, np.nan])
VERDICT_POINTS = np.array([1.0, 0.0, 0.5, np.nan, np.nan, 0.5, np.nan])


@dataclass(frozen=True, slots=True)
class PairVerdicts:
    """Verdicts in both orders, one row per comparison (repeats of a pair are rows with the same item and systems).

    `order1` was judged with a shown first, `order2` with b first; both are already mapped back to the systems:
    `a`, `b`, `tie`, `both_fail`, `error` (or None), `identical` in both where equal answers were not judged, and
    `unasked` in one where a draw left that order out. `systems` names (a, b) of each row when there are more than two.
    `decided` holds the outcome of each row where averages decide it and not the combine table. Items are questions:
    the unit of resampling.
    """

    items: Sequence[str]
    order1: Sequence[str | None]
    order2: Sequence[str | None]
    systems: Sequence[tuple[str, str]] | None = None
    decided: Sequence[str] | None = None

    def __post_init__(self) -> None:
        optional = (self.systems or self.items, self.decided or self.items)
        sizes = {len(column) for column in (self.items, self.order1, self.order2, *optional)}
        if len(sizes) > 1:
            raise CalibrationError(f"the columns have {sorted(sizes)} rows: give one entry per comparison")
        if not len(self.items):
            raise CalibrationError("there are no comparisons: a summary needs at least one pair")

    def codes(self) -> tuple[Codes, Codes]:
        """Both orders as places in VERDICTS; an unknown word is an error."""
        return _coded(self.order1, "order1"), _coded(self.order2, "order2")

    def combined(self) -> Codes:
        """One place in OUTCOMES per row, by the combine table (symmetric; anything with an error is incomplete)."""
        first, second = self.codes()
        return _combine_table()[first, second]

    def outcomes(self) -> Codes:
        """One place in OUTCOMES per row: as decided, else by the combine table."""
        if self.decided is None:
            return self.combined()
        return _places(self.decided, OUTCOMES, "decided", "outcome")

    def names(self) -> list[str]:
        """The outcome of each row as a word."""
        return [OUTCOMES[place] for place in self.outcomes()]

    def questions(self) -> Codes:
        """The question of each row as 0..G-1."""
        places: dict[str, int] = {}
        return np.array([places.setdefault(item, len(places)) for item in self.items], dtype=np.int64)

    def per_pair(self) -> tuple[Codes, Codes]:
        """Outcome and question of each pair over its repeats: the majority of complete ones, ties = tie."""
        keys: dict[Any, int] = {}
        names = self.systems if self.systems is not None else [None] * len(self.items)
        pairs = np.array(
            [keys.setdefault(key, len(keys)) for key in zip(self.items, names, strict=True)], dtype=np.int64
        )
        votes = np.zeros((len(keys), len(OUTCOMES)), dtype=np.int64)
        np.add.at(votes, (pairs, self.outcomes()), 1)
        complete = votes[:, :5]
        most = complete.max(axis=1)
        outcome = np.where((complete == most[:, None]).sum(axis=1) > 1, TIE, complete.argmax(axis=1))
        question = np.zeros(len(keys), dtype=np.int64)
        question[pairs] = self.questions()
        return np.where(most == 0, OUTCOMES.index("incomplete"), outcome), question


def _coded(column: Sequence[str | None], name: str) -> Codes:
    return _places(["error" if word is None else word for word in column], VERDICTS, name, "verdict")


def _places(column: Sequence[str], words: Sequence[str], name: str, kind: str) -> Codes:
    codes = [words.index(word) if word in words else -1 for word in column]
    if -1 in codes:
        row = codes.index(-1)
        raise CalibrationError(
            f"{name}, row {row + 1}: {column[row]!r} is no {kind}; use {', '.join(words)}, mapped to the systems"
        )
    return np.array(codes, dtype=np.int64)


def _combine_table() -> Codes:
    table = np.full((len(VERDICTS), len(VERDICTS)), OUTCOMES.index("incomplete"), dtype=np.int64)
    for (one, two), outcome in COMBINE.items():
        first, second = VERDICTS.index(one), VERDICTS.index(two)
        table[first, second] = table[second, first] = OUTCOMES.index(outcome)
    return table


def read_comparisons(path: str | Path) -> tuple[PairVerdicts, list[str | None] | None]:
    """Comparisons from a CSV `item,a,b,order1,order2[,human]`, and the human preferences when the column is there.

    Verdicts are words of VERDICTS, empty is error; an empty human cell is missing. The same systems twice on one
    item, equal names and unknown words are errors that name the line.
    """
    frame = read_table(path)
    absent = [name for name in ("item", "a", "b", "order1", "order2") if name not in frame.columns]
    if absent:
        raise CalibrationError(f"{path}: no column {absent[0]!r} among {', '.join(frame.columns)}")
    columns = {name: [str(cell).strip() for cell in frame[name]] for name in frame.columns}
    seen: set[tuple[str, frozenset[str]]] = set()
    for row, (item, a, b) in enumerate(zip(columns["item"], columns["a"], columns["b"], strict=True)):
        if not (item and a and b) or a == b:
            raise CalibrationError(f"{path}, line {row + 2}: {item},{a},{b}: name the item and two different systems")
        if (item, frozenset((a, b))) in seen:
            raise CalibrationError(f"{path}, line {row + 2}: item {item} compares {a} and {b} twice; keep one row")
        seen.add((item, frozenset((a, b))))
    for name in ("order1", "order2", "human"):
        for row, word in enumerate(columns.get(name, [])):
            if word and word not in VERDICTS:
                raise CalibrationError(
                    f"{path}, line {row + 2}: {name} is {word!r}; use {', '.join(VERDICTS)}, mapped to the systems"
                )
    verdicts = PairVerdicts(
        items=columns["item"], order1=[word or None for word in columns["order1"]],
        order2=[word or None for word in columns["order2"]],
        systems=list(zip(columns["a"], columns["b"], strict=True)),
    )  # fmt: skip
    humans = [word or None for word in columns["human"]] if "human" in columns else None
    return verdicts, humans
