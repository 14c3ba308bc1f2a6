"""Has the judge changed? A run against an older one on the same labelled cases: the anchor set of an audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibration.agreement import as_json
from calibration.drift import drift
from calibration.errors import CalibrationError
from calibration.estimate import mean
from judge import calibrations
from judge.errors import UsageError
from judge.labels import scale_of
from judge.pairing import PASS_FAIL, Pairing, Rated
from judge.runs import cases_of, manifest, rows, rubrics_of


def drift_of(
    pairing: Pairing,
    run: Path,
    old: Path,
    *,
    margin: float | None = None,
    looks: int = 1,
    earlier: Sequence[float] = (),
    seed: int = 0,
    replicates: int = 9999,
) -> dict[str, Any]:
    """Old run against new on the cases that people labelled, both judged on the same content.

    Levels where marks are compared, else pass and fail; of repeats the first counts. Several people count by the
    label that most of them gave; a tie is left out. `changed`: what differs between the two judges. `p_shift`: the
    mean change of the normalised score, which sees what levels and verdicts do not. `looks`: looks planned in all,
    `earlier`: the p of those before this one.
    """
    if pairing.rubric.id not in rubrics_of(old):
        raise UsageError(f"--against {old}: was not judged by {pairing.rubric.id!r}; give a run with that rubric")
    before = first_lines(pairing, old)
    after = {one.case.id: one.lines[0] for one in pairing.rated}
    scale = PASS_FAIL if pairing.on_passes else scale_of(pairing.rubric)
    questions = pairing.clusters
    shared = [one.case.id for one in pairing.rated if one.case.id in before]
    try:
        found = drift(
            {name: label_of(pairing, line) for name, line in before.items()},
            {name: label_of(pairing, line) for name, line in after.items()},
            {one.case.id: most_said(pairing, one) for one in pairing.rated},
            scale=scale,
            clusters=None if questions is None else dict(zip(after, questions, strict=True)),
            margin=margin, looks=looks, earlier=earlier, seed=seed, replicates=replicates,
        )  # fmt: skip
    except CalibrationError as error:
        raise UsageError(f"--against {old}: {error}") from None
    shifts = [after[name]["normalized"] - before[name]["normalized"] for name in shared]
    document: dict[str, Any] = as_json(found)
    return document | {
        "against": old.name,
        "changed": changes_between(manifest(run), manifest(old), pairing.rubric.id),
        "p_shift": mean(shifts, bounds=(-1.0, 1.0)).to_dict(),
    }


def first_lines(pairing: Pairing, old: Path) -> dict[str, Mapping[str, Any]]:
    """The first scored line of each rated case whose content is the same in the old run."""
    content = {one.case.id: one.case.content_hash() for one in pairing.rated}
    same = {case.id for case in cases_of(old) if content.get(case.id) == case.content_hash()}
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows(old):
        if row["rubric"] == pairing.rubric.id and row["status"] == "scored" and row["case_id"] in same:
            found.setdefault(row["case_id"], row)
    return found


def label_of(pairing: Pairing, line: Mapping[str, Any]) -> str:
    if pairing.on_passes:
        return "pass" if line["passed"] else "fail"
    return f"{line['score']:g}"


def most_said(pairing: Pairing, one: Rated) -> str | None:
    """What most people said; None when they are split."""
    if pairing.on_passes:
        passed = pairing.people_pass(one)
        return None if passed is None else "pass" if passed else "fail"
    counts = Counter(one.people.values()).most_common(2)
    tied = len(counts) > 1 and counts[0][1] == counts[1][1]
    return None if tied else f"{counts[0][0]:g}"


def changes_between(new: Mapping[str, Any], old: Mapping[str, Any], rubric: str) -> list[str]:
    judges = [made["judge"] for made in (new, old)]
    differing = [name for name in calibrations.IDENTITY if judges[0].get(name) != judges[1].get(name)]
    hashes = [made["rubrics"][rubric]["rubric_hash"] for made in (new, old)]
    return [f"{name} of the judge" for name in differing] + (["rubric"] if hashes[0] != hashes[1] else [])
