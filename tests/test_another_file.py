"""Another case file, odd Python values and a forked process: refused in words, or simply working."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pandas as pd
import pytest

import judge
from judge.errors import InputError, UsageError
from judge.runs import rows
from tests.test_score import MODEL, arguments_of, cases, command, rubric_dir, score, written  # noqa: F401


def others(n):
    return [{**case, "question": f"Another question {i}?"} for i, case in enumerate(cases(n))]


def test_a_run_named_after_a_file_is_not_taken_by_another_file_of_that_name(score, provider):  # noqa: F811
    result = score(cases(3), out_by_name=True)
    kept = {path.name: path.read_bytes() for path in result.run.iterdir()}
    sent = provider.stats()["requests"]
    with pytest.raises(UsageError, match=r"none of the 3 questions .* is among the 2 .*Give --out"):
        score(others(2), out_by_name=True)
    assert {path.name: path.read_bytes() for path in result.run.iterdir()} == kept
    assert provider.stats()["requests"] == sent


def test_cases_of_another_file_join_a_run_that_is_named(score):  # noqa: F811
    score(cases(3))
    result = score([{**case, "id": f"other-{case['id']}"} for case in others(2)])
    assert result.summary["n_cases_gone"] == 3
    assert len(list(rows(result.run))) == 5


def test_new_ids_answers_and_part_of_the_questions_are_the_same_file_grown(score):  # noqa: F811
    score(cases(3))
    renamed = [{**cases(3)[2], "id": "new", "answer": "Quite another answer."}, *others(2)]
    result = score(renamed)
    assert result.summary["n_cases_gone"] == 3 - 2
    assert len(list(rows(result.run))) == 4


def test_a_run_that_has_judged_nothing_yet_takes_any_file(score, provider):  # noqa: F811
    provider.config(p_filter=1.0)
    score(cases(2))
    provider.config(p_filter=0.0)
    assert score(others(2)).summary["rubrics"]["plain"]["n_scored"] == 2


def test_two_files_of_one_name_do_not_share_the_default_run(command, provider, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    asked = ["--rubrics", "plain", "--rubrics-dir", str(rubric_dir(tmp_path)), "--model", MODEL]
    asked += ["--api-base", provider.base_url]
    assert command("score", str(written(tmp_path, 2)), *asked)[0] == 0
    (tmp_path / "b").mkdir()
    pd.DataFrame(others(2)).to_json(tmp_path / "b" / "cases.jsonl", orient="records", lines=True)
    for more in ([], ["--dry-run"]):
        code, _, err = command("score", "b/cases.jsonl", *asked, *more)
        assert (code, "Give --out" in err) == (2, True)


@pytest.mark.parametrize(("options", "said"), [
    ({"out": 5}, "out 5: must be a path"), ({"out": ""}, "out"), ({"cache": 5}, "cache 5"),
    ({"cache": True}, "cache True"), ({"seed": "7"}, "seed '7'"), ({"seed": -1}, "seed -1"),
    ({"max_cost": "5"}, "max-cost '5'"), ({"max_cost": True}, "max-cost True"), ({"timeout": "9"}, "timeout '9'"),
    ({"concurrency": "4"}, "concurrency '4'"), ({"map": ["x"]}, "map"), ({"map": {"answer": 5}}, "map"),
    ({"format": 5}, "format 5"), ({"generated_by": 5}, "generated-by 5"), ({"api_base": 5}, "api-base 5"),
    ({"rubrics": None}, "rubrics None"), ({"rubrics": 5}, "rubrics 5"), ({"rubrics": [Path("x.md")]}, "rubrics"),
    ({"rubrics": ""}, "no rubric given"), ({"rubrics": "nope"}, "unknown rubric"),
    ({"rubrics_dir": None}, "rubrics-dir None"), ({"rubrics_dir": "nowhere"}, "nowhere is not a folder"),
])  # fmt: skip
def test_a_value_of_another_kind_is_refused_by_name(provider, tmp_path, options, said):
    chosen = {"out": tmp_path / "run", "cache": False, "api_base": provider.base_url} | options
    with pytest.raises(UsageError, match=said):
        judge.score(cases(1), chosen.pop("rubrics", "answer_relevance"), MODEL, **chosen)
    assert provider.stats().get("requests", 0) == 0
    assert not (tmp_path / "run").exists()


def test_two_columns_of_one_name_are_refused(score):  # noqa: F811
    frame = pd.DataFrame(cases(1))
    with pytest.raises(InputError, match="'answer' names two columns"):
        score(pd.concat([frame, frame[["answer"]]], axis=1))


def in_a_fork(queue, options):
    queue.put(judge.score(cases(2), "answer_relevance", MODEL, **options).summary["totals"]["judgments"])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_forked_after_a_run_can_score(provider, tmp_path):
    options = {"api_base": provider.base_url, "cache": False}
    judge.score(cases(1), "answer_relevance", MODEL, **options)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=in_a_fork, args=(queue, options))
    process.start()
    try:
        assert queue.get(timeout=30) == 2
    finally:
        process.kill()


@pytest.mark.parametrize("name", ["cases.jsonl", "summary.json", "summary.md", "judgments.jsonl", "replies.jsonl"])
def test_a_folder_with_files_of_ones_own_is_never_taken_for_a_run(score, provider, tmp_path, name):  # noqa: F811
    own = tmp_path / "project"
    own.mkdir()
    (own / name).write_text('{"question": "mine"}\n')
    with pytest.raises(UsageError, match=f"{name}.*no run.json"):
        score(cases(1), out=own)
    assert [path.name for path in own.iterdir()] == [name]
    assert (own / name).read_text() == '{"question": "mine"}\n'
    assert provider.stats().get("requests", 0) == 0


def systems(given, system):
    return [{**case, "answer": f"{system} says: {case['answer']}", "system": system} for case in given]


def test_comparisons_of_other_questions_and_scores_do_not_share_a_run(score, provider, tmp_path):  # noqa: F811
    options = {"rubric": "preference", "model": MODEL, "out": tmp_path / "pairs", "api_base": provider.base_url}
    options["cache"] = tmp_path / "cache"
    first = judge.compare(systems(cases(2), "one"), systems(cases(2), "two"), **options)
    kept = (first.run / "cases.jsonl").read_bytes()
    with pytest.raises(UsageError, match="Give --out"):
        judge.compare(systems(others(2), "one"), systems(others(2), "two"), **options, out_by_name=True)
    with pytest.raises(UsageError, match="run of `judge compare`"):
        score(cases(2), out=first.run)
    assert (first.run / "cases.jsonl").read_bytes() == kept
    assert not (first.run / "cases.jsonl.new").exists()


def test_a_gate_on_an_unknown_rubric_is_refused_before_anything_is_spent(command, provider, tmp_path):  # noqa: F811
    for option in ("--fail-under", "--fail-under-point"):
        code, _, err = command(*arguments_of(tmp_path, provider, 2, option, "plian=4"))
        assert (code, "did you mean `plain`" in err) == (2, True)
    assert provider.stats().get("requests", 0) == 0
    assert command(*arguments_of(tmp_path, provider, 2))[0] == 0
    further = ["--rubrics", "answer_relevance", "--fail-under-point", "plain=1"]
    assert command(*arguments_of(tmp_path, provider, 2, *further))[0] == 0
