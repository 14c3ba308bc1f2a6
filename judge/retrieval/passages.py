"""Matching whole evaluations at chunk unit: items with documents, texts or offsets against labels of any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from judge.errors import InputError
from judge.retrieval.chunks import Passage, first_of_each
from judge.retrieval.ids import refuse_duplicates
from judge.retrieval.match import WEAK_TOKENS, Findings, Target, find, judged_slots, target, tokens
from judge.retrieval.options import Options
from judge.retrieval.slots import LabelMatch, Matched, Slots

if TYPE_CHECKING:
    from judge.cases import Label

Event = tuple[int, int, float]


@dataclass(slots=True)
class Events:
    """The events of all queries while they are collected, see `Matched`."""

    found: list[Event] = field(default_factory=list)
    relevant: list[Event] = field(default_factory=list)
    gains: list[Event] = field(default_factory=list)
    judged: list[Event] = field(default_factory=list)
    redundant: list[Event] = field(default_factory=list)
    covered: list[Event] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    labels: list[tuple[int, float]] = field(default_factory=list)
    ideal: list[tuple[int, float]] = field(default_factory=list)

    def add(self, row: int, findings: Findings, targets: Sequence[Target]) -> None:
        """One query's findings; labels that one item finds together are one gain and one ideal unit."""
        grades = [goal.label.grade for goal in targets]
        merged: dict[int, float] = {}
        for grade, rank in zip(grades, findings.found_at, strict=True):
            self.labels.append((row, grade))
            if rank is None:
                self.ideal.append((row, grade))
            else:
                self.found.append((row, rank, grade))
                merged[rank] = max(grade, merged.get(rank, grade))
        self.gains.extend((row, rank, grade) for rank, grade in merged.items())
        self.ideal.extend((row, grade) for grade in merged.values())
        self.relevant.extend((row, rank, grade) for rank, grade in findings.relevant)
        self.redundant.extend((row, rank, grade) for rank, grade in findings.redundant)
        self.judged.extend((row, rank, 0.0) for rank in findings.judged)
        for rank, i, share in findings.growth:
            self.covered.append((row, rank, grades[i]))
            self.shares.append(share)


def match_passages(
    rankings: Mapping[str, Sequence[Passage]],
    labels: Mapping[str, Sequence[Label]],
    options: Options,
    warnings: Sequence[str] = (),
) -> Matched:
    """Which items find which labels, query by query."""
    events = Events()
    lengths, repeated = [], []
    n_duplicates = 0
    for row, (query, given) in enumerate(labels.items()):
        ranking = rankings.get(query, ())
        targets = [target(label, query) for label in given]
        repeats = len(ranking) - len({passage.id for passage in ranking})
        n_duplicates += repeats
        if repeats:
            repeated.append(query)
        slots = kept_passages(ranking, targets, options)
        lengths.append(len(slots))
        events.add(row, find(slots, targets, options.tau), targets)
    if repeated and options.duplicates == "error":
        refuse_duplicates(repeated, {query: [p.id for p in rankings[query]] for query in repeated})
    queries = tuple(labels)

    def matches(row: int) -> tuple[LabelMatch, ...]:
        targets = [target(label, queries[row]) for label in labels[queries[row]]]
        return passage_matches(kept_passages(rankings.get(queries[row], ()), targets, options), targets, options.tau)

    n_missing = sum(query not in rankings for query in queries)
    return Matched(
        queries=queries, lengths=np.array(lengths, dtype=np.int64), n_missing=n_missing,
        n_extra=len(rankings) - (len(queries) - n_missing), n_duplicates=n_duplicates,
        found=Slots.from_events(events.found), relevant=Slots.from_events(events.relevant),
        gains=Slots.from_events(events.gains), judged=Slots.from_events(events.judged),
        labels=best_list(events.labels, len(queries)), ideal=best_list(events.ideal, len(queries)),
        covered=growth(events), redundant=Slots.from_events(events.redundant), matches=matches,
        warnings=(*warnings, *weak_labels(labels)),
    )  # fmt: skip


def kept_passages(ranking: Sequence[Passage], targets: Sequence[Target], options: Options) -> list[Passage]:
    """The list as it is ranked: repeats removed (or kept as slots), unjudged items removed when asked."""
    slots = list(ranking)
    if options.duplicates != "credit_once":
        slots = first_of_each(slots, lambda passage: passage.id)
    return judged_slots(slots, targets) if options.judged_only else slots


def passage_matches(slots: Sequence[Passage], targets: Sequence[Target], tau: float) -> tuple[LabelMatch, ...]:
    """Rank and item of each label of one query, with the share of it that the whole list covers."""
    findings = find(slots, targets, tau)
    return tuple(
        LabelMatch(goal.name, goal.label.grade, rank, None if rank is None else slots[rank - 1].id, share)
        for goal, rank, share in zip(targets, findings.found_at, findings.coverage, strict=True)
    )


def best_list(units: Sequence[tuple[int, float]], n: int) -> Slots:
    """The ideal list of (row, grade) pairs."""
    table = np.array(units, dtype=np.float64).reshape(-1, 2)
    return Slots.ideal(table[:, 0].astype(np.int64), table[:, 1], n)


def growth(events: Events) -> tuple[Slots, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Coverage events with their shares; they need no order."""
    table = np.array(events.covered, dtype=np.float64).reshape(-1, 3)
    slots = Slots(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])
    return slots, np.array(events.shares, dtype=np.float64)


def weak_labels(labels: Mapping[str, Sequence[Label]]) -> list[str]:
    """The warning about text labels so short that they match by accident."""
    texts = [(query, label.text) for query, given in labels.items() for label in given if label.text is not None]
    weak = [(query, text) for query, text in texts if len(tokens(text)) < WEAK_TOKENS]
    if not weak:
        return []
    query, text = weak[0]
    said = f"{len(weak)} text labels have fewer than {WEAK_TOKENS} words and match easily by accident"
    return [f"{said}, e.g. {text!r} of query {query!r}"]


def refuse_tied(rankings: Mapping[str, Sequence[Passage]]) -> None:
    """ties=expected averages over orders of ids; passages that complete each other have no such closed form."""
    for query, ranking in rankings.items():
        scores = [passage.score for passage in ranking]
        if None not in scores and len(set(scores)) < len(scores):
            raise InputError(
                f"ties is expected and query {query!r} has equal scores, but its labels need passages: averaging over "
                "orders works for ids; choose ties=input or ties=docid_desc, or unit=doc"
            )
