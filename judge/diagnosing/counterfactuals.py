"""Case files for the replays: what the pipeline would have answered with other passages.

oracle-context   the labelled passages only      fixed: too much or badly ordered context; not fixed: the generator
no-context       no passage at all               still right: the model answers from memory
cut-k            the first k' passages given     fixed: too many passages
rerank           the same, labelled ones first   fixed: the order; an upper bound for any reranker
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.cases import Case, Context, Label, RetrievedItem
from judge.diagnosing.examined import Examined
from judge.diagnosing.outcomes import OUTCOMES
from judge.errors import UsageError
from judge.retrieval.reporting import write_lines

REPLAYS = ("oracle-context", "no-context", "cut-k", "rerank")
DROPPED = ("answer", "retrieved", "feedback", "latency_s", "cost_usd", "labels")


def write(cases: Sequence[Examined], directory: Path, best_k: int | None) -> dict[str, Any]:
    """Writes one case file for each replay and returns, by replay, the file, its cases and why others are left out.

    Only cases whose diagnosis names the replay; answers are null, for the pipeline to fill. Existing files are not
    overwritten (UsageError). `best_k`: the k' of cut-k; without it, or where no passage would go, a case is left out.
    """
    directory.mkdir(parents=True, exist_ok=True)
    planned = {name: directory / f"{name}.jsonl" for name in REPLAYS}
    there = [str(path) for path in planned.values() if path.exists()]
    if there:
        raise UsageError(f"{there[0]} exists already: give --counterfactuals another directory, nothing is overwritten")
    made: dict[str, Any] = {}
    for name, path in planned.items():
        rows, left_out = _rows(cases, name, best_k)
        if rows:
            write_lines(path, rows)
        made[name] = {"file": str(path) if rows else None, "n": len(rows), "left_out": left_out}
    return made


def _rows(cases: Sequence[Examined], name: str, best_k: int | None) -> tuple[list[dict[str, Any]], dict[str, int]]:
    rows: list[dict[str, Any]] = []
    left_out: dict[str, int] = {}
    for examined in cases:
        if name not in OUTCOMES[examined.outcome].replays:
            continue
        contexts = replayed(examined.case, name, best_k)
        if isinstance(contexts, str):
            left_out[contexts] = left_out.get(contexts, 0) + 1
        else:
            rows.append(_row(examined, name, contexts))
    return rows, left_out


def _row(examined: Examined, name: str, contexts: Sequence[Context]) -> dict[str, Any]:
    row = {field: value for field, value in examined.case.to_row().items() if field not in DROPPED}
    note = {"replay": name, "outcome": examined.outcome}
    given = [context.model_dump(mode="json", exclude_defaults=True) for context in contexts]
    return {**row, "answer": None, "contexts": given, "metadata": {**examined.case.metadata, "counterfactual": note}}


def replayed(case: Case, name: str, best_k: int | None = None) -> tuple[Context, ...] | str:
    """The passages of a case in a replay, or why it cannot be built."""
    given = case.contexts or ()
    if name == "no-context":
        return ()
    if name == "oracle-context":
        return _oracle(case)
    if name == "cut-k":
        if best_k is None:
            return "no smaller k keeps the recall"
        return tuple(given[:best_k]) if best_k < len(given) else "no more passages than that k"
    first = [context for context in given if _is_labelled(context, case.relevant or ())]
    ordered = (*first, *(context for context in given if context not in first))
    return ordered if ordered != tuple(given) else "the labelled passages stand first already"


def _oracle(case: Case) -> tuple[Context, ...] | str:
    known: dict[str, Context] = {context.id: context for context in case.contexts or ()}
    for item in case.retrieved or ():
        if item.text is not None and item.id not in known:
            known[item.id] = Context.model_validate(item.model_dump(exclude={"score"}, exclude_defaults=True))
    wanted = [label for label in case.relevant or () if label.grade >= 1]
    found: dict[str, Context] = {}
    for n, label in enumerate(wanted, 1):
        matching = [context for context in known.values() if _names(label, context)]
        if not matching and label.text is not None:
            matching = [Context(id=f"label-{n}", text=label.text, doc=label.doc)]
        found |= {context.id: context for context in matching}
        if not matching and case.evidence != "any":
            return "a labelled passage has no text in the case"
    return tuple(found.values()) or "a labelled passage has no text in the case"


def _is_labelled(context: Context, labels: Sequence[Label]) -> bool:
    return any(label.grade >= 1 and _names(label, context) for label in labels)


def _names(label: Label, passage: Context | RetrievedItem) -> bool:
    """Whether a label names a passage: by id, document, overlapping offsets, or a text that one holds of the other."""
    document = passage.doc or passage.id
    if label.kind == "chunk":
        return passage.id == label.chunk
    if label.kind == "text":
        text, inside = (label.text or "").strip(), (passage.text or "").strip()
        return bool(text and inside) and (text in inside or inside in text)
    if label.kind == "offset" and passage.start is not None and passage.end is not None:
        return document == label.doc and passage.start < (label.end or 0) and (label.start or 0) < passage.end
    return label.doc in (document, passage.id)


def best_cut(details: Mapping[str, Any]) -> int | None:
    """The k' of the k sweep when it is below k; from the details of scenario S1."""
    best, k = details.get("best_k"), details.get("k")
    return best if best is not None and k is not None and best < k else None
