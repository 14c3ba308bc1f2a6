"""judge retrieval, judge dataset relabel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from judge.cli import common
from judge.errors import UsageError

INPUT = "What is measured"
CONVENTIONS = "Conventions (every one is echoed in the output)"
CHUNKS = "Chunks and documents"
COMPARING = "Comparing and tuning"


def retrieval(
    cases: Annotated[
        str | None,
        typer.Argument(help="Cases with `retrieved` (or `contexts`) and `relevant`: JSONL, CSV, a BEIR folder, ..."),
    ] = None,
    k: Annotated[str, typer.Option("-k", "--k", help="Cut-offs, comma-separated.")] = "1,3,5,10",
    qrels: Annotated[
        Path | None, typer.Option(help="Labels: a TREC qrels file (query 0 document grade).", rich_help_panel=INPUT)
    ] = None,
    ranking: Annotated[
        Path | None,
        typer.Option(help="Rankings: a TREC run file (query Q0 document rank score run).", rich_help_panel=INPUT),
    ] = None,
    format: common.Format = None,
    map: common.Map = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Another ranking of the same kind, run file or cases, to compare with.", rich_help_panel=COMPARING
        ),
    ] = None,
    measures: Annotated[
        list[str] | None,
        typer.Option(help="Measures to compare: recall@5,ndcg@10. Holm counts them all.", rich_help_panel=COMPARING),
    ] = None,
    seed: common.Seed = 0,
    replicates: Annotated[
        int, typer.Option(help="Bootstrap samples and sign flips of the comparison.", rich_help_panel=COMPARING)
    ] = 9999,
    k_sweep: Annotated[
        bool,
        typer.Option(
            "--k-sweep", help="Recall and precision at every k; the least k that is enough.", rich_help_panel=COMPARING
        ),
    ] = False,
    sweep_depth: Annotated[int, typer.Option(help="Largest k of --k-sweep.", rich_help_panel=COMPARING)] = 100,
    profile: Annotated[
        str | None,
        typer.Option(
            help="trec: as trec_eval -c (--empty-labels zero --ties docid_desc --duplicates error).",
            rich_help_panel=CONVENTIONS,
        ),
    ] = None,
    precision_denominator: Annotated[
        str | None, typer.Option(help="k (default), or retrieved: min(k, items).", rich_help_panel=CONVENTIONS)
    ] = None,
    recall_denominator: Annotated[
        str | None,
        typer.Option(help="relevant: all labels (default), or min_relevant_k.", rich_help_panel=CONVENTIONS),
    ] = None,
    ap_denominator: Annotated[
        str | None,
        typer.Option(help="relevant (default), min_relevant_k, or retrieved_relevant.", rich_help_panel=CONVENTIONS),
    ] = None,
    empty_labels: Annotated[
        str | None,
        typer.Option(
            help="A query where nothing is relevant: undefined and left out (default), zero, or error.",
            rich_help_panel=CONVENTIONS,
        ),
    ] = None,
    missing_queries: Annotated[
        str | None,
        typer.Option(help="A labelled query without ranking: zero (default) or error.", rich_help_panel=CONVENTIONS),
    ] = None,
    extra_queries: Annotated[
        str | None,
        typer.Option(help="A ranking without labels: ignore (default) or error.", rich_help_panel=CONVENTIONS),
    ] = None,
    duplicates: Annotated[
        str | None,
        typer.Option(
            help="An id twice in a ranking: first, drop the repeats (default); credit_once, keep the slot; error.",
            rich_help_panel=CONVENTIONS,
        ),
    ] = None,
    gain: Annotated[
        str | None,
        typer.Option(help="NDCG gain: linear, the grade (default), or exponential.", rich_help_panel=CONVENTIONS),
    ] = None,
    rel_level: Annotated[
        float | None,
        typer.Option(help="Least grade that counts as relevant (1); NDCG keeps all.", rich_help_panel=CONVENTIONS),
    ] = None,
    judged_only: Annotated[
        bool, typer.Option("--judged-only", help="Drop unlabelled items first.", rich_help_panel=CONVENTIONS)
    ] = False,
    ties: Annotated[
        str | None,
        typer.Option(
            help="Equal scores: input order (default), docid_desc (trec_eval), or expected over all orders.",
            rich_help_panel=CONVENTIONS,
        ),
    ] = None,
    mean: Annotated[
        str | None,
        typer.Option(help="macro: mean over queries (default), or micro: ratio of sums.", rich_help_panel=CONVENTIONS),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="chunk: items as given (default), or doc: chunks collapse to documents.", rich_help_panel=CHUNKS
        ),
    ] = None,
    tau: Annotated[
        float | None, typer.Option(help="Share of a passage that must be retrieved (0.8).", rich_help_panel=CHUNKS)
    ] = None,
    chunk_map: Annotated[
        Path | None,
        typer.Option(help="JSON or JSONL: chunk id -> doc, start, end, text.", rich_help_panel=CHUNKS),
    ] = None,
    doc_pattern: Annotated[
        str | None,
        typer.Option(help=r"Document part of an item id, in brackets: '^(.*)#\d+$'.", rich_help_panel=CHUNKS),
    ] = None,
    stale: Annotated[
        str | None,
        typer.Option(help="A chunk label that no chunk has any more: error (default) or zero.", rich_help_panel=CHUNKS),
    ] = None,
    per_query: Annotated[
        Path | None, typer.Option(help="Write every query's values: JSON lines of query_id, measures.")
    ] = None,
    matches: Annotated[
        Path | None,
        typer.Option(help="Write where each label was found: JSON lines of query_id, labels (rank, item, coverage)."),
    ] = None,
    json: common.Json = False,
) -> None:
    """Measure a retriever. Precision, recall, hit rate, MRR, MAP, NDCG; no model, no network.

    Examples:

        judge retrieval cases.jsonl -k 1,3,5,10

        judge retrieval --qrels qrels.txt --ranking run.txt --profile trec

        judge retrieval --qrels qrels.txt --ranking new.txt --baseline old.txt --k-sweep
    """
    given = {
        "profile": profile, "precision_denominator": precision_denominator, "recall_denominator": recall_denominator,
        "ap_denominator": ap_denominator, "empty_labels": empty_labels, "missing_queries": missing_queries,
        "extra_queries": extra_queries, "duplicates": duplicates, "gain": gain, "rel_level": rel_level, "ties": ties,
        "mean": mean, "unit": unit, "tau": tau, "chunk_map": chunk_map, "doc_pattern": doc_pattern, "stale": stale,
        "judged_only": judged_only or None,
    }  # fmt: skip
    from judge.retrieval import evaluate
    from judge.retrieval.comparing import compare_rankings
    from judge.retrieval.reporting import document, sections, write_matches, write_per_query
    from judge.retrieval.sources import load
    from judge.retrieval.sweeping import k_sweep as sweep

    options = {name: value for name, value in given.items() if value is not None}
    source = load(cases, qrels, ranking, format=format, map=common.mapping(map))
    common.say(source.notes)
    result = evaluate(source.rankings, source.labels, _cutoffs(k), **options)
    other = None
    if baseline is not None:
        other = evaluate(source.baseline(baseline), source.labels, _cutoffs(k), **options)
    comparison = None
    if other is not None:
        asked = common.listed(measures) or None
        comparison = compare_rankings(result, other, measures=asked, seed=seed, replicates=replicates)
    elif measures:
        raise UsageError("--measures chooses what to compare: add --baseline, or read all measures from --json")
    swept = sweep(result, depth=sweep_depth) if k_sweep else None
    if per_query is not None:
        write_per_query(result, per_query)
    if matches is not None:
        write_matches(result, matches)
    common.say(f"warning: {text}" for text in result.warnings)
    if json:
        common.emit_json(document(result, comparison, swept))
        return
    from judge.report.page import show

    show(sections(result, comparison, swept), common.console())


def relabel(
    cases: Annotated[str, typer.Argument(help="Cases whose `relevant` names chunks.")],
    chunk_map: Annotated[
        Path, typer.Option(help="The map of those chunks, from before the re-chunking: id -> doc, start, end, text.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The new cases file (JSONL); must not exist yet.")],
    to: Annotated[str, typer.Option(help="offset, text, or doc.")] = "offset",
    plain_ids_are_chunks: Annotated[
        bool, typer.Option("--plain-ids-are-chunks", help="Read plain ids in `relevant` as chunk ids, not documents.")
    ] = False,
    format: common.Format = None,
    map: common.Map = None,
    json: common.Json = False,
) -> None:
    """Turn chunk labels into labels that survive a re-chunking. Run it before you re-chunk.

    Example: judge dataset relabel cases.jsonl --chunk-map old-chunks.json --to offset --out cases-offsets.jsonl
    """
    from judge.cases import read_cases
    from judge.retrieval.relabel import relabel_cases
    from judge.retrieval.reporting import write_lines

    if out.exists():
        raise UsageError(f"--out {out} exists already: choose another name, nothing is overwritten")
    notes: list[str] = []
    made, changed = relabel_cases(
        read_cases(cases, format, common.mapping(map), notes=notes), chunk_map, to=to,
        plain_ids_are_chunks=plain_ids_are_chunks,
    )  # fmt: skip
    common.say(notes)
    if not changed:
        hint = "" if plain_ids_are_chunks else "; if plain ids are chunk ids here, add --plain-ids-are-chunks"
        raise UsageError(f"{cases}: no label names a chunk, so nothing was written{hint}")
    write_lines(out, (case.to_row() for case in made))
    done: dict[str, Any] = {"cases": len(made), "labels_rewritten": changed, "to": to, "out": str(out)}
    if json:
        common.emit_json(done)
        return
    print(f"{changed} chunk labels of {len(made)} cases became {to} labels: {out}")


def _cutoffs(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"-k is {text!r}: give whole numbers from 1, comma-separated, such as 1,3,5,10") from None
