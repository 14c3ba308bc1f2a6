"""Bands fitted to labels, as a rubric file of its own: the replies stay, only the map from share to level changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rubrics as rubric_files
from calibration.agreement import as_json
from calibration.bands import FIT_FROM, fit_bands
from calibration.errors import CalibrationError
from judge.drifting import most_said
from judge.errors import UsageError
from judge.pairing import Pairing, Rated
from rubrics.model import Rubric
from rubrics.scoring import cuts

RATES = {
    "claims": "support_rate", "nuggets": "coverage", "facts": "fact_match", "citations": "f1", "checklist": "met_share"
}  # fmt: skip
BETTER = "they agree better with people, also on cases they were not fitted to: worth using"
NO_BETTER = "no evidence that they agree better with people on cases they were not fitted to: keep the old ones"
SUFFIX = "_fitted"


def fitted_bands(pairing: Pairing, *, seed: int = 0, replicates: int = 9999) -> dict[str, Any]:
    """The bands that the labels ask for, and their agreement out of fold. UsageError when they cannot be fitted.

    For graded labels of a full-mode run, 100 labelled cases or more, and rubrics whose score is a share through bands.
    Of repeats the first counts.
    """
    rubric = pairing.rubric
    if rubric.mode not in RATES:
        raise UsageError(f"--fit-bands: {rubric.id} ({rubric.mode}) has no bands; modes with bands: {', '.join(RATES)}")
    if pairing.quick or pairing.form != "scale":
        seen = "a quick run" if pairing.quick else "pass and fail labels"
        raise UsageError(f"--fit-bands: {rubric.id} needs marks by people on a full-mode run; this is {seen}")
    usable = [
        (one, rate, said)
        for one in pairing.rated
        if (rate := _rate(rubric, one)) is not None and (said := most_said(pairing, one)) is not None
    ]
    if len(usable) < FIT_FROM:
        raise UsageError(
            f"--fit-bands: {rubric.id} has {len(usable)} labelled cases with a share and a majority, {FIT_FROM} are "
            "needed; bands from fewer would follow chance"
        )
    places = {one.case.id: at for at, one in enumerate(pairing.rated)}
    questions = pairing.clusters
    before = {level: float(cut) for level, cut in cuts(rubric)}
    try:
        found = fit_bands(
            [rate for _, rate, _ in usable],
            [one.label for one, _, _ in usable],
            [int(said) for _, _, said in usable],
            [round(one.lines[0]["score"]) for one, _, _ in usable],
            before, rubric.scale.levels,
            clusters=None if questions is None else [questions[places[one.case.id]] for one, _, _ in usable],
            seed=seed, replicates=replicates,
        )  # fmt: skip
    except CalibrationError as error:
        raise UsageError(f"--fit-bands: {rubric.id}: {error}") from None
    better = found.difference.ci_low is not None and found.difference.ci_low > 0
    document: dict[str, Any] = as_json(found)
    bands = {name: {str(level): cut for level, cut in sorted(cuts_.items())}
             for name, cuts_ in (("before", before), ("after", found.after))}  # fmt: skip
    return document | bands | {"better": better, "advice": BETTER if better else NO_BETTER}


def _rate(rubric: Rubric, one: Rated) -> float | None:
    details = one.lines[0]["details"]
    if RATES[rubric.mode] == "support_rate" and "hallucination_rate" in details:
        return 1 - float(details["hallucination_rate"])
    value = details.get(RATES[rubric.mode])
    return None if value is None else float(value)


def write_rubric(folder: Path, rubric: Rubric, found: Mapping[str, Any], run: str) -> Path:
    """ID_fitted.md in a folder: extends the rubric and changes its bands; an existing file is not overwritten.

    The rubric it extends must be bundled or in the same folder. The prompt stays the same, so scoring the same cases
    with it settles the stored replies again and costs nothing.
    """
    name = rubric.id + SUFFIX
    path = folder / f"{name}.md"
    if path.exists():
        raise UsageError(f"{path} is there already: move it away, or give another --rubrics-dir")
    folder.mkdir(parents=True, exist_ok=True)
    bands = ", ".join(f"{level}: {cut:g}" for level, cut in sorted(found["after"].items(), reverse=True))
    title = rubric.title.replace('"', "'")
    path.write_text(
        f'---\nid: {name}\nversion: 1.0.0\ntitle: "{title}, fitted bands"\nextends: {rubric.id}\n'
        f"# fitted to {found['n']} labelled cases of the run {run!a}\nbands: {{{bands}}}\n---\n",
        encoding="utf-8",
    )
    problems = [one.what for one in rubric_files.check(path, [folder]) if one.severity == "error"]
    if problems:
        path.unlink()
        raise UsageError(f"{name} cannot be used from {folder}: {problems[0]}")
    return path
