"""The two scenarios that labels alone decide: more passages than needed, and the right one too far down."""

from __future__ import annotations

from collections import Counter

import numpy as np

from calibration.estimate import Estimate
from judge.diagnosing.found import FIRST_RANKS, by_query, longest
from judge.diagnosing.scenario import Diagnosed, Scenario
from judge.diagnosing.verdicts import Condition, average, share
from judge.retrieval import RetrievalResult
from judge.retrieval.sweeping import k_sweep

NEAR_CEILING = 0.05
LOW_ORDER = 0.7


def needless_context(run: Diagnosed) -> Scenario:
    """S1: the evidence is there, among much else. Low precision alone is arithmetic: the ceiling is beside it."""
    title, following = "evidence found, much ballast", "cut k"
    result = run.found.given
    if result is None:
        reason = run.found.reason or "no labels"
        return Scenario("S1", title, "retrieval", (), following, base="labelled cases", notes=[reason])
    k = longest(result)
    names, clusters = _answerable(run, result)
    recall = {case.case.id: case.inputs["recall"].value for case in run.cases}
    recalls = [recall[name] for name in names]
    noise = [None if value is None else 1 - value for value in _column(result, f"precision@{k}", names)]
    precision = _mean([None if value is None else 1 - value for value in noise])
    ceiling, best = _ceiling(result), k_sweep(result).best_k or k
    least = f"k = {best} has recall within .02 of k = {k}"
    details = {"k": k, "best_k": best, "precision": precision, "ceiling": ceiling}
    notes = [f"{least}; precision {_said(precision)} of at most {_said(ceiling)} that {k} passages allow"]
    if best == k and precision is not None and ceiling is not None and precision >= ceiling - NEAR_CEILING:
        notes = [f"no defect: precision {_said(precision)} is what the labels allow at k = {k} ({_said(ceiling)}), "
                 f"and no smaller k keeps the recall, on {len(names)} labelled cases"]  # fmt: skip
        return Scenario("S1", title, "retrieval", (), following, base="labelled cases", notes=notes,
                        verdict="ruled_out", details=details)  # fmt: skip
    conditions = (
        Condition(what="recall over the passages given", estimate=average(recalls, clusters),
                  threshold=run.limits["S1_recall"].value, reached=True),
        Condition(what="passages given that no label names", estimate=average(noise, clusters),
                  threshold=run.limits["S1_noise"].value, reached=True),
    )  # fmt: skip
    following = f"cut to k = {best}" if best < k else "rerank, then cut k" if _badly_ordered(run) else "look for a cut"
    return Scenario("S1", title, "retrieval", conditions, following, base="labelled cases", notes=notes,
                    details=details)  # fmt: skip


def poor_order(run: Diagnosed) -> Scenario:
    """S4: found within the first ranks, but far from the first. MRR / hit rate is the mean RR of the hits, 1/k to 1."""
    title, following = "found, but ranked low", "rerank; see the ranks of the first hits"
    result = run.found.ranked
    if result is None:
        reason = run.found.reason or "the full rankings cannot be matched with the labels"
        return Scenario("S4", title, "retrieval", (), following, base="labelled cases", notes=[reason])
    names, clusters = _answerable(run, result)
    hits = _column(result, f"hit_rate@{FIRST_RANKS}", names)
    ranks = _column(result, f"rr@{FIRST_RANKS}", names)
    found = [rr if hit else None for rr, hit in zip(ranks, hits, strict=True)]
    bounds = (1 / FIRST_RANKS, 1.0)
    conditions = (
        Condition(what=f"cases with a hit in the first {FIRST_RANKS}",
                  estimate=share([None if hit is None else bool(hit) for hit in hits], clusters),
                  threshold=run.limits["S4_hit"].value, reached=True),
        Condition(what=f"MRR@{FIRST_RANKS} / hit rate@{FIRST_RANKS}", estimate=average(found, clusters, bounds),
                  threshold=run.limits["S4_ratio"].value, above=False, bounds=bounds),
    )  # fmt: skip
    first = Counter(round(1 / rr) for rr in _column(result, "rr", names) if rr)
    histogram = {str(rank): first[rank] for rank in sorted(first)}
    never = sum(rr == 0 for rr in _column(result, "rr", names))
    notes = ["first hit at rank: " + ", ".join(f"{rank} ({n})" for rank, n in histogram.items()) + f"; never {never}"]
    return Scenario("S4", title, "retrieval", conditions, following, base="labelled cases", notes=notes,
                    details={"first_hit_ranks": histogram, "never": never})  # fmt: skip


def _answerable(run: Diagnosed, result: RetrievalResult) -> tuple[list[str], list[str]]:
    known = set(result.matched.queries)
    names = [c.case.id for c in run.cases if c.case.id in known and c.side("answerable") == "yes"]
    return names, [run.clusters[name] for name in names]


def _column(result: RetrievalResult, name: str, queries: list[str]) -> list[float | None]:
    values = by_query(result, name)
    return [values[query] for query in queries]


def _ceiling(result: RetrievalResult) -> float | None:
    """Mean of min(R, n) / n over the lists; None where several items may count for one label."""
    lengths, total = result.matched.lengths, result.sums.total
    counted = (total > 0) & (lengths > 0)
    if result.matched.covered is not None or not counted.any():
        return None
    return float((np.minimum(total, lengths)[counted] / lengths[counted]).mean())


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _said(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _badly_ordered(run: Diagnosed) -> bool:
    ranked = run.found.ranked
    ndcg: Estimate | None = None if ranked is None else ranked.measures["ndcg"]
    return ndcg is not None and ndcg.value is not None and ndcg.value < LOW_ORDER
