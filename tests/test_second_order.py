"""judge compare --second-order auto: the pilot, its decision, one random order for the rest, and what is said of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import pytest
from typer.testing import CliRunner

from judge.cli import app
from judge.errors import UsageError
from judge.lines import read_lines
from judge.pairlines import Record
from judge.runs import manifest, rows
from judge.second_order import decide, draw, told
from tests.test_compare import LINE_KEYS, LINES, answers, command, compare  # noqa: F401

PAIR = ("old", "new")
SPENT = {"http_calls": 140, "retries": 0, "reasks": 0, "cost_usd": 1.4, "unknown_price_calls": 0}


def ids(n: int) -> dict[str, bool]:
    return {f"c{i}": True for i in range(n)}


@pytest.mark.parametrize("n, pilot", [(40, 40), (60, 60), (61, 60), (600, 60), (605, 61), (1000, 100)])
def test_the_pilot_is_a_tenth_and_at_least_sixty_pairs(n, pilot):
    design = draw({PAIR: ids(n)}, seed=0)
    assert len(design.pilot[PAIR]) == pilot
    assert design.others[PAIR] == set(ids(n)) - design.pilot[PAIR]
    assert set(design.once[PAIR]) == design.others[PAIR]


def test_pairs_that_need_no_call_are_neither_pilot_nor_given_an_order():
    design = draw({PAIR: ids(100) | {"same": False}}, seed=0)
    assert "same" in design.others[PAIR]
    assert "same" not in design.once[PAIR]


def test_the_orders_of_the_rest_are_balanced_random_and_seeded():
    design = draw({PAIR: ids(200)}, seed=1)
    assert sorted(Counter(design.once[PAIR].values()).values()) == [70, 70]
    assert draw({PAIR: dict(reversed(ids(200).items()))}, seed=1) == design
    assert draw({PAIR: ids(200)}, seed=2).pilot != design.pilot
    # over seeds every pair is in the pilot three times of ten, and shows either side first as often
    drawn = [draw({PAIR: ids(200)}, seed) for seed in range(400)]
    assert 0.24 < sum("c7" in one.pilot[PAIR] for one in drawn) / 400 < 0.36
    sides = Counter(one.once[PAIR].get("c7") for one in drawn)
    assert 0.42 < sides["a"] / (sides["a"] + sides["b"]) < 0.58


def test_who_is_called_a_changes_neither_the_pilot_nor_what_is_shown_first():
    one, two = draw({("old", "new"): ids(99)}, seed=3), draw({("new", "old"): ids(99)}, seed=3)
    assert one.pilot["old", "new"] == two.pilot["new", "old"]
    turned = {name: {"a": "b", "b": "a"}[side] for name, side in two.once["new", "old"].items()}
    assert one.once["old", "new"] == turned


def lines_of(said: dict[str, tuple[str, str]]) -> list[Record]:
    return [
        Record("old", "new", name, name, [], 0, [{"calls": [{"first": "a", "winner": one}, {"first": "b", "winner": two}],
                                                   "outcome": "a", "reason": None, "mode": "full"}])
        for name, (one, two) in said.items()
    ]  # fmt: skip


def test_the_decision_rests_on_the_pilot_alone():
    design = draw({PAIR: ids(100)}, seed=0)
    steady = dict.fromkeys(design.pilot[PAIR], ("a", "a"))
    unsteady = dict.fromkeys(design.others[PAIR], ("a", "b"))
    (found,) = decide(design, lines_of(steady | unsteady), seed=0)
    assert (found.one_order, found.reason, found.n_pilot) == (True, None, 60)
    assert found.pilot["position_consistency"]["value"] == 1
    clashing = dict.fromkeys(sorted(design.pilot[PAIR])[:2], ("a", "b"))
    (found,) = decide(design, lines_of(steady | clashing), seed=0)
    assert (found.one_order, found.reason) == (False, "inconsistent")


def test_few_pairs_leave_nothing_to_save():
    design = draw({PAIR: ids(50)}, seed=0)
    (found,) = decide(design, lines_of(dict.fromkeys(ids(50), ("a", "a"))), seed=0)
    assert (found.one_order, found.reason) == (False, "few_pairs")
    assert told(found, [], {"value": None}, SPENT)["assumes"] == []


@pytest.mark.parametrize(
    "spent, saved",
    [
        (SPENT, 0.2),  # 20 calls at 1.4 / 140
        (SPENT | {"retries": 60, "reasks": 10}, 0.4),  # 70 replies were paid for
        (SPENT | {"unknown_price_calls": 1}, None),
        (SPENT | {"cost_usd": None}, None),
        (SPENT | {"http_calls": 0}, None),
    ],
)
def test_what_was_saved_is_priced_by_what_was_paid(spent, saved):
    design = draw({PAIR: ids(80)}, seed=0)
    records = lines_of(dict.fromkeys(ids(80), ("a", "a")))
    (found,) = decide(design, records, seed=0)
    for one in records:
        if one.case_id in design.once[PAIR]:
            line = one.lines[0]
            line |= {"calls": line["calls"][:1], "second_order": "skipped"}
    summary = told(found, records, {"value": 1.0}, spent)
    assert (summary["saved_calls"], summary["saved_share"]) == (20, pytest.approx(20 / 160))
    assert summary["saved_usd"] == (None if saved is None else pytest.approx(saved))
    assert (summary["judged_twice"], summary["judged_once"]) == (60, {"a": 20, "b": 0})
    assert len(summary["assumes"]) == 3


def test_a_steady_judge_is_asked_once_about_the_rest(compare, provider):  # noqa: F811
    result = compare(answers("old", 66, 0.1), answers("new", 66, 0.95), second_order="auto")
    assert provider.stats()["requests"] == 2 * 60 + 6
    lines = list(rows(result.run, LINES))
    once = [row for row in lines if len(row["calls"]) == 1]
    assert len(once) == 6
    for row in once:
        assert set(row) == LINE_KEYS | {"second_order"}
        assert (row["second_order"], row["outcome"], row["lean"]) == ("skipped", "b", None)
    assert all(set(row) == LINE_KEYS for row in lines if len(row["calls"]) == 2)
    summary = result.summary
    assert (summary["n"], summary["b_wins"], summary["win_rate_a"]["value"]) == (66, 66, 0)
    assert (summary["position_consistency"]["value"], summary["position_consistency"]["n"]) == (1, 60)
    assert summary["first_preference"]["value"] == pytest.approx(0.5)
    rule = summary["second_order"]
    assert (rule["rule"], rule["one_order"], rule["reason"], rule["saved_calls"]) == ("auto", True, None, 6)
    assert rule["judged_once"] == {"a": 3, "b": 3}
    assert rule["saved_usd"] > 0
    assert manifest(result.run)["second_order"]["decisions"][0]["one_order"] is True
    assert any("6 of 66 pairs were judged in one order only" in text for text in summary["conclusion"]["cautions"])
    page = (result.run / "summary.md").read_text()
    assert "## The second order" in page
    assert "saved: 6 calls, 5% of all" in page
    assert "assumed: the pilot was drawn at random" in page
    # the same again sends nothing; asking for both orders asks for what is missing
    compare(answers("old", 66, 0.1), answers("new", 66, 0.95), second_order="auto", cache=False)
    assert provider.stats()["requests"] == 126
    whole = compare(answers("old", 66, 0.1), answers("new", 66, 0.95)).summary
    assert provider.stats()["requests"] == 132
    assert "second_order" not in whole
    assert whole["position_consistency"]["n"] == 66


@pytest.mark.parametrize("bias", [50.0, pytest.param(-50.0, marks=pytest.mark.slow)])
def test_a_judge_that_looks_at_the_position_is_asked_both_ways_about_everything(compare, provider, bias):  # noqa: F811
    provider.config(k=0.0, position_bias=bias)
    result = compare(answers("old", 62), answers("new", 62), second_order="auto")
    assert provider.stats()["requests"] == 124
    summary = result.summary
    assert (summary["inconsistent"], summary["conclusion"]["verdict"]) == (62, "inconsistent")
    rule = summary["second_order"]
    assert (rule["one_order"], rule["reason"], rule["saved_calls"], rule["assumes"]) == (False, "inconsistent", 0, [])
    assert "both orders for all pairs" in (result.run / "summary.md").read_text()


@pytest.mark.slow
def test_an_error_in_the_one_order_is_incomplete_and_asked_again_in_the_same_order(compare, provider):  # noqa: F811
    design = draw({PAIR: ids(64)}, seed=0)
    case = sorted(design.once[PAIR])[0]
    provider.script(
        {"match": f"How long does crossing {case[1:]} take?", "replies": [{"refusal": "No.", "content": None}]}
    )
    old, new = answers("old", 64, 0.1), answers("new", 64, 0.95)
    failed = compare(old, new, second_order="auto").summary
    assert (failed["incomplete"], failed["second_order"]["saved_calls"]) == (1, 4)
    provider.script()
    sent = provider.stats()["requests"]
    healed = compare(old, new, second_order="auto")
    assert provider.stats()["requests"] == sent + 1
    line = next(row for row in rows(healed.run, LINES) if row["case_id"] == case)
    assert [call["first"] for call in line["calls"]] == [design.once[PAIR][case]]
    assert healed.summary["incomplete"] == 0


@pytest.mark.slow
def test_ratings_may_be_asked_in_one_order_too(compare, provider):  # noqa: F811
    result = compare(answers("old", 66, 0.1), answers("new", 66, 0.5), mode="score", second_order="auto")
    assert provider.stats()["requests"] == 126
    assert (result.summary["b_wins"], result.summary["mean_difference"]["value"]) == (66, -2)
    assert result.summary["mean_difference"]["n"] == 66


@pytest.mark.slow
def test_every_pair_of_systems_has_its_own_pilot(compare, provider):  # noqa: F811
    systems = [*answers("low", 62, 0.1), *answers("middle", 62, 0.5), *answers("highest", 62, 0.9)]
    summary = compare(systems, all_pairs=True, second_order="auto").summary
    assert provider.stats()["requests"] == 3 * (120 + 2)
    assert [one["second_order"]["saved_calls"] for one in summary["comparisons"]] == [2, 2, 2]
    assert summary["position_consistency"]["n"] == 180
    assert [one["system"] for one in summary["ratings"]] == ["highest", "middle", "low"]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"mode": "quick"}, "quick judge is decided by the mean probability over both orders"),
        ({"repeats": 3}, "repeats spend what the rule saves"),
        ({"second_order": "never"}, "choose always or auto"),
    ],
)
def test_what_has_no_sense_is_refused_before_any_call(compare, provider, options, message):  # noqa: F811
    with pytest.raises(UsageError, match=message):
        compare(answers("old", 2), answers("new", 2), **{"second_order": "auto"} | options)
    assert provider.stats().get("requests", 0) == 0


def test_a_run_stopped_in_the_pilot_has_decided_nothing(compare, provider):  # noqa: F811
    old, new = answers("old", 61), answers("new", 61)
    stopped = compare(old, new, second_order="auto", max_cost=0.01, concurrency=2).summary
    assert stopped["stopped"] == "max_cost"
    assert (stopped["second_order"]["one_order"], stopped["second_order"]["reason"]) == (None, "stopped")
    whole = compare(old, new, second_order="auto").summary
    assert whole["n"] == 61
    assert whole["second_order"]["reason"] != "stopped"


def longer(provider: Any, tmp_path: Any, n: int, *more: str) -> list[str]:
    """`command` with n questions."""
    line = command(provider, tmp_path, "--second-order", "auto", *more)
    for system, quality in (("old", 0.1), ("new", 0.95)):
        text = "".join(json.dumps(case) + "\n" for case in answers(system, n, quality))
        (tmp_path / f"{system}.jsonl").write_text(text)
    return line


def test_a_dry_run_says_what_may_be_saved_and_then_what_is(provider, tmp_path):
    line = longer(provider, tmp_path, 70)
    dry = json.loads(CliRunner().invoke(app, [*line, "--dry-run", "--json"]).stdout)
    assert (dry["calls"], dry["least_calls"]) == (140, 130)
    assert "140 calls to send (or as few as 130" in CliRunner().invoke(app, [*line, "--dry-run"]).stdout
    assert provider.stats().get("requests", 0) == 0
    assert CliRunner().invoke(app, line).exit_code == 0
    dry = json.loads(CliRunner().invoke(app, [*line, "--dry-run", "--json"]).stdout)
    assert (dry["calls"], dry["least_calls"], dry["in_cache"]) == (0, None, 130)
    once = next(row for row in rows(tmp_path / "run", LINES) if "second_order" in row)
    opened = CliRunner().invoke(app, ["show", str(tmp_path / "run"), once["case_id"]]).stdout
    assert "the other order was left out by --second-order auto" in opened


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [40, 145])
@pytest.mark.parametrize("mode", ["full", "score"])
def test_a_killed_run_resumes_with_the_same_pilot_and_orders_and_loses_nothing(provider, tmp_path, kill_at, mode):
    line = longer(provider, tmp_path, 100, "--no-cache", "--concurrency", "2", "--mode", mode)
    provider.config(latency_ms=30.0)
    work = [sys.executable, "-m", "judge", *line]
    process = subprocess.Popen(work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while provider.stats().get("requests", 0) < kill_at and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = sum(1 for _ in read_lines(tmp_path / "run" / "replies.jsonl"))
    assert kept < 160
    sent = provider.stats()["requests"]
    provider.config(latency_ms=0.0)
    made = subprocess.run([*work, "--json"], capture_output=True, check=True)
    summary = json.loads(made.stdout)
    assert (summary["n"], summary["second_order"]["saved_calls"]) == (100, 40)
    assert provider.stats()["requests"] - sent == 160 - kept
