"""Panels: majority without a favourite, correlated errors, Dawid-Skene to its likelihood's end."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_vectors import VECTORS, near

from calibration import CalibrationError
from calibration.latent import dawid_skene
from calibration.multirater import label_counts
from calibration.panel import majority, panel
from calibration.ratings import declare_scale, ratings_of

STARS = declare_scale("1,2,3,4,5")


def ratings_from(columns, scale=STARS):
    rows = [(str(i), rater, label) for rater, labels in columns.items() for i, label in enumerate(labels)]
    items, raters, labels = zip(*rows, strict=True)
    return ratings_of(items, raters, labels, scale=scale)


def test_dawid_skene_matches_the_vector_to_the_end_of_its_likelihood():
    vector = VECTORS["dawid_skene_60x4"]
    expected = vector["expected"]
    codes = np.array(vector["inputs"]["labels_items_x_judges"])
    found = dawid_skene(codes, 2)
    assert found.converged
    assert found.log_likelihood == pytest.approx(expected["loglik"], abs=1e-6)
    assert list(found.prior) == near(expected["prior"], vector)
    assert list(found.posterior[:10, 1]) == near(expected["p_class1_first10"], vector)
    for judge, rows in zip(found.confusion, expected["confusion_true_rows"].values(), strict=True):
        assert judge == near(np.array(rows), vector)
    assert int((found.posterior[:, 1] > 0.5).sum()) == expected["n_positive"]
    assert majority(label_counts(codes, 2))[1] == expected["majority_ties"]


def test_the_likelihood_stop_goes_on_where_an_early_stop_halts():
    # crowd-kit's default halts after 3 steps on data like these
    codes = np.array(VECTORS["dawid_skene_60x4"]["inputs"]["labels_items_x_judges"])
    assert dawid_skene(codes, 2).steps > 10


def test_dawid_skene_takes_missing_labels_and_names_its_assumption():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, size=120)
    codes = np.where(rng.random((120, 4)) < 0.8, truth[:, None], rng.integers(0, 3, size=(120, 4)))
    codes[rng.random((120, 4)) < 0.2] = -1
    codes = codes[(codes >= 0).any(axis=1)]
    found = dawid_skene(codes, 3)
    assert found.posterior.sum(axis=1) == pytest.approx(np.ones(len(codes)))
    assert "independently" in found.assumes
    with pytest.raises(CalibrationError, match="three judges"):
        dawid_skene(codes[:, :2], 3)
    with pytest.raises(CalibrationError, match="leave it out"):
        dawid_skene(np.full((5, 3), -1), 2)


def test_a_tie_is_a_tie_and_not_the_first_label():
    joint, ties = majority(np.array([[1, 1, 0], [0, 2, 1], [0, 0, 0], [3, 0, 0]]))
    assert (list(joint), ties) == ([-1, 1, -1, 0], 1)


def test_judges_with_the_same_errors_are_worth_one_judge_and_independent_ones_several():
    rng = np.random.default_rng(2)
    human = rng.integers(2, 5, size=300)
    noise = rng.integers(-1, 2, size=(300, 4))
    same = panel(
        ratings_from({"human": human, "a": human + noise[:, 0], "b": human + noise[:, 0], "c": human + noise[:, 0]}),
        ["a", "b", "c"],
        "human",
        replicates=499,
    )
    assert same.error_correlation.value == pytest.approx(1.0)
    assert same.effective_judges == pytest.approx(1.0)
    apart = panel(
        ratings_from({"human": human, **{name: human + noise[:, i] for i, name in enumerate("abc")}}),
        list("abc"),
        "human",
        replicates=499,
    )
    assert apart.effective_judges > 2.4
    assert apart.error_correlation.ci_low < 0 < apart.error_correlation.ci_high
    assert set(apart.pairwise_error_correlation) == {"a~b", "a~c", "b~c"}


def test_the_majority_of_three_independent_judges_beats_each_of_them():
    # each right with .75 on two labels: the majority with .75^3 + 3 x .75^2 x .25 = .84
    rng = np.random.default_rng(6)
    human = rng.integers(0, 2, size=400)
    judges = {name: np.where(rng.random(400) < 0.75, human, 1 - human) for name in "abc"}
    found = panel(
        ratings_from({"human": human, **judges}, scale=declare_scale("0,1")), list("abc"), "human", replicates=499
    )
    assert found.majority_kappa.value == pytest.approx(0.6875, abs=0.06)
    assert found.majority_kappa.value > max(member.kappa.value for member in found.members)


def test_the_panel_mean_and_majority_of_each_item_are_given_without_a_human():
    found = panel(ratings_from({"a": [1, 2, 5], "b": [1, 4, 4], "c": [2, 3, 4]}), ["a", "b", "c"])
    assert found.majority == ("1", None, "4")
    assert found.panel_mean == pytest.approx((4 / 3, 3.0, 13 / 3))
    assert (found.ties, found.unanimous.value, found.majority_kappa.reason) == (1, 0.0, "no_human_label")
    assert found.effective_judges is None
    with pytest.raises(CalibrationError, match="two or more"):
        panel(ratings_from({"a": [1, 2], "b": [1, 2]}), ["a"])


def test_a_judge_without_errors_has_no_error_correlation():
    human = list(range(1, 6)) * 4
    found = panel(ratings_from({"human": human, "a": human, "b": human}), ["a", "b"], "human", replicates=99)
    assert (found.error_correlation.reason, found.pairwise_error_correlation) == ("constant_input", {"a~b": None})
