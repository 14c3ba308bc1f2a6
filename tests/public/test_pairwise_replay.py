"""Recorded verdicts of real judges, replayed through the pairwise protocol: prompts rendered, replies settled, orders
mapped back and combined exactly as in a run. The expected numbers are recomputed from the raw verdicts by others.

LLMBar: Zeng et al. 2024 (arXiv 2310.07641). Webis CRAG: Gienapp et al. 2025 (arXiv 2504.15689).
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import rubrics
from calibration.pairwise import summarize
from calibration.pilot import one_order_enough
from calibration.verdicts import PairVerdicts
from judge.cases import Case
from judge.llm.request import Reply, Request
from judge.pairlines import Record, verdicts
from judge.pairwise import Pair, PairPlan, PairTask, plan_pair, settle_comparison
from judge.second_order import draw

PUBLIC = Path(__file__).parents[2].parent / "shared" / "public"
RUBRIC = rubrics.load("preference")
DIMENSIONS = ("correctness_topical", "coherence_logical", "coherence_stylistic", "coverage_broad", "coverage_deep",
              "consistency_internal", "quality_overall")  # fmt: skip
POSITIONAL = {"A": "first", "B": "second", "N": "tie"}

pytestmark = pytest.mark.skipif(not PUBLIC.exists(), reason="../shared/public is not there: recorded judges are needed")


class Keys:
    """Names requests by their messages."""

    def key(self, request: Request) -> str:
        return hashlib.sha256(repr(request.messages).encode()).hexdigest()


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def planned(name: str, question: str, first: str, second: str) -> PairPlan:
    pair = Pair(Case(id=name, question=question), "one", "two", first, second)
    return plan_pair(PairTask(pair, RUBRIC), Keys(), mode="full", secret=b"replay")


def reply(said: str | None) -> Reply:
    """What a judge with this positional verdict would have returned; None is a reply that could not be read."""
    if said is None:
        return Reply(key="00", error_kind="unparsable", error="no verdict found")
    parsed = {"injection_attempts": [], "notes_first": [], "notes_second": [], "decisive_difference": "", "verdict": said,
              "margin": "slight" if said in ("first", "second") else "none", "cannot_judge": None}  # fmt: skip
    return Reply(key="00", parsed=parsed)


def replayed(plans: dict[Any, PairPlan], said: Iterable[tuple[Any, str | None, str | None]]) -> list[Record]:
    records = []
    for name, order1, order2 in said:
        settled = settle_comparison(plans[name], (reply(order1), reply(order2)), judge="recorded", mode="full")
        records.append(Record("one", "two", str(name), str(name), [], 0, [settled.to_row()]))
    return records


@pytest.fixture(scope="module")
def webis() -> tuple[dict[Any, PairPlan], dict[Any, dict[str, dict[str, Any]]], dict[str, Any]]:
    """Plans of the 377 pairs in canonical order, and per mode and pair the first verdict of either presentation."""
    folder = PUBLIC / "webis_crag25"
    names = json.loads((folder / "ids.json").read_text())["responses"]
    found: dict[Any, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in lines_of(folder / "judge.jsonl"):
        low, high = sorted((row["a"], row["b"]), key=lambda name: names[name])
        found[row["mode"], row["topic"], low, high].setdefault("forth" if row["a"] == low else "back", row)
    both = {pair: rows for pair, rows in found.items() if len(rows) == 2}
    plans = {
        pair: planned("|".join(pair[1:]), f"topic {pair[1]}", f"answer {pair[2]}", f"answer {pair[3]}") for pair in both
    }
    return plans, both, json.loads((folder / "expected.json").read_text())["judge_swap"]


@pytest.mark.parametrize("mode", ["combined", "individual"])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_webis_consistency_and_flips_come_out_of_the_protocol(webis, mode, dimension):
    plans, both, expected = webis
    want = expected[f"{mode}/{dimension}"]
    said = [
        (pair, POSITIONAL[rows["forth"][dimension]], POSITIONAL[rows["back"][dimension]])
        for pair, rows in both.items()
        if pair[0] == mode
    ]
    records = replayed(plans, said)
    summary = summarize(verdicts(records))
    assert summary.n == want["n"]
    assert summary.position_consistency.value == pytest.approx(want["consistency"])
    calls = [[call["verdict"] for call in record.lines[0]["calls"]] for record in records]
    assert sum(pair == ["first", "first"] for pair in calls) == want["flip_first"]
    assert sum(pair == ["second", "second"] for pair in calls) == want["flip_second"]


@pytest.mark.parametrize("mode", ["combined", "individual"])
def test_unmapped_labels_would_turn_consistency_upside_down(webis, mode):
    """The trap of this data: verdicts are relative to the row. Read as systems they contradict each other."""
    _, both, expected = webis
    rows = [rows for pair, rows in both.items() if pair[0] == mode]
    raw = sum(one["forth"]["quality_overall"] == one["back"]["quality_overall"] for one in rows) / len(rows)
    assert raw < 0.5 < expected[f"{mode}/quality_overall"]["consistency"]


@pytest.fixture(scope="module")
def llmbar() -> tuple[dict[Any, PairPlan], dict[str, str], list[dict[str, Any]], list[dict[str, Any]]]:
    folder = PUBLIC / "llmbar"
    items = lines_of(folder / "items.jsonl")
    plans = {
        row["item_id"]: planned(row["item_id"], row["instruction"], row["output_A"], row["output_B"]) for row in items
    }
    gold = {row["item_id"]: row["gold"] for row in items}
    return plans, gold, lines_of(folder / "judge.jsonl"), json.loads((folder / "expected.json").read_text())["groups"]


@pytest.mark.slow
def test_llmbar_order_agreement_accuracy_and_flips_per_group(llmbar):
    plans, gold, judged, groups = llmbar
    said: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in judged:
        said[row["item_id"].rsplit("#", 1)[0], row["judge"], row["strategy"]].append(row)
    forth, back = {"A": "first", "B": "second", None: None}, {"A": "second", "B": "first", None: None}
    for group in groups:
        rows = said[group["subset"], group["judge"], group["strategy"]]
        records = replayed(plans, [(row["item_id"], forth[row["ab"]], back[row["ba"]]) for row in rows])
        calls = [[call["winner"] for call in record.lines[0]["calls"]] for record in records]
        right = [gold[record.case_id].lower() for record in records]
        # conventions of the paper, applied here: an unread verdict is wrong, and equal to another unread one
        assert sum(a == b for a, b in calls) / group["n"] == pytest.approx(group["agr"])
        assert sum(a == g for (a, _), g in zip(calls, right, strict=True)) / group["n"] == pytest.approx(
            group["acc_ab"]
        )
        assert sum(b == g for (_, b), g in zip(calls, right, strict=True)) / group["n"] == pytest.approx(
            group["acc_ba"]
        )
        outcomes = [record.lines[0]["outcome"] for record in records]
        both_right = sum(outcome == g for outcome, g in zip(outcomes, right, strict=True))
        assert both_right / group["n"] == pytest.approx(group["acc_both"])
        assert sum(outcome == "incomplete" for outcome in outcomes) == sum(None in pair for pair in calls)
        # first_rate there leaves out the whole pair of an unread verdict; the product counts the single verdicts it has
        whole = [record for record, pair in zip(records, calls, strict=True) if None not in pair]
        assert summarize(verdicts(whole)).first_preference.value == pytest.approx(group["first_rate"])


@pytest.mark.parametrize(
    "who, skipped", [("GPT-4/Swap_CoT", (1.0, 1.0)), ("GPT-4/Vanilla", (0.0, 0.3)), ("ChatGPT/Vanilla", (0.0, 0.0))]
)
def test_one_order_is_left_out_for_a_steady_judge_only_and_gives_the_win_rate_of_both(who, skipped):
    """The rule of --second-order auto on recorded verdicts (234 pairs), over 40 draws of pilot and orders."""
    said = {}
    for row in lines_of(PUBLIC / "llmbar" / "judge.jsonl"):
        if f"{row['judge']}/{row['strategy']}" == who:
            said[row["item_id"]] = [{"A": "a", "B": "b", None: "error"}[row[order]] for order in ("ab", "ba")]
    names = list(said)
    truth = summarize(PairVerdicts(names, *zip(*said.values(), strict=True))).win_rate_a.value
    left_out = 0
    for seed in range(40):
        design = draw({("one", "two"): dict.fromkeys(names, True)}, seed)
        pilot = [name for name in names if name in design.pilot["one", "two"]]
        columns = zip(*(said[name] for name in pilot), strict=True)
        if one_order_enough(PairVerdicts(pilot, *columns)).reason is not None:
            continue
        left_out += 1
        once = design.once["one", "two"]
        asked = [
            [said[name][n] if once.get(name, side) == side else "unasked" for name in names]
            for n, side in enumerate("ab")
        ]
        found = summarize(PairVerdicts(names, *asked)).win_rate_a
        assert found.value == pytest.approx(truth, abs=0.025)
        assert found.ci_low <= truth <= found.ci_high
    assert skipped[0] <= left_out / 40 <= skipped[1]
