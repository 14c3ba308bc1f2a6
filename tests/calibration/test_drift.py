"""Drift on a frozen anchor set: equivalence, not absence of significance."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_vectors import VECTORS, near

from calibration import CalibrationError
from calibration.drift import anytime_half_width, drift, planned_looks, stuart_maxwell
from calibration.ratings import declare_scale
from calibration.tables import cohen_kappa

STARS = declare_scale("1,2,3,4,5")


def versions(table):
    """Old and new labels 1..K from a table of counts, rows old."""
    pairs = [(i + 1, j + 1) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    old, new = zip(*pairs, strict=True)
    return {str(k): v for k, v in enumerate(old)}, {str(k): v for k, v in enumerate(new)}


def test_the_vector_drifts_and_only_the_ordinal_tests_see_it():
    vector = VECTORS["drift_5x5_v1_v2"]
    table, expected = vector["inputs"]["table_rows_old_cols_new"], vector["expected"]
    old, new = versions(table)
    found = drift(old, new, old, scale=STARS, replicates=999)
    assert found.exact_agreement.value == near(expected["exact_agreement"], vector)
    assert [found.difference.value, found.difference.se] == near(
        [expected["mean_shift"], expected["mean_shift_se"]], vector
    )
    assert found.wilcoxon_p == near(expected["wilcoxon_p"], vector)
    assert found.stuart_maxwell.chi2 == near(expected["stuart_maxwell_chi2"], vector)
    assert (found.stuart_maxwell.p, found.stuart_maxwell.df) == (
        near(expected["stuart_maxwell_p"], vector),
        expected["df"],
    )
    assert float(cohen_kappa(np.array(table, dtype=float), "quadratic")) == near(expected["kappa_quadratic"], vector)
    # the old version is the anchor itself: every one of the 44 moved labels of 120 is lost
    assert (found.mcnemar.only_a, found.mcnemar.only_b, found.verdict) == (0, 44, "changed")


def test_stuart_maxwell_equals_statsmodels_and_ignores_unused_labels():
    table = np.array([[10, 4, 1], [2, 14, 6], [0, 3, 20]], dtype=float)
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    oracle = tables.SquareTable(table, shift_zeros=False).homogeneity(method="stuart_maxwell")
    padded = np.zeros((5, 5))
    padded[np.ix_([0, 2, 4], [0, 2, 4])] = table
    for shape in (table, padded):
        found = stuart_maxwell(shape)
        assert (found.chi2, found.p, found.df) == (pytest.approx(oracle.statistic), pytest.approx(oracle.pvalue), 2)
    assert stuart_maxwell(np.diag([5.0, 5.0])).p is None


def test_an_unchanged_judge_is_equivalent_when_the_anchor_set_is_large_enough():
    rng = np.random.default_rng(1)
    human = {str(i): int(v) for i, v in enumerate(rng.integers(1, 6, size=150))}
    judge = {item: min(5, label + int(rng.random() < 0.3)) for item, label in human.items()}
    found = drift(judge, dict(judge), human, scale=STARS)
    assert found.verdict == "equivalent"
    # 0 changes in 150: Wilson upper limit 2.5% of the range of 4, inside the margin of 0.2
    assert found.difference.value == 0
    assert 0 < found.difference.ci_high < 0.2
    few = {item: human[item] for item in list(human)[:20]}
    small = drift(judge, dict(judge), few, scale=STARS)
    assert (small.verdict, small.warnings) == ("inconclusive", ("few_anchors: 20",))
    assert small.n_dropped == 130


def test_no_significance_is_not_equivalence():
    rng = np.random.default_rng(2)
    human = {str(i): int(v) for i, v in enumerate(rng.integers(1, 6, size=40))}
    shaken = {item: int(np.clip(label + rng.integers(-1, 2), 1, 5)) for item, label in human.items()}
    again = {item: int(np.clip(label + rng.integers(-1, 2), 1, 5)) for item, label in human.items()}
    found = drift(shaken, again, human, scale=STARS, replicates=999)
    assert found.checks[0].p > 0.05
    assert found.verdict == "inconclusive"


def test_a_judge_that_keeps_its_mean_and_loses_the_people_has_changed():
    human = {str(i): 1 + i % 2 for i in range(200)}
    swapped = {item: 3 - label for item, label in human.items()}
    found = drift(human, swapped, human, scale=declare_scale("1,2"), replicates=999)
    assert found.difference.value == 0
    assert {check.name: check.verdict for check in found.checks}["accuracy"] == "changed"
    assert found.verdict == "changed"


def test_planned_looks_widen_the_intervals_and_share_the_error():
    vector = VECTORS["drift_5x5_v1_v2"]
    old, new = versions(vector["inputs"]["table_rows_old_cols_new"])
    once, monthly = (drift(old, new, old, scale=STARS, looks=looks, replicates=999) for looks in (1, 12))
    assert monthly.difference.ci_high > once.difference.ci_high
    assert monthly.checks[0].p_adjusted == pytest.approx(min(1, 12 * once.checks[0].p_adjusted))
    # Holm with two looks to come: .01 x 4, then .02 x 3
    assert planned_looks([0.02, 0.01], 4) == pytest.approx([0.06, 0.04])
    with pytest.raises(CalibrationError, match="new plan"):
        planned_looks([0.1, 0.2], 1)


def test_earlier_looks_take_part_in_holm_and_the_p_of_this_look_is_told():
    vector = VECTORS["drift_5x5_v1_v2"]
    old, new = versions(vector["inputs"]["table_rows_old_cols_new"])
    alone = drift(old, new, old, scale=STARS, looks=4, replicates=999)
    third = drift(old, new, old, scale=STARS, looks=4, earlier=[1e-12, 0.5], replicates=999)
    assert third.p == alone.p == pytest.approx(min(check.p_adjusted for check in alone.checks) / 4)
    # one look has a smaller p: rank two of four, factor 3
    shift, shift_alone = third.checks[0], alone.checks[0]
    assert shift.p_adjusted == pytest.approx(3 / 4 * shift_alone.p_adjusted)
    with pytest.raises(CalibrationError, match="3 looks were made and 2 planned"):
        drift(old, new, old, scale=STARS, looks=2, earlier=[0.1, 0.2])


@pytest.mark.slow
def test_twelve_planned_looks_at_an_unchanged_judge_keep_one_error_in_twenty_and_unplanned_ones_do_not():
    rng, planned, peeking = np.random.default_rng(8), 0, 0
    human = {str(i): int(v) for i, v in enumerate(rng.integers(1, 6, size=100))}
    noisy = lambda: {item: int(np.clip(label + rng.integers(-1, 2), 1, 5)) for item, label in human.items()}  # noqa: E731
    for _ in range(60):
        seen: list[float] = []
        looks = [drift(noisy(), noisy(), human, scale=STARS, looks=12, replicates=199) for _ in range(12)]
        seen = [look.p for look in looks]
        planned += min(planned_looks(seen, 12)) < 0.05
        peeking += min(seen) < 0.05
    assert planned <= 0.12 * 60
    assert peeking > 0.25 * 60


def test_the_anytime_bound_matches_the_vector():
    vector = VECTORS["hoeffding_cs"]
    widths = [anytime_half_width(t, alpha=vector["params"]["alpha"]) for t in vector["inputs"]["t"]]
    assert widths == near(vector["expected"]["halfwidth"], vector)


def test_copies_of_an_item_do_not_make_drift_more_certain():
    rng = np.random.default_rng(3)
    base = [(int(h), int(np.clip(h + rng.integers(-1, 2), 1, 5))) for h in rng.integers(1, 6, size=40)]
    names = [f"{i}.{copy}" for i in range(40) for copy in range(5)]
    human = {name: base[int(name.split(".")[0])][0] for name in names}
    new = {name: base[int(name.split(".")[0])][1] for name in names}
    rows = drift(human, new, human, scale=STARS, replicates=999)
    questions = drift(
        human, new, human, scale=STARS, clusters={name: name.split(".")[0] for name in names}, replicates=999
    )
    assert questions.difference.ci_high - questions.difference.ci_low > 1.9 * (
        rows.difference.ci_high - rows.difference.ci_low
    )


def test_bad_input_is_refused_by_name():
    with pytest.raises(CalibrationError, match="check the ids"):
        drift({"a": 1}, {"b": 1}, {"a": 1}, scale=STARS)
    with pytest.raises(CalibrationError, match="declare their order"):
        drift({"a": "bad", "b": "good"}, {"a": "bad", "b": "good"}, {"a": "bad", "b": "good"})
    with pytest.raises(CalibrationError, match="margin is 0"):
        drift({"a": 1, "b": 2}, {"a": 1, "b": 2}, {"a": 1, "b": 2}, scale=STARS, margin=0)
    with pytest.raises(CalibrationError, match="not on the scale"):
        drift({"a": 1}, {"a": 9}, {"a": 1}, scale=STARS)
