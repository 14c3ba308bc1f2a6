"""Planted failures of each kind: each is found, none is invented; verdicts over many cases."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge import calibrations
from judge.diagnosing.document import diagnose
from judge.report.diagnosis import sections
from tests.diagnosing.planted import AUDIT, PLANTED, write_run

HELD = {"established", "suspected"}


def verdicts(document: dict[str, Any]) -> dict[str, str]:
    return {one["id"]: one["verdict"] for one in document["scenarios"]}


def test_each_planted_failure_is_found_and_none_is_invented(tmp_path: Path) -> None:
    plants = [{"name": f"{outcome}-{n}", **plant} for outcome, plant in PLANTED.items() for n in range(3)]
    document = diagnose(write_run(tmp_path / "run", plants))
    for found in document["cases"]:
        assert found["outcome"] == found["case_id"].rsplit("-", 1)[0], found["case_id"]
    assert {name: one["n"] for name, one in document["outcomes"].items()} == dict.fromkeys(PLANTED, 3)


def mixed(outcome: str, n: int, of: int, **every: Any) -> list[dict[str, Any]]:
    """`of` cases of which the first `n` are planted; the rest pass."""
    return [{**PLANTED[outcome], **every} if place < n else dict(every) for place in range(of)]


REFUSALS = [PLANTED["correct_refusal"]] * 37 + [PLANTED["unanswerable_hallucination"]] * 3
SETS = {
    "S1": [{"rank": (1, 10)} for _ in range(60)],
    "S2": mixed("generation_hallucination", 30, 60),
    "S3": mixed("faithful_but_wrong", 30, 60),
    "S4": [{"rank": (4, 4)} for _ in range(60)],
    "S5": mixed("faithful_but_incomplete", 30, 60),
    "S7": mixed("citation_error", 30, 60),
    "S8_refusal": [PLANTED["unanswerable_hallucination"]] * 30 + [PLANTED["correct_refusal"]] * 10 + [{}] * 40,
    "S8_over_refusal": mixed("over_refusal", 30, 60) + REFUSALS,
}


@pytest.mark.parametrize("name", SETS)
def test_a_planted_scenario_is_established_by_a_calibrated_judge_and_no_other_is(name: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", SETS[name], calibration="calibrated", audited=True)
    found = verdicts(diagnose(run))
    assert {scenario for scenario, verdict in found.items() if verdict in HELD} == {name}
    assert found[name] == "established"


@pytest.mark.parametrize("state", ["uncalibrated", "stale", None])
def test_without_a_matching_calibration_a_judge_raises_suspicions_and_rules_nothing_out(state, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", SETS["S2"], audited=True, calibration=state)
    found = verdicts(diagnose(run))
    assert found["S2"] == "suspected"
    assert {found[name] for name in ("S3", "S5", "S7", "S8_over_refusal")} == {"not_shown"}
    assert found["S4"] == "ruled_out"  # labels alone decide it


def test_a_healthy_run_has_no_finding(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [{}] * 120 + [PLANTED["correct_refusal"]] * 120, calibration="calibrated", audited=True)  # fmt: skip
    found = verdicts(diagnose(run))
    assert set(found.values()) <= {"ruled_out", "not_tested"}


def test_low_precision_at_the_ceiling_with_no_smaller_k_is_arithmetic_and_no_defect(tmp_path: Path) -> None:
    # One label, ten passages, the needed one sometimes last: precision .1 is the ceiling and k = 10 is needed.
    plants = [{"rank": (1 if n % 2 else 10, 10)} for n in range(60)]
    document = diagnose(write_run(tmp_path / "run", plants))
    first = document["scenarios"][0]
    assert (first["id"], first["verdict"]) == ("S1", "ruled_out")
    assert first["details"]["ceiling"] == pytest.approx(0.1)
    assert "no defect" in first["sentence"]


def test_too_few_cases_give_no_verdict(tmp_path: Path) -> None:
    found = verdicts(diagnose(write_run(tmp_path / "run", mixed("generation_hallucination", 10, 19))))
    assert set(found.values()) == {"too_few", "not_tested"}


def test_good_offline_and_unhappy_online_is_at_most_suspected(tmp_path: Path) -> None:
    plants = [{"feedback": n % 4 == 0} for n in range(60)]
    document = diagnose(write_run(tmp_path / "run", plants, calibration="calibrated", audited=True))
    assert verdicts(document)["S6"] == "suspected"
    assert document["feedback"]["satisfaction"]["value"] == 0.25


def test_feedback_on_an_undeclared_scale_is_not_read(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [{"feedback": 2.0}] * 30)
    document = diagnose(run)
    assert verdicts(document)["S6"] == "not_tested"
    assert "--feedback-scale 1,5" in document["feedback"]["reason"]
    told = diagnose(run, feedback_scale=(1, 5))["feedback"]["satisfaction"]
    assert told["value"] == 0.25  # (2 - 1) / 4


def test_a_correction_moves_the_share_towards_what_people_would_have_found(tmp_path: Path) -> None:
    # Pass rate 1/2, sensitivity = specificity = .98: (.5 + .98 - 1) / .96 = .5; at 1/4 failing (.75 - .02) / .96.
    run = write_run(tmp_path / "run", mixed("generation_hallucination", 15, 60), calibration="calibrated", audited=True)
    condition = next(s for s in diagnose(run)["scenarios"] if s["id"] == "S2")["conditions"][0]
    assert condition["naive"]["value"] == 0.25
    assert condition["estimate"]["value"] == pytest.approx(1 - 0.73 / 0.96)
    assert condition["estimate"]["method"] == "rogan_gladen_lee"


def test_the_budget_says_what_fixing_one_stage_could_win_at_most(tmp_path: Path) -> None:
    plants = [PLANTED["retrieval_miss_wrong_context"]] * 6 + [PLANTED["generation_hallucination"]] * 3 + [{}] * 21
    budget = diagnose(write_run(tmp_path / "run", plants))["error_budget"]
    assert budget["headroom"]["retrieval"]["value"] == pytest.approx(6 / 30)
    assert budget["headroom"]["generation"]["value"] == pytest.approx(3 / 30)
    assert budget["by_stage"]["retrieval"]["value"] == pytest.approx(6 / 30)
    assert budget["passed"]["value"] == pytest.approx(21 / 30)


def test_the_matrix_counts_answered_cases_and_sets_refusals_apart(tmp_path: Path) -> None:
    kinds = ("pass", "generation_hallucination", "retrieval_miss_wrong_context", "retrieval_miss_hallucination",
             "over_refusal", "correct_refusal", "empty_answer", "unlabelled")  # fmt: skip
    document = diagnose(write_run(tmp_path / "run", [PLANTED[kind] for kind in kinds]))
    assert Counter({name: cell["n"] for name, cell in document["matrix"]["cells"].items()}) == {
        "high_high": 1, "high_low": 1, "low_high": 1, "low_low": 1,
    }  # fmt: skip
    assert (document["matrix"]["n"], document["matrix"]["n_known"]) == (5, 4)
    assert document["apart"] == {"answerable_refused_recall_high": 1, "empty": 1, "unanswerable_refused": 1}


def test_evidence_any_is_satisfied_by_one_of_several_labels_and_all_is_not(tmp_path: Path) -> None:
    plants = [{"name": f"e{n}", "relevant": [f"e{n}-needed", "elsewhere"]} for n in range(2)]
    run = write_run(tmp_path / "run", [plants[0], {**plants[1], "evidence": "any"}])
    assert [case["outcome"] for case in diagnose(run)["cases"]] == ["label_gap_suspected", "pass"]
    swept = diagnose(run, evidence="any")
    assert [case["outcome"] for case in swept["cases"]] == ["pass", "pass"]


def test_thresholds_are_configurable_and_echoed_with_their_origin(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [{"support_rate": 0.7}])
    assert diagnose(run)["cases"][0]["outcome"] == "correct_but_unfaithful"
    document = diagnose(run, thresholds={"faithfulness": 0.6})
    assert document["cases"][0]["outcome"] == "pass"
    assert document["thresholds"]["faithfulness"] == {"value": 0.6, "origin": "given"}
    reading = document["cases"][0]["inputs"]["faithfulness"]
    assert (reading["threshold"], reading["threshold_origin"]) == (0.6, "given")
    assert reading["origin"] == "faithfulness support_rate"


def test_missing_rubrics_leave_cases_unlabelled_with_the_way_out(tmp_path: Path) -> None:
    document = diagnose(write_run(tmp_path / "run", [{}], without=("faithfulness",)))
    assert document["cases"][0]["outcome"] == "unlabelled"
    assert "add faithfulness to --rubrics" in document["cases"][0]["inputs"]["faithfulness"]["reason"]


def test_clusters_of_shared_documents_widen_the_intervals(tmp_path: Path) -> None:
    plants = [
        {**({"support_rate": 0.0} if n < 20 else {}), "relevant": [f"c{n:03}-needed", {"doc": f"d{n // 4}", "grade": 0}]}
        for n in range(40)
    ]  # fmt: skip
    run = write_run(tmp_path / "run", plants)

    def width(cluster: str) -> float:
        found = diagnose(run, cluster=cluster)["scenarios"][1]["conditions"][0]["estimate"]
        return found["ci_high"] - found["ci_low"]

    assert width("document") > width("question")


def bound_audit(run: Path, rubric: str, verdict: str = "usable_with_correction") -> dict[str, Any]:
    """An audit of this very rubric, prompt and judge, as `judge audit` writes it."""
    manifest = json.loads((run / "run.json").read_text())
    return {
        "rubric": rubric, "rubric_hash": manifest["rubrics"][rubric]["rubric_hash"], "prompt_hash": "p",
        "judge": calibrations.identity(manifest["judge"]), "verdict": verdict,
        "judge_fingerprint": calibrations.fingerprint(manifest["judge"]), "pass_fail": AUDIT["agreement"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "expected", "said", "following"),
    [
        ("usable_with_correction", "established", "calibrated: usable with correction", "replay these cases"),
        ("not_usable", "suspected", "audited: not usable", "take another judge"),
        ("too_few_labels", "suspected", "audited: too few labels", "calibrate the judge"),
    ],
)
def test_an_audit_of_the_run_itself_counts_as_its_calibration(
    verdict, expected, said, following, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run", SETS["S2"])
    (run / "audit").mkdir()
    (run / "audit" / "faithfulness.json").write_text(json.dumps(bound_audit(run, "faithfulness", verdict)))
    document = diagnose(run)
    assert verdicts(document)["S2"] == expected
    assert next(one for one in document["scenarios"] if one["id"] == "S2")["next"].startswith(following)
    basis = next(section for section in sections(document) if section.title == "What the diagnosis rests on")
    assert said in next(row for row in basis.rows if row[0] == "faithfulness")


def test_an_audit_of_another_judge_is_no_calibration(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", SETS["S2"])
    (run / "audit").mkdir()
    other = bound_audit(run, "faithfulness") | {"judge_fingerprint": "another"}
    (run / "audit" / "faithfulness.json").write_text(json.dumps(other))
    assert verdicts(diagnose(run))["S2"] == "suspected"


def test_a_saved_calibration_with_error_rates_corrects_a_later_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", SETS["S2"])
    folder = tmp_path / "calibrations"
    folder.mkdir()
    rest = dict.fromkeys(calibrations.KEPT) | bound_audit(run, "faithfulness")
    (folder / "faithfulness-x.json").write_text(json.dumps(rest))
    assert verdicts(diagnose(run, calibration=folder))["S2"] == "established"


def test_uncertain_cases_left_out_of_a_share_are_counted_and_bound_it(tmp_path: Path) -> None:
    # 15 of 20 known are unsupported; 12 more differ between repeats: from 15/32 to 27/32.
    plants = [{"support_rate": 0.0}] * 15 + [{}] * 5 + [{"name": f"u{n}"} for n in range(12)]
    run = write_run(tmp_path / "run", plants)
    lines = [json.loads(line) for line in (run / "judgments.jsonl").read_text().splitlines()]
    again = [{**row, "repeat": 1, "details": {"support_rate": 0.0}} for row in lines
             if row["case_id"].startswith("u") and row["rubric"] == "faithfulness"]  # fmt: skip
    (run / "judgments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines + again))
    found = next(s for s in diagnose(run)["scenarios"] if s["id"] == "S2")
    assert (found["conditions"][0]["estimate"]["n"], found["conditions"][0]["estimate"]["value"]) == (20, 0.75)
    assert "12 uncertain ones left out: with them between 47% and 84%" in found["notes"]
