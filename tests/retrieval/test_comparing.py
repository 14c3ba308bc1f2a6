"""Comparing two retrievers, and choosing k."""

from __future__ import annotations

import random

import pytest

from judge.errors import UsageError
from judge.retrieval import evaluate
from judge.retrieval.comparing import compare_rankings
from judge.retrieval.sweeping import k_sweep

LABELS = {f"q{n}": ["a"] for n in range(6)}


def ranks(*found_at: int) -> dict[str, list[str]]:
    """One query each with the relevant id at that rank of five."""
    return {f"q{n}": [f"x{i}" if i != rank else "a" for i in range(1, 6)] for n, rank in enumerate(found_at)}


def test_difference_and_exact_sign_flip_by_hand() -> None:
    # rr 1 against 1/2 in five queries, equal in one: mean difference 5 * .5 / 6; the p of five equal signs is 2/2^5
    new, old = evaluate(ranks(1, 1, 1, 1, 1, 1), LABELS, k=1), evaluate(ranks(2, 2, 2, 2, 2, 1), LABELS, k=1)
    found = compare_rankings(new, old, measures=["rr", "recall@1"], seed=3)
    rr = found.measures["rr"]
    assert (rr.system, rr.baseline) == (1.0, pytest.approx(3.5 / 6))
    assert rr.difference.value == pytest.approx(2.5 / 6)
    assert rr.p_sign_flip == pytest.approx(2 / 32)
    assert rr.p_holm == pytest.approx(4 / 32)
    assert (found.n_pairs, found.unmatched) == (6, 0)
    assert rr.difference.ci_low is not None
    assert 0 < rr.difference.ci_low < 2.5 / 6
    assert [m.query_id for m in found.moved] == ["q0", "q1", "q2", "q3", "q4"]


def test_the_bootstrap_interval_covers_a_known_normal_one() -> None:
    rng = random.Random(1)
    labels = {f"q{n}": ["a"] for n in range(400)}
    new = {q: ["a", "x"] if rng.random() < 0.7 else ["x", "a"] for q in labels}
    old = {q: ["a", "x"] if rng.random() < 0.4 else ["x", "a"] for q in labels}
    found = compare_rankings(evaluate(new, labels, k=1), evaluate(old, labels, k=1), measures=["recall@1"], seed=1)
    difference = found.measures["recall@1"].difference
    assert difference.method == "bootstrap_percentile"
    assert difference.seed == 1
    assert difference.value is not None
    assert difference.se is not None
    assert difference.ci_low == pytest.approx(difference.value - 1.96 * difference.se, abs=0.01)
    assert difference.ci_high == pytest.approx(difference.value + 1.96 * difference.se, abs=0.01)


def test_the_same_seed_gives_the_same_comparison() -> None:
    rng = random.Random(5)
    labels = {f"q{n}": ["a"] for n in range(60)}
    runs = [{q: rng.sample(["a", "b", "c", "d", "e"], 5) for q in labels} for _ in range(2)]
    new, old = (evaluate(run, labels) for run in runs)
    assert compare_rankings(new, old, seed=4).to_dict() == compare_rankings(new, old, seed=4).to_dict()


def test_a_retriever_against_itself_does_not_differ() -> None:
    result = evaluate(ranks(1, 2, 3, 4, 5, 1), LABELS)
    found = compare_rankings(result, result)
    assert {d.p_sign_flip for d in found.measures.values()} == {1.0}
    assert {d.difference.value for d in found.measures.values()} == {0.0}
    assert found.moved == ()
    assert list(found.measures) == ["precision@10", "recall@10", "hit_rate@10", "ndcg@10", "rr", "ap"]


def test_undefined_and_unmatched_queries_are_not_pairs() -> None:
    labels = {"q0": ["a"], "q1": [], "q2": ["a"]}
    new = evaluate({"q0": ["a"], "q1": ["a"], "q2": ["x"]}, labels)
    old = evaluate({"q0": ["x"], "q1": ["x"]}, {"q0": ["a"], "q1": []})
    found = compare_rankings(new, old, measures=["rr"])
    assert (found.n_pairs, found.unmatched, found.measures["rr"].difference.n) == (2, 1, 1)


def test_results_that_cannot_be_compared_are_refused() -> None:
    result = evaluate(ranks(1), {"q0": ["a"]})
    with pytest.raises(UsageError, match="different conventions"):
        compare_rankings(result, evaluate(ranks(1), {"q0": ["a"]}, gain="exponential"))
    with pytest.raises(UsageError, match="no query in common"):
        compare_rankings(result, evaluate({"z": ["a"]}, {"z": ["a"]}))
    with pytest.raises(UsageError, match="replicates is 0: give 100 or more"):
        compare_rankings(result, result, replicates=0)
    with pytest.raises(UsageError, match="measures f1@5: choose among"):
        compare_rankings(result, result, measures=["f1@5"])


def test_the_sweep_finds_the_least_k_that_is_enough() -> None:
    # recall by k: q0..q5 found at 1, 1, 2, 2, 3, 3: 2/6, 4/6, 1, 1, 1
    sweep = k_sweep(evaluate(ranks(1, 1, 2, 2, 3, 3), LABELS))
    assert (sweep.best_k, sweep.best_recall, sweep.depth) == (3, 1.0, 5)
    assert [row.recall for row in sweep.rows] == pytest.approx([2 / 6, 4 / 6, 1, 1, 1])
    assert [row.ceiling for row in sweep.rows] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5])
    assert [row.precision for row in sweep.rows] == pytest.approx([2 / 6, 4 / 12, 6 / 18, 6 / 24, 6 / 30])
    assert k_sweep(evaluate(ranks(1, 1, 2, 2, 3, 3), LABELS), tolerance=0.4).best_k == 2
    assert k_sweep(evaluate(ranks(1, 1, 2, 2, 3, 3), LABELS), depth=2).best_k == 2


def test_a_sweep_without_any_label_has_no_k() -> None:
    sweep = k_sweep(evaluate({"q": ["a"]}, {"q": []}))
    assert (sweep.best_k, sweep.best_recall, sweep.rows[0].recall) == (None, None, None)
