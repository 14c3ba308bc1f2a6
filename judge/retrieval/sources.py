"""Where the rankings and labels of a command come from: cases, TREC files, or one of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.retrieval.inputs import from_cases
from judge.retrieval.trec import read_qrels, read_ranking


@dataclass(frozen=True, slots=True)
class Source:
    """Rankings and labels, what was said while reading, and how a baseline ranking is read."""

    rankings: Mapping[str, Any]
    labels: Mapping[str, Any]
    notes: list[str]
    baseline: Callable[[str], Mapping[str, Any]]


def load(
    cases: str | None,
    qrels: Path | None,
    ranking: Path | None,
    *,
    format: str | None = None,
    map: Mapping[str, str] | None = None,
) -> Source:
    """Labels from `qrels`, else from the cases; rankings from `ranking`, else from the cases."""
    if cases is None and (qrels is None or ranking is None):
        raise UsageError(
            "nothing to measure: give a cases file (judge retrieval cases.jsonl), or --qrels and --ranking together"
        )
    if cases is not None and qrels is not None and ranking is not None:
        raise UsageError(
            f"{cases}, --qrels and --ranking are given: rankings and labels come from two of them, leave one out"
        )
    notes: list[str] = []

    def of_cases(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
        from judge.cases import read_cases

        return from_cases(read_cases(path, format, map, notes=notes))

    rankings, labels = ({}, {}) if cases is None else of_cases(cases)
    if qrels is not None:
        labels = dict(read_qrels(qrels))
    elif not labels:
        raise UsageError(
            f"{cases}: no case has `relevant`, so nothing says what should be found: add it, or give --qrels"
        )
    if ranking is not None:
        rankings = dict(read_ranking(ranking))
    elif not rankings:
        raise UsageError(f"{cases}: no case has `retrieved` or `contexts`: add them, or give --ranking with a run file")

    def baseline(path: str) -> Mapping[str, Any]:
        return read_ranking(path) if ranking is not None else of_cases(path)[0]

    return Source(rankings, labels, notes, baseline)
