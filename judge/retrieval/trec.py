"""TREC files: qrels (query 0 document grade) and rankings (query Q0 document rank score run); BEIR's qrels table.

Parsed as trec_eval 10 does: fields separated by ASCII white space, lines that start with # and blank lines skipped,
anything after the run name of a ranking line ignored, the rank column ignored because the score decides.
Fractional grades are accepted too. Every malformed line is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from judge.errors import InputError
from judge.retrieval.inputs import Ranked, by_score

QRELS_LINE = "query 0 document grade"
RANKING_LINE = "query Q0 document rank score run"
GZIP = b"\x1f\x8b"
BEIR_HEADER = [b"query-id", b"corpus-id", b"score"]


def read_qrels(path: str | Path) -> dict[str, dict[str, float]]:
    """Labels of a qrels file: query id -> {document: grade}, in file order.

    The three columns of BEIR under their header work too. A document judged twice with the same grade is one label;
    with different grades an error.
    """
    labels: dict[str, dict[str, float]] = {}
    problems = []
    needed = 4
    for line, fields in _lines(path):
        if fields == BEIR_HEADER:
            needed = 3
            continue
        place = f"{path}:{line}"
        if len(fields) != needed:
            problems.append(f"{place} has {len(fields)} fields: {needed} are needed, {QRELS_LINE}")
            continue
        query, document, grade = _text(fields[0]), _text(fields[-2]), _number(fields[-1])
        if grade is None:
            problems.append(f"{place} grade: {_text(fields[-1])!r} is no finite number")
            continue
        seen = labels.setdefault(query, {}).setdefault(document, grade)
        if seen != grade:
            problems.append(f"{place} grade: {document!r} has grade {grade:g} here and {seen:g} above: keep one")
    _refuse(path, "qrels", QRELS_LINE, problems, empty=not labels)
    return labels


def read_ranking(path: str | Path) -> dict[str, Ranked]:
    """Rankings of a run file: query id -> ids from the highest score down; equal scores in file order."""
    rankings: dict[str, Ranked] = {}
    problems = []
    for line, fields in _lines(path):
        score = _number(fields[4]) if len(fields) >= 6 else None
        if len(fields) < 6:
            problems.append(f"{path}:{line} has {len(fields)} fields: 6 are needed, {RANKING_LINE}")
        elif score is None:
            problems.append(f"{path}:{line} score: {_text(fields[4])!r} is no finite number")
        else:
            ranked = rankings.setdefault(_text(fields[0]), Ranked([], []))
            ranked.ids.append(_text(fields[2]))
            ranked.scores.append(score)
    _refuse(path, "ranking", RANKING_LINE, problems, empty=not rankings)
    return {query: by_score(ranked) for query, ranked in rankings.items()}


def _lines(path: str | Path) -> Iterator[tuple[int, list[bytes]]]:
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1 and line.startswith(GZIP):
                    raise InputError(f"{path}: is compressed (gzip): unpack it first")
                fields = line.removeprefix(b"\xef\xbb\xbf").split()
                if fields and not fields[0].startswith(b"#"):
                    yield number, fields
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}): check the path") from None


def _text(field: bytes) -> str:
    return field.decode("utf-8", "backslashreplace")


def _number(field: bytes) -> float | None:
    try:
        value = float(field)
    except ValueError:
        return None
    return value if math.isfinite(value) and b"_" not in field else None


def _refuse(path: str | Path, kind: str, form: str, problems: list[str], *, empty: bool) -> None:
    if problems:
        raise InputError(f"{path}: {len(problems)} malformed lines in the {kind} file", problems)
    if empty:
        raise InputError(f"{path} is empty: a {kind} file has lines of the form {form}")
