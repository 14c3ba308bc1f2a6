"""From rankings and labels to a result: choose the conventions, match once, measure at every cut-off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from judge.errors import InputError
from judge.retrieval.chunks import chunk_map_of
from judge.retrieval.general import match_general, without_scores
from judge.retrieval.ids import match_ids
from judge.retrieval.inputs import by_query
from judge.retrieval.options import Options, choose
from judge.retrieval.result import Prepared, RetrievalResult
from judge.retrieval.slots import Matched


def evaluate(rankings: Any, labels: Any, k: int | Iterable[int] = (1, 3, 5, 10), **options: Any) -> RetrievalResult:
    """Retrieval measures at every cut-off, per query and on average with interval.

    `rankings`: query id -> ordered ids, items ({id[, doc][, text][, start, end][, score]}) or id -> score; the order
    given is the ranking, only an id -> score mapping is sorted. `labels`: query id -> ids, {id: grade}, or label
    objects ({doc}, {chunk}, {text[, doc]}, {doc, start, end}, each with an optional grade). Both also as DataFrame
    with query_id, doc_id and rank, score or grade. Options and defaults: `judge.retrieval.options.Options`.

    All values lie in [0, 1] but dcg. A query without relevant labels has no values (None), is counted in
    `n_undefined` and stays out of the means. A labelled query without ranking scores 0 and is counted in `n_missing`.
    Raises UsageError for options, InputError for rankings or labels that cannot be used.
    """
    return prepare(rankings, labels, **options).at(k)


def prepare(rankings: Any, labels: Any, **options: Any) -> Prepared:
    """Match rankings and labels once; `.at(k)` then measures at any cut-offs without touching the ids again."""
    chosen = choose(options)
    if chosen.chunk_map is not None:
        chosen = replace(chosen, chunk_map=chunk_map_of(chosen.chunk_map))
    lists, judgments = by_query(rankings, "rankings"), by_query(labels, "labels")
    matched = _match_plain(lists, judgments, chosen) or match_general(lists, judgments, chosen)
    _refuse_incomplete(matched, lists, chosen)
    return Prepared(replace(matched, warnings=(*matched.warnings, *_doubts(matched, chosen))), chosen)


def _match_plain(rankings: Mapping[str, Any], labels: Mapping[str, Any], options: Options) -> Matched | None:
    """The match when everything is lists of text ids and {id: grade}; None when it is not.

    A TypeError says that some list holds other things than text.
    """
    if options.chunk_map is not None or options.doc_pattern is not None or not _all_text(labels):
        return None
    if set(map(type, rankings.values())) - {list}:
        return None
    try:
        return match_ids(rankings, labels, options, scores={}, warnings=without_scores(options))
    except TypeError:
        return None


def _all_text(labels: Mapping[str, dict[Any, Any]]) -> bool:
    """Whether all labels are {id: grade} with text ids; `join` takes nothing else."""
    if set(map(type, labels.values())) - {dict}:
        return False
    try:
        "".join(chain.from_iterable(labels.values()))
    except TypeError:
        return False
    return True


def _refuse_incomplete(matched: Matched, rankings: Mapping[str, Any], options: Options) -> None:
    if (options.missing_queries, options.extra_queries, options.empty_labels).count("error") == 0:
        return
    known = set(matched.queries)
    relevant = np.bincount(matched.labels.row[matched.labels.grade >= options.rel_level], minlength=matched.n)
    checks = (
        (options.missing_queries, "missing_queries=zero", "labelled queries without ranking",
         [q for q in matched.queries if q not in rankings] if matched.n_missing else []),
        (options.extra_queries, "extra_queries=ignore", "queries with a ranking but no labels",
         [q for q in rankings if q not in known] if matched.n_extra else []),
        (options.empty_labels, "empty_labels=undefined (leave them out) or zero", "queries without relevant labels",
         [matched.queries[row] for row in np.flatnonzero(relevant == 0)]),
    )  # fmt: skip
    for choice, way_out, said, queries in checks:
        if choice == "error" and queries:
            raise InputError(
                f"{said}: {len(queries)}. Add what is missing, or choose {way_out}", [f"query {q!r}" for q in queries]
            )


def _doubts(matched: Matched, options: Options) -> list[str]:
    """What makes the numbers suspicious although nothing is wrong with a single row."""
    doubts = []
    grades = matched.labels.grade
    if matched.n and matched.n_missing == matched.n and matched.n_extra:
        first = matched.queries[0]
        doubts.append(f"no labelled query has a ranking, e.g. {first!r}: are the query ids the same in both?")
    elif matched.lengths.any() and (grades > 0).any() and not (matched.found.grade > 0).any():
        doubts.append(
            "no labelled id occurs in any ranking: are the labels documents and the rankings chunks? Then give items "
            "with doc, a chunk_map or a doc_pattern"
        )
    if matched.n_duplicates:
        doubts.append(f"{matched.n_duplicates} repeated ids in the rankings (duplicates={options.duplicates})")
    below = int((grades < 0).sum())
    if below:
        doubts.append(
            f"{below} labels have a grade below 0: they gain nothing and count as not judged, as in trec_eval"
        )
    between = int(((grades > 0) & (grades < options.rel_level) & (grades != np.floor(grades))).sum())
    if between:
        doubts.append(
            f"{between} labels have a fractional grade below rel_level {options.rel_level:g}: they gain in NDCG but do "
            "not count as relevant elsewhere"
        )
    return doubts
