"""Pairwise statistics: the combine table, position bias, ratings, length, agreement with people."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from calibration_vectors import VECTORS, near

from calibration import CalibrationError
from calibration.__main__ import main
from calibration.length import length_control
from calibration.pairwise import agreement_with_humans, order_effect, shrunk_win_rate, summarize
from calibration.strength import bradley_terry, ratings
from calibration.tables import cohen_kappa
from calibration.verdicts import PairVerdicts

KEYS = [
    "n",
    "a_wins",
    "b_wins",
    "ties",
    "both_fail",
    "inconsistent",
    "incomplete",
    "win_rate_a",
    "p_value",
    "position_consistency",
    "inconsistent_rate",
    "first_preference",
    "preference_fairness",
]
SHOWN = {"A": {1: "a", 2: "b"}, "B": {1: "b", 2: "a"}, "C": {1: "tie", 2: "tie"}}


def verdicts(pairs, items=None):
    return PairVerdicts(items or [f"q{i}" for i in range(len(pairs))], [p[0] for p in pairs], [p[1] for p in pairs])


def from_positions(codes):
    """Displayed choices such as AB (first, then second) as winners; order 2 shows b first."""
    return verdicts([(SHOWN[code[0]][1], SHOWN[code[1]][2]) for code in codes])


@pytest.mark.parametrize(
    "one, two, outcome",
    [
        ("a", "a", "a"), ("b", "b", "b"), ("tie", "tie", "tie"), ("both_fail", "both_fail", "both_fail"),
        ("a", "tie", "tie"), ("b", "tie", "tie"), ("a", "b", "inconsistent"), ("a", "both_fail", "inconsistent"),
        ("b", "both_fail", "inconsistent"), ("tie", "both_fail", "tie"), ("a", "error", "incomplete"),
        ("error", "error", "incomplete"), ("identical", "identical", "tie"), ("a", None, "incomplete"),
    ],
)  # fmt: skip
def test_two_orders_combine_by_the_table_whichever_comes_first(one, two, outcome):
    assert verdicts([(one, two)]).names() == [outcome]
    assert verdicts([(two, one)]).names() == [outcome]


def test_position_measures_match_the_vector():
    vector = VECTORS["position_swap_20"]
    expected = vector["expected"]
    found = summarize(from_positions(vector["inputs"]["choice_pairs"]))
    consistency = found.position_consistency
    assert consistency.value == near(expected["position_consistency"], vector)
    assert [consistency.ci_low, consistency.ci_high] == near(expected["consistency_wilson"], vector)
    assert found.preference_fairness.value == near(expected["preference_fairness_shi"], vector)
    assert found.first_preference.value == near(expected["first_position_rate_decisive"], vector)
    assert found.win_rate_a.value == near(expected["win_rate_ties_half_strict"], vector)
    strict = expected["system1_strict"]
    assert (found.a_wins, found.b_wins, found.ties + found.inconsistent) == (
        strict["win"],
        strict["loss"],
        strict["tie"],
    )
    # the two-sided sign test of 7 against 4: 2 x P(X <= 4 of 11) = 1124 / 2048
    assert found.p_value == pytest.approx(1124 / 2048)


def test_fairness_is_the_published_ratio_of_squares():
    # recency^2 / (r + p) - primacy^2 / (r + p), over n: 4/7 - 25/7 = -3, / 20
    found = summarize(from_positions(VECTORS["position_swap_20"]["inputs"]["choice_pairs"]))
    assert found.preference_fairness.value == pytest.approx((2**2 / 7 - 5**2 / 7) / 20)


@pytest.mark.parametrize("pair, first, fairness", [(("a", "b"), 1.0, -1.0), (("b", "a"), 0.0, 1.0)])
def test_a_judge_that_looks_only_at_the_position_has_no_winner(pair, first, fairness):
    # judge-kappa flags the first position only; recency is a bias too
    found = summarize(verdicts([pair] * 30))
    assert (found.inconsistent, found.a_wins, found.b_wins, found.p_value) == (30, 0, 0, 1.0)
    assert (found.first_preference.value, found.position_consistency.value) == (first, 0.0)
    assert (found.inconsistent_rate.value, found.preference_fairness.value) == (1.0, fairness)
    assert found.win_rate_a.value == 0.5
    gamma = order_effect(verdicts([pair] * 30))
    assert (gamma.value > 1) == (first == 1.0)
    assert not gamma.ci_low <= 0 <= gamma.ci_high


def test_errors_are_incomplete_never_ties_and_identical_answers_leave_the_position_measures():
    found = summarize(verdicts([("a", "error"), ("a", "a"), ("identical", "identical"), ("both_fail", "both_fail")]))
    assert (found.n, found.incomplete, found.ties, found.both_fail, found.a_wins) == (4, 1, 1, 1, 1)
    assert found.win_rate_a.value == 0.75
    assert (found.position_consistency.value, found.position_consistency.n) == (1.0, 2)
    # single verdicts: a first, error; a first, a second -> first, first, second
    assert (found.first_preference.value, found.first_preference.n) == (pytest.approx(2 / 3), 3)
    nothing = summarize(verdicts([("error", "a")]))
    assert (nothing.win_rate_a.reason, nothing.position_consistency.reason, nothing.p_value) == (
        "no_values",
        "no_values",
        1.0,
    )


def test_a_and_tie_is_a_tie_but_not_the_same_winner():
    found = summarize(verdicts([("a", "tie")] * 10))
    assert (found.ties, found.position_consistency.value, found.inconsistent_rate.value) == (10, 0.0, 0.0)


def test_repeats_take_the_majority_and_widen_by_question():
    pairs = [("a", "a"), ("a", "a"), ("b", "b"), ("a", "a"), ("b", "b"), ("error", "a")]
    found = summarize(verdicts(pairs, items=["q1", "q1", "q1", "q2", "q2", "q2"]))
    assert (found.n, found.a_wins, found.ties) == (2, 1, 1)
    assert found.position_consistency.n_clusters == 2
    many = [("a", "a")] * 3 + [("b", "b")] * 3
    alone = summarize(verdicts(many * 10))
    repeated = summarize(verdicts(many * 10, items=[f"q{i // 3}" for i in range(60)]))
    assert (repeated.n, alone.n) == (20, 60)
    assert repeated.win_rate_a.se > alone.win_rate_a.se


def test_the_order_effect_ignores_strength_and_counts_contradictions():
    # 8 primacy against 2 recency: half the log of 8.5 / 2.5, whatever the 50 consistent wins are
    pairs = [("a", "b")] * 8 + [("b", "a")] * 2 + [("a", "a")] * 40 + [("b", "b")] * 10
    gamma = order_effect(verdicts(pairs))
    assert gamma.value == pytest.approx(0.5 * math.log(8.5 / 2.5))
    assert gamma.se == pytest.approx(0.5 * math.sqrt(1 / 8.5 + 1 / 2.5))
    assert order_effect(verdicts([("a", "a")] * 20)).reason == "no_conflicts"


def test_an_order_effect_pulls_the_win_rate_to_one_half():
    # logit .8 = 1.386; (1/(1+e^-3.386) + 1/(1+e^.614)) / 2 = (.9673 + .3512) / 2
    assert shrunk_win_rate(0.8, 2.0) == pytest.approx(0.6592, abs=1e-4)
    assert shrunk_win_rate(0.8, 0.0) == pytest.approx(0.8)
    assert shrunk_win_rate(0.5, 3.0) == pytest.approx(0.5)
    with pytest.raises(CalibrationError, match="fair is 1"):
        shrunk_win_rate(1, 0.3)


def test_bradley_terry_gives_agrestis_baseball_ratings():
    vector = VECTORS["bradley_terry_agresti_baseball"]
    found = bradley_terry(vector["inputs"]["wins_row_beats_col"])
    teams = vector["inputs"]["teams"]
    assert dict(zip(teams, found.log_strength, strict=True)) == near(vector["expected"]["log_strength"], vector)
    assert dict(zip(teams, found.se, strict=True)) == near(vector["expected"]["se"], vector)


def test_davidson_ties_match_the_vector():
    vector = VECTORS["davidson_ties_3"]
    found = bradley_terry(vector["inputs"]["wins"], ties=vector["inputs"]["ties_symmetric"], reference=2)
    assert found.log_strength == near(vector["expected"]["log_strength"], vector)
    assert found.se == near(vector["expected"]["se"], vector)
    assert found.log_nu == near(vector["expected"]["log_nu"], vector)
    assert found.se_log_nu == near(vector["expected"]["se_log_nu"], vector)


def test_a_system_that_always_wins_has_no_finite_maximum():
    assert bradley_terry([[0, 5], [0, 0]]) is None


def tournament(wins, ties=()):
    """Comparisons from (winner, loser, times), each on a question of its own."""
    rows = [(w, loser, "a") for w, loser, times in wins for _ in range(times)]
    rows += [(a, b, "tie") for a, b, times in ties for _ in range(times)]
    word = [row[2] for row in rows]
    return PairVerdicts([f"q{i}" for i in range(len(rows))], word, word, [row[:2] for row in rows])


def test_ratings_of_independent_comparisons_equal_the_vector_up_to_centring():
    vector = VECTORS["davidson_ties_3"]
    wins, ties = vector["inputs"]["wins"], vector["inputs"]["ties_symmetric"]
    names = ["x", "y", "z"]
    rows = [(names[i], names[j], int(wins[i][j])) for i in range(3) for j in range(3) if i != j]
    tied = [(names[i], names[j], int(ties[i][j])) for i in range(3) for j in range(i)]
    found = {rating.system: rating for rating in ratings(tournament(rows, tied))}
    assert [found[name].rating.value - found["z"].rating.value for name in names] == near(
        vector["expected"]["log_strength"], vector
    )
    assert [found[name].rank for name in names] == [1, 2, 3]
    assert found["x"].rank_low == 1
    assert found["z"].rank_high == 3
    assert sum(rating.rating.value for rating in found.values()) == pytest.approx(0, abs=1e-9)
    # independent questions: the clustered errors are close to the Fisher ones of x - z
    assert found["x"].rating.ci_low < found["x"].rating.value < found["x"].rating.ci_high


def test_a_disconnected_tournament_has_no_common_scale_and_an_unbeaten_system_is_said():
    apart = ratings(tournament([("u", "v", 3), ("v", "u", 3), ("x", "y", 4), ("y", "x", 2)]))
    assert {rating.rating.reason for rating in apart} == {"disconnected"}
    unbeaten = ratings(tournament([("x", "y", 6), ("y", "z", 4), ("z", "y", 2), ("x", "z", 5)]))
    assert unbeaten[0].system == "x"
    assert "half_win_added" in unbeaten[0].rating.warnings
    assert math.isfinite(unbeaten[0].rating.value)
    assert unbeaten[0].n == 11
    level = ratings(tournament([], [("x", "y", 4), ("y", "z", 4)]))
    assert {rating.rank for rating in level} == {1}
    assert "half_win_added" in level[0].rating.warnings


def test_ratings_need_named_systems():
    with pytest.raises(CalibrationError, match="systems are not named"):
        ratings(verdicts([("a", "a")]))


def test_length_control_matches_the_vector_and_carries_coefficient_error():
    vector = VECTORS["length_controlled_simple_120"]
    expected = vector["expected"]
    found = length_control(vector["inputs"]["pref"], vector["inputs"]["delta_len"])
    assert found.intercept.value == near(expected["b0"], vector)
    assert found.intercept.se == near(expected["se_b0"], vector)
    assert found.effect.value == near(expected["b1"], vector)
    assert found.effect.se == near(expected["se_b1"], vector)
    assert found.raw_win_rate == near(expected["raw_win_rate"], vector)
    assert found.win_rate.value == near(expected["lc_win_rate"], vector)
    assert [found.win_rate.ci_low, found.win_rate.ci_high] == near(expected["lc_ci95_logit"], vector)
    # AlpacaEval reports 0 here
    assert found.win_rate.se == near(expected["lc_se_delta"], vector)


def test_length_control_says_why_it_cannot():
    assert length_control([1, 0], [1, 2]).effect.reason == "n_below_10"
    assert length_control([1, 0] * 10, [3] * 20).effect.reason == "no_length_difference"
    assert length_control([1] * 10 + [0] * 10, [5] * 10 + [-5] * 10).effect.reason == "separated"
    with pytest.raises(CalibrationError, match=r"outside 0\.\.1"):
        length_control([2.0] * 12, range(12))


def test_length_control_clusters_widen():
    rng = np.random.default_rng(0)
    d = np.repeat(rng.normal(size=40), 4)
    y = np.repeat((rng.random(40) < 0.6).astype(float), 4)
    alone, together = length_control(y, d), length_control(y, d, clusters=[i // 4 for i in range(160)])
    assert together.effect.value == pytest.approx(alone.effect.value)
    assert together.effect.se > 1.5 * alone.effect.se


def test_agreement_with_people_shows_ties_kept_ties_dropped_and_kappa():
    vector = VECTORS["pairwise_agreement_A_tie_B"]
    expected, names = vector["expected"], ["a", "tie", "b"]
    cells = [
        (names[i], names[j])
        for i, row in enumerate(vector["inputs"]["table_judge_rows_human_cols"])
        for j, times in enumerate(row)
        for _ in range(times)
    ]
    found = agreement_with_humans([cell[0] for cell in cells], [cell[1] for cell in cells])
    assert found.with_ties.value == near(expected["agreement_with_ties"], vector)
    assert found.without_ties.value == near(expected["agreement_decisive_only"], vector)
    assert found.without_ties.n == expected["decisive_n"]
    assert found.kappa_linear.value == near(expected["kappa_linear"], vector)
    assert found.kappa_linear.se == near(expected["kappa_linear_se"], vector)
    assert found.kappa_nominal.value == near(expected["kappa_nominal"], vector)
    # both call 17 pairs a tie
    assert found.tie_rate_difference.value == 0.0
    assert cohen_kappa(np.array(found.table, float), "linear") == near(expected["kappa_linear"], vector)


def test_missing_preferences_are_dropped_and_unknown_words_refused():
    found = agreement_with_humans(["a", "incomplete", "inconsistent", "b"], ["a", "a", "tie", None])
    assert (found.with_ties.value, found.with_ties.n, found.with_ties.n_dropped) == (1.0, 2, 2)
    with pytest.raises(CalibrationError, match="'first' is no preference"):
        agreement_with_humans(["a"], ["first"])
    with pytest.raises(CalibrationError, match="'first' is no verdict"):
        summarize(verdicts([("first", "second")]))
    with pytest.raises(CalibrationError, match="at least one pair"):
        verdicts([])


def command(tmp_path, capsys, rows, *options):
    path = tmp_path / "comparisons.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    code = main(["pairwise", str(path), "--json", *options])
    captured = capsys.readouterr()
    return code, json.loads(captured.out) if captured.out else None, captured.err


def test_the_command_prints_the_comparison_summary(tmp_path, capsys):
    rows = ["item,a,b,order1,order2,human", "q1,x,y,a,a,a", "q2,x,y,a,b,tie", "q3,x,y,error,a,", "q4,x,y,b,b,a"]
    code, found, _ = command(tmp_path, capsys, rows)
    assert code == 0
    assert list(found) == [*KEYS, "human_agreement"]
    assert (found["n"], found["a_wins"], found["b_wins"], found["inconsistent"], found["incomplete"]) == (4, 1, 1, 1, 1)
    assert found["human_agreement"]["with_ties"]["value"] == pytest.approx(2 / 3)


def test_the_command_rates_more_than_two_systems(tmp_path, capsys):
    rows = [
        f"q{i},{a},{b},{w},{w}"
        for i in range(10)
        for a, b, w in (
            ("x", "y", "a" if i < 7 else "b"),
            ("y", "z", "a" if i < 6 else "b"),
            ("x", "z", "a" if i < 8 else "tie"),
        )
    ]
    code, found, _ = command(tmp_path, capsys, ["item,a,b,order1,order2", *rows])
    assert code == 0
    assert [rating["system"] for rating in found["ratings"]] == ["x", "y", "z"]
    assert found["ratings"][0]["rating"]["n_clusters"] == 10


@pytest.mark.parametrize(
    "rows, message",
    [
        (["item,a,b,order1,order2", "q1,x,y,first,a"], "line 2: order1 is 'first'"),
        (["item,a,b,order1,order2", "q1,x,x,a,a"], "two different systems"),
        (["item,a,b,order1,order2", "q1,x,y,a,a", "q1,y,x,a,a"], "line 3: item q1 compares y and x twice"),
        (["item,a,order1,order2", "q1,x,a,a"], "no column 'b'"),
    ],
)
def test_the_command_refuses_broken_comparisons(tmp_path, capsys, rows, message):
    code, _, err = command(tmp_path, capsys, rows)
    assert code == 2
    assert message in err
