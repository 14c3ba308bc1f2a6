"""judge audit --probe, over the fake provider: arms are runs, a rerun is the yardstick, asking again is free."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import judge
from judge.cli import app
from judge.errors import UsageError
from judge.probing import arms_of, forecast_probes, probe
from judge.report.page import markdown
from judge.report.probes import sections
from judge.swaying import measured
from tests.audited_runs import bundled, line, ordinal
from tests.test_score import MODEL, cases, rubric_dir


def score(provider, tmp_path, n):
    """A run of n cases by `plain`; the fake judge reads its score from a mark in the answer."""
    marked = [
        one | {"answer": f"Crossing {i} takes forty minutes. [[q={0.1 + i % 9 / 10}]]"}
        for i, one in enumerate(cases(n))
    ]
    options = {"cache": tmp_path / "cache", "api_base": provider.base_url, "out": tmp_path / "run"}
    return judge.score(marked, rubrics=["plain"], model=MODEL, rubrics_dir=[rubric_dir(tmp_path)], **options).run


@pytest.fixture
def scored(provider, tmp_path):
    return score(provider, tmp_path, 30)


@pytest.mark.slow
def test_a_judge_that_reads_only_the_content_is_steady_and_the_arms_are_archived_runs(provider, tmp_path):
    # 0 changes in 80: Wilson upper limit 4.6% of the range of 4, inside 0.2; of 30 cases it would be 11%
    scored = score(provider, tmp_path, 80)
    found = probe(scored, "formatting,assertiveness", cache=tmp_path / "cache").found["probes"]
    formatting = found["formatting"]["rubrics"]["plain"]
    assert (formatting["n"], formatting["expected"], formatting["verdict"]) == (80, "same", "steady")
    assert (formatting["flip_share"]["value"], formatting["excess_flips"]["value"]) == (0.0, 0.0)
    assert {path.name for path in (scored / "audit" / "probes").iterdir()} == {"null", "formatting", "assertiveness"}
    assert json.loads((scored / "audit" / "probes.json").read_text())["probes"] == found
    assert "not swayed" in (scored / "audit" / "probes.md").read_text()
    sent = provider.stats()["requests"]
    probe(scored, "formatting,assertiveness", cache=tmp_path / "cache")
    assert provider.stats()["requests"] == sent


def test_a_judge_that_likes_bullets_is_swayed(scored, provider, tmp_path):
    provider.script(
        {
            "match": "**Crossing**",
            "replies": [
                {"content": {"injection_attempts": [], "rationale": "Nice list.", "cannot_judge": None, "level": 5}}
            ],
        }
    )
    found = probe(scored, ["formatting"], cache=tmp_path / "cache").found["probes"]["formatting"]["rubrics"]["plain"]
    assert found["verdict"] == "swayed"
    assert found["shift"]["ci_low"] > 0.5
    assert found["excess_flips"]["value"] > 0.3
    shifts = [row["shift"]["value"] for row in found["by_level"]]
    assert shifts == sorted(shifts, reverse=True)


def test_the_null_arm_is_a_fresh_call_for_each_case_and_the_original_comes_from_the_cache(scored, provider, tmp_path):
    before = provider.stats()["requests"]
    planned = forecast_probes(scored, "formatting", cache=tmp_path / "cache")
    assert provider.stats()["requests"] == before
    # 30 edited and 30 rerun calls; 30 reruns' first repeats are in the cache
    assert (planned.calls, planned.in_cache) == (60, 30)
    probe(scored, "formatting", cache=tmp_path / "cache")
    assert provider.stats()["requests"] - before == 60


def test_a_second_wording_reaches_the_judge_with_the_anchors_turned_round(scored, provider, tmp_path):
    found = probe(scored, "prompt_wording", n=5, cache=tmp_path / "cache").found["probes"]["prompt_wording"]
    assert found["rubrics"]["plain"]["n"] == 5
    texts = [json.dumps(body["messages"]) for body in provider.requests()]
    assert any("by this question and by nothing else" in text for text in texts)


def test_unknown_probes_and_another_judge_are_refused_before_anything_is_sent(scored, provider, tmp_path):
    sent = provider.stats()["requests"]
    with pytest.raises(UsageError, match="verbosity"):
        probe(scored, "verbosty")
    with pytest.raises(UsageError, match="made by another judge"):
        probe(scored, "formatting", api_base="http://127.0.0.1:1/v1", cache=tmp_path / "cache")
    assert provider.stats()["requests"] == sent


def test_the_same_seed_draws_the_same_cases(scored):
    one, again, other = (
        [case.id for case in arms_of(scored, "formatting", rubrics=(), n=8, seed=seed)[1].cases] for seed in (1, 1, 2)
    )
    assert one == again
    assert one != other
    assert len(one) == 8


def test_the_command_shows_the_page_and_dry_run_sends_nothing(scored, provider, tmp_path):
    sent = provider.stats()["requests"]
    arguments = ["audit", str(scored), "--probe", "formatting", "--probe-n", "10", "--cache", str(tmp_path / "cache")]
    dry = CliRunner().invoke(app, [*arguments, "--dry-run", "--json"])
    assert (dry.exit_code, json.loads(dry.stdout)["calls"]) == (0, 20)
    assert provider.stats()["requests"] == sent
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0
    assert "not swayed" in shown.stdout or "cannot be told" in shown.stdout
    labelled = CliRunner().invoke(app, ["audit", str(scored), "labels.csv", "--probe", "formatting"])
    assert "takes no labels" in str(labelled.exception)


def variants_of(run, tmp_path, edit):
    """A file with the run's first twelve cases, edited."""
    rows = [json.loads(text) for text in (run / "cases.jsonl").read_text().splitlines()][:12]
    path = tmp_path / "variants.jsonl"
    path.write_text("".join(json.dumps(row | {"answer": edit(n, row["answer"])}) + "\n" for n, row in enumerate(rows)))
    return path


def test_edits_by_the_user_are_one_more_probe_whose_score_must_stay(scored, tmp_path):
    path = variants_of(scored, tmp_path, lambda n, answer: answer.replace("takes forty minutes", "dauert 40 Minuten"))
    found = probe(scored, (), variants=path, cache=tmp_path / "cache").found["probes"]
    result = found["variants"]["rubrics"]["plain"]
    assert (list(found), result["n"], result["expected"]) == (["variants"], 12, "same")
    assert result["shift"]["value"] == 0


def test_variants_that_are_not_of_the_run_or_change_nothing_are_refused(scored, provider, tmp_path):
    sent = provider.stats()["requests"]
    same = variants_of(scored, tmp_path, lambda n, answer: answer)
    with pytest.raises(UsageError, match="no case in it differs"):
        probe(scored, (), variants=same)
    same.write_text(same.read_text().splitlines()[0].replace('"id": "', '"id": "other-'))
    with pytest.raises(UsageError, match="an edited case keeps its id"):
        probe(scored, (), variants=same)
    assert provider.stats()["requests"] == sent


def lines(rubric, scores, **more):
    return {f"c{i}": line(f"c{i}", rubric, score, **more) for i, score in enumerate(scores)}


def test_damage_that_is_noticed_always_or_never():
    rubric = bundled("faithfulness")
    before = lines(rubric, [5.0] * 60 + [1.0] * 5)
    caught = measured(rubric, "lower", before, lines(rubric, [2.0] * 60 + [1.0] * 5), before)
    # five cases stand at the bottom and cannot fall
    assert (caught["detected"]["value"], caught["at_floor"], caught["verdict"]) == (1.0, 5, "notices")
    asleep = measured(rubric, "lower", before, before, before)
    assert (asleep["detected"]["value"], asleep["verdict"]) == (0.0, "blind")


def test_flips_of_a_noisy_judge_are_held_against_its_own_reruns():
    rubric = ordinal()
    before = lines(rubric, [4.0, 3.0] * 20)
    noise = lines(rubric, [3.0, 3.0, 4.0, 3.0] * 10)
    found = measured(rubric, "same", before, noise, noise)
    assert (found["flip_share"]["value"], found["null_flip_share"]["value"]) == (0.25, 0.25)
    assert found["excess_flips"]["value"] == 0.0


def test_cases_that_get_no_score_any_more_are_counted_by_reason():
    rubric = ordinal()
    before = lines(rubric, [4.0] * 12)
    after = lines(rubric, [4.0] * 10 + [None, None])
    found = measured(rubric, "same", before, after, {})
    assert (found["n"], found["lost"], found["null_flip_share"]["status"]) == (10, {"refusal": 2}, "undefined")
    empty = measured(rubric, "same", before, {}, {})
    assert (empty["n"], empty["verdict"], empty["kappa"]["reason"]) == (0, "inconclusive", "no_data")


def test_shift_and_flips_have_a_seeded_bootstrap_over_cases_and_too_few_cases_at_a_score_say_so():
    rubric = ordinal()
    before = lines(rubric, [4.0] * 30 + [2.0] * 20 + [5.0] * 9)
    after = lines(rubric, [4.0, 3.0] * 15 + [2.0] * 20 + [5.0] * 8 + [1.0])
    once, again, other = (measured(rubric, "same", before, after, before, seed=seed) for seed in (3, 3, 4))
    assert once == again
    assert once["shift"] != other["shift"]
    # 15 of 59 fall by one mark, one by four; nothing flips in the rerun
    assert once["shift"]["value"] == pytest.approx(-19 / 59)
    assert (once["shift"]["method"], once["shift"]["seed"]) == ("bootstrap_percentile", 3)
    assert once["excess_flips"]["value"] == pytest.approx(16 / 59)
    two, four, five = once["by_level"]
    assert (two["level"], two["n"], two["shift"]["value"]) == (2, 20, 0)
    assert (four["shift"]["value"], four["flip_share"]["value"], four["excess_flips"]["value"]) == (-0.5, 0.5, 0.5)
    assert four["shift"]["ci_low"] < -0.5 < four["shift"]["ci_high"] < 0
    assert (five["n"], five["shift"]["ci_low"], five["shift"]["reason"]) == (9, None, "n_below_10")
    page = markdown("p", sections({"run": "r", "seed": 3, "probes": {"formatting": {"rubrics": {"plain": once}}}}))
    assert "| formatting | plain | 5 | 9 | too few | too few |" in page


def test_the_reruns_flips_are_subtracted_within_each_score_level():
    rubric = ordinal()
    before = lines(rubric, [4.0] * 20 + [3.0] * 20)
    rerun = lines(rubric, [3.0] * 5 + [4.0] * 15 + [3.0] * 20)
    after = lines(rubric, [3.0] * 5 + [4.0] * 15 + [4.0] * 10 + [3.0] * 10)
    three, four = measured(rubric, "same", before, after, rerun)["by_level"]
    assert (four["flip_share"]["value"], four["null_flip_share"]["value"], four["excess_flips"]["value"]) == (
        0.25,
        0.25,
        0,
    )
    assert (three["flip_share"]["value"], three["null_flip_share"]["value"], three["excess_flips"]["value"]) == (
        0.5,
        0,
        0.5,
    )


def test_copies_of_a_question_make_a_shift_no_more_certain():
    rubric = ordinal()
    before = lines(rubric, [4.0] * 100)
    after = lines(rubric, [4.0 if n % 20 < 10 else 3.0 for n in range(100)])
    same = {f"c{n}": str(n % 20) for n in range(100)}
    rows, questions = (measured(rubric, "same", before, after, before, asked) for asked in (None, same))
    for name in ("shift", "excess_flips", "flip_share"):
        wide, narrow = (one[name]["ci_high"] - one[name]["ci_low"] for one in (questions, rows))
        assert wide > 1.8 * narrow
    assert questions["shift"]["n_clusters"] == 20
