"""Test collections: a BEIR folder as cases; TREC qrels and runs, which hold no questions and so are no cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from judge.errors import InputError
from judge.imports.rows import Problem, Row, Source, Stream, shown


def trec_kind(first_line: str) -> str | None:
    """`qrels` (4 fields) or `run` (6 fields) by the first line of a file, else None."""
    fields = first_line.split()
    if len(fields) == 6 and fields[1].upper() == "Q0":
        return "run"
    return "qrels" if len(fields) == 4 and fields[3].lstrip("-").isdigit() else None


def refuse_trec(path: Path) -> None:
    """Raises InputError when `path` is a TREC file: it has no questions."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        kind = trec_kind(file.readline())
    if kind:
        option = "--qrels" if kind == "qrels" else "--ranking"
        raise InputError(
            f"{path.name}: a TREC {kind} file has no questions, so it holds no cases; "
            f"use `judge retrieval {option} {path.name}`, or put it into a BEIR folder"
        )


def open_beir(folder: Path) -> Source:
    """Cases of a BEIR folder: corpus.jsonl, queries.jsonl, qrels/*.tsv, and run.trec when there is one.

    Without a run, contexts and ranking are not recorded. Only the passages that the run names are kept in memory.
    `split` is the name of the qrels file that has the query.
    """
    for needed in ("corpus.jsonl", "queries.jsonl"):
        if not (folder / needed).is_file():
            raise InputError(
                f"{folder}: no {needed}; a folder must have the BEIR layout (corpus, queries, qrels/*.tsv)"
            )
    note = (
        f"{folder.name}: read as a BEIR folder: question <- queries, relevant <- qrels, contexts <- run.trec and corpus"
    )
    return Source(folder.name, "query", _beir_rows(folder), note=note)


def _beir_rows(folder: Path) -> Stream:
    from judge.retrieval.trec import read_qrels, read_ranking

    qrels = {file.stem: read_qrels(file) for file in sorted((folder / "qrels").glob("*.tsv"))}
    ranked = read_ranking(folder / "run.trec") if (folder / "run.trec").is_file() else None
    run = None if ranked is None else {q: list(zip(r.ids, r.scores, strict=True)) for q, r in ranked.items()}
    wanted = {doc for ranking in (run or {}).values() for doc, _ in ranking}
    corpus = {d["_id"]: d for _, d in _lines(folder / "corpus.jsonl") if d.get("_id") in wanted}
    for at, query in _lines(folder / "queries.jsonl"):
        name = str(query.get("_id"))
        ranking = None if run is None else run.get(name, [])
        lost = [doc for doc, _ in ranking or [] if doc not in corpus]
        if lost:
            yield Problem(at, f"run.trec: {shown(lost[0])} of query {shown(name)} is not in corpus.jsonl")
            continue
        splits = [split for split, grades in qrels.items() if name in grades]
        grades = {doc: grade for split in splits for doc, grade in qrels[split][name].items()}
        data: dict[str, Any] = {
            "id": name,
            "question": query.get("text"),
            "contexts": None if ranking is None else [_passage(corpus[doc]) for doc, _ in ranking],
            "retrieved": None if ranking is None else [{"id": doc, "score": score} for doc, score in ranking],
            "relevant": [{"doc": doc, "grade": grade} for doc, grade in grades.items()] if splits else None,
            "split": splits[0] if len(splits) == 1 else None,
            "metadata": query.get("metadata") or None,
        }
        yield Row(at, data)


def _passage(entry: dict[str, Any]) -> dict[str, Any]:
    made = {"id": entry["_id"], "text": entry.get("text")}
    return {**made, "title": entry["title"]} if entry.get("title") else made


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    row = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    raise InputError(f"{path.name}:{number}: not JSON ({error.msg})") from None
                if not isinstance(row, dict) or "_id" not in row:
                    raise InputError(f"{path.name}:{number}: {shown(row)}, an object with `_id` is needed")
                yield number, row
