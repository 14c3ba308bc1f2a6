"""Alternative annotator test: the vectors, its limits, and the faults of the original notebook."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_vectors import VECTORS, near
from scipy.stats import ttest_1samp

from calibration import CalibrationError
from calibration.ratings import declare_scale, ratings_of
from calibration.replacement import alt_test

STARS = declare_scale("1,2,3,4,5")
VECTOR_NAMES = [f"alttest_{scoring}_eps{epsilon}" for scoring in ("accuracy", "neg_rmse") for epsilon in (0.1, 0.2)]


def ratings_from(columns, scale=STARS, cluster=None):
    """Ratings from {rater: {item: label}}."""
    rows = [(item, rater, label) for rater, given in columns.items() for item, label in given.items()]
    items, raters, labels = zip(*rows, strict=True)
    clusters = None if cluster is None else [cluster(item) for item in items]
    return ratings_of(items, raters, labels, scale=scale, clusters=clusters)


@pytest.mark.parametrize("name", VECTOR_NAMES)
def test_every_person_has_the_t_and_p_of_the_vector(name):
    vector = VECTORS[name]
    expected, params = vector["expected"], vector["params"]
    ratings = ratings_from({"judge": vector["inputs"]["llm"], **vector["inputs"]["humans"]})
    found = alt_test(ratings, epsilon=params["epsilon"], replicates=999, scoring=params["scoring"], q=params["q_fdr"])
    for test in found.per_rater:
        person = expected["per_human"][test.rater]
        assert test.n == person["n"]
        assert [test.judge_advantage, test.human_advantage] == near([person["rho_f"], person["rho_h"]], vector)
        assert [test.t, test.p] == near([person["t"], person["p"]], vector)
        assert test.p_adjusted == near(expected["p_by_adjusted"][test.rater], vector)
    assert found.winning_rate.value == expected["winning_rate"]
    assert found.passed == (expected["winning_rate"] >= 0.5)
    assert found.advantage_probability.value == near(expected["avg_advantage_prob"], vector)
    assert found.advantage_probability.ci_low < found.advantage_probability.value < found.advantage_probability.ci_high


def test_a_judge_identical_to_the_people_replaces_all_of_them():
    # d is 0 on every item: no t, and 0 < epsilon is certain; the original warns and returns t = -inf
    expected = VECTORS["alttest_all_identical"]["expected"]
    same = {str(i): 1 + i % 5 for i in range(40)}
    found = alt_test(ratings_from(dict.fromkeys(("judge", "h0", "h1", "h2"), same)), epsilon=0.1, replicates=999)
    assert found.winning_rate.value == expected["winning_rate"]
    assert found.advantage_probability.value == expected["avg_advantage_prob"]
    assert [(test.t, test.p) for test in found.per_rater] == [(None, 0.0)] * 3
    at_zero = alt_test(ratings_from(dict.fromkeys(("judge", "h0", "h1", "h2"), same)), epsilon=0, replicates=999)
    assert at_zero.winning_rate.value == 0.0


def test_people_with_fewer_than_30_items_are_named_with_their_counts_and_never_tested():
    many = {str(i): 1 + i % 5 for i in range(40)}
    few = dict(list(many.items())[:29])
    found = alt_test(ratings_from({"judge": many, "h0": many, "h1": many, "late": few}), epsilon=0.1, replicates=999)
    assert [test.rater for test in found.per_rater] == ["h0", "h1"]
    assert found.too_few_items == {"late": 29}
    assert "fewer_than_3_raters" in found.warnings


def test_nobody_eligible_is_a_status_and_not_a_division_by_zero():
    few = {str(i): 1 + i % 5 for i in range(20)}
    found = alt_test(ratings_from({"judge": few, "h0": few, "h1": few}), epsilon=0.1, replicates=999)
    assert (found.passed, found.winning_rate.status, found.winning_rate.reason) == (
        None,
        "undefined",
        "no_eligible_rater",
    )
    assert found.too_few_items == {"h0": 20, "h1": 20}
    alone = alt_test(ratings_from({"judge": few, "h0": few}), epsilon=0.1, replicates=999)
    assert alone.winning_rate.reason == "one_human"


def test_plain_differences_give_the_t_test_of_scipy_and_the_correction_of_statsmodels():
    rng = np.random.default_rng(1)
    truth = rng.integers(1, 6, size=60)
    noisy = {
        name: {str(i): int(np.clip(v + rng.integers(-1, 2), 1, 5)) for i, v in enumerate(truth)}
        for name in ("judge", "a", "b", "c")
    }
    found = alt_test(ratings_from(noisy), epsilon=0.15, scoring="accuracy")
    for test in found.per_rater:
        others = [name for name in ("a", "b", "c") if name != test.rater]
        share = {
            who: np.array([np.mean([noisy[who][i] == noisy[o][i] for o in others]) for i in noisy[who]])
            for who in ("judge", test.rater)
        }
        d = (share[test.rater] >= share["judge"]) * 1.0 - (share["judge"] >= share[test.rater])
        oracle = ttest_1samp(d, 0.15, alternative="less")
        assert [test.t, test.p] == pytest.approx([oracle.statistic, oracle.pvalue])
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    adjusted = multitest.multipletests([test.p for test in found.per_rater], method="fdr_by")[1]
    assert [test.p_adjusted for test in found.per_rater] == pytest.approx(list(adjusted))


def test_items_of_one_text_are_tested_as_a_cluster():
    # 20 texts, each rated three times with the same labels: three copies of an item carry no more than one
    rng = np.random.default_rng(2)
    base = {name: rng.integers(1, 6, size=20) for name in ("judge", "a", "b", "c")}
    tripled = {
        name: {f"{i}.{copy}": int(v) for i, v in enumerate(labels) for copy in range(3)}
        for name, labels in base.items()
    }
    plain = alt_test(ratings_from(tripled), epsilon=0.1, replicates=999)
    clustered = alt_test(ratings_from(tripled, cluster=lambda item: item.split(".")[0]), epsilon=0.1, replicates=999)
    for rows, texts in zip(plain.per_rater, clustered.per_rater, strict=True):
        assert abs(texts.t) < abs(rows.t)
        assert texts.t == pytest.approx(rows.t * np.sqrt(19 / 59))  # se^2 of 20 means against 60 rows, both ddof 1


def test_bad_epsilon_and_a_distance_without_an_order_are_refused():
    labels = {str(i): "AB"[i % 2] for i in range(40)}
    ratings = ratings_from({"judge": labels, "a": labels, "b": labels}, scale=None)
    with pytest.raises(CalibrationError, match="epsilon is"):
        alt_test(ratings, epsilon=1.5)
    with pytest.raises(CalibrationError, match="declare an ordered"):
        alt_test(ratings, epsilon=0.1, scoring="neg_rmse")
    assert alt_test(ratings, epsilon=0.1, replicates=999).scoring == "accuracy"


def test_our_p_is_not_the_signed_rank_p_of_the_original_faq():
    # the vectors record both: signed-rank p below .001 where the t-test has .059, .016, .079
    vector = VECTORS["alttest_accuracy_eps0.1"]
    ratings = ratings_from({"judge": vector["inputs"]["llm"], **vector["inputs"]["humans"]})
    recorded = vector["expected"]["per_human"]
    for test in alt_test(ratings, epsilon=0.1, scoring="accuracy", replicates=99).per_rater:
        assert recorded[test.rater]["p_wilcoxon"] < 0.001 < 0.01 < test.p


def test_unreliable_people_are_said_because_they_are_easy_to_replace():
    rng = np.random.default_rng(3)
    noise = {
        name: {str(i): int(v) for i, v in enumerate(rng.integers(1, 6, size=60))} for name in ("judge", "a", "b", "c")
    }
    found = alt_test(ratings_from(noise), epsilon=0.2, replicates=999)
    assert any(warning.startswith("low_human_agreement") for warning in found.warnings)
