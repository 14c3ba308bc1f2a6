"""judge score, end to end over the fake provider: every case accounted for, resumable, exit codes as promised."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.api import Options, resolve
from judge.errors import UsageError
from judge.lines import read_lines
from judge.runs import rows

MODEL = "openai/gpt-4o-mini"
PASSAGE = "The Alder ferry crosses the Orme in forty minutes and carries 120 cars."


def cases(n: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": f"c{i}",
            "question": f"How long does crossing {i} take?",
            "answer": f"Crossing {i} takes forty minutes [d1].",
            "contexts": [{"id": "d1", "text": PASSAGE}],
            **more,
        }
        for i in range(n)
    ]


@pytest.fixture
def score(provider, tmp_path):
    """`judge.score` against the fake provider, with its own cache and run directory."""

    def run(given: Any, rubrics: Any = ("plain",), **options: Any) -> judge.Result:
        options = {"out": tmp_path / "run", "cache": tmp_path / "cache", "api_base": provider.base_url} | options
        return judge.score(given, rubrics=rubrics, model=MODEL, rubrics_dir=[rubric_dir(tmp_path)], **options)

    return run


def rubric_dir(tmp_path: Path) -> Path:
    """A folder with one ordinal rubric, `plain`: one level and nothing else to return."""
    folder = tmp_path / "rubrics"
    folder.mkdir(exist_ok=True)
    anchors = "\n".join(f"  {level}: Level {level} of five." for level in (5, 4, 3, 2, 1))
    (folder / "plain.md").write_text(
        "---\nid: plain\nversion: 1.0.0\ntitle: Plain\nlanguage: en\nrequires: [question, answer]\nmode: ordinal\n"
        f"scale: {{min: 1, max: 5, pass_at: 4, higher_is_better: true}}\nanchors:\n{anchors}\n---\nRate the answer.\n"
    )
    return folder


def test_every_case_gets_one_line_and_the_summary_counts_them(score):
    result = score(cases(12), rubrics=["plain", "answer_relevance"])
    frame = result.to_frame()
    assert Counter(frame["rubric"]) == {"plain": 12, "answer_relevance": 12}
    plain = result.summary["rubrics"]["plain"]
    assert plain["n_cases"] == 12
    assert sum(plain["by_status"].values()) == 12
    assert plain["mean"]["n"] == plain["n_scored"] == 12
    assert plain["mean"]["ci_low"] < plain["mean"]["value"] < plain["mean"]["ci_high"]
    assert sum(plain["histogram"].values()) == 12
    assert {path.name for path in result.run.iterdir()} >= {
        "run.json", "cases.jsonl", "judgments.jsonl", "replies.jsonl", "summary.json", "summary.md",
    }  # fmt: skip


def test_the_same_command_again_sends_nothing_and_gives_the_same_lines(score, provider):
    first = score(cases(8))
    lines = (first.run / "judgments.jsonl").read_bytes()
    sent = provider.stats()["requests"]
    score(cases(8))
    assert provider.stats()["requests"] == sent
    assert (first.run / "judgments.jsonl").read_bytes() == lines


def test_a_new_run_directory_is_served_from_the_cache_and_says_so(score, provider, tmp_path):
    score(cases(8))
    sent = provider.stats()["requests"]
    again = score(cases(8), out=tmp_path / "other")
    assert provider.stats()["requests"] == sent
    assert again.summary["totals"]["cache_hits"] == 8
    assert again.summary["totals"]["http_calls"] == 0
    assert again.to_frame()["cost_usd"].tolist() == [0.0] * 8


def test_a_run_needs_no_cache_to_resume(score, provider):
    score(cases(6), cache=False)
    sent = provider.stats()["requests"]
    score(cases(9), cache=False)
    assert provider.stats()["requests"] == sent + 3


def test_a_changed_answer_under_the_same_id_is_judged_again(score, provider):
    score(cases(4))
    changed = cases(4)
    changed[2]["answer"] = "It takes two days."
    result = score(changed)
    assert result.summary["totals"]["http_calls"] == 5
    assert len(result.to_frame()) == 4


def test_cases_gone_from_the_file_keep_their_lines_and_leave_the_summary(score):
    score(cases(5))
    result = score(cases(3))
    assert result.summary["n_cases_gone"] == 2
    assert result.summary["rubrics"]["plain"]["n_cases"] == 3
    assert len(list(rows(result.run))) == 5


def test_a_further_rubric_is_added_to_the_run(score):
    score(cases(3))
    result = score(cases(3), rubrics=["answer_relevance"])
    assert set(result.summary["rubrics"]) == {"plain", "answer_relevance"}


def test_another_judge_or_parameter_in_the_same_run_is_refused_by_name(score, tmp_path, provider):
    score(cases(2))
    config = tmp_path / "judge.toml"
    config.write_text(f'[judges.hot]\nmodel = "{MODEL}"\nparams = {{ temperature = 0.7 }}\n')
    with pytest.raises(UsageError, match="params"):
        judge.score(
            cases(2), ["plain"], "hot", config=config, out=tmp_path / "run", cache=tmp_path / "cache",
            api_base=provider.base_url, rubrics_dir=[tmp_path / "rubrics"],
        )  # fmt: skip


def test_a_refused_command_leaves_the_run_as_it_was(score, tmp_path):
    result = score(cases(2))
    before = (result.run / "cases.jsonl").read_bytes()
    with pytest.raises(UsageError, match="no such"):
        score(cases(5), config=tmp_path / "absent.toml")
    assert (result.run / "cases.jsonl").read_bytes() == before


def test_a_settled_score_follows_a_changed_score_map_without_a_call(score, provider, tmp_path):
    first = score(cases(3))
    sent = provider.stats()["requests"]
    rubric = tmp_path / "rubrics" / "plain.md"
    rubric_text = rubric.read_text().replace("pass_at: 4", "pass_at: 2")
    before = first.to_frame()["rubric_hash"][0]

    folder = tmp_path / "looser"
    folder.mkdir()
    (folder / "plain.md").write_text(rubric_text)
    result = judge.score(
        cases(3), ["plain"], MODEL, rubrics_dir=[folder], out=tmp_path / "run", cache=False, api_base=provider.base_url
    )
    assert provider.stats()["requests"] == sent
    assert set(result.to_frame()["rubric_hash"]) != {before}
    assert len(result.to_frame()) == 3


def test_failures_are_named_counted_and_tried_again(score, provider):
    provider.config(p_refusal=1.0)
    failed = score(cases(3))
    frame = failed.to_frame()
    assert set(frame["status"]) == {"error"}
    assert set(frame["error_kind"]) == {"refused"}
    assert failed.summary["rubrics"]["plain"]["mean"]["status"] == "undefined"
    provider.config(p_refusal=0.0)
    healed = score(cases(3))
    assert set(healed.to_frame()["status"]) == {"scored"}
    assert len(healed.to_frame()) == 3


def test_the_key_of_a_quick_judgment_is_the_sha256_of_its_units_keys_in_order(score, provider):
    [case] = cases(1, contexts=[{"id": "d1", "text": PASSAGE}, {"id": "d2", "text": "It runs daily."}])
    result = score([case | {"answer": "It takes forty minutes. It runs daily."}], "faithfulness", mode="quick")
    [line] = rows(result.run)
    keys = [unit["key"] for unit in line["details"]["units"]]
    assert len(keys) == 2
    assert line["key"] == hashlib.sha256("".join(keys).encode()).hexdigest()


def test_overlap_and_the_closing_score_count_a_case_once_and_have_an_interval_where_all_agree(score, provider):
    same = {"answer": PASSAGE}  # every word of the answer stands in the passage: overlap 1 for all three cases
    [summary] = score(cases(3, **same), "hallucination", repeats=2).summary["rubrics"].values()
    twin = summary["overlap"]
    assert (twin["value"], twin["n"], twin["status"]) == (1.0, 3, "ok")
    assert twin["ci_low"] == pytest.approx(1 - 0.5615, abs=1e-4)  # Wilson's upper limit of 0 in 3 is .5615
    assert summary["holistic_score"]["n"] == 3


def test_repeats_of_a_case_are_one_of_the_weakest_cases(score):
    same = {"question": "[[q=0.1]] How long?", "answer": "Forty minutes."}
    page = (score(cases(7, **same), repeats=3).run / "summary.md").read_text()
    assert [line.split(" | ")[0] for line in page.splitlines() if " | plain | " in line] == [
        f"| c{i}" for i in range(5)
    ]


def test_repeats_give_a_line_each_and_the_case_counts_once(score, provider, tmp_path):
    provider.config(noise=0.4)
    config = tmp_path / "judge.toml"
    config.write_text(f'[judges.warm]\nmodel = "{MODEL}"\nparams = {{ temperature = 1.0 }}\n')
    result = judge.score(
        cases(6), ["plain"], "warm", config=config, out=tmp_path / "run", cache=tmp_path / "cache", repeats=3,
        api_base=provider.base_url, rubrics_dir=[rubric_dir(tmp_path)],
    )  # fmt: skip
    plain = result.summary["rubrics"]["plain"]
    assert len(result.to_frame()) == 18
    assert plain["n_cases"] == plain["mean"]["n"] == 6
    assert plain["repeats"]["k"] == 3
    assert plain["repeats"]["flip_rate"]["n"] == 6


def test_identical_concurrent_calls_are_sent_once(score, provider):
    same = [{**case, "id": f"same{n}"} for n, case in enumerate(cases(1) * 20)]
    provider.config(latency_ms=30.0)
    result = score(same)
    assert provider.stats()["requests"] == 1
    assert result.summary["totals"]["http_calls"] == 1
    assert len(result.to_frame()) == 20


def test_max_cost_stops_before_it_is_passed_and_the_rest_resumes(score, provider):
    room_for_one = 0.0027  # 4096 tokens of reply at $0.60 a million, and the prompt
    stopped = score(cases(60), max_cost=room_for_one, concurrency=8)
    spent = stopped.summary["totals"]["cost_usd"]
    assert stopped.summary["stopped"] == "max_cost"
    assert 0 < spent <= room_for_one
    assert 1 < len(stopped.to_frame()) < 60
    sent = provider.stats()["requests"]
    assert score(cases(60), max_cost=room_for_one).summary["stopped"] == "max_cost"
    assert provider.stats()["requests"] == sent, "the limit is of the run, not of the invocation"
    whole = score(cases(60))
    assert len(whole.to_frame()) == 60
    assert provider.stats()["requests"] == 60


def test_an_unknown_price_refuses_max_cost_before_any_call(provider, tmp_path):
    with pytest.raises(UsageError, match="price"):
        judge.score(
            cases(2), ["plain"], "openai/nobody-knows-me", max_cost=1.0, out=tmp_path / "run", cache=False,
            api_base=provider.base_url, rubrics_dir=[rubric_dir(tmp_path)],
        )  # fmt: skip
    assert provider.stats().get("requests", 0) == 0


def test_an_unknown_price_is_unknown_and_never_zero(provider, tmp_path):
    result = judge.score(
        cases(2), ["plain"], "openai/nobody-knows-me", out=tmp_path / "run", cache=False,
        api_base=provider.base_url, rubrics_dir=[rubric_dir(tmp_path)],
    )  # fmt: skip
    assert result.summary["totals"]["cost_usd"] is None
    assert result.summary["totals"]["unknown_price_calls"] == 2


def test_empty_answers_cost_nothing(score, provider):
    given = [*cases(2, answer=""), {**cases(1)[0], "id": "none", "answer": None}]
    given[1]["answer"] = "   "
    result = score(given, rubrics=["answer_relevance"])
    assert provider.stats().get("requests", 0) == 0
    assert Counter(result.to_frame()["reason"]) == {"empty_answer": 3}


def test_self_preference_is_said_for_the_same_family_only(score):
    assert any("self-preference" in note for note in score(cases(1), generated_by="azure/gpt-4.1").notes)
    assert not any("self-preference" in note for note in score(cases(1), generated_by="anthropic/claude-x").notes)


def test_score_works_inside_a_running_loop_and_awaited(score, provider, tmp_path):
    async def notebook() -> tuple[int, int]:
        inside = score(cases(2))
        awaited = await judge.score_async(
            cases(2), ["plain"], MODEL, out=tmp_path / "second", cache=tmp_path / "cache",
            api_base=provider.base_url, rubrics_dir=[rubric_dir(tmp_path)],
        )  # fmt: skip
        return len(inside.to_frame()), len(awaited.to_frame())

    assert asyncio.run(notebook()) == (2, 2)


def test_a_second_writer_of_the_same_run_is_refused(score, tmp_path):
    from judge.archive import Run

    score(cases(1))
    with Run(tmp_path / "run"), pytest.raises(UsageError, match="another process"):
        score(cases(2))


def test_a_torn_last_line_is_repaired_on_resume(score, provider):
    result = score(cases(4))
    path = result.run / "judgments.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-25])
    again = score(cases(4)).to_frame()
    assert again["case_id"].tolist() == ["c0", "c1", "c2", "c3"]
    assert again["score"].tolist() == [json.loads(line)["score"] for line in whole.splitlines()]
    assert provider.stats()["requests"] == 4


def test_a_sample_is_seeded_and_a_limit_takes_the_first(score, tmp_path):
    one = score(cases(20), sample=5, seed=3, out=tmp_path / "a").to_frame()["case_id"].tolist()
    two = score(cases(20), sample=5, seed=3, out=tmp_path / "b").to_frame()["case_id"].tolist()
    assert one == two
    assert len(one) == 5
    assert score(cases(20), limit=2, out=tmp_path / "c").to_frame()["case_id"].tolist() == ["c0", "c1"]


def judge_command(tmp_path: Path, provider: Any, *arguments: str, **popen: Any) -> subprocess.Popen[str]:
    environment = {**os.environ, "OPENAI_API_KEY": "test-key", "JUDGE_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "judge", *arguments]
    return subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        preexec_fn=heed_ctrl_c, **popen,
    )  # fmt: skip


def heed_ctrl_c() -> None:
    """Jobs that a shell starts in the background ignore Ctrl-C, and so would all that they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def command(provider, tmp_path, monkeypatch, capsys):
    """The command line in this process: exit code, standard output, standard error."""
    from judge.cli import main

    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))

    def invoke(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["judge", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return invoke


def written(tmp_path: Path, n: int) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases(n)))
    return path


def arguments_of(tmp_path: Path, provider: Any, n: int, *more: str) -> list[str]:
    return [
        "score", str(written(tmp_path, n)), "--rubrics", "plain", "--rubrics-dir", str(rubric_dir(tmp_path)),
        "--model", MODEL, "--api-base", provider.base_url, "--out", str(tmp_path / "run"), *more,
    ]  # fmt: skip


def test_json_output_is_one_document_and_progress_goes_elsewhere(command, provider, tmp_path):
    code, out, err = command(*arguments_of(tmp_path, provider, 3, "--json"))
    assert code == 0, err
    assert json.loads(out)["rubrics"]["plain"]["n_cases"] == 3
    assert "judged 3 of 3" in err


def test_a_finished_run_is_read_again_without_the_llm_library(command, provider, tmp_path):
    arguments = arguments_of(tmp_path, provider, 3)
    code, _, err = command(*arguments)
    assert code == 0, err
    script = (
        "import sys; sys.argv = ['judge', *sys.argv[1:]]\n"
        "from judge.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "assert 'litellm' not in sys.modules and 'pandas' not in sys.modules, 'heavy import'\n"
    )
    environment = {**os.environ, "JUDGE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", script, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("more", "options", "code"),
    [
        ([], {}, 0),
        (["--fail-under", "plain=9"], {}, 1),
        (["--fail-under-point", "plain=1"], {}, 0),
        (["--require-calibration"], {}, 1),
        (["--fail-under", "nothing=1"], {}, 2),
        (["--mode", "wrong"], {}, 2),
        ([], {"p_refusal": 1.0}, 3),
        (["--fail-under", "plain=1"], {"p_refusal": 1.0}, 3),
        (["--fail-under", "plain=1", "--max-error-rate", "1"], {"p_refusal": 1.0}, 1),
        ([], {"api_key": "another"}, 2),
        ([], {"models": "some-other-model"}, 2),
    ],
)
def test_exit_codes_are_as_promised(command, provider, tmp_path, more, options, code):
    provider.config(**options)
    found, _, err = command(*arguments_of(tmp_path, provider, 2, *more))
    assert found == code, err


def test_dry_run_sends_nothing_and_counts_calls_tokens_and_price(command, provider, tmp_path):
    code, out, err = command(*arguments_of(tmp_path, provider, 4, "--dry-run", "--json"))
    assert code == 0, err
    forecast = json.loads(out)
    assert forecast["calls"] == forecast["judgments"] == 4
    assert forecast["input_tokens"] > 400
    assert forecast["max_cost_usd"] > 0
    assert provider.stats().get("requests", 0) == 0
    assert not (tmp_path / "run" / "judgments.jsonl").exists()


def test_dry_run_says_what_a_run_would_say(command, tmp_path):
    table = tmp_path / "mine.jsonl"
    table.write_text(json.dumps({"id": "1", "question": "q", "anwser": "a", "contexts": ["p"]}) + "\n")
    code, out, err = command("score", str(table), "--rubrics", "faithfulness", "--dry-run", "--json")
    assert code == 0, err
    assert json.loads(out)["judgments"] == 1
    assert "did you mean `answer`" in err
    assert "embedded model (local)" in err


def test_every_verb_that_writes_a_file_can_say_so_as_json(command, provider, tmp_path):
    run = str(tmp_path / "run")
    assert command(*arguments_of(tmp_path, provider, 3))[0] == 0
    table, sheet, own = tmp_path / "scores.csv", tmp_path / "sheet.csv", tmp_path / "kind_words.md"
    told = [
        json.loads(command(*arguments, "--json")[1])
        for arguments in (
            ["export", run, "--out", str(table)],
            ["sheet", run, "--n", "2", "--out", str(sheet)],
            ["rubrics", "new", "kind_words", "--mode", "binary", "--dir", str(tmp_path)],
        )
    ]
    assert [one["out"] for one in told] == [str(table), str(sheet), str(own)]
    assert (told[0]["rows"], told[1]["drawn"]) == (3, {"plain": 2})
    assert [path.exists() for path in (table, sheet, own)] == [True] * 3


def test_a_quick_form_unfit_for_the_embedded_judge_is_refused_unless_allowed(tmp_path):
    folder = rubric_dir(tmp_path)
    quick = "quick: {unit: answer, blocks: [{head: ANSWER, of: [answer]}], ask: 'Is it kind? yes or no.', good: 'yes', "
    text = (folder / "plain.md").read_text().replace("---\nRate", quick + "aggregate: min, local: refuse}\n---\nRate")
    (folder / "plain.md").write_text(text)
    options = Options(rubrics=["plain"], rubrics_dir=[folder], model="local")
    with pytest.raises(UsageError, match=r"local: refuse.*--allow-uncalibrated"):
        resolve(options)
    assert resolve(replace(options, allow_uncalibrated=True)).mode == "quick"


@pytest.mark.slow
def test_kill_9_at_any_moment_loses_doubles_and_repays_nothing(provider, tmp_path):
    n = 300
    provider.config(latency_ms=40.0)
    arguments = arguments_of(tmp_path, provider, n, "--concurrency", "8")
    path = tmp_path / "run" / "judgments.jsonl"
    for wanted in (5, 60, 150):
        process = judge_command(tmp_path, provider, *arguments)
        while process.poll() is None and (path.read_bytes().count(b"\n") if path.exists() else 0) < wanted:
            pass
        process.kill()
        process.wait()
    process = judge_command(tmp_path, provider, *arguments)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    lines = [row for _, row in read_lines(path)]
    assert Counter(row["case_id"] for row in lines) == Counter(f"c{i}" for i in range(n))
    in_flight = 3 * 8
    assert n <= provider.stats()["requests"] <= n + in_flight


@pytest.mark.slow
def test_with_every_fault_at_once_a_thousand_cases_end_accounted_for(provider, tmp_path):
    provider.config(
        p429=0.05,
        retry_after=0.05,
        p500=0.02,
        p_reset=0.01,
        p_malformed=0.02,
        p_truncated=0.01,
        p_refusal=0.01,
        p_hang=0.01,
    )
    process = judge_command(tmp_path, provider, *arguments_of(tmp_path, provider, 1000, "--timeout", "2", "--json"))
    out, err = process.communicate(timeout=300)
    summary = json.loads(out)
    plain = summary["rubrics"]["plain"]
    assert sum(plain["by_status"].values()) == plain["n_cases"] == 1000
    errors = plain["by_status"].get("error", 0)
    assert plain["mean"]["n"] + errors == 1000
    assert 1 <= plain["reasons"]["refused"] <= 40
    assert summary["totals"]["retries"] > 20
    assert process.returncode == (3 if summary["error_rate"] > 0.05 else 0), err


@pytest.mark.slow
def test_ctrl_c_twice_stops_at_once_also_while_libraries_still_load(provider, tmp_path):
    process = judge_command(tmp_path, provider, *arguments_of(tmp_path, provider, 200))
    path = tmp_path / "run" / "run.json"
    while not path.parent.exists():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline().startswith("stopping: ")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=15)
    assert process.returncode == 130, err
    assert "Traceback" not in err


@pytest.mark.slow
def test_ctrl_c_once_finishes_what_is_in_flight_and_resumes(provider, tmp_path):
    provider.config(latency_ms=50.0)
    arguments = arguments_of(tmp_path, provider, 200, "--concurrency", "4")
    path = tmp_path / "run" / "judgments.jsonl"
    process = judge_command(tmp_path, provider, *arguments)
    while (path.read_bytes().count(b"\n") if path.exists() else 0) < 20:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Scores by" in out
    assert "Traceback" not in err
    done = path.read_bytes().count(b"\n")
    assert 20 <= done < 200
    assert provider.stats()["requests"] == done
    process = judge_command(tmp_path, provider, *arguments)
    process.communicate(timeout=120)
    assert provider.stats()["requests"] == 200


@pytest.mark.slow
def test_a_missing_key_is_one_plain_error(tmp_path):
    rows = tmp_path / "cases.jsonl"
    rows.write_text("".join(json.dumps(case) + "\n" for case in cases(40)))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    command = [sys.executable, "-m", "judge", "score", str(rows), "--model", MODEL, "--no-cache", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "Set OPENAI_API_KEY."
    assert "Warning" not in done.stderr
