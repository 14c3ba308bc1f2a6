"""judge runs diff: pairs on the case id, differences with their doubt, and refusal to compare by two rulers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

import rubrics
from judge.diffing import adjust, diff_runs, sections
from judge.errors import UsageError

CONFORMANCE = Path(__file__).parent / "data" / "calibration" / "vectors.json"
SCALE = {"min": 1, "max": 5}


def vector(name: str) -> dict[str, Any]:
    return next(one for one in json.loads(CONFORMANCE.read_text())["vectors"] if one["name"] == name)


def made_run(path: Path, scores: dict[str, dict[str, float | None]], **more: Any) -> Path:
    """A run directory with one line per rubric and case; a score of None is an undefined judgment."""
    path.mkdir()
    judge = {"model": "openai/m", "endpoint": None, "params": {}, "mode": "full", "layout": "rubric_first",
             "output": "tools", "model_returned": ["m-1"]} | more.get("judge", {})  # fmt: skip
    dumps = {}
    for name in scores:
        dumps[name] = rubrics.load("answer_relevance").model_dump(mode="json") | {"id": name}
        dumps[name] |= more.get("rubric", {})
    ids = dict.fromkeys(case for found in scores.values() for case in found)
    questions = more.get("questions", {})
    cases = [{"id": i, "question": questions.get(i, f"Question {i}?"), **more.get("case", {}).get(i, {})} for i in ids]
    manifest = {"judge": judge, "rubrics": dumps, "invocations": [{"wall_s": 2.0}], "secret": "00"}
    (path / "run.json").write_bytes(orjson.dumps(manifest))
    (path / "cases.jsonl").write_bytes(b"".join(orjson.dumps(case) + b"\n" for case in cases))
    lines = [line(name, case, score) | {"judge": judge["model"], "mode": judge["mode"]}
             for name, found in scores.items() for case, score in found.items()]  # fmt: skip
    (path / "judgments.jsonl").write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in lines))
    return path


def line(rubric: str, case: str, score: float | None) -> dict[str, Any]:
    status = "undefined" if score is None else "scored"
    passed = None if score is None else score >= 4
    normalized = None if score is None else (score - 1) / 4
    return {"case_id": case, "rubric": rubric, "repeat": 0, "status": status, "score": score, "passed": passed,
            "normalized": normalized, "rubric_hash": "h" * 64, "prompt_hash": None, "errors": [], "flags": [],
            "quotes": {}, "rationale": f"why {case}", "reason": None, "error_kind": None, "details": {},
            "key": "00"}  # fmt: skip


def test_the_difference_is_a_minus_b_with_its_interval_and_sign_flip_p(tmp_path):
    expected = vector("paired_compare_20")
    a, b = expected["inputs"]["a"], expected["inputs"]["b"]
    # 0/1 as scores 1/5: every difference is 4 times that of the vector
    one = made_run(tmp_path / "a", {"r": {f"c{n}": 1 + 4 * x for n, x in enumerate(a)}})
    two = made_run(tmp_path / "b", {"r": {f"c{n}": 1 + 4 * x for n, x in enumerate(b)}})
    found = diff_runs(one, two)["rubrics"]["r"]
    want = expected["expected"]
    assert found["difference"]["value"] == pytest.approx(4 * want["diff"])
    assert found["difference"]["se"] == pytest.approx(4 * want["se_paired"])
    assert found["difference"]["ci_low"] == pytest.approx(4 * want["ci95_t"][0])
    assert found["p_sign_flip"] == pytest.approx(want["p_signflip_exact"])
    assert found["pass_difference"]["value"] == pytest.approx(want["diff"])
    # 4 discordant to A, 1 to B: exact McNemar equals the sign flip
    assert (found["mcnemar"]["only_a"], found["mcnemar"]["only_b"]) == (4, 1)
    assert found["mcnemar"]["p_exact"] == pytest.approx(0.375)
    assert diff_runs(two, one)["rubrics"]["r"]["difference"]["value"] == pytest.approx(-4 * want["diff"])


@pytest.mark.parametrize("name", ["mcnemar_12_5", "mcnemar_1_9"])
def test_passed_or_not_is_tested_by_mcnemar(tmp_path, name):
    counts, want = vector(name)["inputs"], vector(name)["expected"]
    passes = [(5, 1)] * counts["b"] + [(1, 5)] * counts["c"] + [(5, 5)] * 3
    one = made_run(tmp_path / "a", {"r": {f"c{n}": pair[0] for n, pair in enumerate(passes)}})
    two = made_run(tmp_path / "b", {"r": {f"c{n}": pair[1] for n, pair in enumerate(passes)}})
    found = diff_runs(one, two)["rubrics"]["r"]["mcnemar"]
    assert found["p_exact"] == pytest.approx(want["exact_p"])
    assert found["p_mid"] == pytest.approx(want["mid_p"])


def test_holm_counts_every_rubric_that_was_compared(tmp_path):
    # six wins of six: p = 2 / 2^6 = 0.03125, doubled over two rubrics; the other has p = 1
    better = {f"c{n}": 5.0 for n in range(6)}
    worse = {f"c{n}": 3.0 for n in range(6)}
    one = made_run(tmp_path / "a", {"r": better, "s": better})
    two = made_run(tmp_path / "b", {"r": worse, "s": better})
    found = diff_runs(one, two)["rubrics"]
    assert found["r"]["p_sign_flip"] == pytest.approx(0.03125)
    assert found["r"]["p_holm"] == pytest.approx(0.0625)
    assert diff_runs(one, two, ["r"])["rubrics"]["r"]["p_holm"] == pytest.approx(0.03125)


def test_holm_over_ten_rubrics_matches_the_vector():
    known = vector("multiple_testing_10")
    found = {f"r{n}": {"p_sign_flip": p, "p_holm": None} for n, p in enumerate(known["inputs"]["p"])}
    found["unscored"] = {"p_sign_flip": None, "p_holm": None}
    adjust(found)
    assert [one["p_holm"] for one in found.values()] == [*map(pytest.approx, known["expected"]["holm"]), None]


def test_cases_that_one_side_lacks_are_named_and_unscored_ones_counted(tmp_path):
    one = made_run(tmp_path / "a", {"r": {"x": 5.0, "y": 4.0, "z": None, "only-a": 1.0}})
    two = made_run(tmp_path / "b", {"r": {"x": 3.0, "y": 4.0, "z": 2.0, "only-b": 1.0}})
    found = diff_runs(one, two)
    assert found["unmatched"] == {"a": ["only-a"], "b": ["only-b"]}
    assert (found["rubrics"]["r"]["n_pairs"], found["rubrics"]["r"]["n_dropped"]) == (2, 1)
    assert found["rubrics"]["r"]["mean"] == {"a": 4.5, "b": 3.5}
    assert [one["case_id"] for one in found["rubrics"]["r"]["moved"]] == ["x"]


@pytest.mark.parametrize(
    "change, named",
    [
        ({"judge": {"model": "openai/other"}}, "model"),
        ({"judge": {"mode": "quick"}}, "mode"),
        ({"judge": {"model_returned": ["m-2"]}}, "model_returned"),
        ({"rubric": {"rubric_hash": "f" * 64}}, "rubric r"),
    ],
)
def test_another_judge_or_rubric_is_refused_by_name_unless_told(tmp_path, change, named):
    one = made_run(tmp_path / "a", {"r": {"x": 5.0, "y": 4.0}})
    two = made_run(tmp_path / "b", {"r": {"x": 3.0, "y": 4.0}}, **change)
    with pytest.raises(UsageError, match=named):
        diff_runs(one, two)
    allowed = diff_runs(one, two, allow_different=True)
    assert any(named in text for text in allowed["differences_allowed"])


def test_one_id_with_two_questions_is_refused(tmp_path):
    one = made_run(tmp_path / "a", {"r": {"x": 5.0}})
    two = made_run(tmp_path / "b", {"r": {"x": 3.0}}, questions={"x": "Something else?"})
    with pytest.raises(UsageError, match="different questions"):
        diff_runs(one, two)


def test_runs_without_a_common_case_or_rubric_are_refused(tmp_path):
    one = made_run(tmp_path / "a", {"r": {"x": 5.0}})
    with pytest.raises(UsageError, match="no case id in common"):
        diff_runs(one, made_run(tmp_path / "b", {"r": {"y": 3.0}}))
    with pytest.raises(UsageError, match="no rubric in common"):
        diff_runs(one, made_run(tmp_path / "c", {"s": {"x": 3.0}}))
    with pytest.raises(UsageError, match="'t' is not in both"):
        diff_runs(one, one, ["t"])
    with pytest.raises(UsageError, match="not a run directory"):
        diff_runs(one, tmp_path)


def test_cases_of_one_question_are_one_cluster(tmp_path):
    # nine cases, three questions: the differences vary only between questions, so the clustered interval is wider
    scores = {f"c{n}": float(1 + n // 3) for n in range(9)}
    questions = {f"c{n}": f"Question {n // 3}?" for n in range(9)}
    one = made_run(tmp_path / "a", {"r": scores}, questions=questions)
    two = made_run(tmp_path / "b", {"r": dict.fromkeys(scores, 1.0)}, questions=questions)
    clustered = diff_runs(one, two)["rubrics"]["r"]["difference"]
    assert clustered["n_clusters"] == 3
    # differences 0, 1, 2 by question: CR1 se = sd(0, 1, 2) / sqrt(3)
    assert clustered["se"] == pytest.approx(1 / 3**0.5)


def test_cost_and_latency_of_the_pipelines_are_paired_where_recorded(tmp_path):
    spent = {"x": {"cost_usd": 0.002, "latency_s": 2.0}, "y": {"cost_usd": 0.004, "latency_s": 3.0}}
    cheap = {"x": {"cost_usd": 0.001, "latency_s": 2.0}, "y": {"cost_usd": 0.001}}
    one = made_run(tmp_path / "a", {"r": {"x": 5.0, "y": 5.0}}, case=spent)
    two = made_run(tmp_path / "b", {"r": {"x": 5.0, "y": 4.0}}, case=cheap)
    found = diff_runs(one, two)["pipelines"]
    assert found["cost_usd"]["difference"]["value"] == pytest.approx(0.002)
    assert (found["latency_s"]["a"], found["latency_s"]["difference"]["n"]) == (2.0, 1)


def test_equal_runs_give_no_evidence_and_an_interval_that_is_no_point(tmp_path):
    scores = {f"c{n}": 4.0 for n in range(20)}
    found = diff_runs(made_run(tmp_path / "a", {"r": scores}), made_run(tmp_path / "b", {"r": scores}))
    one = found["rubrics"]["r"]
    assert one["p_sign_flip"] == 1.0
    assert one["difference"]["ci_low"] < 0 < one["difference"]["ci_high"]
    words = sections(found)[0].notes[0]
    assert "no evidence of a difference larger than" in words


def test_a_clear_difference_is_said_first_and_names_the_better_run(tmp_path):
    one = made_run(tmp_path / "a", {"r": {f"c{n}": 4.0 + n % 2 for n in range(20)}})
    two = made_run(tmp_path / "b", {"r": {f"c{n}": 2.0 for n in range(20)}})
    assert "A scores higher by 2.50" in sections(diff_runs(one, two))[0].notes[0]
    assert "B scores higher by 2.50" in sections(diff_runs(two, one))[0].notes[0]


def test_the_command_prints_one_json_document_or_refuses_with_exit_code_2(tmp_path):
    one = made_run(tmp_path / "a", {"r": {"x": 5.0, "y": 4.0}})
    two = made_run(tmp_path / "b", {"r": {"x": 3.0, "y": 4.0}}, judge={"model": "openai/other"})
    command = [sys.executable, "-m", "judge", "runs", "diff", str(one), str(two), "--json"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "--allow-different" in refused.stderr
    assert refused.stdout == ""
    done = subprocess.run([*command, "--allow-different"], capture_output=True, text=True)
    assert done.returncode == 0
    assert json.loads(done.stdout)["rubrics"]["r"]["difference"]["value"] == pytest.approx(1.0)
