"""What is shown and written of a result: the JSON document, the page for a terminal, files with one line a query."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.report.page import Section, estimated, figure
from judge.retrieval.comparing import RetrievalComparison
from judge.retrieval.measures import AT_K, AT_K_PASSAGES, WHOLE_LIST
from judge.retrieval.options import Options
from judge.retrieval.result import RetrievalResult
from judge.retrieval.sweeping import Sweep

MOVED_SHOWN = 10
COLUMNS = 4
SHOWN_AS = {"rr": "rr (mean: MRR)", "ap": "ap (mean: MAP)"}


def document(result: RetrievalResult, comparison: RetrievalComparison | None, sweep: Sweep | None) -> dict[str, Any]:
    """The public JSON document; `comparison` and `k_sweep` only when asked for."""
    made = result.to_dict()
    if comparison is not None:
        made["comparison"] = comparison.to_dict()
    if sweep is not None:
        made["k_sweep"] = sweep.to_dict()
    return made


def sections(result: RetrievalResult, comparison: RetrievalComparison | None, sweep: Sweep | None) -> list[Section]:
    """The page: measures at every cut-off, whole-list measures, then the comparison and the sweep."""
    pages = [*_at_k(result), _whole(result)]
    if comparison is not None:
        pages += [_comparison(comparison), _moved(comparison)]
    if sweep is not None:
        pages.append(_sweep(sweep))
    return pages


def _at_k(result: RetrievalResult) -> list[Section]:
    """Tables of a few cut-offs each, with counts and conventions under the last."""
    pages = [_columns(result, result.k[i : i + COLUMNS]) for i in range(0, len(result.k), COLUMNS)]
    return [*pages[:-1], replace(pages[-1], notes=[_counts(result), *_conventions(result)])]


def _columns(result: RetrievalResult, k: tuple[int, ...]) -> Section:
    families = AT_K | AT_K_PASSAGES if result.matched.covered is not None else AT_K
    rows = [[name, *(estimated(result.measures[f"{name}@{cut}"].to_dict(), 3) for cut in k)] for name in families]
    ceilings = result.precision_ceiling
    if any(value is not None for value in ceilings.values()):
        rows.insert(1, ["  its ceiling", *(figure(ceilings[cut], 3) for cut in k)])
    title = f"Retrieval: {result.n_scored} of {result.n_queries} queries, unit {result.unit}"
    return Section(title, ["mean [95% interval]", *(f"@{cut}" for cut in k)], rows)


def _counts(result: RetrievalResult) -> str:
    return (
        f"{result.n_undefined} queries without relevant labels (left out) · {result.n_missing} without ranking "
        f"· {result.n_extra} rankings without labels (ignored) · {result.n_duplicates} repeated ids"
    )


def _conventions(result: RetrievalResult) -> list[str]:
    """All conventions in one line; those that were chosen in a second."""
    usual = Options().conventions()
    made = {name: value for name, value in result.conventions.items() if value is not None}
    chosen = [f"{name}={value}" for name, value in made.items() if value != usual[name]]
    every = ", ".join(f"{name}={value}" for name, value in made.items())
    return [f"conventions: {every}", *([f"not the default: {', '.join(chosen)}"] if chosen else [])]


def _whole(result: RetrievalResult) -> Section:
    rows = [[SHOWN_AS.get(name, name), estimated(result.measures[name].to_dict(), 3)] for name in WHOLE_LIST]
    return Section("Over the whole list", ["measure", "mean [95% interval]"], rows)


def _comparison(comparison: RetrievalComparison) -> Section:
    rows = [
        [
            name,
            figure(d.system, 3),
            figure(d.baseline, 3),
            estimated(d.difference.to_dict(), 3),
            figure(d.p_sign_flip, 4),
            figure(d.p_holm, 4),
        ]
        for name, d in comparison.measures.items()
    ]
    columns = ["measure", "this", "baseline", "difference [95% interval]", "p (sign flip)", "p (Holm)"]
    notes = [
        f"{comparison.n_pairs} queries in both, {comparison.unmatched} in one only · paired bootstrap and sign flips, "
        f"{comparison.replicates} each, seed {comparison.seed}"
    ]
    return Section("Compared with the baseline", columns, rows, notes)


def _moved(comparison: RetrievalComparison) -> Section:
    shown = comparison.moved[:MOVED_SHOWN]
    rows = [[m.query_id, figure(m.system, 3), figure(m.baseline, 3), f"{m.system - m.baseline:+.3f}"] for m in shown]
    better = sum(m.system > m.baseline for m in comparison.moved)
    worse, same = len(comparison.moved) - better, comparison.n_pairs - len(comparison.moved)
    note = f"{better} better, {worse} worse, {same} unchanged"
    columns = ["query", "this", "baseline", "change"] if rows else []
    return Section(f"Queries that moved most ({comparison.moved_measure})", columns, rows, [note])


def _sweep(sweep: Sweep) -> Section:
    kept = _telling(sweep)
    rows = [
        [str(row.k), figure(row.recall, 3), figure(row.precision, 3), figure(row.ceiling, 3)]
        for row in sweep.rows
        if row.k in kept
    ]
    found = "recall is undefined: no query has relevant labels"
    if sweep.best_k is not None:
        found = (
            f"k = {sweep.best_k} is enough: the least k with recall within {sweep.tolerance:g} of "
            f"{figure(sweep.best_recall, 3)}, the best up to k = {sweep.depth}"
        )
    notes = [found, "ceiling: the most that precision could be, since few labels per query cannot fill k slots"]
    return Section("How many items to retrieve", ["k", "recall", "precision", "ceiling"], rows, notes)


def _telling(sweep: Sweep) -> set[int]:
    """The rows for people: every k up to 10, then round ones, the chosen k and the last."""
    round_ones = {k for k in range(10, sweep.depth + 1) if k % 10 == 0}
    chosen = set() if sweep.best_k is None else {sweep.best_k}
    return set(range(1, min(10, sweep.depth) + 1)) | round_ones | chosen | {sweep.depth}


def write_per_query(result: RetrievalResult, path: Path) -> None:
    """One JSON line a query: query_id, measures (value or null)."""
    write_lines(path, ({"query_id": query, "measures": values} for query, values in result.per_query.items()))


def write_matches(result: RetrievalResult, path: Path) -> None:
    """One JSON line a query: query_id, labels (label, grade, found_at, item, coverage)."""
    found = result.matches.items()
    write_lines(path, ({"query_id": query, "labels": [asdict(m) for m in labels]} for query, labels in found))


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """JSON lines, written to a file beside it first so that an interruption leaves no half file."""
    import orjson

    if path.is_dir():
        raise UsageError(f"{path} cannot be written: it is a folder; give the name of a file")
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): check the folder") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(orjson.dumps(row) + b"\n" for row in rows)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
