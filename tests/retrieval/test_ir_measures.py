"""Our measures as a provider of ir_measures, checked against the providers that it ships."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from judge.retrieval import evaluate

ir_measures = pytest.importorskip("ir_measures")
from ir_measures import AP, RR, Judged, P, R, Success, nDCG, providers  # noqa: E402
from ir_measures.providers.base import NOT_PROVIDED, Choices  # noqa: E402
from ir_measures.providers.base import Any as AnyValue  # noqa: E402

FAMILIES = {
    "P": "precision",
    "R": "recall",
    "Success": "hit_rate",
    "RR": "rr",
    "AP": "ap",
    "nDCG": "ndcg",
    "Judged": "judged",
}


class OurEvaluator(providers.Evaluator):
    def __init__(self, measures: Any, qrels: Any) -> None:
        self.labels = ir_measures.util.QrelsConverter(qrels).as_dict_of_dict()
        super().__init__(measures, set(self.labels))

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        rankings = ir_measures.util.RunConverter(run).as_dict_of_dict()
        for measure in self.measures:
            given = dict(measure.params)
            cut = given.get("cutoff")
            result = evaluate(
                rankings,
                self.labels,
                k=cut or 1,
                profile="trec",
                rel_level=given.get("rel", 1),
                judged_only=given.get("judged_only", False),
                gain="exponential" if given.get("dcg") == "exp-log2" else "linear",
            )
            name = FAMILIES[measure.NAME] + (f"@{cut}" if cut else "")
            for query in rankings:
                if query in self.labels:
                    yield ir_measures.Metric(query_id=query, measure=measure, value=result.per_query[query][name])


class OurProvider(providers.Provider):
    NAME = "calibrated_judge"
    SUPPORTED_MEASURES = [  # noqa: RUF012
        ir_measures.measures._P(cutoff=AnyValue(required=True), rel=AnyValue(), judged_only=AnyValue()),
        ir_measures.measures._R(cutoff=AnyValue(required=True), rel=AnyValue(), judged_only=AnyValue()),
        ir_measures.measures._Success(cutoff=AnyValue(required=True), rel=AnyValue(), judged_only=AnyValue()),
        ir_measures.measures._RR(cutoff=AnyValue(), rel=AnyValue(), judged_only=AnyValue()),
        ir_measures.measures._AP(cutoff=AnyValue(), rel=AnyValue(), judged_only=AnyValue()),
        ir_measures.measures._nDCG(
            cutoff=AnyValue(), dcg=Choices("log2", "exp-log2"), gains=Choices(NOT_PROVIDED), judged_only=AnyValue()
        ),
        ir_measures.measures._Judged(cutoff=AnyValue(required=True)),
    ]

    def _evaluator(self, measures: Any, qrels: Any) -> OurEvaluator:
        return OurEvaluator(measures, qrels)


OURS = providers.register(OurProvider())


def collection(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """30 queries: grades -1..3, tied scores, one query without a ranking, one ranking without labels."""
    rng = random.Random(seed)
    ids = [f"d{n:02d}" for n in range(40)]
    qrels = {f"q{n}": {i: rng.choice([-1, 0, 0, 1, 2, 3]) for i in rng.sample(ids, 12)} for n in range(30)}
    run = {f"q{n}": {i: rng.randrange(8) / 4 for i in rng.sample(ids, rng.randrange(1, 30))} for n in range(1, 31)}
    return qrels, run


TREC = [P @ 5, R @ 10, Success @ 3, RR, AP, AP @ 7, nDCG, nDCG @ 10, P(rel=2) @ 5, AP(rel=2), RR(rel=2), R(rel=3) @ 10,
        AP(judged_only=True), nDCG(judged_only=True) @ 5, P(judged_only=True) @ 5]  # fmt: skip


@pytest.mark.parametrize("measure", TREC, ids=str)
def test_values_are_those_of_the_pytrec_provider(measure: Any) -> None:
    theirs = providers.registry["pytrec_eval"]
    assert OURS.supports(measure)
    assert theirs.supports(measure)
    for seed in range(3):
        qrels, run = collection(seed)
        expected = {m.query_id: m.value for m in theirs.iter_calc([measure], qrels, run)}
        assert {m.query_id: m.value for m in OURS.iter_calc([measure], qrels, run)} == pytest.approx(expected, abs=1e-9)
        assert len(expected) == 30


def test_aggregates_are_those_of_the_pytrec_provider() -> None:
    qrels, run = collection(7)
    expected = providers.registry["pytrec_eval"].calc_aggregate(TREC, qrels, run)
    assert OURS.calc_aggregate(TREC, qrels, run) == pytest.approx(expected, abs=1e-9)


def test_the_share_of_judged_items_is_that_of_the_judged_provider() -> None:
    qrels, run = collection(3)
    pooled = {q: {i: max(grade, 0) for i, grade in grades.items()} | {"relevant": 1} for q, grades in qrels.items()}
    # scores without ties: that provider breaks them by ascending id
    distinct = {q: {i: score + n / 1000 for n, (i, score) in enumerate(items.items())} for q, items in run.items()}
    expected = {m.query_id: m.value for m in providers.registry["judged"].iter_calc([Judged @ 10], pooled, distinct)}
    seen = {m.query_id: m.value for m in OURS.iter_calc([Judged @ 10], pooled, distinct)}
    assert seen == pytest.approx(expected)


def test_exponential_gain_is_the_burges_form_of_ndcg() -> None:
    # (2^1-1 + (2^3-1)/log2 3) / (2^3-1 + (2^2-1)/log2 3 + (2^1-1)/log2 4)
    qrels, run = {"q": {"a": 3, "b": 1, "c": 2}}, {"q": {"b": 3.0, "a": 2.0, "x": 1.0}}
    (metric,) = OURS.iter_calc([nDCG(dcg="exp-log2") @ 3], qrels, run)
    assert metric.value == pytest.approx(0.5766666455144387, abs=1e-12)
