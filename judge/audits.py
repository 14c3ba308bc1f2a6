"""`judge.audit`: a finished run and labels by people in, the audit of each rubric out, on paper and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge import calibrations
from judge.auditing import DESIGNS, SLICE_REPLICATES, audit_rubric
from judge.errors import UsageError
from judge.favouring import by_generator
from judge.further import Further, answers
from judge.halo import halo
from judge.labels import Labels, choose_raters, labels_of_cases, read_labels
from judge.lines import write_json
from judge.pairing import Pairing, pair
from judge.recalibrating import write_recalibrated
from judge.report import audit as audit_page
from judge.reviewing import write_review
from judge.rivals import Rival, rivals_of
from judge.runs import cases_of, manifest, rows, rubrics_of
from judge.verdicts import thresholds_of


@dataclass(frozen=True, slots=True)
class Audit:
    """The audits of a run by rubric id (the JSON of CONTRACTS 6), what was worth saying, and where it was written."""

    run: Path
    rubrics: dict[str, dict[str, Any]]
    notes: list[str] = field(default_factory=list)
    out: Path | None = None


def audit(
    run: str | Path,
    labels: Any = None,
    *,
    rubrics: str | Sequence[str] = (),
    rater: str | Sequence[str] = (),
    label_design: str = "unknown",
    thresholds: Mapping[str, float] | None = None,
    also: Sequence[str | Path] = (),
    out: str | Path | None = None,
    save: bool = False,
    calibration: str | Path | None = None,
    seed: int = 0,
    replicates: int = 9999,
    **further: Any,
) -> Audit:
    """Audits a finished run against labels by people, rubric by rubric, and writes RUN/audit (or `out`).

    `labels`: a file (long or wide, see `judge.labels`), a DataFrame or dicts; None takes the labels that the cases
    carry. `rater`: the people who count (default all); with a table that names no rater, the one name for it.
    `label_design` says how the labelled cases were chosen: random, external, or else there is no corrected mean.
    `thresholds`: {"kappa": .6, "ceiling": .1} and others, declared before looking. `also`: further runs on the same
    cases whose scores are compared. `save` writes a calibration for each rubric into `calibration`. `further`: the
    fields of `judge.further.Further` (against, panel, fit_bands and what belongs to them).
    Raises UsageError or InputError for what cannot be used; nothing is sent anywhere.
    """
    run = Path(run)
    if label_design not in DESIGNS:
        raise UsageError(f"--label-design {label_design!r}: choose {', '.join(DESIGNS)}")
    if seed < 0:
        raise UsageError(f"--seed {seed}: must be 0 or more, a whole number")
    if replicates < 100:
        raise UsageError(f"replicates is {replicates}: give 100 or more, fewer say nothing about an interval")
    declared, asked = thresholds_of(thresholds), Further(**further)
    made = manifest(run)
    chosen = _chosen(run, [rubrics] if isinstance(rubrics, str) else list(rubrics))
    people = [rater] if isinstance(rater, str) else list(rater)
    given = _labels(run, labels, list(chosen), people)
    notes = list(given.notes)
    judge = calibrations.identity(made["judge"])
    found: dict[str, dict[str, Any]] = {}
    pairings: dict[str, Pairing] = {}
    options: dict[str, Any] = {"seed": seed, "replicates": replicates}
    few: dict[str, Any] = {"seed": seed, "replicates": min(replicates, SLICE_REPLICATES)}
    for name, rubric in chosen.items():
        own = [label for label in given.given if label.rubric == name]
        if not own:
            notes.append(f"{name}: no labels, not audited")
            continue
        try:
            pairing = pair(rows(run), cases_of(run), own, rubric)
        except UsageError as error:
            if len(chosen) == 1 or type(error) is not UsageError:
                raise
            notes.append(f"{error}; not audited")
            continue
        if label_design == "random" and len(set(pairing.propensities.values())) > 1:
            raise UsageError(
                f"--label-design random: the labels for {name} were drawn with different chances (column propensity); "
                "give stratified for a sheet of `judge sheet --design stratified`, else propensity"
            )
        others = _others(pairing, [Path(path) for path in also], notes)
        page = audit_rubric(pairing, design=label_design, thresholds=declared, others=others, **options)
        page["by_generator"] = by_generator(pairing, made["judge"]["model"], **few)
        found[name] = _named(page, run, made, judge) | answers(pairing, run, label_design, asked, **options)
        pairings[name] = pairing
    if not found:
        raise UsageError("nothing could be audited:\n  " + "\n  ".join(notes))
    for name, together in halo(pairings, **few).items():
        found[name]["halo"] = together
    target = Path(out) if out is not None else run / "audit"
    _write(target, found)
    if save:
        notes += _save(Path(calibration) if calibration is not None else calibrations.DEFAULT, found)
    return Audit(run, found, notes, target)


def _chosen(run: Path, names: Sequence[str]) -> dict[str, Any]:
    known = rubrics_of(run)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"--rubrics {unknown[0]!r}: not in this run (it has: {', '.join(known)})")
    if (run / "comparisons.jsonl").exists() and not (run / "judgments.jsonl").exists():
        raise UsageError(f"{run} compares two systems; audit a `judge score` run")
    return {name: known[name] for name in (names or known)}


def _labels(run: Path, labels: Any, rubrics: Sequence[str], people: Sequence[str]) -> Labels:
    """The labels that count; one name for a table without raters names its person, else names choose among them."""
    if labels is None:
        return choose_raters(labels_of_cases(cases_of(run), rubrics), people)
    return choose_raters(read_labels(labels, rubrics, people[0] if len(people) == 1 else None), people)


def _others(pairing: Pairing, runs: Sequence[Path], notes: list[str]) -> dict[str, Rival]:
    """Scores of further runs for the rated cases; a case whose content differs there has none."""
    found: dict[str, Rival] = {}
    for other in runs:
        if pairing.rubric.id not in rubrics_of(other):
            notes.append(f"--also {other}: has no {pairing.rubric.id}, left out there")
            continue
        same = {one.case.id: one.case.content_hash() for one in pairing.rated}
        there = {case.id for case in cases_of(other) if same.get(case.id) == case.content_hash()}
        lines: dict[str, list[Mapping[str, Any]]] = {name: [] for name in there}
        for row in rows(other):
            if row["rubric"] == pairing.rubric.id and row["status"] == "scored" and row["case_id"] in there:
                lines[row["case_id"]].append(row)
        scores = rivals_of(pairing, [lines.get(one.case.id, []) for one in pairing.rated])
        scores.pop("overlap", None)
        if not scores:
            notes.append(f"--also {other}: shares too few of the labelled cases for {pairing.rubric.id}, left out")
        for name, rival in scores.items():
            free = name == "quick" and not pairing.quick and name not in found
            found[name if free else f"{name} of {other.name}"] = rival
    return found


def _named(audit: dict[str, Any], run: Path, made: Mapping[str, Any], judge: dict[str, Any]) -> dict[str, Any]:
    versions = made["judge"].get("model_returned") or []
    if len(versions) > 1:
        audit["warnings"].append(f"mixed_versions: {', '.join(versions)}: this audit holds for none of them")
    return {
        "rubric": audit["rubric"],
        "run": run.name,
        "judge": judge,
        "judge_fingerprint": calibrations.fingerprint(made["judge"]),
        **audit,
    }


def _write(target: Path, found: Mapping[str, dict[str, Any]]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name, audit in found.items():
        calibrated = audit.get("recalibrated")
        if calibrated:
            write_recalibrated(target / f"{name}-calibrated.csv", calibrated.pop("cases"))
        write_json(target / f"{name}.json", audit)
        write_review(target / f"{name}-review.csv", name, audit["review"])
    audit_page.write(target / "audit.md", found)


def _save(folder: Path, found: Mapping[str, dict[str, Any]]) -> list[str]:
    notes = []
    for name, audit in found.items():
        if audit["verdict"] == "too_few_labels":
            notes.append(f"{name}: too few labels to be saved as a calibration")
        elif len(audit["judge"]["model_returned"] or []) > 1:
            notes.append(f"{name}: several model versions answered in this run, so it is no calibration of any")
        else:
            notes.append(f"{name}: saved as {calibrations.save(folder, audit)}")
    return notes
