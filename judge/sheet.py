"""A blind sheet for people: cases drawn by a stated design, all that a rater needs, nothing the judge said."""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from judge.cases import Case
from judge.errors import UsageError
from judge.exporting import inert
from judge.runs import cases_of, manifest, rows, rubrics_of
from rubrics.model import Rubric

Design = Literal["random", "stratified"]
COLUMNS = ("case_id", "rater", "rubric", "label", "question", "passages", "answer", "reference", "marks",
           "propensity")  # fmt: skip
QUICK_STRATA = 5


@dataclass(frozen=True, slots=True)
class Drawn:
    """A case drawn for one rubric, with the probability that the design gave it."""

    case_id: str
    rubric: str
    propensity: float


def write_sheet(
    run: Path, out: Path, *, n: int, design: Design, seed: int, rubrics: Sequence[str] = ()
) -> dict[str, int]:
    """Writes a sheet of n cases per rubric (all when there are fewer); returns how many rows each rubric got.

    Only cases that the judge scored are drawn. `random`: the same cases for every rubric where all were scored.
    `stratified`: by the judge's score, each level as often as it has cases for. The sheet shows neither score nor
    level nor system nor tags; rows come in random order. With `propensity` (the probability of having been drawn) the
    filled sheet is a LABELS file.
    """
    if n < 1:
        raise UsageError(f"--n {n}: draw one case or more")
    manifest(run)
    _keep_labels(out)
    known = rubrics_of(run)
    unknown = [name for name in rubrics if name not in known]
    if unknown:
        raise UsageError(f"--rubrics {unknown[0]!r}: not in this run (it has: {', '.join(known)})")
    chosen = {name: known[name] for name in (rubrics or known)}
    strata = _strata(run, chosen)
    if not any(strata.values()):
        raise UsageError(f"{run}: no case has a score for {', '.join(chosen)}; there is nothing to be labelled")
    drawn = [one for name, found in strata.items() for one in draw(name, found, n=n, design=design, seed=seed)]
    wanted = {one.case_id for one in drawn}
    cases = {case.id: case for case in cases_of(run) if case.id in wanted}
    order = sorted(cases)
    random.Random(seed).shuffle(order)
    place = {name: at for at, name in enumerate(order)}
    drawn.sort(key=lambda one: (place[one.case_id], list(chosen).index(one.rubric)))
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for one in drawn:
            writer.writerow(_row(one, cases[one.case_id], chosen[one.rubric]))
    return {name: sum(one.rubric == name for one in drawn) for name in chosen}


def unjudged(run: Path, rubrics: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Rubric -> (cases without a judgment line, all cases), where a run was stopped before its end."""
    present = {case.id for case in cases_of(run)}
    reached: dict[str, set[str]] = {name: set() for name in rubrics}
    for row in rows(run):
        if row["rubric"] in reached:
            reached[row["rubric"]].add(row["case_id"])
    return {name: (len(present - found), len(present)) for name, found in reached.items() if present - found}


def _keep_labels(out: Path) -> None:
    """Refuses to write over a file that may hold the labels of people: only an unfilled sheet gives way."""
    if not out.exists():
        return
    try:
        with out.open(encoding="utf-8", newline="") as file:
            sheet = csv.DictReader(file)
            unfilled = tuple(sheet.fieldnames or ()) == COLUMNS and not any(row["label"] for row in sheet)
    except (OSError, UnicodeDecodeError, csv.Error):
        unfilled = False
    if not unfilled:
        raise UsageError(f"--out {out}: exists and is no unfilled sheet (it may hold labels); give another file name")


def draw(rubric: str, strata: Mapping[str, Sequence[str]], *, n: int, design: Design, seed: int) -> list[Drawn]:
    """n cases from the strata (stratum -> case ids), each with its inclusion probability; seeded.

    random: n of all, n / N each. stratified: equal shares of n, what a small stratum cannot give goes to the others;
    n_h / N_h each.
    """
    everything = sorted(case for cases in strata.values() for case in cases)
    if design == "random":
        groups, sizes = {"all": everything}, {"all": min(n, len(everything))}
    else:
        groups = {name: sorted(cases) for name, cases in strata.items() if cases}
        sizes = allocation({name: len(cases) for name, cases in groups.items()}, n)
    return [
        Drawn(case, rubric, sizes[name] / len(cases))
        for name, cases in groups.items()
        for case in sorted(cases, key=_ranks(cases, seed).__getitem__)[: sizes[name]]
    ]


def _ranks(cases: Sequence[str], seed: int) -> dict[str, float]:
    """A random rank per case; it depends on seed and id alone, so rubrics with the same cases draw the same ones."""
    return {case: random.Random(f"{seed}\x1f{case}").random() for case in cases}


def allocation(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """How many to draw from each stratum: equal shares, capped by its size, the rest given on."""
    given = dict.fromkeys(sizes, 0)
    left = min(n, sum(sizes.values()))
    while left:
        open_strata = [name for name in sizes if given[name] < sizes[name]]
        for name in open_strata[:left] if left < len(open_strata) else open_strata:
            share = max(1, left // len(open_strata))
            given[name] += min(share, sizes[name] - given[name])
        left = min(n, sum(sizes.values())) - sum(given.values())
    return given


def _strata(run: Path, chosen: Mapping[str, Rubric]) -> dict[str, dict[str, list[str]]]:
    """Scored cases of each rubric by the judge's score: its level, or a fifth of p in quick mode."""
    present = {case.id for case in cases_of(run)}
    found: dict[str, dict[str, list[str]]] = {name: {} for name in chosen}
    for row in rows(run):
        if row["rubric"] in found and row["status"] == "scored" and row["repeat"] == 0 and row["case_id"] in present:
            found[row["rubric"]].setdefault(stratum_of(row), []).append(row["case_id"])
    return found


def stratum_of(row: Mapping[str, Any]) -> str:
    """The stratum that a scored line is drawn from: its level, or its fifth of p in quick mode."""
    if row["mode"] == "quick":
        return f"p {min(int(row['normalized'] * QUICK_STRATA), QUICK_STRATA - 1)}"
    return f"{row['score']:g}"


def _row(one: Drawn, case: Case, rubric: Rubric) -> dict[str, Any]:
    texts = {
        "case_id": case.id,
        "rater": "",
        "rubric": one.rubric,
        "label": "",
        "question": case.question,
        "passages": "\n\n".join(f"[{passage.id}] {passage.text}" for passage in case.contexts or ()),
        "answer": case.answer or "",
        "reference": "\n".join(case.reference or ()),
        "marks": "; ".join(f"{level} = {text}" for level, text in sorted(rubric.anchors.items(), reverse=True)),
    }
    return {name: inert(text) for name, text in texts.items()} | {"propensity": f"{one.propensity:.6g}"}
