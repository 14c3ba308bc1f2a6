"""llmbar (arXiv 2310.07641): accuracy and order agreement of recorded judges, read in place."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from calibration.pairwise import summarize
from calibration.tables import cohen_kappa, gwet_ac, percent_agreement, table_of
from calibration.verdicts import PairVerdicts

PUBLIC = Path(__file__).parents[2].parent / "shared" / "public"
FOLDER = PUBLIC / "llmbar"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the public data are not beside this repository")

STRATEGIES = {
    "Vanilla": "Vanilla_NoRules", "Vanilla*": "Vanilla", "CoT*": "CoT", "Swap*": "Swap", "Swap+CoT*": "Swap_CoT",
    "Metrics*": "Metrics", "Reference*": "Reference", "Metrics+Reference*": "Metrics_Reference",
}  # fmt: skip


@pytest.fixture(scope="module")
def verdicts():
    """Codes (gold, ab, ba) per item of each (subset, judge, strategy); a missing verdict is its own label `?`."""
    items = {row["item_id"]: row for row in map(json.loads, (FOLDER / "items.jsonl").open(encoding="utf-8"))}
    groups = defaultdict(list)
    for row in map(json.loads, (FOLDER / "judge.jsonl").open(encoding="utf-8")):
        item = items[row["item_id"]]
        codes = [item["gold"], row["ab"] or "?", row["ba"] or "?"]
        groups[item["subset"], row["judge"], row["strategy"]].append(["AB?".index(code) for code in codes])
    return {key: np.array(rows) for key, rows in groups.items()}


@pytest.fixture(scope="module")
def groups():
    return json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))["groups"]


def found(rows):
    gold, ab, ba = rows.T
    against_ab, against_ba, orders = table_of(ab, gold, 3), table_of(ba, gold, 3), table_of(ab, ba, 3)
    return {
        "n": len(rows),
        "acc_ab": percent_agreement(against_ab), "acc_ba": percent_agreement(against_ba),
        "acc_avg": (percent_agreement(against_ab) + percent_agreement(against_ba)) / 2,
        "agr": percent_agreement(orders),
        "kappa_ab": cohen_kappa(against_ab), "kappa_ba": cohen_kappa(against_ba), "kappa_abba": cohen_kappa(orders),
    }  # fmt: skip


def test_every_group_equals_the_expected_values(verdicts, groups):
    assert len(groups) == 130
    for group in groups:
        values = found(verdicts[group["subset"], group["judge"], group["strategy"]])
        for name, value in values.items():
            theirs = np.nan if group[name] is None else group[name]
            assert float(value) == pytest.approx(theirs, abs=1e-9, nan_ok=True), (
                group["judge"],
                group["strategy"],
                name,
            )


def test_the_source_repositorys_mismatched_labels_do_not_come_out(verdicts, groups):
    different = 0
    for group in groups:
        ours = float(found(verdicts[group["subset"], group["judge"], group["strategy"]])["kappa_ab"])
        different += group["repo_kappa_ab"] is not None and abs(ours - group["repo_kappa_ab"]) > 0.05
    assert different > 100
    best = found(verdicts["LLMBar/Natural", "GPT-4", "Vanilla"])
    assert (best["kappa_ab"], best["kappa_ba"]) == pytest.approx((0.8977, 0.9179), abs=5e-5)


def test_ac1_on_the_labels_in_use(verdicts, groups):
    for group in groups:
        gold, ab, _ = verdicts[group["subset"], group["judge"], group["strategy"]].T
        if group["null"] == 0:
            assert float(gwet_ac(table_of(ab, gold, 2))) == pytest.approx(group["ac1_ab"], abs=1e-9)


def test_printed_cells_of_the_paper_are_reproduced(verdicts):
    rows = json.loads((PUBLIC / "paper_targets.json").read_text(encoding="utf-8"))
    cells = [row for row in rows if row["set"] == "llmbar"]
    assert len(cells) == 96
    for cell in cells:
        judge, strategy, subset, name = cell["cell"].split()
        key = ("LLMBar/Natural" if subset == "Natural" else "LLMBar/Adversarial/Neighbor", judge, STRATEGIES[strategy])
        value = found(verdicts[key])["acc_avg" if name == "Acc" else "agr"]
        assert 100 * float(value) == pytest.approx(cell["published"], abs=cell["tol"]), cell["cell"]


def test_order_agreement_and_first_preference_through_the_pairwise_summary(groups):
    rows = [json.loads(line) for line in (FOLDER / "judge.jsonl").open(encoding="utf-8")]
    items = {row["item_id"]: row["subset"] for row in map(json.loads, (FOLDER / "items.jsonl").open(encoding="utf-8"))}
    words = {"A": "a", "B": "b", None: None}
    for group in groups:
        key = (group["subset"], group["judge"], group["strategy"])
        mine = [row for row in rows if (items[row["item_id"]], row["judge"], row["strategy"]) == key]
        summary = summarize(
            PairVerdicts(
                [row["item_id"] for row in mine],
                [words[row["ab"]] for row in mine],
                [words[row["ba"]] for row in mine],
            )
        )
        assert summary.incomplete == sum(row["ab"] is None or row["ba"] is None for row in mine)
        if group["null"] == 0:  # the expected rate leaves out both verdicts of a pair with a missing one
            assert summary.first_preference.value == pytest.approx(group["first_rate"], abs=1e-9)
            assert summary.position_consistency.value == pytest.approx(group["agr"], abs=1e-9)
