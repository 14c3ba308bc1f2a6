"""Seeded simulations: recommended 95% intervals cover at least 92%, the naive ones visibly do not."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.correction import ppi
from calibration.estimate import mean, proportion
from calibration.kappa import kappa
from calibration.pairwise import order_effect, summarize
from calibration.rogan_gladen import rogan_gladen
from calibration.tables import cohen_kappa
from calibration.verdicts import PairVerdicts

pytestmark = pytest.mark.slow
REPEATS = 300


def shares(intervals, truth):
    """The share of intervals that hold the truth."""
    return np.mean([low <= truth <= high for low, high in intervals])


def binary_table(prevalence, value):
    p = np.array([1 - prevalence, prevalence])
    return (1 - value) * np.outer(p, p) + value * np.diag(p)


@pytest.mark.parametrize("prevalence, value, n", [(0.9, 0.6, 20), (0.5, 0.9, 20), (0.9, 0.6, 50)])
def test_kappa_covers_where_the_wald_interval_collapses(prevalence, value, n):
    rng = np.random.default_rng(1)
    tables = rng.multinomial(n, binary_table(prevalence, value).ravel(), size=REPEATS).reshape(-1, 2, 2)
    estimates = [kappa(table, replicates=999, seed=seed) for seed, table in enumerate(tables)]
    defined = [e for e in estimates if e.status == "ok"]
    assert shares([(e.ci_low, e.ci_high) for e in defined], value) >= 0.92
    if n == 20:
        assert shares([(e.value - 1.96 * e.se, e.value + 1.96 * e.se) for e in defined], value) < 0.8


@pytest.mark.parametrize("n", [20, 50, 100])
def test_quadratic_kappa_covers_on_a_skewed_five_point_scale(n):
    levels = np.arange(5)
    human = np.array([0.03, 0.07, 0.15, 0.3, 0.45])
    judge = np.exp(-((levels[:, None] - levels[None, :]) ** 2) / 0.9)
    table = judge / judge.sum(axis=0) * human
    truth = float(cohen_kappa(table, "quadratic"))
    drawn = np.random.default_rng(2).multinomial(n, table.ravel(), size=REPEATS).reshape(-1, 5, 5)
    found = [kappa(one, "quadratic", replicates=999, seed=seed) for seed, one in enumerate(drawn)]
    assert shares([(e.ci_low, e.ci_high) for e in found if e.status == "ok"], truth) >= 0.92


def judged(rng, truth, specificity, sensitivity):
    return np.where(truth == 1, rng.random(truth.shape) < sensitivity, rng.random(truth.shape) >= specificity) * 1.0


def test_ppi_covers_under_random_labels_and_the_judge_alone_does_not():
    rng, corrected, naive = np.random.default_rng(3), [], []
    for _ in range(REPEATS):
        truth = (rng.random(1200) < 0.8) * 1.0
        f = judged(rng, truth, 0.7, 0.9)
        found = ppi(truth[:200], f[:200], f[200:], bounds=(0, 1))
        corrected.append((found.corrected.ci_low, found.corrected.ci_high))
        naive.append((found.naive.ci_low, found.naive.ci_high))
    assert shares(corrected, 0.8) >= 0.92
    assert shares(naive, 0.8) < 0.8


def test_under_label_shift_rogan_gladen_covers_and_ppi_would_not():
    rng, external, wrong = np.random.default_rng(4), [], []
    for _ in range(REPEATS):
        calibration, target = (rng.random(200) < 0.5) * 1.0, (rng.random(1000) < 0.8) * 1.0
        f, rest = judged(rng, calibration, 0.7, 0.9), judged(rng, target, 0.7, 0.9)
        good, bad = f[calibration == 1], f[calibration == 0]
        found = rogan_gladen(
            rest.mean(), 1000, specificity=1 - bad.mean(), m0=len(bad), sensitivity=good.mean(), m1=len(good)
        )
        external.append((found.ci_low, found.ci_high))
        misused = ppi(calibration, f, rest, bounds=(0, 1)).corrected
        wrong.append((misused.ci_low, misused.ci_high))
    assert shares(external, 0.8) >= 0.92
    assert shares(wrong, 0.8) < 0.5


def test_ppi_on_five_levels_covers_where_the_judge_is_too_kind():
    rng, corrected, naive = np.random.default_rng(5), [], []
    levels = np.array([1.0, 2, 3, 4, 5])
    p = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    for _ in range(REPEATS):
        truth = rng.choice(levels, size=1150, p=p)
        judge = np.clip(truth + rng.choice([0, 1, 1, 2], size=1150), 1, 5)
        found = ppi(truth[:150], judge[:150], judge[150:], bounds=(1, 5))
        corrected.append((found.corrected.ci_low, found.corrected.ci_high))
        naive.append((found.naive.ci_low, found.naive.ci_high))
    assert shares(corrected, float(levels @ p)) >= 0.92
    assert shares(naive, float(levels @ p)) == 0


def test_clustered_means_cover_where_rows_do_not():
    rng, clustered, rows = np.random.default_rng(6), [], []
    groups = np.repeat(np.arange(30), 5)
    for _ in range(REPEATS):
        values = rng.normal(size=30)[groups] + rng.normal(size=150) * 0.5
        together, alone = mean(values, clusters=groups), mean(values)
        clustered.append((together.ci_low, together.ci_high))
        rows.append((alone.ci_low, alone.ci_high))
    assert shares(clustered, 0) >= 0.92
    assert shares(rows, 0) < 0.8


def test_wilson_covers_near_the_edge_where_the_wald_interval_does_not():
    counts = np.random.default_rng(7).binomial(25, 0.96, size=REPEATS)
    found = [proportion(int(count), 25) for count in counts]
    assert shares([(e.ci_low, e.ci_high) for e in found], 0.96) >= 0.92
    assert shares([(e.value - 1.96 * e.se, e.value + 1.96 * e.se) for e in found], 0.96) < 0.8


def test_the_win_rate_of_both_orders_covers_and_a_single_order_is_biased():
    rng, covered, single = np.random.default_rng(8), [], []
    strengths, gamma = rng.normal(0.6, 1, size=4000), 1.2
    chance = {side: 1 / (1 + np.exp(-(strengths + side * gamma))) for side in (1, -1)}
    truth = float((chance[1] + chance[-1]).mean() / 2)
    for _ in range(REPEATS):
        asked = rng.choice(4000, size=120, replace=False)
        orders = [np.where(rng.random(120) < chance[side][asked], "a", "b") for side in (1, -1)]
        found = summarize(PairVerdicts([str(i) for i in asked], *(list(order) for order in orders))).win_rate_a
        covered.append((found.ci_low, found.ci_high))
        only = proportion(int((orders[0] == "a").sum()), 120)
        single.append((only.ci_low, only.ci_high))
    assert shares(covered, truth) >= 0.92
    assert shares(single, truth) < 0.5


def test_the_order_effect_is_recovered_whatever_the_strengths():
    rng, covered = np.random.default_rng(9), []
    for _ in range(REPEATS):
        strengths = rng.normal(0.5, 1.5, size=200)
        orders = [np.where(rng.random(200) < 1 / (1 + np.exp(-(strengths + side * 0.7))), "a", "b") for side in (1, -1)]
        gamma = order_effect(PairVerdicts([str(i) for i in range(200)], *(list(order) for order in orders)))
        covered.append((gamma.ci_low, gamma.ci_high))
    assert shares(covered, 0.7) >= 0.92
