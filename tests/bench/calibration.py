"""How fast the statistics are, as ratios measured in one run: `python tests/bench/calibration.py`."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from calibration.agreement import agreement
from calibration.kappa import kappa
from calibration.ratings import declare_scale, read_ratings
from calibration.resampling import pair_tables
from calibration.tables import cohen_kappa, table_of


def best_of(repeats: int, run: Callable[[], Any]) -> float:
    """Seconds of the fastest run."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def kappa_against_scipy() -> dict[str, float]:
    """Kappa of 200 pairs with 9,999 replicates against scipy.stats.bootstrap of the same statistic."""
    from scipy.stats import bootstrap

    rng = np.random.default_rng(0)
    human = rng.integers(0, 5, 200)
    judge = np.where(rng.random(200) < 0.7, human, rng.integers(0, 5, 200))
    ours = best_of(9, lambda: kappa(pair_tables([(judge, human)], 5)))

    def statistic(a: Any, b: Any) -> float:
        return float(cohen_kappa(table_of(a, b, 5)))

    theirs = best_of(
        1,
        lambda: bootstrap(
            (judge, human), statistic, paired=True, vectorized=False, n_resamples=9999, method="BCa", rng=rng
        ),
    )
    return {"ours_s": ours, "scipy_s": theirs, "times_faster": theirs / ours, "required": 20}


def page_against_reading() -> dict[str, float]:
    """The full page of 100,000 pairs against the time that pandas takes to read the CSV."""
    import pandas as pd

    rng = np.random.default_rng(1)
    human = rng.integers(1, 6, 100_000)
    judge = np.where(rng.random(100_000) < 0.6, human, rng.integers(1, 6, 100_000))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.csv"
        pairs = zip(judge, human, strict=True)
        path.write_text("item,judge,human\n" + "\n".join(f"q{i},{j},{h}" for i, (j, h) in enumerate(pairs)) + "\n")
        scale = declare_scale("1,2,3,4,5")
        reading = best_of(5, lambda: pd.read_csv(path))
        ours_reading = best_of(5, lambda: read_ratings(path, scale=scale))
        ratings = read_ratings(path, scale=scale)
    page = best_of(5, lambda: agreement(ratings))
    return {
        "page_s": page, "pandas_read_s": reading, "page_over_read": page / reading, "required_below": 3,
        "our_validated_read_s": ours_reading, "read_and_page_over_read": (ours_reading + page) / reading,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps({"kappa": kappa_against_scipy(), "page": page_against_reading()}, indent=2))
