"""The alternative annotator test, drift, repeats and panels on recorded judges and people, read in place."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from calibration.drift import drift
from calibration.latent import latent_truth
from calibration.panel import panel
from calibration.ratings import declare_scale, ratings_of
from calibration.reliability import repeats_of
from calibration.replacement import alt_test

PUBLIC = Path(__file__).parents[2].parent / "shared" / "public"
pytestmark = pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public data are not beside this repository")
PREFERENCE = declare_scale("A,N,B")
FLIPPED = {"A": "B", "B": "A", "N": "N"}


def read(name):
    return [json.loads(text) for text in (PUBLIC / name).open(encoding="utf-8")]


def pair_of(row):
    """The pair in one order, and whether this row shows it the other way round."""
    first, second = sorted((row["a"], row["b"]))
    return f"{row['topic']}|{first}|{second}", row["a"] != first


@pytest.fixture(scope="module")
def crag():
    """GPT-4o's combined verdicts (first of each order) and people's presentations."""
    judged = {}
    for row in read("webis_crag25/judge.jsonl"):
        if row["mode"] == "combined":
            judged.setdefault((row["topic"], row["a"], row["b"]), row)
    return judged, read("webis_crag25/human.jsonl")


def by_worker(crag, dimension):
    """Every worker as a rater of pairs in one order; a worker who saw both orders counts once."""
    judged, presented = crag
    labels, topics = {}, {}
    for row in presented:
        pair, turned = pair_of(row)
        topics[pair] = row["topic"]
        for worker, vote in zip(row["workers"], row["votes"][dimension], strict=True):
            labels.setdefault((pair, worker), FLIPPED[vote] if turned else vote)
    for row in judged.values():
        pair, turned = pair_of(row)
        labels.setdefault((pair, "judge"), FLIPPED[row[dimension]] if turned else row[dimension])
    rows = [(pair, rater, label) for (pair, rater), label in labels.items() if pair in topics]
    pairs, raters, votes = zip(*rows, strict=True)
    return ratings_of(pairs, raters, votes, scale=PREFERENCE, clusters=[topics[pair] for pair in pairs])


def by_vote(crag, dimension):
    """The five votes of one presentation of each judged pair as five raters."""
    judged, presented = crag
    rows, seen = [], set()
    for row in presented:
        verdict, (pair, _) = judged.get((row["topic"], row["a"], row["b"])), pair_of(row)
        if verdict is None or pair in seen:
            continue
        seen.add(pair)
        given = {"judge": verdict[dimension], **{f"v{n}": vote for n, vote in enumerate(row["votes"][dimension])}}
        rows += [(pair, rater, label, row["topic"]) for rater, label in given.items()]
    pairs, raters, votes, topics = zip(*rows, strict=True)
    return ratings_of(pairs, raters, votes, scale=PREFERENCE, clusters=topics)


def test_no_crowd_worker_of_crag_has_thirty_judged_pairs_so_the_alt_test_says_so(crag):
    found = alt_test(by_worker(crag, "coverage_broad"), epsilon=0.1, replicates=99)
    assert (found.passed, found.winning_rate.reason) == (None, "no_eligible_rater")
    assert len(found.too_few_items) == 420
    assert max(found.too_few_items.values()) == 27


def test_gpt4o_may_replace_a_random_crowd_vote_on_overall_quality_but_not_on_coverage(crag):
    # quality has no N, and the votes hardly agree (alpha .17): easy to replace. On coverage the judge almost never says
    # N where people do, and is far from them when it is wrong
    overall = alt_test(by_vote(crag, "quality_overall"), epsilon=0.1, replicates=199)
    assert (overall.passed, overall.winning_rate.value, overall.n) == (True, 1.0, 377)
    assert overall.human_alpha.value == pytest.approx(0.17, abs=0.01)
    assert any(warning.startswith("low_human_agreement") for warning in overall.warnings)
    strict = alt_test(by_vote(crag, "quality_overall"), epsilon=0.05, replicates=199)
    assert (strict.passed, strict.winning_rate.value) == (False, 0.4)
    coverage = alt_test(by_vote(crag, "coverage_broad"), epsilon=0.1, replicates=199)
    assert (coverage.passed, coverage.winning_rate.value) == (False, 0.0)
    assert coverage.human_advantage.ci_low > coverage.advantage_probability.ci_high


def test_repeated_gpt4o_verdicts_of_crag_flip_in_four_of_a_hundred_pairs():
    given = defaultdict(list)
    for row in read("webis_crag25/judge.jsonl"):
        if row["mode"] == "combined":
            given[row["topic"], row["a"], row["b"]].append(row["coverage_broad"])
    rows = [("|".join(pair), str(at), label) for pair, labels in given.items() for at, label in enumerate(labels)]
    items, repeats, labels = zip(*rows, strict=True)
    found = repeats_of(ratings_of(items, repeats, labels, scale=PREFERENCE))
    assert (found.n, found.n_dropped, found.repeats_needed) == (377, 377, 2)
    assert found.flip_rate.value == pytest.approx(15 / 377)
    assert found.icc.value == pytest.approx(0.930, abs=0.001)


@pytest.fixture(scope="module")
def llmbar():
    gold = {row["item_id"]: row["gold"] for row in read("llmbar/items.jsonl")}
    judges = defaultdict(dict)
    for row in read("llmbar/judge.jsonl"):
        judges[row["judge"], row["strategy"]][row["item_id"]] = row["ab"]
    return gold, judges


def test_gpt4_without_its_rules_keeps_its_mean_and_has_changed_all_the_same(llmbar):
    gold, judges = llmbar
    scale = declare_scale("A,B")
    old, new = judges["GPT-4", "Vanilla"], judges["GPT-4", "Vanilla_NoRules"]
    found = drift(old, new, gold, scale=scale, replicates=999)
    verdicts = {check.name: check.verdict for check in found.checks}
    assert verdicts == {"mean_shift": "equivalent", "accuracy": "changed", "kappa": "changed"}
    assert (found.mcnemar.only_a, found.mcnemar.only_b, found.verdict) == (1, 21, "changed")
    assert drift(old, old, gold, scale=scale, replicates=99).verdict == "equivalent"


def test_six_judges_of_llmbar_are_worth_one_and_a_half_and_dawid_skene_believes_the_wrong_ones(llmbar):
    gold, judges = llmbar
    names = ["ChatGPT", "ChatGPT-0301", "Falcon", "GPT-4", "LLaMA2", "PaLM2"]
    columns = {name: judges[name, "Vanilla"] for name in names} | {"gold": gold}
    rows = [(item, name, given.get(item)) for name, given in columns.items() for item in gold]
    items, raters, labels = zip(*rows, strict=True)
    ratings = ratings_of(items, raters, labels, scale=declare_scale("A,B"))
    found = panel(ratings, names, "gold", replicates=199)
    best = max(found.members, key=lambda member: member.kappa.value)
    assert (best.judge, found.ties) == ("GPT-4", 29)
    assert found.effective_judges == pytest.approx(1.467, abs=0.001)
    assert found.majority_kappa.ci_high < best.kappa.ci_low
    # five judges fall for the same surface, so the model takes GPT-4 for the careless one
    latent = latent_truth(ratings, names, "gold")
    assert latent.kappa.value < found.majority_kappa.value
    assert latent.right_share["GPT-4"]["A"] < latent.right_share["ChatGPT-0301"]["A"]
