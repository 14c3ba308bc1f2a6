"""Repeats of the judge and intraclass correlations."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_vectors import VECTORS, near

from calibration import CalibrationError
from calibration.intraclass import FORMS, intraclass, intraclass_of
from calibration.ratings import declare_scale, ratings_of
from calibration.reliability import reliability


def rows_of(table):
    """Long form of items x repeats."""
    items = [i for i, row in enumerate(table) for _ in row]
    return items, [score for row in table for score in row]


def test_repeats_match_the_vector():
    vector = VECTORS["repeat_reliability_10x3"]
    expected = vector["expected"]
    items, scores = rows_of(vector["inputs"]["scores_items_x_repeats"])
    found = reliability(items, scores, pass_mark=3.5)
    assert found.icc.value == near(expected["icc1_1"], vector)
    assert found.icc_mean.value == near(expected["spearman_brown_3"], vector)
    assert [found.item_variance, found.run_variance] == near([expected["var_item"], expected["var_run"]], vector)
    assert found.flip_rate.value == expected["flip_rate"]
    assert found.pairwise_agreement.value == near(expected["pairwise_exact_agreement"], vector)
    assert found.mean.se == near(expected["sem_mean_total"], vector)
    assert (found.repeats_needed, found.repeats) == (expected["repeats_for_reliability_0_95"], 3.0)
    # items 5 (4,3,4) and 8 (3,4,3) cross 3.5; (4,4,5), (2,3,2), (5,4,5) change and stay on their side
    assert found.pass_flip_rate.value == 0.2


def test_the_six_intraclass_correlations_of_shrout_and_fleiss():
    vector = VECTORS["icc_shrout_fleiss_1979"]
    found = intraclass(vector["inputs"]["ratings_units_x_raters"])
    for form in FORMS:
        assert found[form].value == near(vector["expected"][form], vector)
        # pingouin prints two digits
        assert [found[form].ci_low, found[form].ci_high] == pytest.approx(vector["expected"]["ci95"][form], abs=0.0051)


def test_judge_and_human_columns_match_the_vector():
    vector = VECTORS["icc_ord24"]
    found = intraclass(np.column_stack([vector["inputs"]["judge"], vector["inputs"]["human"]]))
    for form in FORMS:
        assert found[form].value == near(vector["expected"][form], vector)


def test_named_raters_are_compared_on_the_items_that_all_of_them_rated():
    vector = VECTORS["icc_ord24"]
    columns = {"judge": vector["inputs"]["judge"], "human": vector["inputs"]["human"]}
    rows = [(str(i), name, label) for name, labels in columns.items() for i, label in enumerate(labels)]
    items, raters, labels = zip(*rows, ("only", "judge", 3), strict=True)
    scale, both = declare_scale("1,2,3,4,5"), ["judge", "human"]
    found = intraclass_of(ratings_of(items, raters, labels, scale=scale), both)["ICC2"]
    assert found.value == near(vector["expected"]["ICC2"], vector)
    assert (found.n, found.n_dropped) == (24, 1)
    shared = ratings_of(items, raters, labels, scale=scale, clusters=[item[0] for item in items])
    grouped = intraclass_of(shared, both)["ICC2"]
    assert (grouped.value, grouped.ci_low, grouped.reason) == (found.value, None, "no_interval_for_clusters")
    apart = ratings_of(["a", "b"], both, ["1", "2"], scale=scale)
    assert intraclass_of(apart, both)["ICC1"].reason == "no_data"
    with pytest.raises(CalibrationError, match="declare their order"):
        intraclass_of(ratings_of(["a", "a"], both, ["good", "bad"]), both)


def test_repeats_that_never_differ_are_called_deterministic_not_reliable():
    found = reliability([1, 1, 2, 2, 3, 3], [1, 1, 5, 5, 3, 3])
    assert (found.icc.value, found.icc.ci_low, found.icc.reason) == (1.0, None, "deterministic")
    assert "deterministic" in found.warnings
    assert found.flip_rate.ci_high > 0.5  # 0 of 3 items flipped: Wilson upper limit
    constant = reliability([1, 1, 2, 2], [3, 3, 3, 3])
    assert (constant.icc.value, constant.icc.reason, constant.repeats_needed) == (None, "constant_input", None)


def test_noise_alone_gives_a_negative_correlation_and_no_number_of_repeats():
    # item means 2 and 2: MSB 0, MSW 2 -> (0 - 2) / (0 + 2) = -1
    found = reliability(["a", "a", "b", "b"], [1, 3, 3, 1])
    assert found.icc.value == pytest.approx(-1.0)
    assert (found.icc_mean.reason, found.repeats_needed) == ("icc_not_positive", None)


def test_failed_repeats_are_left_out_and_items_with_one_repeat_counted():
    found = reliability(["a", "a", "a", "b", "b", "c", "c"], [1, 2, None, 4, 4, 5, None])
    assert (found.n, found.n_dropped) == (2, 1)
    # means 1.5 and 4 of two repeats each: MSB = 2 x (1.25^2 x 2) = 6.25, MSW = .5 / 2
    assert found.icc.value == pytest.approx((6.25 - 0.25) / (6.25 + 0.25))
    none = reliability(["a", "b"], [1, 2])
    assert (none.icc.reason, none.flip_rate.value) == ("no_repeats", None)


def test_unbalanced_repeats_use_the_average_number_of_anova():
    # sizes 2 and 4, N = 6: R = (6 - 20 / 6) / 1
    found = reliability(["a"] * 2 + ["b"] * 4, [1, 2, 4, 4, 5, 5])
    assert found.repeats == pytest.approx(6 - 20 / 6)
    grand = 21 / 6
    msb = 2 * (1.5 - grand) ** 2 + 4 * (4.5 - grand) ** 2
    msw = (0.5 + 1.0) / 4
    assert found.icc.value == pytest.approx((msb - msw) / (msb + (found.repeats - 1) * msw))


def test_verdicts_decide_the_flips_when_a_mark_does_not():
    found = reliability(["a", "a", "b", "b"], [4, 4, 2, 2], passed=[True, False, False, False])
    assert found.pass_flip_rate.value == 0.5
    with pytest.raises(CalibrationError, match="verdict"):
        reliability(["a", "a"], [4, 4], passed=[True, None])


def test_bad_input_is_refused_by_name():
    with pytest.raises(CalibrationError, match="one row per judgment"):
        reliability(["a"], [1, 2])
    with pytest.raises(CalibrationError, match="krippendorff_alpha"):
        intraclass([[1, None], [2, 3]])
    with pytest.raises(CalibrationError, match="target"):
        reliability(["a"], [1], target=1)


def test_the_interval_covers_the_true_reliability():
    rng, held = np.random.default_rng(5), 0
    for _ in range(200):
        table = rng.normal(size=(40, 1)) * 2 + rng.normal(size=(40, 3))
        found = reliability(*rows_of(table)).icc
        held += found.ci_low <= 4 / 5 <= found.ci_high
    assert held >= 0.92 * 200
