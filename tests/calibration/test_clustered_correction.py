"""Corrected means when items come in clusters, labelled and unlabelled ones together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration import CalibrationError
from calibration.correction import correct, ppi, ppi_difference
from calibration.estimate import t_quantile
from calibration.sample import Sample, clustered_lambda, sample_of
from calibration.stratified import post_stratified, stratified_ppi, weighted_ppi

# three clusters hold labels, u, v, w; v and x hold the other items
Y = np.array([1.0, 2, 4, 5, 3, 3])
F = np.array([2.0, 2, 4, 4, 3, 5])
REST = np.array([1.0, 3, 4, 4])
GROUPS = (["u", "u", "v", "v", "w", "w"], ["v", "v", "x", "x"])


def test_influences_are_summed_within_clusters_over_both_sides_by_hand():
    # lam 1: Y - f = -1, 0, 0, 1, 0, -2, mean -1/3; its sums over 6: u -1/18, v 5/18, w -4/18, times sqrt(3/2)
    # f~ - 3 = -2, 0, 1, 1 over 4: v -1/2, x 1/2, times sqrt(2/1)
    found = ppi(Y, F, REST, clusters=GROUPS, lam=1.0).corrected
    own, other = math.sqrt(3 / 2) / 18, math.sqrt(2) / 2
    variance = (own * 1) ** 2 + (own * 5 - other) ** 2 + (own * 4) ** 2 + other**2
    assert found.value == pytest.approx(3 - 1 / 3)
    assert found.se == pytest.approx(math.sqrt(variance))
    assert found.ci_high - found.value == pytest.approx(t_quantile(0.95, 2) * found.se)
    assert (found.method, found.n, found.n_clusters, found.warnings) == ("ppi++_t_cr1", 6, 3, ("few_clusters: 3",))


def test_lambda_zero_is_the_clustered_mean_of_the_labels():
    found = ppi(Y, F, REST, clusters=GROUPS, lam=0.0)
    assert found.corrected.se == pytest.approx(found.human_only.se)
    assert found.corrected.ci_low == pytest.approx(found.human_only.ci_low)
    assert found.naive.n_clusters == 4


def twice(rng, n=60, others=200, levels=5):
    y = rng.integers(1, levels + 1, size=n) * 1.0
    f = np.clip(y + rng.integers(-1, 2, size=n), 1, levels)
    return y, f, rng.integers(1, levels + 1, size=others) * 1.0


def each(y, rest):
    """A cluster of its own for every item."""
    return [f"l{i}" for i in range(len(y))], [f"u{i}" for i in range(len(rest))]


def test_clusters_of_one_item_are_no_clusters():
    y, f, rest = twice(np.random.default_rng(1))
    chances = np.linspace(0.1, 0.5, len(y))
    for fit in (
        lambda **more: ppi(y, f, rest, lam=0.7, **more).corrected,
        lambda **more: weighted_ppi(y, f, chances, rest, **more).corrected,
        lambda **more: post_stratified(y, f, rest, **more),
    ):
        alone, grouped = fit(), fit(clusters=each(y, rest))
        for name in ("value", "se", "ci_low", "ci_high"):
            assert getattr(grouped, name) == pytest.approx(getattr(alone, name))
    scores = {f"l{i}": v for i, v in enumerate(f)} | {f"u{i}": v for i, v in enumerate(rest)}
    labels = {f"l{i}": v for i, v in enumerate(y)}
    own = {item: item for item in scores}
    assert correct(scores, labels, design="random", clusters=own) == correct(scores, labels, design="random")


def test_one_stratum_with_clusters_is_clustered_ppi():
    found = stratified_ppi({"all": sample_of(Y, F, REST, GROUPS)}, lam=1.0).corrected
    plain = ppi(Y, F, REST, clusters=GROUPS, lam=1.0).corrected
    assert (found.se, found.ci_low, found.n_clusters) == pytest.approx((plain.se, plain.ci_low, 3))


def test_a_cluster_in_two_strata_is_one_unit():
    # every question has an easy and a hard item with the same label: as two strata they are as certain as one
    rng = np.random.default_rng(2)
    y = rng.integers(1, 6, size=30) * 1.0
    f, rest = np.clip(y + rng.integers(-1, 2, size=30), 1, 5), rng.integers(1, 6, size=90) * 1.0
    codes = (np.arange(30), np.arange(30, 120))
    half = Sample(labels=y, judged=f, unlabelled=rest, clusters=codes)
    two = stratified_ppi({"easy": half, "hard": half}, lam=1.0).corrected
    one = stratified_ppi({"all": half}, lam=1.0).corrected
    independent = Sample(labels=y, judged=f, unlabelled=rest)
    assert two.se == pytest.approx(one.se)
    assert stratified_ppi({"easy": independent, "hard": independent}, lam=1.0).corrected.se == pytest.approx(
        one.se / math.sqrt(2)
    )


@pytest.mark.parametrize("design", ["random", "stratified", "propensity"])
def test_copies_of_an_item_add_no_certainty_under_any_design(design):
    rng = np.random.default_rng(3)
    y, f, rest = twice(rng)
    plain = {f"l{i}": v for i, v in enumerate(f)} | {f"u{i}": v for i, v in enumerate(rest)}
    scores = {f"{item}.{copy}": score for item, score in plain.items() for copy in range(4)}
    labels = {f"l{i}.{copy}": v for i, v in enumerate(y) for copy in range(4)}
    more = {
        "strata": {item: "high" if score > 3 else "low" for item, score in scores.items()},
        "propensities": {item: 0.2 + 0.1 * (scores[item] > 3) for item in labels},
    }
    rows = correct(scores, labels, design=design, bounds=(1, 5), **more)
    questions = correct(
        scores, labels, design=design, bounds=(1, 5), clusters={item: item.split(".")[0] for item in scores}, **more
    )
    assert questions.corrected.value == pytest.approx(rows.corrected.value, abs=0.05)
    assert questions.corrected.se == pytest.approx(2 * rows.corrected.se, rel=0.1)
    assert questions.corrected.n_clusters == 60
    assert questions.corrected.method.endswith("_cr1")
    assert questions.labels_to_halve_ci > rows.labels_to_halve_ci * 0.9


def test_lambda_is_tuned_on_clusters_where_the_judge_errs_by_question():
    # the judge has every item right but for one error per question: by rows it seems good, by questions it is noise
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(60), 10)
    y = rng.normal(size=600)
    f = y + rng.normal(size=60)[groups] * 2
    whole = sample_of(y[:300], f[:300], f[300:], (groups[:300], groups[300:]))
    assert clustered_lambda([whole]) < 0.1
    found = ppi(y[:300], f[:300], f[300:], clusters=(groups[:300], groups[300:]))
    assert found.corrected.se <= found.human_only.se * 1.01
    trusting = ppi(y[:300], f[:300], f[300:], clusters=(groups[:300], groups[300:]), lam=1.0)
    assert trusting.corrected.se > 2 * found.human_only.se


def test_rogan_gladen_gives_no_interval_where_items_share_clusters():
    scores = {f"q{i}": float(i % 3 != 0) for i in range(120)}
    labels = {f"q{i}": float(i % 3 != 0) if i % 10 else float(i % 3 == 0) for i in range(60)}
    apart = correct(scores, labels, design="external")
    found = correct(scores, labels, design="external", clusters={item: int(item[1:]) // 2 for item in scores})
    assert found.corrected.value == apart.corrected.value
    assert (found.corrected.ci_low, found.corrected.reason) == (None, "no_interval_for_clusters")
    assert (found.effective_n, found.labels_to_halve_ci) == (None, None)
    assert found.naive.n_clusters == 30


def test_clusters_that_cannot_be_used_are_refused_or_said():
    scores, labels = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 3.0}, {"a": 1.0, "b": 3.0}
    with pytest.raises(CalibrationError, match="item d has no cluster \\(1 of 4"):
        correct(scores, labels, design="random", clusters={"a": "x", "b": "x", "c": "y"})
    one = correct(scores, labels, design="random", clusters=dict.fromkeys(scores, "x") | {"d": "y"})
    assert (one.method, one.corrected.ci_low, one.corrected.reason) == ("human_only", None, "one_cluster")
    assert "one_cluster_of_labels" in one.warnings
    few = ppi(*twice(np.random.default_rng(5)), clusters=([i // 6 for i in range(60)], [10 + i for i in range(200)]))
    assert (few.lam, "too_few_clusters_to_tune: 10" in few.warnings) == (0.0, True)
    shared = Sample(
        labels=Y, judged=F, unlabelled=REST, clusters=(np.array([0, 0, 1, 1, 2, 2]), np.array([1, 1, 3, 3]))
    )
    with pytest.raises(CalibrationError, match="3 clusters with labels in 3 strata"):
        stratified_ppi(dict.fromkeys("abc", shared))


def test_the_difference_of_two_systems_takes_clusters_too():
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 2, size=(2, 400)).astype(float)
    groups = np.arange(400) // 4
    found = ppi_difference(
        (a[:100], b[:100]), (a[:100], 1 - b[:100]), (a[100:], b[100:]), clusters=(groups[:100], groups[100:])
    )
    assert found.corrected.n_clusters == 25


def population(rng, questions, size):
    """Truth and judge of `size` answers to each question: answers to one question fare alike, and the judge errs so."""
    question = np.repeat(np.arange(questions), size)
    truth = 3 + rng.normal(size=questions)[question] + rng.normal(size=questions * size) * 0.7
    judge = truth + 0.4 + rng.normal(size=questions)[question] * 0.5 + rng.normal(size=questions * size) * 0.5
    return question, truth, judge


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["whole questions labelled", "labels scattered over questions"])
def test_clustered_corrections_cover_and_those_that_take_rows_as_independent_do_not(spread):
    rng, held = np.random.default_rng(7), dict.fromkeys(("ppi", "stratified", "weighted", "rows"), 0)
    for _ in range(300):
        question, truth, judge = population(rng, 120, 8)
        labelled = (
            question < 30 if spread.startswith("whole") else np.isin(np.arange(960) % 8, (0, 1)) & (question < 90)
        )
        own, rest = np.flatnonzero(labelled), np.flatnonzero(~labelled)
        groups = (question[own], question[rest])
        y, f, others = truth[own], judge[own], judge[rest]
        kinds = {"low": (own % 2 == 0, rest % 2 == 0), "high": (own % 2 == 1, rest % 2 == 1)}
        strata = {
            name: Sample(labels=y[left], judged=f[left], unlabelled=others[right],
                         clusters=(groups[0][left], groups[1][right]))
            for name, (left, right) in kinds.items()
        }  # fmt: skip
        found = {
            "ppi": ppi(y, f, others, clusters=groups).corrected,
            "stratified": stratified_ppi(strata).corrected,
            "weighted": weighted_ppi(y, f, np.full(len(y), len(y) / 960), others, clusters=groups).corrected,
            "rows": ppi(y, f, others).corrected,
        }
        for name, estimate in found.items():
            held[name] += estimate.ci_low <= 3 <= estimate.ci_high
    assert min(held["ppi"], held["stratified"], held["weighted"]) >= 0.92 * 300, held
    assert held["rows"] < 0.8 * 300, held
