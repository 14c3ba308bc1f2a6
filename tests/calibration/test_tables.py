"""Agreement coefficients on contingency tables against vectors, other implementations and identities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from calibration_vectors import VECTORS, named, near
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from calibration import CalibrationError
from calibration import tables as t

VALUES5 = np.arange(1.0, 6.0)


def table_from(vector, k=None, base=1):
    judge, human = np.array(vector["inputs"]["judge"], int), np.array(vector["inputs"]["human"], int)
    return t.table_of(judge - base, human - base, k or int(max(judge.max(), human.max())) + 1 - base)


@pytest.mark.parametrize("name", named("cohen_kappa_"))
def test_cohen_kappa_and_its_ceiling_match_the_vectors(name):
    vector = VECTORS[name]
    table, weights = np.array(vector["inputs"]["table"], float), vector["params"]["weights"] or "none"
    assert t.cohen_kappa(table, weights) == near(vector["expected"]["kappa"], vector)
    if weights == "none":
        assert t.kappa_max(table) == near(vector["expected"]["kappa_max"], vector)
        assert t.percent_agreement(table) == near(vector["expected"]["po"], vector)


@pytest.mark.parametrize("name", named("paradox_"))
def test_prevalence_and_bias_companions_match_the_vectors(name):
    vector = VECTORS[name]
    table, expected = np.array(vector["inputs"]["table"]), vector["expected"]
    assert t.prevalence_index(table) == near(expected["prevalence_index"], vector)
    assert t.bias_index(table) == near(expected["bias_index"], vector)
    assert t.pabak(table) == near(expected["pabak"], vector)
    assert t.scott_pi(table) == near(expected["scott_pi"], vector)
    assert t.gwet_ac(table) == near(expected["gwet_ac1"], vector)


@pytest.mark.parametrize("name", named("gwet_AC"))
def test_gwet_matches_the_vectors(name):
    vector = VECTORS[name]
    weights = vector["params"]["weights"] or "none"
    assert t.gwet_ac(np.array(vector["inputs"]["table"]), weights) == near(vector["expected"]["coef"], vector)


def test_correlations_match_the_vector():
    vector = VECTORS["corr_ord24"]
    table, expected = table_from(vector), vector["expected"]
    assert t.spearman(table) == near(expected["spearman"], vector)
    assert t.kendall_tau_b(table) == near(expected["kendall_tau_b"], vector)
    assert t.pearson(table, VALUES5, VALUES5) == near(expected["pearson"], vector)
    assert t.lin_ccc(table, VALUES5) == near(expected["lin_ccc_ddof0"], vector)


@pytest.mark.parametrize("name", ["krippendorff_2rater_ord24", "krippendorff_2rater_bin40"])
def test_alpha_of_two_raters_matches_the_vectors(name):
    vector = VECTORS[name]
    table = table_from(vector, base=1 if "ord" in name else 0)
    for metric in ("nominal", "ordinal", "interval"):
        assert t.pair_alpha(table, metric, np.arange(len(table))) == near(vector["expected"][metric], vector)


@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
def test_weighted_kappa_uses_the_declared_scale_not_the_labels_seen(weights):
    vector = VECTORS["label_gap_scale_1_5_missing_3_4"]
    expected = vector["expected"][weights]
    assert t.cohen_kappa(table_from(vector, 5), weights) == near(expected["with_full_scale"], vector)
    if weights != "none":
        assert abs(t.cohen_kappa(table_from(vector, 5), weights) - expected["WRONG_observed_labels_only"]) > 0.01


@pytest.mark.parametrize("name", named("edge_"))
def test_degenerate_tables_give_zero_or_nothing(name):
    vector = VECTORS[name]
    value = float(t.cohen_kappa(np.array(vector["inputs"]["table"], float)))
    assert (None if math.isnan(value) else value) == vector["expected"]["kappa"]


def test_one_class_on_a_declared_scale_leaves_ac1_and_pabak_defined():
    vector = VECTORS["ac1_single_class_declared_scale"]
    table = np.array(vector["inputs"]["table"], float)
    assert math.isnan(t.cohen_kappa(table))
    assert (t.gwet_ac(table), t.pabak(table), t.percent_agreement(table)) == (1.0, 1.0, 1.0)


def test_a_constant_judge_has_kappa_zero_and_no_correlation():
    # always-pass judge on 90/10: agreement .9, chance .9 x 1 = .9
    table = np.array([[0.0, 0.0], [10.0, 90.0]])
    assert t.percent_agreement(table) == 0.9
    assert t.cohen_kappa(table) == 0.0
    assert math.isnan(t.spearman(table))
    assert math.isnan(t.kendall_tau_b(table))
    assert math.isnan(t.pearson(table, np.arange(2), np.arange(2)))
    # thirds are not exact in binary: the constant must still be seen as constant
    thirds = np.array([[1.0, 1.0, 1.0], [0, 0, 0], [0, 0, 0]])
    assert math.isnan(t.pearson(thirds, VALUES5[:3], VALUES5[:3]))


def test_off_by_one_on_a_five_point_scale_ruins_nominal_kappa_only():
    # judge one above human on 1..4: no exact match; quadratic distances are all 1/16
    table = np.zeros((5, 5))
    table[[1, 2, 3, 4], [0, 1, 2, 3]] = 25
    assert t.cohen_kappa(table) < 0
    assert t.cohen_kappa(table, "quadratic") > 0.6


def test_an_unknown_weight_is_refused_with_the_choices():
    with pytest.raises(CalibrationError, match="'cubic': choose none, linear or quadratic"):
        t.weight_matrix(3, "cubic")


def test_many_tables_at_once_equal_one_at_a_time():
    tables = np.random.default_rng(2).integers(0, 9, size=(7, 4, 4)).astype(float)
    for statistic in (t.cohen_kappa, t.scott_pi, t.gwet_ac, t.spearman, t.kendall_tau_b, t.pabak):
        assert statistic(tables) == pytest.approx([float(statistic(one)) for one in tables])


@st.composite
def ratings(draw):
    k = draw(st.integers(2, 6))
    n = draw(st.integers(2, 60))
    labels = arrays(np.int64, n, elements=st.integers(0, k - 1))
    return draw(labels), draw(labels), k


@settings(max_examples=60, deadline=None)
@given(ratings())
def test_identities_hold_on_any_ratings(sample):
    judge, human, k = sample
    table, n = t.table_of(judge, human, k), len(judge)
    values = np.arange(k, dtype=float)
    for weights in ("none", "linear", "quadratic"):
        swapped = t.cohen_kappa(table.T, weights)
        assert t.cohen_kappa(table, weights) == pytest.approx(float(swapped), abs=1e-12, nan_ok=True)
    value = float(t.cohen_kappa(table, "quadratic"))
    if math.isnan(value):
        assert len(set(judge) | set(human)) == 1
        return
    assert -1 - 1e-12 <= value <= 1 + 1e-12
    assert t.lin_ccc(table, values) == pytest.approx(value, abs=1e-9)
    pi = float(t.scott_pi(table))
    assert t.pair_alpha(table, "nominal", values) == pytest.approx(pi + (1 - pi) / (2 * n), abs=1e-12)
    if k == 2:
        assert t.cohen_kappa(table, "linear") == pytest.approx(value, abs=1e-12)
        spread, tilt = t.prevalence_index(table) ** 2, t.bias_index(table) ** 2
        assert value == pytest.approx((t.pabak(table) - spread + tilt) / (1 - spread + tilt), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(ratings())
def test_unweighted_kappa_does_not_depend_on_the_order_of_categories(sample):
    judge, human, k = sample
    shuffled = np.random.default_rng(0).permutation(k)
    before = float(t.cohen_kappa(t.table_of(judge, human, k)))
    after = float(t.cohen_kappa(t.table_of(shuffled[judge], shuffled[human], k)))
    assert before == pytest.approx(after, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("seed", range(12))
def test_random_tables_agree_with_scipy_scikit_learn_and_krippendorff(seed):
    stats = pytest.importorskip("scipy.stats")
    metrics = pytest.importorskip("sklearn.metrics")
    krippendorff = pytest.importorskip("krippendorff")
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(2, 7)), int(rng.integers(12, 80))
    human = rng.integers(0, k, n)
    judge = np.where(rng.random(n) < 0.6, human, rng.integers(0, k, n))
    table = t.table_of(judge, human, k)
    for weights in ("none", "linear", "quadratic"):
        theirs = metrics.cohen_kappa_score(
            judge, human, labels=list(range(k)), weights=None if weights == "none" else weights
        )
        assert t.cohen_kappa(table, weights) == pytest.approx(theirs, abs=1e-12)
    assert t.spearman(table) == pytest.approx(stats.spearmanr(judge, human).statistic, abs=1e-12)
    assert t.kendall_tau_b(table) == pytest.approx(stats.kendalltau(judge, human).statistic, abs=1e-12)
    for metric in ("nominal", "ordinal", "interval"):
        theirs = krippendorff.alpha(
            np.stack([judge, human]).astype(float), value_domain=list(range(k)), level_of_measurement=metric
        )
        assert t.pair_alpha(table, metric, np.arange(k)) == pytest.approx(theirs, abs=1e-12)
