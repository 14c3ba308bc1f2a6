"""TREC files: what is read, what is tolerated, and every malformed line named."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from judge.cases import read_cases
from judge.errors import InputError, UsageError
from judge.retrieval import evaluate
from judge.retrieval.reporting import write_lines
from judge.retrieval.trec import read_qrels, read_ranking


def written(folder: Path, text: str) -> Path:
    path = folder / "file.txt"
    path.write_bytes(text.encode())
    return path


def test_qrels_keep_negative_and_fractional_grades(tmp_path: Path) -> None:
    path = written(tmp_path, "# judged by hand\n\nq1 0 d1 2\r\nq1\t0\td2\t-1\nq2 0 d1 0.5\n")
    assert read_qrels(path) == {"q1": {"d1": 2.0, "d2": -1.0}, "q2": {"d1": 0.5}}


def test_the_tsv_table_of_beir_is_read_as_qrels(tmp_path: Path) -> None:
    assert read_qrels(written(tmp_path, "query-id\tcorpus-id\tscore\nq1\td1\t2\n")) == {"q1": {"d1": 2.0}}


def test_a_ranking_goes_by_score_and_ignores_rank_and_further_columns(tmp_path: Path) -> None:
    path = written(tmp_path, "q1 Q0 a 1 0.5 run some more words\nq1 Q0 b 2 0.9 run\nq1 Q0 c 0 0.5 run\n")
    ranked = read_ranking(path)["q1"]
    assert (ranked.ids, ranked.scores) == (["b", "a", "c"], [0.9, 0.5, 0.5])


def test_equal_scores_follow_the_file_or_the_id(tmp_path: Path) -> None:
    rankings = read_ranking(written(tmp_path, "q Q0 a 1 1.0 run\nq Q0 c 2 1.0 run\n"))
    assert evaluate(rankings, {"q": {"c": 1}}).per_query["q"]["rr"] == 0.5
    assert evaluate(rankings, {"q": {"c": 1}}, profile="trec").per_query["q"]["rr"] == 1.0
    assert evaluate(rankings, {"q": {"c": 1}}, ties="expected").per_query["q"]["rr"] == 0.75


def test_the_trec_profile_scores_missing_and_nonrelevant_queries_and_refuses_duplicates(tmp_path: Path) -> None:
    labels = {"q": {"a": 1}, "none": {"a": 0}, "gone": {"a": 1}}
    rankings = read_ranking(written(tmp_path, "q Q0 a 1 1.0 run\nnone Q0 a 1 1.0 run\n"))
    result = evaluate(rankings, labels, profile="trec")
    assert (result.measures["map"].value, result.n_scored, result.n_missing) == (pytest.approx(1 / 3), 3, 1)
    twice = read_ranking(written(tmp_path, "q Q0 a 1 1.0 run\nq Q0 a 2 0.5 run\n"))
    with pytest.raises(InputError, match="id 'a' comes 2 times"):
        evaluate(twice, labels, profile="trec")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q1 0 d1 1\nq1 0 d2\n", r":2 has 3 fields: 4 are needed, query 0 document grade"),
        ("q1 0 d1 1 extra\n", r":1 has 5 fields"),
        ("q1 0 d1 high\nq1 0 d2 nan\n", r"(?s)2 malformed lines.*:1 grade: 'high'.*:2 grade: 'nan'"),
        ("q1 0 d1 1\nq1 0 d1 2\n", r":2 grade: 'd1' has grade 2 here and 1 above"),
        ("", "is empty"),
    ],
)
def test_malformed_qrels_are_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_qrels(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q1 Q0 d1 1 0.5\n", r":1 has 5 fields: 6 are needed"),
        ("q1 Q0 d1 1 high run\n", r":1 score: 'high' is no finite number"),
        ("q1 Q0 d1 1 inf run\n", r":1 score: 'inf'"),
        ("# nothing\n", "is empty"),
    ],
)
def test_malformed_rankings_are_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_ranking(written(tmp_path, text))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_qrels(tmp_path / "none.txt")


def test_a_compressed_file_is_told_to_be_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt.gz"
    path.write_bytes(gzip.compress(b"q1 0 d1 1\n"))
    for read in (read_qrels, read_ranking, lambda file: list(read_cases(file))):
        with pytest.raises(InputError, match="gzip"):
            read(path)


def test_results_are_not_written_over_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"it is a folder"):
        write_lines(tmp_path, [{"a": 1}])


@pytest.mark.parametrize("line", ["[]", "3", '{"text": "no id"}'])
def test_a_line_of_a_collection_that_is_no_entry_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "corpus.jsonl").write_text("")
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "?"}\n' + line + "\n")
    with pytest.raises(InputError, match=r"queries\.jsonl:2"):
        list(read_cases(tmp_path, notes=[]))
