"""The agreement page: keys, correlations, several humans, the ceiling, warnings."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_vectors import VECTORS, near

from calibration import agreement as pages
from calibration.ratings import declare_scale, ratings_of

KEYS = [
    "n",
    "n_dropped",
    "scale",
    "percent_agreement",
    "kappa",
    "kappa_max",
    "scott_pi",
    "ac1",
    "pabak",
    "prevalence_index",
    "bias_index",
    "within_1",
    "mean_bias",
    "mae",
    "spearman",
    "kendall_tau_b",
    "pearson",
    "ccc",
    "krippendorff_alpha",
    "confusion",
    "binary",
    "base_rate",
    "constant_judge_accuracy",
    "human_ceiling",
    "per_human",
    "warnings",
]
FIVE = declare_scale("1,2,3,4,5")
YES_NO = declare_scale("0,1")


def agreement(ratings, replicates=499, **options):
    """The page with fewer replicates: these tests look at values and at which interval is wider."""
    return pages.agreement(ratings, replicates=replicates, **options)


def rated(scale, judge, *humans, clusters=None):
    names = ["judge", *(f"h{place + 1}" for place in range(len(humans)))]
    columns = [judge, *humans]
    rows = [
        (f"q{i}", name, column[i], i) for i in range(len(judge)) for name, column in zip(names, columns, strict=True)
    ]
    items, raters, labels, places = zip(*rows, strict=True)
    labels = [None if label is None else int(label) for label in labels]
    groups = None if clusters is None else [clusters[place] for place in places]
    return ratings_of(items, raters, labels, scale=scale, clusters=groups)


def page_of(name, scale, **options):
    inputs = VECTORS[name]["inputs"]
    return VECTORS[name], agreement(rated(scale, inputs["judge"], inputs["human"]), **options)


def test_the_page_has_exactly_the_keys_of_the_contract():
    _, page = page_of("corr_ord24", FIVE)
    plain = page.to_dict()
    assert list(plain) == KEYS
    assert list(plain["kappa"]) == ["none", "linear", "quadratic"]
    assert list(plain["krippendorff_alpha"]) == ["nominal", "ordinal", "interval"]
    assert list(plain["human_ceiling"]) == ["human_human", "judge_human", "delta"]
    assert plain["scale"] == plain["confusion"]["labels"] == ["1", "2", "3", "4", "5"]
    assert plain["human_ceiling"]["delta"]["reason"] == "one_human"


def test_an_ordinal_page_matches_the_vectors():
    vector, page = page_of("corr_ord24", FIVE)
    expected = vector["expected"]
    assert page.spearman.value == near(expected["spearman"], vector)
    assert page.kendall_tau_b.value == near(expected["kendall_tau_b"], vector)
    assert page.pearson.value == near(expected["pearson"], vector)
    assert [page.pearson.ci_low, page.pearson.ci_high] == near(expected["pearson_ci95"], vector)
    assert page.ccc.value == near(expected["lin_ccc_ddof0"], vector)
    assert [page.ccc.ci_low, page.ccc.ci_high] == near(expected["lin_ccc_ci95_fisher"], vector)
    assert page.mean_bias.value == near(expected["mean_bias"], vector)
    assert page.mae.value == near(expected["mae"], vector)
    assert page.percent_agreement.value == near(expected["exact"], vector)
    assert page.within_1.value == near(expected["within1"], vector)
    alphas, vector = page.krippendorff_alpha, VECTORS["krippendorff_2rater_ord24"]
    assert {name: alpha.value for name, alpha in alphas.items()} == near(
        {name: vector["expected"][name] for name in alphas}, vector
    )
    assert page.confusion.table == VECTORS["cohen_kappa_ord24_5x5_identity"]["inputs"]["table"]


def test_mean_bias_has_the_paired_t_interval_and_its_sign_follows_the_judge():
    inputs = VECTORS["corr_ord24"]["inputs"]
    page = agreement(rated(FIVE, inputs["judge"], inputs["human"]))
    swapped = agreement(rated(FIVE, inputs["human"], inputs["judge"]))
    d = np.array(inputs["judge"]) - np.array(inputs["human"])
    assert page.mean_bias.se == pytest.approx(d.std(ddof=1) / np.sqrt(24))
    assert swapped.mean_bias.value == -page.mean_bias.value
    assert swapped.kappa["linear"].value == pytest.approx(page.kappa["linear"].value)


def test_a_binary_page_matches_the_vector_and_each_rate_has_its_own_denominator():
    vector, page = page_of("binary_bin40", YES_NO)
    expected, binary = vector["expected"], page.binary
    for name in ("sensitivity", "specificity", "ppv", "npv", "f1", "mcc", "balanced_accuracy"):
        assert binary[name].value == near(expected[name], vector)
    assert [binary["sensitivity"].ci_low, binary["sensitivity"].ci_high] == near(expected["sens_wilson"], vector)
    assert [binary["specificity"].ci_low, binary["specificity"].ci_high] == near(expected["spec_wilson"], vector)
    assert [binary["ppv"].ci_low, binary["ppv"].ci_high] == near(expected["ppv_wilson"], vector)
    accuracy = page.percent_agreement
    assert [accuracy.ci_low, accuracy.ci_high] == near(expected["acc_wilson"], vector)
    assert (binary["sensitivity"].n, binary["specificity"].n, binary["ppv"].n) == (31, 9, 32)
    assert binary["prevalence"].value == page.base_rate == page.constant_judge_accuracy == 31 / 40
    # PABAK is 2 p_o - 1, so its interval is the Wilson one on that line
    assert page.pabak.ci_low == pytest.approx(2 * expected["acc_wilson"][0] - 1)


def test_an_always_pass_judge_is_caught_at_ninety_percent_agreement():
    page = agreement(rated(YES_NO, [1] * 100, [0] * 10 + [1] * 90))
    assert page.percent_agreement.value == page.constant_judge_accuracy == 0.9
    assert page.kappa["none"].value == 0.0
    assert page.binary["specificity"].value == 0.0
    assert page.binary["mcc"].reason == "empty_margin"
    assert page.spearman.reason == "constant_input"
    assert {"judge_constant", "prevalence_paradox"} <= set(page.warnings)


def test_two_constant_raters_leave_kappa_undefined_and_agreement_whole():
    page = agreement(rated(YES_NO, [1] * 40, [1] * 40))
    assert (page.kappa["none"].reason, page.scott_pi.reason) == ("single_class", "single_class")
    assert (page.percent_agreement.value, page.ac1.value, page.pabak.value) == (1.0, 1.0, 1.0)
    assert page.mae.value == 0.0
    assert page.mae.ci_high > 0
    assert page.binary["specificity"].reason == "empty_denominator"


def test_one_pair_and_nine_pairs_give_points_and_no_verdict():
    one = agreement(rated(FIVE, [4], [5]))
    assert (one.kappa["none"].status, one.mean_bias.value, one.mean_bias.reason) == ("insufficient", -1.0, "one_value")
    nine = agreement(rated(FIVE, [1, 2, 3, 4, 5, 1, 2, 3, 4], [1, 2, 3, 4, 5, 2, 2, 3, 4]))
    for estimate in (nine.kappa["quadratic"], nine.spearman, nine.ac1, nine.pabak, nine.ccc, nine.pearson):
        assert (estimate.status, estimate.reason) == ("insufficient", "n_below_10")
        assert estimate.value is not None
    assert nine.percent_agreement.ci_low is not None
    assert "n_below_10" in nine.warnings


def test_a_category_seen_by_one_rater_only_keeps_its_place():
    page = agreement(rated(FIVE, [1, 2, 2, 5] * 5, [1, 2, 4, 5] * 5))
    assert page.confusion.table[1] == [0, 5, 0, 5, 0]
    assert page.confusion.table[3] == [0, 0, 0, 0, 0]


def test_words_count_in_steps_and_say_so():
    scale = declare_scale("poor,fair,good")
    items = [f"q{i}" for i in range(12) for _ in range(2)]
    labels = ["good", "fair"] * 6 + ["poor", "poor"] * 6
    page = agreement(ratings_of(items, ["judge", "h"] * 12, labels, scale=scale))
    assert (page.mean_bias.value, page.within_1.value) == (0.5, 1.0)
    assert "word_scale_counted_in_steps" in page.warnings
    nominal = agreement(
        ratings_of(items, ["judge", "h"] * 12, labels, scale=declare_scale("poor,fair,good", "nominal"))
    )
    assert (nominal.kappa["linear"].reason, nominal.mean_bias.reason) == ("nominal_scale", "nominal_scale")
    assert nominal.ac1.value is not None


def test_the_ceiling_of_three_humans_matches_the_vector():
    vector = VECTORS["ceiling_3humans_50"]
    expected = vector["expected"]
    page = agreement(rated(FIVE, vector["inputs"]["judge"], *vector["inputs"]["humans"]))
    ceiling = page.human_ceiling
    assert ceiling.human_human.value == near(expected["mean_hh"], vector)
    assert ceiling.judge_human.value == near(expected["mean_jh"], vector)
    assert ceiling.delta.value == near(expected["diff"], vector)
    assert ceiling.delta.ci_low < 0 < ceiling.delta.ci_high
    assert page.kappa["quadratic"].value == near(expected["mean_jh"], vector)
    assert [human.rater for human in page.per_human] == ["h1", "h2", "h3"]
    assert [human.kappa["quadratic"].value for human in page.per_human] == near(expected["judge_human"], vector)
    assert sum(map(sum, page.confusion.table)) == 150


def test_several_humans_with_gaps_use_every_pair_there_is():
    judge, first, second = [1, 0, 1, 0] * 5, [1, 0, 1, None] * 5, [None, 0, 0, 0] * 5
    page = agreement(rated(YES_NO, judge, first, second))
    assert (page.n, page.n_dropped) == (20, 0)
    # 15 + 15 pairs, 5 of them disagree
    assert page.percent_agreement.value == pytest.approx(25 / 30)
    assert page.percent_agreement.n_clusters == 20


def test_clusters_widen_shares_means_and_correlations():
    rng = np.random.default_rng(0)
    human = np.repeat(rng.integers(1, 6, 40), 4)
    judge = np.clip(human + np.repeat(rng.integers(-1, 2, 40), 4), 1, 5)
    alone = agreement(rated(FIVE, judge, human), replicates=2999)
    together = agreement(rated(FIVE, judge, human, clusters=[f"c{i // 4}" for i in range(160)]), replicates=2999)
    for name in ("percent_agreement", "mean_bias", "mae", "spearman", "pearson", "ccc", "ac1"):
        narrow, wide = getattr(alone, name), getattr(together, name)
        assert wide.value == pytest.approx(narrow.value)
        assert wide.n_clusters == 40
        assert wide.ci_high - wide.ci_low > 1.5 * (narrow.ci_high - narrow.ci_low)


def test_permuting_the_items_changes_nothing_and_seeds_repeat():
    inputs = VECTORS["corr_ord24"]["inputs"]
    order = np.random.default_rng(1).permutation(24)
    straight = agreement(rated(FIVE, inputs["judge"], inputs["human"]), seed=5)
    shuffled = agreement(rated(FIVE, np.array(inputs["judge"])[order], np.array(inputs["human"])[order]), seed=5)
    assert straight.to_dict() == shuffled.to_dict()
    assert straight.to_dict() == agreement(rated(FIVE, inputs["judge"], inputs["human"]), seed=5).to_dict()


def test_a_judge_that_left_a_third_unscored_is_counted_not_imputed():
    judge = [None if i % 3 == 0 else 1 + i % 5 for i in range(60)]
    page = agreement(rated(FIVE, judge, [1 + i % 5 for i in range(60)]))
    assert (page.n, page.n_dropped, page.percent_agreement.value) == (40, 20, 1.0)
    assert (page.kappa["none"].n_dropped, page.mae.n_dropped, page.percent_agreement.n_dropped) == (20, 20, 20)
