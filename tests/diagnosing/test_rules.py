"""The rules for one case: our conformance cases, uncertain inputs, and words for every outcome."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.diagnosing import OUTCOMES, RULES, diagnose, diagnose_values
from judge.diagnosing.rules import compare, stated
from judge.diagnosing.thresholds import DEFAULTS, Threshold, choose
from judge.errors import UsageError

GIVEN = json.loads((Path(__file__).parents[1] / "data" / "retrieval" / "diagnosis_cases.json").read_text())


@pytest.mark.parametrize("case", GIVEN["cases"], ids=lambda case: case["id"])
def test_every_conformance_case_gets_its_outcome_and_next_experiment(case) -> None:
    found = diagnose_values(case["inputs"], GIVEN["thresholds"]).to_dict()
    assert (found["outcome"], found["next_experiment"]) == (case["expected"], case["next"])


def test_the_next_experiments_are_the_agreed_words() -> None:
    ours = {name: meaning.next_experiment for name, meaning in OUTCOMES.items() if name != "empty_answer"}
    assert ours == GIVEN["next_experiment"]
    assert {rule.outcome for rule in RULES} | {"human_review"} == set(OUTCOMES)


def test_the_default_thresholds_are_the_agreed_ones() -> None:
    assert {name: DEFAULTS[name] for name in GIVEN["thresholds"]} == GIVEN["thresholds"]


def test_article_1_question_2_is_a_label_gap_when_all_evidence_is_needed_and_a_pass_when_any_suffices() -> None:
    # D1 and D3 are labelled, D3 is retrieved and says Paris: recall 1/2, hit 1.
    assert diagnose_values({"recall": 0.5, "faithfulness": 1, "correct": 1}).outcome == "label_gap_suspected"
    assert diagnose_values({"recall": 1, "faithfulness": 1, "correct": 1}).outcome == "pass"


def test_an_undecided_case_lists_the_outcomes_between_which_it_stands() -> None:
    found = diagnose_values({"recall": 1, "faithfulness": [0.6, 0.8, 0.93], "correct": 1})
    assert found.possible == ("pass", "correct_but_unfaithful")


def test_an_uncertain_input_that_changes_nothing_does_not_send_a_case_to_a_person() -> None:
    # Citations matter only where the answer is grounded and right.
    found = diagnose_values({"recall": 1, "faithfulness": 0, "citation": [0.5, 0.8, 0.9]})
    assert found.outcome == "generation_hallucination"


def test_an_uncertain_completeness_between_pass_and_incomplete_is_for_a_person() -> None:
    found = diagnose_values({"recall": 1, "faithfulness": 1, "correct": 1, "complete": [0.7, 0.8, 0.9]})
    assert found.possible == ("pass", "faithful_but_incomplete")


def test_a_missing_recall_is_unlabelled_even_when_faithfulness_is_uncertain() -> None:
    assert diagnose_values({"faithfulness": [0.1, 0.5, 0.9]}).outcome == "unlabelled"


def test_a_doubtful_refusal_is_for_a_person() -> None:
    readings = {"recall": compare(1, Threshold(0.8)), "refused": stated("uncertain", "judge")}
    assert diagnose(readings).possible == ("over_refusal", "unlabelled")


def test_an_empty_answer_has_its_own_outcome_whatever_else_is_known() -> None:
    assert diagnose_values({"empty": True, "recall": 1, "answerable": False}).outcome == "empty_answer"


@pytest.mark.parametrize(
    ("p", "side"), [(0.44, "low"), (0.45, "uncertain"), (0.5, "uncertain"), (0.55, "uncertain"), (0.56, "high")]
)
def test_a_quick_probability_within_05_of_its_threshold_is_uncertain(p, side) -> None:
    assert compare(p, Threshold(0.5, "rubric"), margin=0.05).side == side


def test_unknown_names_and_values_out_of_range_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="input 'recal' is unknown"):
        diagnose_values({"recal": 1})
    with pytest.raises(UsageError, match="threshold 'recal' is unknown"):
        choose({"recal": 0.5})
    with pytest.raises(UsageError, match="threshold recall is 80"):
        choose({"recall": 80})
