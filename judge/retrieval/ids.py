"""Matching by id: one hash probe per retrieved id, one look-up of the rank per labelled id that was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from judge.errors import InputError
from judge.retrieval.inputs import grade_of
from judge.retrieval.options import Options
from judge.retrieval.slots import FloatArray, LabelMatch, Matched, Slots, TieGroup

Grades = Mapping[str, float]


def match_ids(
    rankings: Mapping[str, Sequence[str]],
    labels: Mapping[str, Grades],
    options: Options,
    *,
    scores: Mapping[str, Sequence[float]],
    warnings: Sequence[str] = (),
) -> Matched:
    """Where the labelled ids stand in the lists; `scores` only for the queries whose tie groups are averaged.

    Raises TypeError when a list does not begin and end with text: a list is filled by one program and holds one kind
    of id, and looking at every id would cost a third of the whole evaluation.
    """
    sizes: list[int] = []
    given: list[Any] = []
    counts: list[int] = []
    lengths: list[int] = []
    ranks: list[int] = []
    grades: list[float] = []
    n_missing = n_duplicates = 0
    repeated: list[str] = []
    tied: dict[int, tuple[TieGroup, ...]] = {}
    condensed = options.judged_only
    for query, judged, ranking in zip(labels, labels.values(), map(rankings.get, labels), strict=True):
        sizes.append(len(judged))
        given += judged.values()
        if not ranking:
            n_missing += ranking is None
            counts.append(0)
            lengths.append(0)
            continue
        if type(ranking[0]) is not str or type(ranking[-1]) is not str:
            raise TypeError(query)
        size = len(ranking)
        distinct = set(ranking)
        found: Any = distinct.intersection(judged)
        if len(distinct) != size or condensed:
            if len(distinct) != size:
                n_duplicates += size - len(distinct)
                repeated.append(query)
            ranking = kept_slots(ranking, judged, options)
            size = len(ranking)
            found = [i for i in found if judged[i] >= 0] if condensed else found
        if scores and query in scores:
            tied[len(counts)] = tie_groups(rankings[query], scores[query], judged, options)
        counts.append(len(found))
        lengths.append(size)
        ranks += map(ranking.index, found)
        grades += map(judged.__getitem__, found)
    if repeated and options.duplicates == "error":
        refuse_duplicates(repeated, rankings)
    ideal = Slots.ideal(np.repeat(np.arange(len(labels)), sizes), as_grades(given, labels), len(labels))
    rows = np.repeat(np.arange(len(labels)), counts)
    slots = Slots.ordered(rows, np.array(ranks, dtype=np.int64) + 1, np.array(grades, dtype=np.float64))
    queries = tuple(labels)

    def matches(row: int) -> tuple[LabelMatch, ...]:
        judged = labels[queries[row]]
        return id_matches(kept_slots(rankings.get(queries[row], ()), judged, options), judged)

    return Matched(
        queries=queries, lengths=np.array(lengths, dtype=np.int64), n_missing=n_missing,
        n_extra=len(rankings) - (len(labels) - n_missing), n_duplicates=n_duplicates,
        found=slots, relevant=slots, gains=slots, judged=slots.where(slots.grade >= 0), labels=ideal, ideal=ideal,
        tied=tied, matches=matches, warnings=tuple(warnings),
    )  # fmt: skip


def as_grades(given: Sequence[Any], labels: Mapping[str, Grades]) -> FloatArray:
    """The grades of all labels in order as one array; the first that is no finite number is named with its query."""
    if set(map(type, given)) <= {int, float, bool}:
        grades = np.array(given, dtype=np.float64)
        if np.isfinite(grades).all():
            return grades
    checked = [
        grade_of(grade, label, f"labels of query {query!r}")
        for query, judged in labels.items()
        for label, grade in judged.items()
    ]
    return np.array(checked, dtype=np.float64)


def kept_slots(ranking: Sequence[str], judged: Grades, options: Options) -> Sequence[str]:
    """The list as it is ranked: repeats removed (or kept as slots), unjudged ids removed when asked."""
    if options.duplicates != "credit_once":
        ranking = list(dict.fromkeys(ranking))
    if options.judged_only:
        ranking = [i for i in ranking if judged.get(i, -1) >= 0]
    return ranking


def id_matches(ranking: Sequence[str], judged: Grades) -> tuple[LabelMatch, ...]:
    """Rank and item of each labelled id of one query."""
    rank = {i: place for place, i in reversed(list(enumerate(ranking, 1)))}
    return tuple(
        LabelMatch(i, float(grade), rank.get(i), i if i in rank else None, float(i in rank))
        for i, grade in judged.items()
    )


def refuse_duplicates(queries: Sequence[str], rankings: Mapping[str, Sequence[str]]) -> None:
    """The error for `duplicates=error`: queries and the first id that comes twice."""
    rows = []
    for query in queries:
        ranking = list(rankings[query])
        twice = next(i for place, i in enumerate(ranking) if i in ranking[:place])
        rows.append(f"query {query!r}: id {twice!r} comes {ranking.count(twice)} times")
    raise InputError(
        f"{len(rows)} rankings hold an id twice and duplicates is error: remove the repeats, or choose "
        "duplicates=first (drop them) or duplicates=credit_once (keep the slot without credit)",
        rows,
    )


def tie_groups(
    ranking: Sequence[str], scores: Sequence[float], judged: Grades, options: Options
) -> tuple[TieGroup, ...]:
    """Consecutive slots of equal score as groups; a repeated id is dropped or stays as an unlabelled slot."""
    seen: set[str] = set()
    groups = []
    for _, entries in groupby(zip(ranking, scores, strict=True), key=lambda entry: entry[1]):
        grades: list[float] = []
        size = 0
        for i, _score in entries:
            again = i in seen
            seen.add(i)
            if (again and options.duplicates != "credit_once") or (options.judged_only and judged.get(i, -1) < 0):
                continue
            size += 1
            if i in judged and not again:
                grades.append(float(judged[i]))
        if size:
            groups.append(TieGroup(size, tuple(grades)))
    return tuple(groups)
