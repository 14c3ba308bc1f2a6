"""judge compare --mode score: both replies rated in each order, the ratings averaged over orders and repeats."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

import judge
from judge.cli import app
from judge.errors import UsageError
from judge.runs import manifest, rows
from tests.test_compare import LINE_KEYS, LINES, MODEL, answers, command, compare, first_is, outcomes  # noqa: F401

NO_NOTES = {"injection_attempts": [], "notes_first": [], "notes_second": [], "decisive_difference": "none",
            "cannot_judge": None}  # fmt: skip
RATED = ("mean_difference", "mean_rating_a", "mean_rating_b", "first_bonus")


@pytest.fixture
def rate(compare):  # noqa: F811
    """`compare` in score mode."""

    def run(a: Any, b: Any = None, **options: Any) -> judge.Result:
        return compare(a, b, **{"mode": "score"} | options)

    return run


def rating(first: Any, second: Any, match: str = "first reply", **more: Any) -> dict[str, Any]:
    """A scripted reply with these ratings."""
    return {
        "match": match,
        "replies": [{"content": NO_NOTES | {"rating_first": first, "rating_second": second} | more}],
    }


def test_both_replies_are_rated_in_each_order_and_the_mean_decides(rate, provider):
    # the fake judge turns quality .1 into level 1, .5 into 3
    result = rate(answers("old", 12, 0.1), answers("new", 12, 0.5))
    summary = result.summary
    assert (summary["n"], summary["a_wins"], summary["b_wins"], summary["mode"]) == (12, 0, 12, "score")
    assert summary["p_value"] == pytest.approx(2 * 0.5**12)
    assert summary["conclusion"]["verdict"] == "prefers_b"
    assert [summary[name]["value"] for name in RATED] == [-2, 1, 3, 0]
    assert summary["mean_difference"]["n"] == 12
    assert summary["mean_difference"]["ci_high"] < 0
    assert summary["scale"] == [1, 5]
    for row in rows(result.run, LINES):
        assert set(row) == LINE_KEYS | {"difference"}
        assert (row["outcome"], row["difference"], row["p_a"]) == ("b", -2, None)
        assert [call["ratings"] for call in row["calls"]] == [{"a": 1, "b": 3}] * 2
        assert [call["verdict"] for call in row["calls"]] == ["second", "first"]
        assert [call["margin"] for call in row["calls"]] == [None, None]
    assert provider.stats()["requests"] == 24
    prompt = provider.requests()[-1]["messages"][-1]["content"]
    assert "rating_second" in prompt
    assert "decisive_difference" in prompt


def test_an_advantage_of_the_first_place_cancels_and_is_measured(rate, provider):
    # one level more for the reply shown first: 2 and 3 become 3 to 3 and 2 to 4; the mean difference stays -1
    provider.config(first_bonus=0.2)
    result = rate(answers("old", 8, 0.3), answers("new", 8, 0.5))
    row = next(rows(result.run, LINES))
    assert [call["ratings"] for call in row["calls"]] == [{"a": 3, "b": 3}, {"a": 2, "b": 4}]
    summary = result.summary
    assert (row["outcome"], row["difference"]) == ("b", -1)
    assert summary["mean_difference"]["value"] == -1
    assert summary["first_bonus"]["value"] == pytest.approx(1)
    assert (summary["position_consistency"]["value"], summary["inconsistent_rate"]["value"]) == (0, 0)


def test_half_a_level_is_a_win_and_counts_as_one(rate, provider):
    provider.script(rating(4, 3, match=first_is("new", 0)), rating(3, 3))
    row = next(rows(rate(answers("old", 1), answers("new", 1)).run, LINES))
    assert [call["winner"] for call in row["calls"]] == ["tie", "b"]
    assert (row["difference"], row["outcome"], row["lean"]) == (-0.5, "b", None)


@pytest.mark.parametrize("ratings, picked, fairness", [((5, 2), 1, -1), ((2, 5), 0, 1)])
def test_a_judge_that_rates_by_position_has_no_winner(rate, provider, ratings, picked, fairness):
    provider.script(rating(*ratings))
    summary = rate(answers("old", 10), answers("new", 10)).summary
    assert (summary["ties"], summary["win_rate_a"]["value"], summary["p_value"]) == (10, 0.5, 1.0)
    assert summary["mean_difference"]["value"] == 0
    assert summary["first_bonus"]["value"] == (3 if picked else -3)
    assert (summary["inconsistent_rate"]["value"], summary["position_consistency"]["value"]) == (1, 0)
    assert (summary["first_preference"]["value"], summary["preference_fairness"]["value"]) == (picked, fairness)
    assert summary["inconsistent"] == 0  # no outcome of this mode: the mean has decided
    assert summary["conclusion"]["verdict"] == "inconsistent"


def test_equal_ratings_are_a_tie_in_both_orders(rate, provider):
    provider.script(rating(4, 4))
    summary = rate(answers("old", 6), answers("new", 6)).summary
    assert (summary["ties"], summary["position_consistency"]["value"]) == (6, 1)
    assert summary["first_preference"]["reason"] == "no_values"
    assert summary["conclusion"]["verdict"] == "no_evidence"


def test_an_error_in_one_order_makes_the_pair_incomplete_and_only_that_order_is_asked_again(rate, provider):
    second_order = "Crossing 2 takes 30 minutes, says new. [[q=0.5]]\n=== END first reply"
    provider.script({"match": second_order, "replies": [{"refusal": "No.", "content": None}]})
    failed = rate(answers("old", 5, 0.1), answers("new", 5, 0.5))
    assert (failed.summary["incomplete"], failed.summary["mean_difference"]["n"]) == (1, 4)
    broken = next(row for row in rows(failed.run, LINES) if row["outcome"] == "incomplete")
    assert broken["difference"] is None
    assert [call.get("ratings") for call in broken["calls"]] == [{"a": 1, "b": 3}, None]
    provider.script()
    sent = provider.stats()["requests"]
    healed = rate(answers("old", 5, 0.1), answers("new", 5, 0.5))
    assert provider.stats()["requests"] == sent + 1
    assert (healed.summary["incomplete"], healed.summary["b_wins"]) == (0, 5)


@pytest.mark.parametrize("first, second", [(6, 3), (None, 3), (True, 3)])
def test_a_rating_off_the_scale_makes_the_pair_incomplete_never_a_clamped_one(rate, provider, first, second):
    provider.script(rating(first, second))
    summary = rate(answers("old", 1), answers("new", 1)).summary
    assert (summary["reasons"], summary["mean_difference"]["reason"]) == ({"unparsable": 1}, "no_values")


def test_a_judge_that_cannot_rate_is_not_asked_again(rate, provider):
    provider.script(rating(3, 3, cannot_judge="The second reply is cut off."))
    first = rate(answers("old", 2), answers("new", 2))
    sent = provider.stats()["requests"]
    assert outcomes(first) == {"incomplete": 2}
    rate(answers("old", 2), answers("new", 2))
    assert provider.stats()["requests"] == sent


def test_identical_answers_are_a_tie_without_a_call_and_differ_by_nothing(rate, provider):
    same = answers("old", 3)
    new = [*answers("new", 5, 0.5)[3:], *[{**case, "system": "new"} for case in same]]
    summary = rate([*same, *answers("old", 5, 0.1)[3:]], new).summary
    assert provider.stats()["requests"] == 4
    assert (summary["n"], summary["ties"], summary["identical"], summary["b_wins"]) == (5, 3, 3, 2)
    assert (summary["mean_difference"]["value"], summary["mean_difference"]["n"]) == (pytest.approx(-4 / 5), 5)
    assert summary["position_consistency"]["n"] == 2


def test_repeats_of_a_pair_are_one_of_the_pairs_to_look_at(rate):
    page = (rate(answers("old", 3, 0.1), answers("new", 3, 0.5), repeats=3).run / "summary.md").read_text()
    shown = [line for line in page.splitlines() if "new (1 to 3) / new (1 to 3)" in line]
    assert len(shown) == len({line.split(" | ")[0] for line in shown}) == 3


def test_repeats_are_pooled_before_anything_is_decided(rate, provider):
    # replies in turn: the first repeat sees 4 to 3, all others 3 to 3, so 2 x 3 ratings differ by 1/6 and not by 1/2
    replies = [{"content": NO_NOTES | {"rating_first": level, "rating_second": 3}} for level in (4, 3)]
    provider.script({"match": first_is("old", 0), "replies": replies}, rating(3, 3))
    result = rate(answers("old", 1), answers("new", 1), repeats=3, concurrency=1)
    lines = list(rows(result.run, LINES))
    assert sorted(row["difference"] for row in lines) == [0, 0, 0.5]
    assert sorted(row["outcome"] for row in lines) == ["a", "tie", "tie"]
    assert (result.summary["n"], result.summary["ties"], result.summary["a_wins"]) == (1, 1, 0)
    assert result.summary["mean_difference"]["value"] == pytest.approx(1 / 6)


def test_the_interval_of_the_difference_is_clustered_by_question(rate, provider):
    def doubled(system: str, quality: float) -> list[dict[str, Any]]:
        cases = answers(system, 12, quality)
        for n, case in enumerate(cases):
            case["question"] = f"How long does crossing {n // 2} take?"
        return cases

    found = rate(doubled("old", 0.1), doubled("new", 0.5)).summary["mean_difference"]
    assert (found["n"], found["n_clusters"]) == (12, 6)


def test_modes_do_not_share_a_run_or_a_reply_and_the_same_command_sends_nothing(rate, compare, provider, tmp_path):  # noqa: F811
    first = rate(answers("old", 3, 0.1), answers("new", 3, 0.5))
    content = (first.run / LINES).read_bytes()
    sent = provider.stats()["requests"]
    again = rate(answers("old", 3, 0.1), answers("new", 3, 0.5), cache=False)
    assert provider.stats()["requests"] == sent
    assert (again.run / LINES).read_bytes() == content
    with pytest.raises(UsageError, match="mode: 'score' in the run, now 'full'"):
        compare(answers("old", 3, 0.1), answers("new", 3, 0.5))
    full = compare(answers("old", 3, 0.1), answers("new", 3, 0.5), out=tmp_path / "full")
    assert provider.stats()["requests"] == sent + 6
    hashes = [{row["prompt_hash"] for row in rows(run, LINES)} for run in (first.run, full.run)]
    assert hashes[0].isdisjoint(hashes[1])


def test_any_pointwise_rubric_gives_its_levels_and_its_scale(rate, provider):
    summary = rate(answers("old", 2, 0.1), answers("new", 2, 0.95), rubric="faithfulness").summary
    assert (summary["b_wins"], summary["mean_difference"]["value"]) == (2, -4)
    prompt = provider.requests()[-1]["messages"][-1]["content"]
    assert "The criterion, as levels of one reply" in prompt
    assert "whole number from 1 to 5" in prompt


def test_several_systems_are_rated_by_what_the_means_decided(rate):
    systems = [*answers("low", 6, 0.1), *answers("middle", 6, 0.5), *answers("highest", 6, 0.9)]
    summary = rate(systems, all_pairs=True).summary
    assert [one["mean_difference"]["value"] for one in summary["comparisons"]] == [-2, -4, -2]
    assert [one["system"] for one in summary["ratings"]] == ["highest", "middle", "low"]


def test_score_mode_belongs_to_comparisons(provider, tmp_path):
    with pytest.raises(UsageError, match="mode of `judge compare`"):
        judge.score(answers("old", 1), ["faithfulness"], MODEL, mode="score", api_base=provider.base_url)
    made = CliRunner().invoke(app, ["score", "cases.jsonl", "--mode", "score"])
    assert isinstance(made.exception, UsageError)
    assert provider.stats().get("requests", 0) == 0


def test_dry_run_page_and_show_speak_of_ratings(provider, tmp_path):
    line = command(provider, tmp_path, "--mode", "score")
    dry = CliRunner().invoke(app, [*line, "--dry-run", "--json"])
    assert json.loads(dry.stdout)["calls"] == 16
    assert provider.stats().get("requests", 0) == 0
    shown = CliRunner().invoke(app, line)
    assert shown.exit_code == 0
    assert shown.stdout.startswith("Conclusion\n  The judge prefers new: win rate 100%")
    assert "contradicted" not in shown.stdout
    assert "mean rating (1-5): old 1.00" in shown.stdout
    assert manifest(tmp_path / "run")["judge"]["mode"] == "score"
    opened = CliRunner().invoke(app, ["show", str(tmp_path / "run"), "c3"]).stdout
    assert "order 2, new shown first: first = new, old rated 1, new rated 5" in opened
    assert "mean rating of old minus new: -4.00" in opened
