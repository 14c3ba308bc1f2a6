"""The page of the bias probes: for each edit how far scores moved, and whether that is more than a rerun moves them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibration.estimate import BOOTSTRAP_FROM
from judge.report.page import Section, counted, estimated, markdown
from judge.swaying import WORDS

ASKED = {"same": "stays", "not_higher": "not up", "lower": "falls"}


def sections(found: Mapping[str, Any]) -> list[Section]:
    """One table over all probes and rubrics, one by score before the edit, and what they mean."""
    rows, levels, notes = [], [], []
    for name, one in found["probes"].items():
        for rubric, result in one["rubrics"].items():
            rows.append([
                name, rubric, str(result["n"]), ASKED[result["expected"]], estimated(result["shift"]),
                estimated(result["excess_flips"], percent=True), estimated(result["detected"], percent=True)
                if result["expected"] == "lower" else "–", WORDS[result["verdict"]],
            ])  # fmt: skip
            levels += [
                [name, rubric, str(one["level"]), str(one["n"]), _enough(one["shift"]),
                 _enough(one["excess_flips"], percent=True)]
                for one in result["by_level"]
            ]  # fmt: skip
            if result["lost"]:
                notes.append(f"{name}, {rubric}: no score any more: {counted(result['lost'])}")
            if name == "prompt_wording":
                notes.append(f"{rubric}: kappa between the two wordings {estimated(result['kappa'])}")
    columns = ["probe", "rubric", "cases", "score", "shift in marks", "flips beyond a rerun's", "noticed", "verdict"]
    notes += [
        "shift: edited minus original, the same case; not swayed: surely within 5% of the scale",
        "noticed: share of damaged answers that lose more than 5% of the scale; 90% are asked for",
        f"shift and flips beyond a rerun's: bootstrap of the cases, seed {found['seed']}",
        "a judge that always gives the top mark passes every probe but the last kind",
    ]
    by_level = ["probe", "rubric", "score before", "cases", "shift in marks", "flips beyond a rerun's"]
    return [
        Section(f"Bias probes of {found['run']}", columns, rows, notes),
        Section(
            "By the score before the edit", by_level, levels, [f"too few: under {BOOTSTRAP_FROM} cases at that score"]
        ),
    ]


def _enough(estimate: Mapping[str, Any], percent: bool = False) -> str:
    """An Estimate of one score level, where there are cases enough for one."""
    return "too few" if estimate["reason"] == f"n_below_{BOOTSTRAP_FROM}" else estimated(estimate, percent=percent)


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Writes probes.md."""
    path.write_text(markdown("Bias probes", sections(found)), encoding="utf-8")
