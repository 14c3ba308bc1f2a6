"""judge diagnose: the page, the files, plain messages, and a run that was scored, not planted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

import judge
from judge.cli.diagnose import diagnose as command
from judge.errors import UsageError
from judge.examples import cases_path
from tests.diagnosing.planted import PLANTED, write_run


def call(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    plants = [{**plant, "name": f"{name}-{n}", "system": "main", "feedback": n == 0, "latency_s": 1.5, "as_of": "2026-01-01"}
              for name, plant in PLANTED.items() for n in range(2)]  # fmt: skip
    return write_run(tmp_path / "run", plants)


def test_json_is_one_document_and_is_what_the_file_holds(run: Path) -> None:
    document = json.loads(call(str(run), "--json").stdout)
    assert document == json.loads((run / "diagnosis.json").read_text())
    assert document["n_cases"] == 2 * len(PLANTED)
    assert {"outcomes", "matrix", "scenarios", "error_budget", "slices", "thresholds", "cases"} <= set(document)


def test_the_page_and_the_markdown_name_every_scenario_with_its_cases_and_next_step(run: Path) -> None:
    shown = call(str(run)).stdout
    page = (run / "diagnosis.md").read_text()
    for text in (shown, page):
        assert "Recall x faithfulness" in text
        assert "Error budget" in text
        assert "judge show" in text
    sentences = [s["sentence"] for s in json.loads((run / "diagnosis.json").read_text())["scenarios"]]
    assert len(sentences) == 9
    assert all(re.search(r" of \d+ | on \d+ ", s) or "not tested" in s for s in sentences)
    assert all("Next: " in sentence for sentence in sentences)


def test_untrusted_ids_cannot_break_the_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [{"name": "a|b<script>", **PLANTED["over_refusal"]}])
    call(str(run))
    assert "<script>" not in (run / "diagnosis.md").read_text().replace(r"\<script\>", "")


def test_wrong_options_are_refused_in_plain_words(run: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ((str(tmp_path / "nowhere"),), "is not a run directory"),
        ((str(run), "--threshold", "recall"), "give NAME=NUMBER"),
        ((str(run), "--threshold", "recal=1"), "'recal' is unknown"),
        ((str(run), "--evidence", "some"), "choose all or any"),
        ((str(run), "--feedback-scale", "5"), "give the lowest and the highest value"),
        ((str(run), "--feedback-scale", "5,1"), "feedback scale is 5,1"),
        ((str(run), "--replay", "oracle"), "give NAME=RUN"),
    ):
        with pytest.raises(UsageError, match=message):
            call(*arguments)


@pytest.mark.slow
def test_a_scored_run_of_the_examples_is_diagnosed_and_its_retrieval_misses_are_found(provider, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in cases_path().read_text().splitlines()]
    missed = {row["id"] for row in rows if "retrieval_miss" in row["tags"]}
    chosen = [row for n, row in enumerate(rows) if row["id"] in missed or n < 9]
    result = judge.score(
        chosen, rubrics=["faithfulness"], model="openai/gpt-4o-mini", mode="quick", out=tmp_path / "run",
        cache=False, api_base=provider.base_url,
    )  # fmt: skip
    document = judge.diagnose(result.run)
    assert sum(one["n"] for one in document["outcomes"].values()) == document["n_cases"] == 12
    found = {c["case_id"] for c in document["cases"] if c["inputs"]["recall"]["side"] == "low"}
    assert len(missed) == 3
    assert found == missed


def test_from_python_unusable_options_are_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [{}])
    with pytest.raises(UsageError, match="cluster is 'topic': choose question or document"):
        judge.diagnose(run, cluster="topic")
    assert judge.diagnose(str(run), evidence="any")["options"]["evidence"] == "any"


@pytest.mark.parametrize(("name", "content"), [
    ("summary.json", ""), ("summary.json", "[]"), ("summary.json", '{"rubrics": []}'),
    ("summary.json", '{"rubrics": {"faithfulness": 5}}'), ("audit/faithfulness.json", "{"),
    ("audit/faithfulness.json", "[]"),
])  # fmt: skip
def test_a_damaged_summary_or_audit_is_named(run: Path, name: str, content: str) -> None:
    (run / "audit").mkdir(exist_ok=True)
    (run / name).write_text(content)
    with pytest.raises(UsageError, match=f"{name}: damaged"):
        judge.diagnose(run)
