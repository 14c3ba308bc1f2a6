"""Labels by people: read from a long table, a wide one, or the cases themselves, and checked against the rubric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from calibration.ratings import Scale, declare_scale
from judge.cases import Case
from judge.errors import InputError, UsageError
from judge.exporting import uninert
from judge.imports.native import did_you_mean
from judge.imports.rows import FieldError, Problem, Row, shown
from judge.imports.tabular import open_table
from rubrics.model import Rubric

Form = Literal["scale", "pass_fail"]
PASS_WORDS = {"pass": 1, "fail": 0, "yes": 1, "no": 0, "true": 1, "false": 0}
UNNAMED = "human"
JUDGE = "judge"


class MissingColumn(FieldError):
    """A column that every row needs: in a table said once, for all rows."""


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """One label by one person; `place` says where it stands ("labels.csv:12").

    `propensity` is the probability with which the case was drawn for labelling, where the file records it.
    """

    case_id: str
    rubric: str
    rater: str
    label: str
    place: str
    propensity: float | None = None


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels that are there (empty cells are left out), and what was worth saying about the file."""

    given: tuple[HumanLabel, ...]
    notes: tuple[str, ...] = ()


def read_labels(source: Any, rubrics: Sequence[str], rater: str | None = None) -> Labels:
    """Labels of a CSV, JSONL, JSON or Parquet file (or a DataFrame, or dicts) for the rubrics of a run.

    Long form: `case_id, label` and, where needed, `rubric`, `rater` and `propensity`. Wide form: `case_id` and one
    column per rubric.
    `rater` names the person where the file does not (default `human`). An empty label is a missing one. All unusable
    rows are listed in one InputError; rubrics that the run does not have are left out with a note.
    """
    if isinstance(source, str | Path) and str(source) != "-" and not Path(source).is_file():
        raise InputError(f"{source}: no such labels file; give a CSV or JSONL, or none when the cases carry labels")
    table = open_table(source, None)
    problems: list[str] = []
    found: list[HumanLabel] = []
    foreign: dict[str, int] = {}
    for row in table.rows:
        try:
            for label in _of_row(_usable(row), rubrics, rater, table.place(row.at)):
                if label.rubric in rubrics:
                    found.append(label)
                else:
                    foreign[label.rubric] = foreign.get(label.rubric, 0) + 1
        except FieldError as error:
            if table.cells and isinstance(error, MissingColumn):
                raise InputError(f"{table.name}: {error}") from None
            problems.append(f"{table.place(row.at)} {error}")
    if problems:
        raise InputError(f"{table.name}: {len(problems)} rows cannot be used", problems)
    notes = [
        f"{table.name}: {n} labels for {name!r} are left out: the run has {', '.join(rubrics)}"
        f"{did_you_mean(name, rubrics)}"
        for name, n in foreign.items()
    ]
    if not found:
        raise InputError(f"{table.name}: no label for {', '.join(rubrics)} in it; {' '.join(notes) or 'fill `label`'}")
    return Labels(_unrepeated(found), (*table.warnings, *notes))


def labels_of_cases(cases: Iterable[Case], rubrics: Sequence[str]) -> Labels:
    """The labels that travel with the cases, for the rubrics of a run."""
    found = [
        HumanLabel(case.id, rubric, rater, text, f"case {case.id}")
        for case in cases
        for rubric, given in case.labels.items()
        if rubric in rubrics
        for rater, value in given.items()
        if (text := _text("label", value))
    ]
    if not found:
        raise UsageError(
            f"the cases carry no labels for {', '.join(rubrics)}: give a LABELS file (case_id,rater,rubric,label), "
            "or draw a sheet to be filled with `judge sheet`"
        )
    return Labels(_unrepeated(found))


def choose_raters(labels: Labels, raters: Sequence[str]) -> Labels:
    """Only the labels of these people; an unknown name is an error that lists the known ones."""
    known = sorted({label.rater for label in labels.given})
    for name in raters:
        if name not in known:
            raise UsageError(f"--rater {name!r}: no such rater in the labels (there are: {', '.join(known)})")
    kept = tuple(label for label in labels.given if label.rater in raters) if raters else labels.given
    if any(label.rater == JUDGE for label in kept):
        raise UsageError(
            f"a rater of the labels is called {JUDGE!r}, the name of the audited judge: rename the person, or name "
            "the people who count with --rater"
        )
    return replace(labels, given=kept)


def values_of(labels: Sequence[HumanLabel], rubric: Rubric) -> tuple[Form, dict[tuple[str, str], int]]:
    """The labels of one rubric as numbers per (case, rater): its levels, or 1 and 0 when they are pass and fail words.

    A label off the scale, or marks and words mixed, is an InputError that lists all such labels.
    """
    words = [label for label in labels if label.label.strip().lower() in PASS_WORDS]
    if len(words) == len(labels):
        return "pass_fail", {(one.case_id, one.rater): PASS_WORDS[one.label.strip().lower()] for one in labels}
    scale = scale_of(rubric)
    codes = [(label, scale.code(label.label)) for label in labels]
    wrong = [f"{one.place} ({one.case_id}, {one.rater}): {shown(one.label)}" for one, code in codes if code is None]
    if wrong:
        low, high = rubric.scale.min, rubric.scale.max
        mixed = "; marks and words are mixed" if words else ""
        raise InputError(
            f"{len(wrong)} labels for {rubric.id!r} are not on its scale {low}..{high}{mixed}: give whole marks from "
            f"{low} to {high}, or only the words pass and fail",
            wrong,
        )
    return "scale", {(one.case_id, one.rater): rubric.scale.levels[code] for one, code in codes if code is not None}


def scale_of(rubric: Rubric) -> Scale:
    """The declared scale of a rubric, for the statistics."""
    return declare_scale(rubric.scale.levels)


def _usable(row: Row | Problem) -> Mapping[str, Any]:
    if isinstance(row, Problem):
        raise FieldError(row.text)
    return row.data


def _of_row(data: Mapping[str, Any], rubrics: Sequence[str], rater: str | None, place: str) -> list[HumanLabel]:
    columns = ", ".join(map(str, data))
    if "case_id" not in data:
        raise MissingColumn(
            f"case_id: no such column (the columns are {columns}); name the column of the ids `case_id`"
        )
    case = uninert(_text("case_id", data["case_id"]))
    if not case:
        raise FieldError("case_id: empty; every row names its case")
    person = _text("rater", data.get("rater")) or rater or UNNAMED
    if "label" in data:
        rubric = _text("rubric", data.get("rubric")) or (rubrics[0] if len(rubrics) == 1 else "")
        label = uninert(_text("label", data["label"]))
        if label and not rubric:
            raise FieldError(f"rubric: empty, and the run has several; name one of {', '.join(rubrics)}")
        return [HumanLabel(case, rubric, person, label, place, _propensity(data))] if label else []
    named = [name for name in rubrics if name in data]
    if not named:
        raise MissingColumn(
            f"label: no such column, and none named after a rubric (the columns are {columns}); give `case_id,rater,"
            f"rubric,label`, or `case_id` and one column per rubric: {', '.join(rubrics)}"
        )
    cells = [(name, uninert(_text(name, data[name]))) for name in named]
    return [HumanLabel(case, name, person, text, place) for name, text in cells if text]


def _propensity(data: Mapping[str, Any]) -> float | None:
    text = _text("propensity", data.get("propensity"))
    if not text:
        return None
    try:
        chance = float(text)
    except ValueError:
        chance = 0.0
    if not 0 < chance <= 1:
        raise FieldError(f"propensity: {shown(text)}, a probability above 0, at most 1, is needed")
    return chance


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise FieldError(f"{name}: {shown(value)}, text or a number is needed")


def _unrepeated(found: Sequence[HumanLabel]) -> tuple[HumanLabel, ...]:
    first: dict[tuple[str, str, str], HumanLabel] = {}
    again = []
    for label in found:
        earlier = first.setdefault((label.case_id, label.rubric, label.rater), label)
        if earlier is not label:
            again.append(
                f"{label.place} ({label.case_id}, {label.rubric}, {label.rater}): {label.label!r}, "
                f"at {earlier.place} {earlier.label!r}"
            )
    if again:
        raise InputError(f"{len(again)} labels are given twice; one label per case, rubric and rater", again)
    return tuple(found)
