"""Agreement apart for each slice of a ratings file: where a judge is good may hide where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibration.agreement import agreement, as_json
from calibration.ratings import Ratings, choose_raters

KEPT = ("n", "n_dropped", "percent_agreement", "kappa", "mean_bias")
REPLICATES = 1999


def by_slice(
    ratings: Ratings, *, judge: str | None = None, humans: Sequence[str] | None = None, seed: int = 0
) -> list[dict[str, Any]]:
    """`slice` and the headline numbers of `agreement` for each name in the slice column, in the order of the names.

    Empty without that column; items without a slice are in none. A slice in which no item has a label of the judge and
    of a human has n 0 and nothing else. With many slices one in twenty intervals misses by chance alone.
    """
    if ratings.slices is None:
        return []
    name, people = choose_raters(ratings, judge, humans)
    found = []
    for one in sorted(set(ratings.slices) - {""}):
        part = ratings.only(np.array([slice_ == one for slice_ in ratings.slices]))
        if len(dropped := part.dropped(name, people)) == len(part.items):
            found.append({"slice": one, "n": 0, "n_dropped": len(dropped)})
            continue
        page = agreement(part, judge=name, humans=people, seed=seed, replicates=REPLICATES)
        found.append({"slice": one} | {key: as_json(getattr(page, key)) for key in KEPT})
    return found
