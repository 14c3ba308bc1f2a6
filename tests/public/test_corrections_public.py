"""Corrected means, transport and halo on recorded judges and people, read in place."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import judge
from calibration.correction import correct, ppi
from tests.audited_runs import line, ordinal, write_run

PUBLIC = Path(__file__).parents[2].parent / "shared" / "public"
pytestmark = pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public data are not beside this repository")
POINTS = {"A": 1.0, "T": 0.5, "N": 0.5, "B": 0.0}
DIMENSIONS = ("coverage_broad", "coverage_deep", "correctness_topical", "coherence_logical", "consistency_internal")
HOME = {"clapnq", "kiwi", "novelqa", "robustqa/bioasq", "robustqa/fiqa", "robustqa/lifestyle"}


def read(name):
    return [json.loads(text) for text in (PUBLIC / name).open(encoding="utf-8")]


def crag_pairs():
    """Each pair of CRAG-25 with five dimensions: mean vote of people and verdict of GPT-4o, as points for the left."""
    verdicts = {}
    for row in read("webis_crag25/judge.jsonl"):
        if row["mode"] == "combined":
            verdicts.setdefault((row["topic"], row["a"], row["b"]), row)
    found = {}
    for row in read("webis_crag25/human.jsonl"):
        key = (row["topic"], row["a"], row["b"])
        if key in verdicts and row["a"] < row["b"]:
            votes = [np.mean([POINTS[vote] for vote in row["votes"][name]]) for name in DIMENSIONS]
            found[key] = np.array([votes, [POINTS[verdicts[key][name]] for name in DIMENSIONS]])
    return list(found.values())


@pytest.mark.slow
def test_five_labels_of_one_pair_are_one_unit_and_only_the_clustered_interval_covers():
    pairs, rng, held = crag_pairs(), np.random.default_rng(1), np.zeros(2)
    truth = float(np.mean([labels for labels, _ in pairs]))
    for _ in range(300):
        drawn = np.stack([pairs[at] for at in rng.integers(0, len(pairs), size=300)])
        y, f, rest = (side.ravel() for side in (drawn[:40, 0], drawn[:40, 1], drawn[40:, 1]))
        clusters = (np.repeat(np.arange(40), 5), np.repeat(np.arange(40, 300), 5))
        for place, found in enumerate((ppi(y, f, rest, clusters=clusters), ppi(y, f, rest))):
            held[place] += found.corrected.ci_low <= truth <= found.corrected.ci_high
    assert held[0] >= 0.92 * 300
    assert held[1] < 0.8 * 300


def test_forty_labels_for_each_verdict_of_gpt35_give_back_the_mean_of_all_people():
    pairs = [pair for pair in read("pandalm/pairs.jsonl") if pair["gpt35"]]
    people = {str(p["item_id"]): float(np.mean([POINTS[p[name]] for name in ("h1", "h2", "h3")])) for p in pairs}
    scores = {str(p["item_id"]): POINTS[p["gpt35"]] for p in pairs}
    strata, drawn, chances = {str(p["item_id"]): p["gpt35"] for p in pairs}, {}, {}
    members = defaultdict(list)
    for item, verdict in strata.items():
        members[verdict].append(item)
    rng = np.random.default_rng(3)
    for items in members.values():
        size = min(40, len(items))
        for item in rng.choice(items, size=size, replace=False):
            drawn[str(item)], chances[str(item)] = people[item], size / len(items)
    truth = float(np.mean(list(people.values())))
    for design, more in (("stratified", {"strata": strata}), ("propensity", {"propensities": chances})):
        found = correct(scores, drawn, design=design, bounds=(0, 1), **more)
        assert found.corrected.ci_low < truth < found.corrected.ci_high
    # ties are 4% of the verdicts and a third of the labels: without weights their share is eight times too large
    shares = [np.mean([strata[item] == "T" for item in group]) for group in (scores, drawn)]
    assert shares[1] > 8 * shares[0]


@pytest.fixture(scope="module")
def leads(tmp_path_factory):
    """RAGChecker's lead of the second answer in three dimensions, as marks 1 to 5, with two annotators."""
    pairs, folder = read("ragchecker_meta/pairs.jsonl"), tmp_path_factory.mktemp("ragchecker")
    names = ("correctness", "completeness", "overall")
    lines, labels = [], []
    for name in names:
        d = np.array([pair[f"judge_B_{name}"] - pair[f"judge_A_{name}"] for pair in pairs])
        marks = np.clip(np.round(4 * ((d - d.min()) / (d.max() - d.min()) - 0.5)), -2, 2) + 3
        lines += [line(f"r{n}", ordinal(name=name), float(mark)) for n, mark in enumerate(marks)]
        labels += [
            {"case_id": f"r{n}", "rater": rater, "rubric": name, "label": pair[f"{rater}_{name}"] + 3}
            for n, pair in enumerate(pairs)
            for rater in ("h1", "h2")
        ]
    cases = [
        {"id": f"r{n}", "question": f"{pair['dataset']} {pair['query_id']}", "contexts": ["-"], "tags": [pair["dataset"]],
         "answer": f"{pair['model_A']} against {pair['model_B']}", "system": pair["model_B"]}
        for n, pair in enumerate(pairs)
    ]  # fmt: skip
    rubrics = [ordinal(name=name) for name in names]
    return write_run(folder / "all", cases, lines, rubrics, model="ragchecker"), cases, lines, labels


def test_its_errors_go_together_although_its_scores_do_so_less_than_peoples(leads):
    run, _, _, labels = leads
    found = judge.audit(run, labels, replicates=500).rubrics
    (pair,) = [one for one in found["correctness"]["halo"] if one["rubric"] == "completeness"]
    assert (pair["n"], pair["residuals"]["ci_low"] > 0.3) == (280, True)
    assert pair["judge"]["ci_high"] < pair["people"]["ci_low"]


def test_a_lead_by_gpt4_seems_underrated_until_marks_by_people_are_equal(leads):
    run, _, _, labels = leads
    found = judge.audit(run, labels, rubrics="overall", replicates=500).rubrics["overall"]["by_generator"]["families"]
    rows = {one["family"]: one for one in found}
    for name in ("bm25_gpt_4", "e5_mistral_gpt_4"):
        assert rows[name]["lean"]["ci_high"] < 0
    assert rows["bm25_gpt_4"]["against_others"]["value"] == pytest.approx(0, abs=0.05)
    assert not any(row["favoured"] for row in found)


def test_a_curve_from_six_data_sets_holds_on_the_other_four_within_five_percent(leads, tmp_path):
    _, cases, lines, labels = leads
    runs = {}
    for name, inside in (("home", True), ("away", False)):
        ids = {one["id"] for one in cases if (one["tags"][0] in HOME) == inside}
        kept = [one | {"system": None} for one in cases if one["id"] in ids]
        own = [one for one in lines if one["case_id"] in ids and one["rubric"] == "overall"]
        marks = [one for one in labels if one["case_id"] in ids and one["rubric"] == "overall"]
        runs[name] = write_run(tmp_path / name, kept, own, [ordinal(name="overall")]), marks
    run, marks = runs["home"]
    asked = {"transport": runs["away"][0], "transport_labels": runs["away"][1]}
    found = judge.audit(run, marks, label_design="random", replicates=200, **asked).rubrics["overall"]["transport"]
    (audited,) = found["systems"]
    assert (audited["system"], audited["residual"]["n"], audited["verdict"]) == ("away", 112, "pass")
