"""What people would have said to each case: the judge's scores through a monotone curve, the raw ones kept beside."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibration.agreement import as_json
from calibration.confidence import confidence
from calibration.recalibration import FIT_FROM, Curve, isotonic, recalibrate
from calibration.sample import Pair
from judge.exporting import inert
from judge.pairing import Pairing

COLUMNS = ("case_id", "score", "expected_human_score", "labelled")


def recalibrated(pairing: Pairing, design: str, *, seed: int = 0) -> dict[str, Any] | None:
    """The curve from judge score to expected human score, and the mean it leads to; None below 30 labels.

    Only for graded labels of a random sample: another design needs weights, and pass and fail labels have no scale.
    Labelled cases carry out-of-fold predictions. `cases`: (case, raw score, expected human score, labelled).
    """
    if not can_be_fitted(pairing, design):
        return None
    labelled = [one.case.id for one in pairing.rated]
    known = set(labelled)
    others = sorted(name for name in pairing.judged if name not in known)
    found = recalibrate(
        [one.label for one in pairing.rated],
        [one.score for one in pairing.rated],
        [pairing.judged[name].score for name in others],
        clusters=_questions(pairing, labelled, others), seed=seed,
    )  # fmt: skip
    scored = [*((one.case.id, one.score) for one in pairing.rated), *((n, pairing.judged[n].score) for n in others)]
    expected = [*found.out_of_fold, *found.expected]
    return {
        "curve": as_json(found.curve),
        "corrected": found.corrected.to_dict(),
        "cases": [
            (name, score, value, name in known) for (name, score), value in zip(scored, expected, strict=True)
        ],
    }  # fmt: skip


def can_be_fitted(pairing: Pairing, design: str) -> bool:
    """Whether the labels allow a curve: graded, a random sample, 30 or more."""
    return design == "random" and pairing.form == "scale" and len(pairing.rated) >= FIT_FROM


def curve_of(pairing: Pairing) -> Curve:
    """The curve of all labels, from judge score to expected human score."""
    return isotonic([one.score for one in pairing.rated], [one.label for one in pairing.rated])


def _questions(pairing: Pairing, labelled: Sequence[str], others: Sequence[str]) -> Pair | None:
    """The questions of both sides, where several judged cases share one."""
    asked = ([pairing.judged[name].question for name in labelled], [pairing.judged[name].question for name in others])
    return asked if len({*asked[0], *asked[1]}) < len(asked[0]) + len(asked[1]) else None


def write_recalibrated(path: Path, cases: Sequence[tuple[str, float, float, bool]]) -> None:
    """The scores of every case, raw and calibrated, as a CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for name, score, expected, labelled in cases:
            writer.writerow([inert(name), f"{score:g}", f"{expected:.4f}", "yes" if labelled else "no"])


def confidence_of(pairing: Pairing, *, seed: int = 0) -> dict[str, Any] | None:
    """Whether the probabilities of a quick judge mean what they say; None for a full one."""
    if not pairing.quick:
        return None
    found: dict[str, Any] = as_json(
        confidence(
            [one.p for one in pairing.rated],
            [pairing.people_pass(one) for one in pairing.rated],
            clusters=pairing.clusters, seed=seed,
        )
    )  # fmt: skip
    return found
