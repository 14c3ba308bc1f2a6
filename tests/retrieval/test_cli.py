"""The commands: JSON as in the contract, files, the page, plain messages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from judge.cli.retrieval import relabel, retrieval
from judge.errors import InputError, UsageError

QRELS = "Q1 0 D2 1\nQ2 0 D1 2\nQ2 0 D3 1\nQ2 0 D5 0\nQ2 0 D7 0\nQ3 0 D6 1\nQ3 0 D8 1\n"
RUN = "".join(
    f"{q} Q0 {d} {n} {10 - n} run\n"
    for q, ids in {"Q1": "D2 D5 D4", "Q2": "D5 D3 D7", "Q3": "D5 D7 D10"}.items()
    for n, d in enumerate(ids.split(), 1)
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "run.txt").write_text(RUN)
    rows = [
        {"id": "a", "question": "?", "retrieved": ["D1", "D2"], "relevant": ["D2"]},
        {"id": "b", "question": "?", "retrieved": ["D3"], "relevant": []},
    ]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def call(*arguments: str) -> Result:
    app = typer.Typer()
    app.command("retrieval")(retrieval)
    app.command("relabel")(relabel)
    return CliRunner().invoke(app, list(arguments))


def document(*arguments: str) -> Any:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


TREC = ("retrieval", "--qrels", "qrels.txt", "--ranking", "run.txt")


@pytest.mark.usefixtures("files")
def test_the_json_document_has_the_keys_of_the_contract() -> None:
    made = document(*TREC, "-k", "3")
    assert list(made) == [
        "k", "unit", "conventions", "n_queries", "n_scored", "n_undefined", "n_missing", "n_extra", "n_duplicates",
        "measures",
    ]  # fmt: skip
    assert made["k"] == [3]
    values = {name: made["measures"][name]["value"] for name in ("precision@3", "recall@3", "hit_rate@3", "mrr")}
    assert {name: round(value, 2) for name, value in values.items()} == {
        "precision@3": 0.22, "recall@3": 0.5, "hit_rate@3": 0.67, "mrr": 0.5,
    }  # fmt: skip
    assert set(made["measures"]["map"]) >= {"value", "se", "ci_low", "ci_high", "n", "status", "reason"}


@pytest.mark.usefixtures("files")
def test_options_reach_the_measures_and_are_echoed() -> None:
    made = document(
        *TREC, "--profile", "trec", "--rel-level", "2", "--gain", "exponential", "--precision-denominator", "retrieved",
        "--recall-denominator", "min_relevant_k", "--ap-denominator", "min_relevant_k", "--missing-queries", "error",
        "--extra-queries", "error", "--judged-only", "--mean", "micro", "--unit", "doc", "--tau", "0.7", "--stale", "zero",
        "--duplicates", "first", "--ties", "input", "--empty-labels", "zero", "--doc-pattern", "^([^#]*)",
    )  # fmt: skip
    conventions = made["conventions"]
    assert conventions == {
        "precision_denominator": "retrieved", "recall_denominator": "min_relevant_k", "ap_denominator": "min_relevant_k",
        "empty_labels": "zero", "missing_queries": "error", "extra_queries": "error", "duplicates": "first",
        "gain": "exponential", "rel_level": 2.0, "judged_only": True, "ties": "input", "mean": "micro", "unit": "doc",
        "tau": 0.7, "stale": "zero", "chunk_map": None, "doc_pattern": "^([^#]*)", "profile": "trec",
    }  # fmt: skip


def test_per_query_and_matches_are_json_lines(files: Path) -> None:
    call("retrieval", "cases.jsonl", "-k", "1,2", "--per-query", "values.jsonl", "--matches", "matches.jsonl")
    values = [json.loads(line) for line in (files / "values.jsonl").read_text().splitlines()]
    assert [(row["query_id"], row["measures"]["recall@2"], row["measures"]["rr"]) for row in values] == [
        ("a", 1.0, 0.5), ("b", None, None),
    ]  # fmt: skip
    matches = [json.loads(line) for line in (files / "matches.jsonl").read_text().splitlines()]
    assert matches[0]["labels"] == [{"label": "D2", "grade": 1.0, "found_at": 2, "item": "D2", "coverage": 1.0}]


@pytest.mark.usefixtures("files")
def test_the_page_has_numbers_counts_and_conventions() -> None:
    shown = call(*TREC, "-k", "3", "--empty-labels", "zero").stdout
    assert "Retrieval: 3 of 3 queries, unit chunk" in shown
    assert "0.222 [" in shown
    assert "conventions: precision_denominator=k, recall_denominator=relevant" in shown
    assert "not the default: empty_labels=zero" in shown
    assert "\x1b[" not in shown


def test_a_baseline_gives_differences_and_the_queries_that_moved(files: Path) -> None:
    (files / "old.txt").write_text(RUN.replace("Q1 Q0 D2 1 9", "Q1 Q0 D2 1 1"))
    made = document(*TREC, "--baseline", "old.txt", "--measures", "rr,ndcg@3", "-k", "3", "--seed", "5")["comparison"]
    assert (made["n_pairs"], made["unmatched"], made["seed"]) == (3, 0, 5)
    assert made["measures"]["rr"]["difference"]["value"] == pytest.approx((1 - 1 / 3) / 3)
    assert made["moved"] == [{"query_id": "Q1", "system": 1.0, "baseline": 0.5}]
    shown = call(*TREC, "--baseline", "old.txt").stdout
    assert "Compared with the baseline" in shown
    assert "1 better, 0 worse, 2 unchanged" in shown


@pytest.mark.usefixtures("files")
def test_cases_may_be_the_baseline_and_the_labels() -> None:
    made = document("retrieval", "cases.jsonl", "--baseline", "cases.jsonl", "--k-sweep")
    assert made["comparison"]["measures"]["rr"]["difference"]["value"] == 0.0
    assert made["k_sweep"]["best_k"] == 2
    assert [row["recall"] for row in made["k_sweep"]["rows"]] == [0.0, 1.0]
    mixed = document("retrieval", "cases.jsonl", "--ranking", "run.txt")
    assert (mixed["n_missing"], mixed["n_extra"]) == (2, 3)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (["retrieval"], UsageError, "nothing to measure"),
        (["retrieval", "--qrels", "qrels.txt"], UsageError, "nothing to measure"),
        ([*TREC, "cases.jsonl"], UsageError, "leave one out"),
        ([*TREC, "-k", "0,5"], UsageError, "k is 0"),
        ([*TREC, "-k", "five"], UsageError, "-k is 'five'"),
        ([*TREC, "--gain", "log"], UsageError, "gain is 'log'"),
        ([*TREC, "--measures", "rr"], UsageError, "add --baseline"),
        (["retrieval", "--qrels", "run.txt", "--ranking", "run.txt"], InputError, "9 malformed lines"),
        ([*TREC, "--per-query", "no/such/folder.jsonl"], UsageError, "cannot be written"),
        ([*TREC, "--chunk-map", "none.json"], InputError, "cannot be read"),
    ],
)
def test_bad_input_is_told_plainly(arguments: list[str], error: type[Exception], said: str) -> None:
    result = call(*arguments)
    assert isinstance(result.exception, error)
    assert said in str(result.exception)


def test_relabel_writes_cases_and_never_overwrites(files: Path) -> None:
    (files / "chunked.jsonl").write_text(json.dumps({"id": "a", "question": "?", "relevant": [{"chunk": "c1"}]}))
    (files / "map.json").write_text(json.dumps({"c1": {"doc": "D1", "start": 3, "end": 9}}))
    arguments = ["relabel", "chunked.jsonl", "--chunk-map", "map.json", "--out", "new.jsonl"]
    assert document(*arguments) == {"cases": 1, "labels_rewritten": 1, "to": "offset", "out": "new.jsonl"}
    row = json.loads((files / "new.jsonl").read_text())
    assert row["relevant"] == [{"doc": "D1", "start": 3, "end": 9}]
    assert isinstance(call(*arguments).exception, UsageError)


def test_relabel_writes_nothing_where_no_label_names_a_chunk(files: Path) -> None:
    (files / "plain.jsonl").write_text(json.dumps({"id": "a", "question": "?", "relevant": ["c1"]}))
    (files / "map.json").write_text(json.dumps({"c1": {"doc": "D1", "start": 3, "end": 9}}))
    arguments = ["relabel", "plain.jsonl", "--chunk-map", "map.json", "--out", "new.jsonl"]
    assert "add --plain-ids-are-chunks" in str(call(*arguments).exception)
    assert not (files / "new.jsonl").exists()
    assert document(*arguments, "--plain-ids-are-chunks")["labels_rewritten"] == 1


def test_every_option_has_help_and_the_verb_an_example() -> None:
    shown = call("retrieval", "--help").stdout
    assert "judge retrieval --qrels qrels.txt --ranking run.txt --profile trec" in shown
    for parameter in typer.main.get_command_from_info(
        typer.models.CommandInfo(name="retrieval", callback=retrieval),
        pretty_exceptions_short=True,
        rich_markup_mode=None,
    ).params:
        assert getattr(parameter, "help", None), parameter.name


def test_importing_the_measures_loads_neither_pandas_nor_scipy() -> None:
    code = (
        "import sys, judge.retrieval; judge.retrieval.evaluate({'q': ['a']}, {'q': {'a': 1}});"
        "print([m for m in ('pandas', 'scipy', 'litellm', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
