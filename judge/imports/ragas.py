"""Ragas: evaluation datasets (0.2 and later) and the column names before 0.2."""

from __future__ import annotations

from typing import Any

from judge.imports.foreign import Options, filled, gold, reference, structure, texts, with_foreign
from judge.imports.rows import FieldError

_OWN = ("multi_responses", "rubrics", "persona_name", "query_style", "query_length", "synthesizer_name")
_USED = {"user_input", "response", "reference", "retrieved_contexts", "retrieved_context_ids", "reference_contexts"}


def sample(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """A single-turn sample; context ids pair with contexts by position."""
    row = filled(data, options)
    passages = texts("retrieved_contexts", row.get("retrieved_contexts"), options)
    ids = _ids("retrieved_context_ids", row, options)
    golden = texts("reference_contexts", row.get("reference_contexts"), options)
    metadata = {
        name: structure(name, row[name], options) if name in _OWN[:2] else row[name] for name in _OWN if row.get(name)
    }
    others = {
        k: v for k, v in row.items() if k not in _USED and k not in _OWN and k not in ("id", "reference_context_ids")
    }
    return {
        "id": row.get("id"),
        "question": row.get("user_input"),
        "answer": row.get("response"),
        "contexts": _paired(passages, ids),
        "reference": reference(row.get("reference"), options),
        "retrieved": ids if passages is None else None,
        "relevant": _relevant(_ids("reference_context_ids", row, options), golden),
        "metadata": with_foreign(metadata, fields=others),
    }


def before_02(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """A row with the names before Ragas 0.2: question, contexts, answer, ground_truth or ground_truths."""
    row = filled(data, options)
    truth = row.pop("ground_truth", None)
    truths = texts("ground_truths", row.pop("ground_truths", None), options)
    return {
        "id": row.pop("id", None),
        "question": row.pop("question", None),
        "answer": row.pop("answer", None),
        "contexts": texts("contexts", row.pop("contexts", None), options),
        "reference": truths if truth is None else reference(truth, options),
        "metadata": with_foreign(None, fields=row),
    }


def _ids(column: str, row: dict[str, Any], options: Options) -> list[str] | None:
    value = structure(column, row.get(column), options)
    return texts(column, [str(v) for v in value] if isinstance(value, list) else value, Options())


def _paired(passages: list[str] | None, ids: list[str] | None) -> Any:
    if passages is None or ids is None:
        return passages
    if len(passages) != len(ids):
        raise FieldError(
            f"retrieved_context_ids: {len(ids)} ids for {len(passages)} retrieved_contexts, one id each is needed"
        )
    return [{"id": name, "text": text} for name, text in zip(ids, passages, strict=True)]


def _relevant(ids: list[str] | None, golden: list[str] | None) -> Any:
    """Ids and texts of the same gold passages are one label each; ids win when their number differs."""
    if ids is None or golden is None:
        return ids if golden is None else gold(golden)
    if len(ids) != len(golden):
        return ids
    return [{"doc": name, "text": text} for name, text in zip(ids, golden, strict=True)]
