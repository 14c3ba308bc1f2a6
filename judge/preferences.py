"""What people preferred: labels of pairs, from a file of their own or from the cases, as the side that won."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from judge.cases import load_normalised
from judge.combining import Winner
from judge.errors import InputError, UsageError
from judge.joining import Names

WORDS: Mapping[str, Winner] = {"a": "a", "b": "b", "tie": "tie", "both_fail": "both_fail"}
Preferences = dict[Names, dict[str, Winner]]


def read_preferences(path: Path, pairs: Sequence[Names]) -> Preferences:
    """Human preferences of each pair of systems: case id -> the side that most raters chose, `tie` where they split.

    CSV or JSONL with `case_id, label` and optionally `rater`, `a`, `b`. A label is a system's name, `tie` or
    `both_fail`; `a` and `b` stand for the row's own `a`, `b` columns, else, with two systems, for the command's.
    Raises InputError that lists every row that fits no pair.
    """
    votes: dict[Names, dict[str, list[Winner]]] = {pair: defaultdict(list) for pair in pairs}
    problems = []
    for at, row in _rows(path):
        case_id, label = str(row.get("case_id") or "").strip(), str(row.get("label") or "").strip()
        if not case_id or not label:
            problems.append(f"{path.name}:{at}: `case_id` and `label` are both needed")
            continue
        found = [(pair, side) for pair in pairs if (side := _side(label, row, pair, len(pairs))) is not None]
        if not found:
            names = ", ".join(dict.fromkeys(name for pair in pairs for name in pair))
            where = "" if len(pairs) == 1 else "; with several systems the columns `a` and `b` name the pair"
            problems.append(f"{path.name}:{at} label: {label!r}, must be a system ({names}), tie or both_fail{where}")
        for pair, side in found:
            votes[pair][case_id].append(side)
    if problems:
        raise InputError(f"{path}: {len(problems)} labels cannot be used; nothing was spent", problems)
    return _decided(votes)


def preferences_of_cases(cases: Path, rubric: str, pairs: Sequence[Names]) -> Preferences:
    """The same from `labels.RUBRIC` of the joined cases, where a label names a system, tie or both_fail."""
    votes: dict[Names, dict[str, list[Winner]]] = {pair: defaultdict(list) for pair in pairs}
    seen: set[tuple[str, str, str]] = set()
    for case in load_normalised(cases):
        for rater, label in case.labels.get(rubric, {}).items():
            key = (case.id, rater, str(label))
            for pair in pairs:
                side = _side(str(label), {}, pair, len(pairs))
                if side is not None and key not in seen:
                    votes[pair][case.id].append(side)
            seen.add(key)
    return _decided(votes)


def _side(label: str, row: Mapping[str, Any], pair: Names, n_pairs: int) -> Winner | None:
    """What a label says about this pair: a side, tie, both_fail, or nothing."""
    own = (row.get("a"), row.get("b"))
    if all(own):
        if set(own) != set(pair):
            return None
        label = {"a": str(own[0]), "b": str(own[1])}.get(label, label)
    elif n_pairs > 1:
        return None
    if label in pair:
        return "a" if label == pair[0] else "b"
    return WORDS.get(label)


def _decided(votes: Mapping[Names, Mapping[str, Iterable[Winner]]]) -> Preferences:
    return {pair: {case: most_common(given) for case, given in found.items()} for pair, found in votes.items()}


def most_common(votes: Iterable[Winner]) -> Winner:
    """The side with most votes; `tie` where two have as many."""
    counts = Counter(votes).most_common()
    return "tie" if len(counts) > 1 and counts[0][1] == counts[1][1] else counts[0][0]


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if not path.exists():
        raise UsageError(f"--labels {path}: no such file")
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from enumerate(csv.DictReader(file), 2)
        return
    with path.open("rb") as lines:
        for at, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise InputError(f"{path}:{at}: not JSON ({error}); give JSONL, or a file named .csv") from None
            if not isinstance(row, dict):
                raise InputError(f"{path}:{at}: a JSON {type(row).__name__}; every line is an object")
            yield at, row
