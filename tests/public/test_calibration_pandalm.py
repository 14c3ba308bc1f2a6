"""pandalm (arXiv 2306.05087): three annotators and two recorded judges, read in place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.accuracy import binary_rates
from calibration.agreement import agreement
from calibration.multirater import fleiss_kappa, krippendorff_alpha, label_counts
from calibration.ratings import declare_scale, ratings_of

PUBLIC = Path(__file__).parents[2].parent / "shared" / "public"
FOLDER = PUBLIC / "pandalm"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the public data are not beside this repository")

SCALE = declare_scale("A,T,B")


def majority(pair):
    """The label of two or three annotators; every pair of these data has one."""
    votes = [pair["h1"], pair["h2"], pair["h3"]]
    return max("ATB", key=votes.count)


def page_of(first, second, scale=SCALE):
    items = [str(i) for i in range(len(first))]
    raters = ["judge"] * len(items) + ["human"] * len(items)
    return agreement(ratings_of(items * 2, raters, [*first, *second], scale=scale), replicates=20)


def statistics(page):
    return {
        "n": page.n, "pct": page.percent_agreement.value, "kappa": page.kappa["none"].value,
        "pi": page.scott_pi.value, "ac1": page.ac1.value, "alpha_nom": page.krippendorff_alpha["nominal"].value,
    }  # fmt: skip


@pytest.mark.parametrize("first, second", [("h1", "h2"), ("h1", "h3"), ("h2", "h3")])
def test_annotators_agree_as_printed(pairs, expected, published, first, second):
    page = page_of([pair[first] for pair in pairs], [pair[second] for pair in pairs])
    assert statistics(page) == pytest.approx(expected[f"{first}{second}"], abs=1e-9)
    cell = published[f"kappa {first}{second}"]
    assert page.kappa["none"].value == pytest.approx(cell["published"], abs=cell["tol"])


def test_three_annotators_together(pairs, expected):
    counts = label_counts(np.array([["ATB".index(pair[h]) for h in ("h1", "h2", "h3")] for pair in pairs]), 3)
    assert fleiss_kappa(counts, replicates=2).value == pytest.approx(expected["fleiss"], abs=1e-9)
    assert krippendorff_alpha(counts, replicates=2).value == pytest.approx(expected["alpha_nom3"], abs=1e-9)


@pytest.mark.parametrize("judge", ["gpt35", "pandalm7b"])
def test_unparseable_verdicts_are_dropped_and_counted(pairs, expected, judge):
    page = page_of([pair[judge] for pair in pairs], [majority(pair) for pair in pairs])
    assert statistics(page) == pytest.approx(expected[judge], abs=1e-9)
    assert page.n_dropped == 999 - expected[judge]["n"]


def macro_rates(page):
    """Accuracy and macro precision, recall and F1 from one-against-rest tables, 0 where undefined as the authors do."""
    table = np.array(page.confusion.table)
    rates = []
    for place in range(len(table)):
        hit, judged, meant = table[place, place], table[place].sum(), table[:, place].sum()
        one = [[table.sum() - judged - meant + hit, meant - hit], [judged - hit, hit]]
        found = binary_rates(one, replicates=2)
        rates.append([found[name].value or 0.0 for name in ("ppv", "sensitivity", "f1")])
    return dict(zip(("acc", "p", "r", "f1"), [page.percent_agreement.value, *np.mean(rates, axis=0)], strict=True))


@pytest.mark.parametrize("judge", ["gpt35", "pandalm7b"])
def test_the_papers_convention_scores_garbage_as_a_tie(pairs, expected, published, judge):
    page = page_of([pair[judge] or "T" for pair in pairs], [majority(pair) for pair in pairs])
    found = macro_rates(page)
    target = expected[f"{judge}/garbage->Tie"]
    assert found == pytest.approx({name: target[name] for name in found}, abs=1e-9)
    for name, printed in (("acc", "acc"), ("p", "P"), ("r", "R"), ("f1", "F1")):
        cell = published[f"{judge} {printed} (garbage -> Tie)"]
        assert found[name] == pytest.approx(cell["published"], abs=cell["tol"])


@pytest.mark.parametrize("judge", ["gpt35", "pandalm7b"])
def test_other_conventions_give_the_expected_other_numbers(pairs, expected, judge):
    gold = [majority(pair) for pair in pairs]
    dropped = macro_rates(page_of([pair[judge] for pair in pairs], gold))
    assert dropped == pytest.approx({name: expected[f"{judge}/garbage->dropped"][name] for name in dropped}, abs=1e-9)
    own_class = page_of([pair[judge] or "?" for pair in pairs], gold, declare_scale("A,T,B,?"))
    assert own_class.percent_agreement.value == pytest.approx(expected[f"{judge}/garbage->own class"]["acc"], abs=1e-9)


def test_the_majority_counts_are_the_printed_ones(pairs):
    labels = [majority(pair) for pair in pairs]
    assert [labels.count(label) for label in "ABT"] == [422, 472, 105]
