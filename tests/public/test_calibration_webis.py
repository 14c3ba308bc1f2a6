"""webis_crag25 (Gienapp et al., SIGIR 2025): crowd and judge alphas of Tables 4 and 9, read in place."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from calibration import CalibrationError
from calibration.agreement import agreement
from calibration.multirater import fleiss_kappa, krippendorff_alpha, label_counts
from calibration.pairwise import summarize
from calibration.ratings import declare_scale, ratings_of
from calibration.verdicts import PairVerdicts

PUBLIC = Path(__file__).parents[2].parent / "shared" / "public"
FOLDER = PUBLIC / "webis_crag25"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the public data are not beside this repository")

DIMENSIONS = [
    "correctness_topical",
    "coherence_logical",
    "coherence_stylistic",
    "coverage_broad",
    "coverage_deep",
    "consistency_internal",
    "quality_overall",
]
ORDER = "ANB"
MIRROR = {"A": "B", "N": "N", "B": "A"}
SPAM = 0.7


def read(name):
    return [json.loads(line) for line in (FOLDER / name).open(encoding="utf-8")]


@pytest.fixture(scope="module")
def votes():
    return read("human.jsonl")


def counted(rows, dimension, spam=1.0):
    codes = [
        [
            ORDER.index(letter) if risk <= spam else -1
            for letter, risk in zip(row["votes"][dimension], row["spam"][dimension], strict=True)
        ]
        for row in rows
    ]
    return label_counts(np.array(codes), 3)


def one_orientation(rows):
    """The first presentation of each pair of responses."""
    kept = {}
    for row in rows:
        kept.setdefault((row["topic"], frozenset((row["a"], row["b"]))), row)
    return list(kept.values())


def easy(row):
    """More than 4 of the 7 dimensions have a 3-of-5 majority."""
    return sum(max(row["votes"][d].count(letter) for letter in ORDER) >= 3 for d in DIMENSIONS) > 4


def alpha(counts, metric="ordinal"):
    return krippendorff_alpha(counts, metric, replicates=2).value


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_crowd_alphas_equal_the_expected_values_and_the_printed_table(votes, expected, published, dimension):
    # the paper drops the second orientation of a pair in C*, but not in C* of the difficulty split
    hard = [row for row in votes if easy(row)]
    assert len(hard) == 1062
    found = {
        "alpha_C": alpha(counted(votes, dimension)),
        "alpha_Cstar": alpha(counted(one_orientation(votes), dimension, SPAM)),
        "alpha_easy_C": alpha(counted(hard, dimension)),
        "alpha_easy_Cstar": alpha(counted(hard, dimension, SPAM)),
        "alpha_nominal_C": alpha(counted(votes, dimension), "nominal"),
        "alpha_interval_C": alpha(counted(votes, dimension), "interval"),
        "fleiss5": fleiss_kappa(counted(votes, dimension), replicates=2).value,
    }
    assert found == pytest.approx(expected["human"][dimension], abs=1e-9)
    for name in ("alpha_C", "alpha_Cstar", "alpha_easy_C", "alpha_easy_Cstar"):
        cell = published[f"{dimension} {name}"]
        assert found[name] == pytest.approx(cell["published"], abs=cell["tol"])


@pytest.fixture(scope="module")
def orders():
    """Verdicts of both orders per (mode, pair), as shown and mapped to the order of the UUIDs."""
    uuid = json.loads((FOLDER / "ids.json").read_text(encoding="utf-8"))["responses"]
    seen = {}
    for row in read("judge.jsonl"):
        seen.setdefault((row["mode"], row["topic"], row["a"], row["b"]), row)
    pairs = {}
    for (mode, topic, a, b), row in seen.items():
        if uuid[a] < uuid[b] and (mode, topic, b, a) in seen:
            pairs[mode, topic, a, b] = (row, seen[mode, topic, b, a])
    return pairs


@pytest.mark.parametrize("mode", ["combined", "individual"])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_two_orders_agree_only_after_mapping(orders, expected, published, mode, dimension):
    raw = np.array([[ORDER.index(row[dimension]) for row in pair] for key, pair in orders.items() if key[0] == mode])
    mapped = raw.copy()
    mapped[:, 1] = 2 - mapped[:, 1]
    target = expected["judge_swap"][f"{mode}/{dimension}"]
    assert len(raw) == target["n"]
    assert alpha(label_counts(mapped, 3)) == pytest.approx(target["alpha_canonical"], abs=1e-9)
    assert alpha(label_counts(raw, 3)) == pytest.approx(target["alpha_rawlabels"], abs=1e-9)
    cell = published[f"{mode} {dimension} LLM-LLM alpha"]
    assert alpha(label_counts(mapped, 3)) == pytest.approx(cell["published"], abs=cell["tol"])


@pytest.mark.parametrize("mode", ["combined", "individual"])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_judge_against_mapped_gold_is_not_the_published_column(votes, orders, expected, published, mode, dimension):
    gold = {(row["topic"], row["a"], row["b"]): row["gold"][dimension].upper() for row in votes}
    codes = []
    for (which, topic, a, b), (straight, turned) in orders.items():
        if which == mode:
            verdicts = [
                straight[dimension],
                MIRROR[turned[dimension]],
                gold.get((topic, a, b)),
                gold.get((topic, b, a)),
            ]
            verdicts[3] = verdicts[3] and MIRROR[verdicts[3]]
            codes.append([-1 if verdict is None else ORDER.index(verdict) for verdict in verdicts])
    found = alpha(label_counts(np.array(codes), 3))
    assert found == pytest.approx(expected["table9_llm_human"][f"{mode}/{dimension}"]["human_canonical"], abs=1e-9)
    bug = published[f"{mode} {dimension} LLM-human alpha (gold NOT mapped)"]
    assert bug["emulates_bug"]
    assert abs(found - bug["published"]) > bug["tol"]


@pytest.mark.parametrize("mode", ["combined", "individual"])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_judge_against_gold_of_the_same_presentation(votes, expected, mode, dimension):
    gold = {(row["topic"], row["a"], row["b"]): row["gold"][dimension].upper() for row in votes}
    seen = {}
    for row in read("judge.jsonl"):
        if row["mode"] == mode:
            seen.setdefault((row["topic"], row["a"], row["b"]), row[dimension])
    shared = [key for key in seen if key in gold]
    target = expected["llm_vs_gold_same_order"][f"{mode}/{dimension}"]
    items = ["/".join(key) for key in shared]
    labels = [seen[key] for key in shared] + [gold[key] for key in shared]
    rated = ratings_of(items * 2, ["judge"] * len(items) + ["gold"] * len(items), labels, scale=declare_scale("A,N,B"))
    page = agreement(rated, replicates=20)
    found = {
        "n": page.n, "pct": page.percent_agreement.value, "kappa": page.kappa["none"].value,
        "pi": page.scott_pi.value, "ac1": page.ac1.value, "alpha_nom": page.krippendorff_alpha["nominal"].value,
        "kappa_lin": page.kappa["linear"].value, "kappa_quad": page.kappa["quadratic"].value,
        "alpha_ord": page.krippendorff_alpha["ordinal"].value, "alpha_int": page.krippendorff_alpha["interval"].value,
        "pearson": page.pearson.value, "spearman": page.spearman.value, "kendall_b": page.kendall_tau_b.value,
    }  # fmt: skip
    assert found == pytest.approx({name: target[name] for name in found}, abs=1e-9)


def test_lower_case_gold_against_upper_case_votes_is_an_error_not_a_number(votes):
    row = votes[0]
    labels = [row["votes"]["coverage_broad"][0], row["gold"]["coverage_broad"]]
    with pytest.raises(CalibrationError, match="not on the scale A,N,B"):
        ratings_of(["pair"] * 2, ["judge", "gold"], labels, scale=declare_scale("A,N,B"))


@pytest.mark.parametrize("mode", ["combined", "individual"])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_position_consistency_and_flips_equal_the_expected_values(orders, expected, mode, dimension):
    straight = {"A": "a", "N": "tie", "B": "b"}
    pairs = {key: pair for key, pair in orders.items() if key[0] == mode}
    found = PairVerdicts(
        ["/".join(key) for key in pairs],
        [straight[pair[0][dimension]] for pair in pairs.values()],
        [straight[MIRROR[pair[1][dimension]]] for pair in pairs.values()],
    )
    target = expected["judge_swap"][f"{mode}/{dimension}"]
    assert summarize(found).position_consistency.value == pytest.approx(target["consistency"], abs=1e-9)
    both = list(zip(found.order1, found.order2, strict=True))
    assert (both.count(("a", "b")), both.count(("b", "a"))) == (target["flip_first"], target["flip_second"])
