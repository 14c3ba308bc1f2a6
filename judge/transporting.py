"""Do calibrated scores hold elsewhere? The curve of one run's labels, tested on labelled cases of another run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibration.agreement import as_json
from calibration.drift import MARGIN_SHARE
from calibration.recalibration import FIT_FROM, transport_audits
from judge.drifting import changes_between
from judge.errors import UsageError
from judge.labels import choose_raters, labels_of_cases, read_labels
from judge.pairing import Pairing, pair
from judge.recalibrating import can_be_fitted, curve_of
from judge.runs import cases_of, manifest, rows, rubrics_of


def transport_of(
    pairing: Pairing,
    design: str,
    run: Path,
    target: Path,
    *,
    labels: Any = None,
    margin: float | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """The mean of people minus calibrated score on the target's labelled cases, per system of the target.

    `labels`: a labels file for the target (None: those that its cases carry), a random sample of its cases; the curve
    is fitted to the labels of `pairing`, which must be graded, 30 or more, and a random sample. Cases that both runs
    share are left out. `margin` in marks (default 5% of the scale). UsageError where there is no curve or no target.
    """
    rubric = pairing.rubric
    if not can_be_fitted(pairing, design):
        raise UsageError(
            f"--transport: {rubric.id} has no calibrated scores to test: they need --label-design random and "
            f"{FIT_FROM} marks by people or more, these are {len(pairing.rated)} ({pairing.form}, design {design})"
        )
    if rubric.id not in rubrics_of(target):
        raise UsageError(f"--transport {target}: was not judged by {rubric.id!r}; give a run with that rubric")
    cases = list(cases_of(target))
    if labels is None and not any(case.labels.get(rubric.id) for case in cases):
        raise UsageError(f"--transport {target}: its cases carry no {rubric.id} labels; give --transport-labels FILE")
    given = labels_of_cases(cases, [rubric.id]) if labels is None else read_labels(labels, [rubric.id])
    there = pair(rows(target), cases_of(target), choose_raters(given, ()).given, rubric)
    if there.form != "scale":
        raise UsageError(f"--transport {target}: its labels are pass and fail; the curve speaks of marks")
    fitted = {one.case.content_hash() for one in pairing.rated}
    fresh = [one for one in there.rated if one.case.content_hash() not in fitted]
    if not fresh:
        raise UsageError(f"--transport {target}: all its labelled cases are those that the curve was fitted to")
    questions = [there.judged[one.case.id].question for one in fresh]
    span = float(rubric.scale.max - rubric.scale.min)
    found = transport_audits(
        curve_of(pairing), [one.score for one in fresh], [one.label for one in fresh],
        [one.case.system or target.name for one in fresh],
        delta=MARGIN_SHARE * span if margin is None else margin,
        clusters=questions if len(set(questions)) < len(questions) else None,
    )  # fmt: skip
    return {
        "target": target.name,
        "changed": changes_between(manifest(run), manifest(target), rubric.id),
        "left_out": len(there.rated) - len(fresh),
        "systems": [{"system": name} | as_json(audit) for name, audit in found.items()],
    }
