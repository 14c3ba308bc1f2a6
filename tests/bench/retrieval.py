"""Speed of the retrieval measures beside pytrec_eval, from Python string lists; run it as a script.

    python tests/bench/retrieval.py [--queries 10000] [--depth 100] [--rounds 5]

All engines see the same lists and labels and run one after the other in every round; medians of CPU time and their
ratios are printed. Machines differ and are shared: read the ratios, not the seconds. Peak memory beyond the input is measured
in a process of its own for each engine.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:] = [str(HERE.parents[1]), *(entry for entry in sys.path if Path(entry).resolve() != HERE)]

K = (1, 3, 5, 10, 20, 100)
CUTS = ",".join(map(str, K))
TREC_MEASURES = {f"{m}.{CUTS}" for m in ("P", "recall", "success", "map_cut", "ndcg_cut")} | {
    "map",
    "ndcg",
    "recip_rank",
}

Rankings = dict[str, list[str]]
Labels = dict[str, dict[str, int]]


def collection(queries: int, depth: int, seed: int = 7) -> tuple[Rankings, Labels]:
    """About five labels a query, 70% of them retrieved, mostly near the top; label ids are strings of their own."""
    rng = random.Random(seed)
    rankings: Rankings = {}
    labels: Labels = {}
    for n in range(queries):
        ids = [f"doc{i:07d}" for i in rng.sample(range(10**7), depth)]
        judged: dict[str, int] = {}
        for _ in range(5):
            near = ids[min(depth - 1, int(rng.expovariate(1 / 15)))]
            label = near if rng.random() < 0.7 else f"doc{rng.randrange(10**7):07d}"
            judged["".join(list(label))] = rng.choice((1, 1, 2, 3))
        rankings[f"q{n}"], labels[f"q{n}"] = ids, judged
    return rankings, labels


def engines(rankings: Rankings, labels: Labels) -> dict[str, Callable[[], Any]]:
    """What is timed; every engine ends with all measures of all queries at all cut-offs in memory."""
    import pytrec_eval

    from judge.retrieval import evaluate, prepare

    def measured(result: Any) -> Any:
        for name in result.names:
            result.values(name)
        return result

    def estimated() -> Any:
        return [estimate.value for estimate in measured(evaluate(rankings, labels, k=K)).measures.values()]

    def trec() -> Any:
        run = {q: {i: float(-rank) for rank, i in enumerate(ids)} for q, ids in rankings.items()}
        return pytrec_eval.RelevanceEvaluator(labels, TREC_MEASURES).evaluate(run)

    ready = {q: {i: float(-rank) for rank, i in enumerate(ids)} for q, ids in rankings.items()}
    evaluator = pytrec_eval.RelevanceEvaluator(labels, TREC_MEASURES)
    prepared = prepare(rankings, labels)
    return {
        "judge, from lists": lambda: measured(evaluate(rankings, labels, k=K)),
        "judge, from lists, with all intervals": estimated,
        "judge, second pass (ids matched before)": lambda: measured(prepared.at(K)),
        "pytrec_eval, from lists": trec,
        "pytrec_eval, evaluate() alone": lambda: evaluator.evaluate(ready),
    }


def timed(work: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median CPU seconds of each engine, interleaved, after one round that does not count."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for number in range(rounds + 1):
        for name, run in work.items():
            start = time.process_time()
            run()
            if number:
                taken[name].append(time.process_time() - start)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def extra_peak(engine: str, queries: int, depth: int) -> float:
    """MB of peak resident memory beyond the input and the imports, in this process."""
    import numpy as np

    rankings, labels = collection(queries, depth)
    np.zeros(8).cumsum()
    if engine == "judge":
        from judge.retrieval import evaluate
    else:
        import pytrec_eval
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if engine == "judge":
        result = evaluate(rankings, labels, k=K)
        columns = [result.values(name) for name in result.names]
    else:
        run = {q: {i: float(-rank) for rank, i in enumerate(ids)} for q, ids in rankings.items()}
        columns = [pytrec_eval.RelevanceEvaluator(labels, TREC_MEASURES).evaluate(run)]
    assert columns
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit


def agreed(rankings: Rankings, labels: Labels) -> int:
    """Values compared between the two engines; stops at the first that differs by more than 1e-9."""
    work = engines(rankings, labels)
    ours, theirs = work["judge, from lists"](), work["pytrec_eval, from lists"]()
    families = {"P": "precision", "recall": "recall", "success": "hit_rate", "map_cut": "ap", "ndcg_cut": "ndcg"}
    pairs = {f"{t}_{k}": f"{o}@{k}" for t, o in families.items() for k in K} | {
        "map": "ap",
        "ndcg": "ndcg",
        "recip_rank": "rr",
    }
    for query, values in theirs.items():
        mine = ours.per_query[query]
        for trec_name, name in pairs.items():
            assert abs(mine[name] - values[trec_name]) < 1e-9, (query, name)
    return len(theirs) * len(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--peak", choices=["judge", "pytrec_eval"], help="only print the extra peak memory of one engine"
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.peak:
        print(extra_peak(given.peak, given.queries, given.depth))
        return
    size = ["--queries", str(given.queries), "--depth", str(given.depth)]
    peaks = {
        engine: float(
            subprocess.run(
                [sys.executable, __file__, *size, "--peak", engine], capture_output=True, text=True, check=True
            ).stdout
        )
        for engine in ("judge", "pytrec_eval")
    }
    compared = agreed(*collection(min(given.queries, 500), given.depth, seed=8))
    medians = timed(engines(*collection(given.queries, given.depth)), given.rounds)
    lists, alone = medians["pytrec_eval, from lists"], medians["pytrec_eval, evaluate() alone"]
    ratios = {
        "from lists": (lists / medians["judge, from lists"], 4),
        "from lists, with all intervals": (lists / medians["judge, from lists, with all intervals"], 4),
        "second pass against evaluate() alone": (alone / medians["judge, second pass (ids matched before)"], 20),
    }
    if given.json:
        print(
            json.dumps(
                {"seconds": medians, "times_faster": {n: r for n, (r, _) in ratios.items()}, "extra_peak_mb": peaks}
            )
        )
        return
    print(
        f"{given.queries} queries x {given.depth} ids, cut-offs {CUTS}; {given.rounds} interleaved rounds, medians of CPU time"
    )
    print(f"agreement with pytrec_eval checked on {compared} values")
    for name, seconds in medians.items():
        print(f"  {name:42} {seconds * 1000:9.1f} ms")
    for name, (ratio, target) in ratios.items():
        print(f"  {name:42} {ratio:9.1f} times faster (target {target})")
    for engine, peak in peaks.items():
        print(
            f"  peak memory beyond the input, {engine:12} {peak:9.1f} MB{' (target 30)' if engine == 'judge' else ''}"
        )


if __name__ == "__main__":
    main()
