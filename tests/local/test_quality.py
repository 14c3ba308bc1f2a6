"""The embedded judge against labels: floors that a change of wording, runtime or aggregation must not break.

mini60: 60 answers about 20 passages, one annotator. quick_items: 312 synthetic items, the development half. Both are our
own; neither says how the judge does on anybody's data.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import judge
from calibration.accuracy import auc
from calibration.kappa import kappa
from calibration.tables import table_of
from judge.llm import weights

DATA = Path(__file__).parents[1] / "data" / "local"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not weights.installed(), reason="the embedded model is not on this machine: judge model pull"),
]


def rows_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def test_mini60_faithfulness_reaches_auc_90_and_kappa_60(tmp_path):
    import numpy as np

    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    rows = rows_of("mini60.jsonl")
    frame = judge.score(rows, ["faithfulness"], "local", out=tmp_path / "run", cache=tmp_path / "cache").to_frame()
    p = frame.set_index("case_id")["normalized"].to_dict()
    good = [row["labels"]["faithfulness"] == 5 for row in rows]
    scores = [p[row["id"]] for row in rows]
    area = auc(scores, good)
    passed = np.array([int(score >= 0.5) for score in scores])
    agreement = kappa(table_of(passed, np.array(good, dtype=int), 2), seed=0)
    print(f"mini60: AUC {area.value:.3f}, kappa {agreement.value:.3f}")
    assert area.value >= 0.90
    assert agreement.value >= 0.60


def test_quick_items_reach_auc_85_for_every_rubric_offered(tmp_path):
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    by_rubric = defaultdict(list)
    for row in rows_of("quick_items.jsonl"):
        by_rubric[row["rubric"]].append(row)
    found = {}
    for name in (
        "faithfulness", "citation_accuracy", "completeness", "context_relevance", "answer_relevance",
        "refusal_correctness.declines",
    ):  # fmt: skip
        rows = by_rubric[name]
        cases = [{key: row[key] for key in ("id", "question", "contexts", "answer", "reference")} for row in rows]
        rubric = name.partition(".")[0]
        result = judge.score(cases, [rubric], "local", out=tmp_path / name, cache=tmp_path / "cache")
        lines = {line["case_id"]: line for line in result.to_frame().to_dict("records")}
        field = "p_declines" if name.endswith("declines") else "p"
        scores = [lines[row["id"]]["details"][field] for row in rows]
        found[name] = auc(scores, [row["label"] == 1 for row in rows]).value
    print({name: round(value, 3) for name, value in found.items()})
    assert min(found.values()) >= 0.85, found


def test_the_same_command_from_an_empty_cache_in_a_new_process_gives_the_same_numbers(tmp_path):
    import subprocess
    import sys

    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    code = (
        "import sys, judge; frame = judge.score(sys.argv[1], ['faithfulness'], 'local', out=sys.argv[2], cache=False, limit=4)"
        ".to_frame(); print(frame['normalized'].tolist())"
    )
    seen = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code, str(DATA / "mini60.jsonl"), str(tmp_path / name)],
                check=True, capture_output=True, text=True,
            ).stdout.splitlines()[-1]
        )
        for name in ("first", "second")
    ]  # fmt: skip
    assert seen[0] == pytest.approx(seen[1], abs=0.05)
    print(
        "equal to the last digit"
        if seen[0] == seen[1]
        else f"differ by up to {max(abs(a - b) for a, b in zip(*seen, strict=True)):.3f}"
    )
