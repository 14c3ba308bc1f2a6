"""What an audit answers beyond agreement: drift, transport, panels, calibrated scores, probabilities, bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.drifting import drift_of
from judge.fitting import fitted_bands, write_rubric
from judge.pairing import Pairing
from judge.panels import panel_of
from judge.recalibrating import confidence_of, recalibrated
from judge.transporting import transport_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Further:
    """Further questions of an audit.

    `against`: an older run on the same cases (`margin`: harmless shift of the mean in marks, `looks`: comparisons
    planned in all, `earlier`: the p of those before this one). `transport`: a run on other cases, with labels of its
    own (`transport_labels`, default those that its cases carry), on which the calibrated scores are tested. `panel`:
    other judges' runs, joined with this one; `dawid_skene` adds latent labels. `fit_bands`: the folder that a rubric
    with fitted bands is written to.
    """

    against: str | Path | None = None
    margin: float | None = None
    looks: int = 1
    earlier: Sequence[float] = ()
    transport: str | Path | None = None
    transport_labels: Any = None
    panel: Sequence[str | Path] = ()
    dawid_skene: bool = False
    fit_bands: str | Path | None = None


def answers(pairing: Pairing, run: Path, design: str, asked: Further, **options: Any) -> dict[str, Any]:
    """The entries of an audit for what was asked, and those that cost nothing to give; `options`: seed, replicates."""
    found: dict[str, Any] = {
        "recalibrated": recalibrated(pairing, design, seed=options["seed"]),
        "confidence": confidence_of(pairing, seed=options["seed"]),
    }
    if asked.against is not None:
        old = Path(asked.against)
        looks: dict[str, Any] = {"margin": asked.margin, "looks": asked.looks, "earlier": asked.earlier}
        found["drift"] = drift_of(pairing, run, old, **looks, **options)
    if asked.transport is not None:
        target = Path(asked.transport)
        held = {"labels": asked.transport_labels, "margin": asked.margin, "seed": options["seed"]}
        found["transport"] = transport_of(pairing, design, run, target, **held)
    if asked.panel:
        others = [Path(one) for one in asked.panel]
        found["panel"] = panel_of(pairing, run, others, dawid_skene=asked.dawid_skene, **options)
    if asked.fit_bands is not None:
        fitted = fitted_bands(pairing, **options)
        written = write_rubric(Path(asked.fit_bands), pairing.rubric, fitted, run.name)
        found["bands"] = fitted | {"rubric_file": str(written)}
    return found
