"""Krippendorff's alpha with missing labels, and Fleiss' kappa."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_vectors import VECTORS, near

from calibration import CalibrationError
from calibration.multirater import fleiss_kappa, krippendorff_alpha, label_counts


def counts_of_matrix(rows, k, base=1):
    codes = np.array([[-1 if value is None else int(value) - base for value in row] for row in rows])
    return label_counts(codes, k)


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_krippendorffs_own_example_with_missing_labels(metric):
    vector = VECTORS["krippendorff_2011_4x12_missing"]
    units = list(zip(*vector["inputs"]["ratings_raters_x_units"], strict=True))
    estimate = krippendorff_alpha(counts_of_matrix(units, 5), metric, values=[1, 2, 3, 4, 5])
    assert estimate.value == near(vector["expected"][metric], vector)
    assert (estimate.n, estimate.n_dropped) == (11, 1)
    assert estimate.ci_low < estimate.value < estimate.ci_high


def test_ordinal_alpha_is_not_gwets_ordinal_weight():
    vector = VECTORS["krippendorff_2011_4x12_missing"]
    units = list(zip(*vector["inputs"]["ratings_raters_x_units"], strict=True))
    assert krippendorff_alpha(counts_of_matrix(units, 5), "ordinal").value != pytest.approx(0.833638, abs=1e-3)


def test_fleiss_matches_the_published_tables():
    vector = VECTORS["fleiss_1971_psychiatric_30x6"]
    counts = counts_of_matrix(vector["inputs"]["ratings_units_x_raters"], 5)
    assert fleiss_kappa(counts, replicates=99).value == near(vector["expected"]["fleiss_kappa"], vector)
    assert krippendorff_alpha(counts, replicates=99).value == near(vector["expected"]["krippendorff_nominal"], vector)
    # alpha = kappa + (1 - kappa) / (N m)
    kappa = fleiss_kappa(counts, replicates=99).value
    assert krippendorff_alpha(counts, replicates=99).value == pytest.approx(kappa + (1 - kappa) / 180)
    vector = VECTORS["fleiss_wikipedia_10x14"]
    assert fleiss_kappa(vector["inputs"]["counts"]).value == near(vector["expected"]["fleiss_kappa"], vector)


def test_alpha_with_the_judge_in_each_humans_place_matches_the_vector():
    vector = VECTORS["ceiling_3humans_50"]
    humans, judge = np.array(vector["inputs"]["humans"]) - 1, np.array(vector["inputs"]["judge"]) - 1
    assert krippendorff_alpha(label_counts(humans.T, 5), "ordinal").value == near(
        vector["expected"]["alpha_ordinal_humans"], vector
    )
    for place, expected in enumerate(vector["expected"]["alpha_ordinal_judge_replaces"]):
        replaced = humans.copy()
        replaced[place] = judge
        assert krippendorff_alpha(label_counts(replaced.T, 5), "ordinal", replicates=99).value == near(expected, vector)


@pytest.mark.parametrize("seed", range(10))
def test_random_ratings_with_gaps_agree_with_krippendorff(seed):
    krippendorff = pytest.importorskip("krippendorff")
    rng = np.random.default_rng(seed)
    k, raters, units = int(rng.integers(2, 7)), int(rng.integers(2, 6)), int(rng.integers(10, 60))
    truth = rng.integers(0, k, units)
    codes = np.where(rng.random((units, raters)) < 0.5, truth[:, None], rng.integers(0, k, (units, raters)))
    codes[rng.random((units, raters)) < rng.uniform(0, 0.4)] = -1
    data = np.where(codes < 0, np.nan, codes.astype(float)).T
    for metric in ("nominal", "ordinal", "interval"):
        theirs = krippendorff.alpha(data, value_domain=list(range(k)), level_of_measurement=metric)
        ours = krippendorff_alpha(label_counts(codes, k), metric, replicates=99)
        assert ours.value == pytest.approx(theirs, abs=1e-10)


def test_clusters_are_resampled_whole():
    rng = np.random.default_rng(3)
    codes = np.repeat(rng.integers(0, 2, (40, 3)), 5, axis=0)
    alone = krippendorff_alpha(label_counts(codes, 2))
    clustered = krippendorff_alpha(label_counts(codes, 2), clusters=[i // 5 for i in range(200)])
    assert clustered.value == pytest.approx(alone.value)
    assert clustered.n_clusters == 40
    assert clustered.ci_high - clustered.ci_low > 1.7 * (alone.ci_high - alone.ci_low)


def test_degenerate_ratings_are_named():
    assert krippendorff_alpha([[3, 0], [3, 0]]).reason == "single_class"
    assert krippendorff_alpha([[1, 0], [0, 1]]).reason == "no_data"
    assert fleiss_kappa([[2, 1], [1, 1]]).reason == "unequal_raters"
    assert krippendorff_alpha([[2, 0], [1, 1]]).reason == "n_below_10"
    with pytest.raises(CalibrationError, match="units x labels"):
        krippendorff_alpha([1, 2, 3])
