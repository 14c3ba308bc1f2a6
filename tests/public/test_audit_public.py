"""Audits of recorded judges against recorded people: pandalm (two judges) and webis_crag25 (GPT-4o), read in place.

Verdicts on a pair become marks 1..3 (second better, tie, first better), the form in which a run holds them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import judge
from tests.audited_runs import line, ordinal, write_run

PUBLIC = Path(__file__).parents[2].parent / "shared" / "public"
pytestmark = pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public data are not beside this repository")

MARK = {"A": 3, "T": 2, "N": 2, "B": 1}


def read(name):
    return [json.loads(text) for text in (PUBLIC / name).open(encoding="utf-8")]


def preference():
    return ordinal(1, 3, 3, name="preference")


@pytest.fixture(scope="module")
def pandalm_runs(tmp_path_factory):
    """A run directory per recorded judge, and the pairs."""
    folder = tmp_path_factory.mktemp("pandalm")
    pairs, items = read("pandalm/pairs.jsonl"), read("pandalm/items.jsonl")
    cases = [
        {"id": str(item["item_id"]), "question": f"{item['instruction']}\n{item['input']}", "tags": [pair["app"]],
         "answer": f"A: {item['response_A']}\nB: {item['response_B']}"}
        for item, pair in zip(items, pairs, strict=True)
    ]  # fmt: skip
    found = {}
    for name in ("gpt35", "pandalm7b"):
        lines = []
        for pair in pairs:
            row = line(str(pair["item_id"]), preference(), pair[name] and float(MARK[pair[name]]), judge=name)
            lines.append(
                row if pair[name] else row | {"status": "error", "error_kind": "unparsable", "reason": "garbage"}
            )
        run = write_run(folder / name, cases, lines, [preference()], model=name, model_returned=[name])
        found[name] = (run, pairs)
    return found


@pytest.fixture(scope="module")
def pandalm(pandalm_runs):
    """Audits of gpt35 and pandalm7b against the three annotators."""
    found = {}
    for name, (run, pairs) in pandalm_runs.items():
        labels = [
            {"case_id": str(pair["item_id"]), "rater": rater, "rubric": "preference", "label": MARK[pair[rater]]}
            for pair in pairs
            for rater in ("h1", "h2", "h3")
        ]
        found[name] = judge.audit(run, labels, replicates=500).rubrics["preference"]
    return found


@pytest.fixture(scope="module")
def expected():
    return json.loads((PUBLIC / "pandalm" / "expected.json").read_text(encoding="utf-8"))


def test_unparsable_verdicts_are_dropped_with_their_reason(pandalm):
    dropped = pandalm["gpt35"]["dropped"]
    assert len(dropped) == 25
    assert {one["reason"] for one in dropped} == {"error: unparsable"}
    assert pandalm["gpt35"]["n"] == 974


def test_people_agree_with_each_other_as_published_and_the_judges_do_not_reach_it(pandalm, expected):
    # mean unweighted kappa of the three pairs of annotators
    among = sum(expected[pair]["kappa"] for pair in ("h1h2", "h1h3", "h2h3")) / 3
    full = pandalm["pandalm7b"]["agreement"]
    assert full["n"] == 999
    assert among == pytest.approx(0.8642, abs=1e-3)
    assert full["human_ceiling"]["human_human"]["value"] > among
    for audit in pandalm.values():
        assert audit["agreement"]["human_ceiling"]["delta"]["ci_high"] < -0.1


@pytest.mark.parametrize("name", ["gpt35", "pandalm7b"])
def test_neither_judge_is_trusted_and_both_beat_chance(pandalm, name):
    audit = pandalm[name]
    assert audit["verdict"] == "usable_with_correction"
    assert 0 < audit["agreement"]["kappa"]["quadratic"]["ci_low"] < 0.6
    assert audit["agreement"]["percent_agreement"]["value"] > audit["agreement"]["constant_judge_accuracy"]
    assert len(audit["review"]) == 50


def test_percent_agreement_is_the_mean_over_annotators(pandalm):
    pairs = read("pandalm/pairs.jsonl")
    hits = [pair["gpt35"] == pair[rater] for pair in pairs if pair["gpt35"] for rater in ("h1", "h2", "h3")]
    assert pandalm["gpt35"]["agreement"]["percent_agreement"]["value"] == pytest.approx(
        sum(hits) / len(hits), abs=1e-12
    )


@pytest.mark.parametrize("name", ["gpt35", "pandalm7b"])
def test_against_the_majority_the_audit_gives_the_expected_kappa(pandalm_runs, expected, name):
    run, pairs = pandalm_runs[name]
    votes = [(pair, [pair["h1"], pair["h2"], pair["h3"]]) for pair in pairs]
    labels = [
        {"case_id": str(pair["item_id"]), "rater": "majority", "label": MARK[max("ATB", key=given.count)]}
        for pair, given in votes
    ]
    page = judge.audit(run, labels, replicates=100).rubrics["preference"]["agreement"]
    assert page["n"] == expected[name]["n"]
    assert page["kappa"]["none"]["value"] == pytest.approx(expected[name]["kappa"], abs=1e-9)
    assert page["percent_agreement"]["value"] == pytest.approx(expected[name]["pct"], abs=1e-9)


@pytest.fixture(scope="module")
def webis_run(tmp_path_factory):
    """The run of GPT-4o (all dimensions in one prompt, quality_overall as shown), its pairs and the crowd's rows."""
    folder = tmp_path_factory.mktemp("webis")
    votes = {(row["topic"], row["a"], row["b"]): row for row in read("webis_crag25/human.jsonl")}
    verdicts = {}
    for row in read("webis_crag25/judge.jsonl"):
        if row["mode"] == "combined":
            verdicts.setdefault((row["topic"], row["a"], row["b"]), row)
    texts = {row["response"]: row["text"] for row in read("webis_crag25/responses.jsonl")}
    shared = [key for key in verdicts if key in votes]
    cases = [
        {"id": "/".join(key), "question": f"topic {key[0]}", "answer": f"A: {texts[key[1]]}\nB: {texts[key[2]]}"}
        for key in shared
    ]
    lines = [line("/".join(key), preference(), float(MARK[verdicts[key]["quality_overall"]])) for key in shared]
    run = write_run(folder / "gpt4o", cases, lines, [preference()], model="openai/gpt-4o")
    return run, shared, votes


@pytest.fixture(scope="module")
def webis(webis_run):
    """GPT-4o against five crowd votes per pair."""
    run, shared, votes = webis_run
    labels = [
        {"case_id": "/".join(key), "rater": worker, "rubric": "preference", "label": MARK[vote]}
        for key in shared
        for worker, vote in zip(votes[key]["workers"], votes[key]["votes"]["quality_overall"], strict=True)
    ]
    return judge.audit(run, labels, replicates=500).rubrics["preference"]


def test_the_crowd_is_taken_as_five_votes_clustered_by_topic(webis):
    assert webis["warnings"][0].startswith("crowd: ")
    assert webis["warnings"][0].endswith("as 5 votes per case")
    kappa = webis["agreement"]["kappa"]["quadratic"]
    assert kappa["n_clusters"] < kappa["n"] == webis["n"]
    assert len(webis["agreement"]["per_human"]) == 5


def test_gpt4o_agrees_with_the_crowd_about_as_little_as_the_crowd_with_itself(webis):
    ceiling = webis["agreement"]["human_ceiling"]
    assert ceiling["human_human"]["ci_high"] < 0.5
    assert webis["agreement"]["kappa"]["quadratic"]["ci_high"] < 0.6
    assert webis["verdict"] != "trusted"
    assert webis["corrected"] is None


def test_against_gold_of_the_same_presentation_the_audit_gives_the_expected_kappa(webis_run):
    run, shared, votes = webis_run
    target = json.loads((PUBLIC / "webis_crag25" / "expected.json").read_text(encoding="utf-8"))
    target = target["llm_vs_gold_same_order"]["combined/quality_overall"]
    labels = [
        {"case_id": "/".join(key), "rater": "gold", "label": MARK[votes[key]["gold"]["quality_overall"].upper()]}
        for key in shared
    ]
    page = judge.audit(run, labels, replicates=100).rubrics["preference"]["agreement"]
    found = {
        "n": page["n"], "pct": page["percent_agreement"]["value"], "kappa": page["kappa"]["none"]["value"],
        "kappa_quad": page["kappa"]["quadratic"]["value"], "spearman": page["spearman"]["value"],
    }  # fmt: skip
    assert found == pytest.approx({name: target[name] for name in found}, abs=1e-9)
