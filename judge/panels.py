"""Several judges on one case file: runs joined on the labelled cases of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibration.agreement import as_json
from calibration.latent import JUDGES, latent_truth
from calibration.panel import panel
from calibration.ratings import ratings_of
from judge.drifting import first_lines, label_of, most_said
from judge.errors import UsageError
from judge.labels import scale_of
from judge.pairing import PASS_FAIL, Pairing
from judge.runs import rubrics_of

PEOPLE = "people"


def panel_of(
    pairing: Pairing,
    run: Path,
    others: Sequence[Path],
    *,
    dawid_skene: bool = False,
    seed: int = 0,
    replicates: int = 9999,
) -> dict[str, Any]:
    """This run and others as one panel: each judge and the majority against people, and how alike their errors are.

    On the labelled cases whose content every run shares; runs are named after their directories. Levels where marks are
    compared, else pass and fail. `dawid_skene` adds latent labels, from three runs on, with what they assume.
    """
    runs = [run, *others]
    names = [one.name for one in runs]
    if len(set(names)) < len(names):
        raise UsageError(f"--panel: two runs are called {next(n for n in names if names.count(n) > 1)!r}; rename one")
    if dawid_skene and len(runs) < JUDGES:
        raise UsageError(f"--dawid-skene with {len(runs)} runs: it needs {JUDGES} judges or more")
    rows = []
    for one in runs:
        if pairing.rubric.id not in rubrics_of(one):
            raise UsageError(f"--panel {one}: was not judged by {pairing.rubric.id!r}; give runs with that rubric")
        rows += [(case, one.name, label_of(pairing, line)) for case, line in first_lines(pairing, one).items()]
    rows += [(one.case.id, PEOPLE, label) for one in pairing.rated if (label := most_said(pairing, one)) is not None]
    questions = pairing.clusters
    question = None if questions is None else dict(zip((one.case.id for one in pairing.rated), questions, strict=True))
    cases, raters, labels = zip(*rows, strict=True)
    ratings = ratings_of(
        cases, raters, labels, scale=PASS_FAIL if pairing.on_passes else scale_of(pairing.rubric),
        clusters=None if question is None else [question[case] for case in cases],
    )  # fmt: skip
    found: dict[str, Any] = as_json(panel(ratings, names, PEOPLE, seed=seed, replicates=replicates))
    joint = [found.pop(name) for name in ("majority", "panel_mean")]
    if dawid_skene:
        found["dawid_skene"] = as_json(latent_truth(ratings, names, PEOPLE))
    rows_out = zip(ratings.items, *joint, strict=True)
    return found | {"cases": [{"case_id": case, "majority": most, "mean": mean} for case, most, mean in rows_out]}
