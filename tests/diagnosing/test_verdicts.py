"""Verdicts on shares: our conformance cases, Holm, several conditions, correction by an audit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibration.estimate import mean, proportion
from judge.diagnosing.trust import Trust, corrected
from judge.diagnosing.verdicts import Condition, allow_for_many, share, together

GIVEN = json.loads((Path(__file__).parents[1] / "data" / "retrieval" / "diagnosis_cases.json").read_text())


def condition(x: int, n: int, thr: float, *, above: bool = True, calibrated: bool = True) -> Condition:
    return Condition(what="share", estimate=proportion(x, n), threshold=thr, above=above, trusted=calibrated)


@pytest.mark.parametrize("case", GIVEN["aggregate"], ids=lambda case: case["id"])
def test_every_conformance_case_gets_its_interval_and_verdict(case) -> None:
    made = condition(**case["inputs"])
    assert [made.estimate.ci_low, made.estimate.ci_high] == pytest.approx(case["wilson95"], abs=6e-5)
    assert made.verdict() == case["expected"]


def test_an_uncalibrated_judge_never_rules_out() -> None:
    assert condition(5, 100, 0.2).verdict() == "ruled_out"
    assert condition(5, 100, 0.2, calibrated=False).verdict() == "not_shown"


def test_the_p_value_is_the_score_test_that_the_wilson_interval_inverts() -> None:
    # 28 of 100 against .2: z = .08 / sqrt(.2 * .8 / 100) = 2, two-sided p = .0455; the interval [.2014, .375] is above.
    made = condition(28, 100, 0.2)
    assert made.p_value() == pytest.approx(0.0455, abs=1e-4)
    assert made.verdict() == "established"


def test_holm_turns_a_lone_borderline_finding_among_many_tests_into_a_suspicion() -> None:
    # p = .0455 times the number of tests: 2 x .0455 > .05.
    borderline = together([condition(28, 100, 0.2)], 20)
    clear = together([condition(90, 100, 0.2)], 20)
    idle = ("not_shown", 0.9)
    few = together([condition(6, 10, 0.2)], 20)
    assert allow_for_many([borderline])[0][0] == "established"
    assert [verdict for verdict, _ in allow_for_many([borderline, idle, clear])] == ["suspected", "not_shown", "established"]  # fmt: skip
    assert [verdict for verdict, _ in allow_for_many([borderline, few])] == ["established", "too_few"]


def test_all_conditions_must_hold_and_the_largest_p_counts() -> None:
    strong, weak = condition(90, 100, 0.2), condition(28, 100, 0.2)
    assert together([strong, weak], 20) == ("established", weak.p_value())
    assert together([strong, condition(5, 100, 0.2)], 20)[0] == "ruled_out"
    assert together([strong, condition(6, 10, 0.2)], 20)[0] == "too_few"


def test_values_that_are_all_alike_still_have_a_p_value() -> None:
    # 40 reciprocal ranks of .2 against .5 on the scale .2..1: the mean could be .5 only if 3/8 of all were 1.
    made = Condition(
        what="ratio", estimate=mean([0.2] * 40, bounds=(0.2, 1.0)), threshold=0.5, above=False, bounds=(0.2, 1.0)
    )
    assert made.p_value() == pytest.approx(2 * (1 - 0.3 / 0.8) ** 40)
    assert made.verdict() == "established"


def test_cases_that_share_a_cluster_widen_the_interval() -> None:
    outcomes = [True] * 20 + [False] * 20
    alone = share(outcomes, [str(n) for n in range(40)])
    pairs = share(outcomes, [str(n // 2) for n in range(40)])
    assert pairs.value == alone.value == 0.5
    assert pairs.ci_high - pairs.ci_low > alone.ci_high - alone.ci_low
    assert share([True, None], ["a", "b"]).n_dropped == 1


RATES = {"sensitivity": 0.9, "m1": 100, "specificity": 0.8, "m0": 100}


def test_a_calibrated_judge_with_an_audit_has_its_share_corrected() -> None:
    # Pass rate .6: (.6 + .8 - 1) / (.9 + .8 - 1) = .5714, so the true share of failures is .4286, not .4.
    fails = [True] * 40 + [False] * 60
    found = corrected(proportion(40, 100), fails, [not f for f in fails], Trust(rubric="faithfulness", state="calibrated", rates=RATES))  # fmt: skip
    assert found.trusted
    assert found.estimate.value == pytest.approx(1 - 0.4 / 0.7)
    assert found.estimate.ci_low < found.estimate.value < found.estimate.ci_high
    assert found.naive.value == 0.4


@pytest.mark.parametrize(
    ("trust", "passed_differently", "reason"),
    [
        (Trust(rubric="f", state="uncalibrated", rates=RATES), 0, "f: uncalibrated"),
        (Trust(rubric="f", state="stale", rates=RATES), 0, "f: stale"),
        (Trust(rubric="f", state="calibrated"), 0, "calibrated, but without error rates"),
        (Trust(rubric="f", state="calibrated", rates=RATES), 3, "differ from the sides here on 3 cases"),
        (Trust(rubric="f", state="calibrated", rates=RATES | {"specificity": 0.1}), 0, "judge_not_better_than_chance"),
    ],
)
def test_without_a_correction_the_share_stays_and_says_why(trust, passed_differently, reason) -> None:
    fails = [True] * 40 + [False] * 60
    passed = [n < passed_differently or not f for n, f in enumerate(fails)]
    found = corrected(proportion(40, 100), fails, passed, trust)
    assert not found.trusted
    assert found.estimate.value == 0.4
    assert reason in found.reason


def test_an_audit_that_found_the_judge_not_usable_is_no_ground_for_trust() -> None:
    assert Trust(rubric="f", state="calibrated", verdict="usable_with_correction").calibrated
    assert not Trust(rubric="f", state="calibrated", verdict="not_usable").calibrated
    assert not Trust(rubric="f", state="calibrated", verdict="too_few_labels").calibrated
