"""Paired comparison: sign flips, McNemar, multiple testing, minimal effects."""

from __future__ import annotations

import math

import numpy as np
import pytest
from calibration_vectors import VECTORS, named, near

from calibration import CalibrationError
from calibration.compare import (
    false_discovery,
    holm,
    mcnemar,
    minimal_detectable_effect,
    non_inferior,
    paired,
    sign_flip,
    wilcoxon,
)
from calibration.estimate import Estimate, mean, normal_quantile


def test_sign_flip_equals_full_enumeration_on_ten_ndcg_pairs():
    vector = VECTORS["paired_permutation_ndcg_10"]
    a, b, expected = vector["inputs"]["a"], vector["inputs"]["b"], vector["expected"]
    result = paired(a, b)
    assert result.p_sign_flip == near(expected["p_exact_signflip"], vector)
    assert result.difference.value == near(expected["diff"], vector)
    assert result.difference.se == near(expected["se"], vector)
    assert result.mcnemar is None


def test_binary_pairs_have_the_exact_sign_test_and_the_paired_interval():
    vector = VECTORS["paired_compare_20"]
    expected = vector["expected"]
    result = paired(vector["inputs"]["a"], vector["inputs"]["b"])
    assert result.p_sign_flip == near(expected["p_signflip_exact"], vector)
    assert result.difference.se == near(expected["se_paired"], vector)
    assert [result.difference.ci_low, result.difference.ci_high] == near(expected["ci95_t"], vector)
    assert result.mcnemar is not None
    assert (result.mcnemar.only_a, result.mcnemar.only_b) == (4, 1)
    assert result.mde == pytest.approx((1.959963985 + 0.841621234) * result.difference.se)


@pytest.mark.parametrize("name", named("mcnemar_"))
def test_mcnemar_matches_the_vectors(name):
    vector = VECTORS[name]
    result = mcnemar(vector["inputs"]["b"], vector["inputs"]["c"])
    assert result.p_exact == near(vector["expected"]["exact_p"], vector)
    assert result.p_mid == near(vector["expected"].get("mid_p", 1.0), vector)


def test_mcnemar_with_equal_counts_leaves_out_half_of_the_centre():
    # b = c = 1: outcomes 0, 1, 2 with .25, .5, .25; exact 1, mid-p 1 - .5 / 2
    assert (mcnemar(1, 1).p_exact, mcnemar(1, 1).p_mid) == (1.0, 0.75)


def test_multiple_testing_matches_the_vector():
    vector = VECTORS["multiple_testing_10"]
    p = vector["inputs"]["p"]
    assert holm(p) == near(vector["expected"]["holm"], vector)
    assert false_discovery(p) == near(vector["expected"]["bh"], vector)
    assert false_discovery(p, method="by") == near(vector["expected"]["by"], vector)
    # holm by hand: 2 x .03 = .06, then max(.06, .04)
    assert holm([0.04, 0.03]) == pytest.approx([0.06, 0.06])
    assert holm([]) == []
    with pytest.raises(CalibrationError, match="between 0 and 1"):
        holm([0.2, 1.5])


@pytest.mark.parametrize("name", named("mde_"))
def test_minimal_detectable_effect_matches_the_vectors(name):
    vector = VECTORS[name]
    se = vector["inputs"]["sd_diff"] / math.sqrt(vector["inputs"]["n"])
    assert minimal_detectable_effect(se) == near(vector["expected"]["mde"], vector)


def test_wilcoxon_uses_pratt_for_zeros():
    vector = VECTORS["wilcoxon_15"]
    assert wilcoxon(vector["inputs"]["diffs"]) == near(vector["expected"]["p_pratt"], vector)
    assert wilcoxon([0, 0, 0]) == 1.0
    assert wilcoxon([]) is None


def test_clustered_standard_error_is_cr1_with_t_of_clusters():
    vector = VECTORS["clustered_se_18_6"]
    expected = vector["expected"]
    scores, clusters = vector["inputs"]["scores"], vector["inputs"]["clusters"]
    estimate = mean(scores, clusters=clusters)
    assert estimate.se == near(expected["se_cluster_CR1"], vector)
    assert mean(scores).se == near(expected["se_naive"], vector)
    assert estimate.ci_high - estimate.value == pytest.approx(2.570581836 * estimate.se)


def test_monte_carlo_sign_flip_agrees_with_enumeration_and_is_never_zero():
    rng = np.random.default_rng(4)
    d = np.round(rng.normal(0.5, 1, size=16), 3)
    exact = sign_flip(d)
    doubled = sign_flip(np.concatenate([d, np.full(1, 1e-3)]), seed=1, replicates=20000)
    assert doubled == pytest.approx(exact, abs=0.01)
    assert sign_flip(np.arange(1.0, 41.0), seed=1) == 1 / 10000
    assert sign_flip(np.arange(1.0, 41.0), seed=1) == sign_flip(np.arange(1.0, 41.0), seed=1)


def test_sign_flip_flips_whole_clusters():
    # two clusters with sums 4 and 4: four sign patterns, two of them as extreme
    assert sign_flip([1, 3, 2, 2], clusters=["a", "a", "b", "b"]) == 0.5
    assert sign_flip([1, 3, 2, 2]) == 0.125
    assert sign_flip([0, 0]) == 1.0
    assert sign_flip([None]) is None


def test_sign_flip_survives_rounding_of_equal_sums():
    # +-.1, .2, .3 : |.1 + .2 - .3| is 5.6e-17 in floats and must count as 0, not as a different value
    assert sign_flip([0.1, 0.2, -0.3]) == 1.0


def test_equal_systems_have_p_one_and_an_interval_of_positive_width():
    result = paired([1, 0, 1, 1], [1, 0, 1, 1])
    assert (result.difference.value, result.p_sign_flip, result.mde) == (0.0, 1.0, None)
    assert result.difference.ci_low < 0 < result.difference.ci_high
    unknown_scale = paired([3, 4, 5], [3, 4, 5])
    assert (unknown_scale.difference.ci_low, unknown_scale.difference.reason) == (None, "zero_variance")
    assert paired([3, 4, 5], [3, 4, 5], bounds=(1, 5)).difference.ci_high > 0


def test_a_pair_with_a_missing_side_is_dropped_with_its_cluster():
    result = paired([1, None, 3, 4], [1, 2, None, 2], clusters=["x", "y", "z", "w"])
    assert (result.n_pairs, result.difference.value, result.difference.n_clusters) == (2, 1.0, 2)
    with pytest.raises(CalibrationError, match="a has 2 values and b has 1"):
        paired([1, 2], [1])


def test_non_inferiority_looks_at_the_lower_bound_only():
    assert non_inferior(Estimate(value=0.01, ci_low=-0.04, ci_high=0.06), 0.05)
    assert not non_inferior(Estimate(value=0.3, ci_low=-0.06, ci_high=0.66), 0.05)
    assert not non_inferior(Estimate(value=0.3, status="insufficient", reason="one_value"), 0.05)


def test_the_normal_quantile_is_the_textbook_one():
    assert normal_quantile(0.95) == pytest.approx(1.959963984540054, abs=1e-12)


def test_no_p_value_exceeds_one_by_rounding():
    """4 against 5 of 9: twice the lower tail is 2 * (1 + 9 + 36 + 84 + 126) / 512 = 1 exactly."""
    assert mcnemar(4, 5).p_exact == 1.0
    assert all(mcnemar(a, a + 1).p_exact <= 1.0 for a in range(60))
