"""Arize Phoenix: spans, frames made from spans, datasets, and the tables its evaluators take and give.

In a dataset `output` (an object) is the reference; in an evaluator table `output` (text) is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from judge.imports.foreign import Options, filled, joined, number, pick, reference, structure, with_foreign
from judge.imports.rows import FieldError, Problem, Row, Stream, shown

_SCORED = ("_score", "_execution_details")


def question_context(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """A row of input, output and one joined context, from spans."""
    row = filled(data, options)
    kept = {name: row.get(name) for name in ("context.span_id", "context.trace_id")}
    return {
        "id": row.get("context.span_id"),
        "question": row.get("input"),
        "answer": row.get("output"),
        "contexts": joined(row.get("context")),
        "metadata": with_foreign(structure("metadata", row.get("metadata"), options), fields=kept),
    }


def evaluator(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """A row of an evaluator's input or result table; `<name>_score` cells become foreign scores and labels."""
    row = filled(data, options)
    results = {k.removesuffix("_score"): structure(k, v, options) for k, v in row.items() if k.endswith("_score")}
    scored = {name: value for name, value in results.items() if isinstance(value, dict)}
    used = {"id", "input", "output", "reference", "context", "metadata"}
    return {
        "id": row.get("id"),
        "question": row.get("input"),
        "answer": row.get("output"),
        "contexts": joined(row.get("context")) if "context" in row else None,
        "reference": reference(row.get("reference"), options),
        "metadata": with_foreign(
            structure("metadata", row.get("metadata"), options),
            scores={name: number(value.get("score")) for name, value in scored.items()},
            labels={name: value["label"] for name, value in scored.items() if value.get("label") is not None},
            fields={k: v for k, v in row.items() if k not in used and not k.endswith(_SCORED)},
        ),
    }


def example(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """A dataset example: `output` is the reference, there is no answer."""
    row = {
        k: structure(k, v, options) if k in ("input", "output", "metadata") else v
        for k, v in filled(data, options).items()
    }
    asked = None if "question" in options.mapped else pick("input", row.get("input"), "question", "question")
    truth = (
        None if "reference" in options.mapped else pick("output", row.get("output"), "answer", "reference", (str, list))
    )
    used = {"id", "node_id", "example_id", "input", "output", "metadata"}
    return {
        "id": row.get("example_id") or row.get("node_id") or row.get("id"),
        "question": asked,
        "reference": truth,
        "metadata": with_foreign(row.get("metadata"), fields={k: v for k, v in row.items() if k not in used}),
    }


def retrieved_documents(rows: Iterable[Row | Problem], options: Options) -> Stream:
    """One row a document, grouped by span and ordered by position; there is no answer."""
    yield from _grouped(rows, "context.span_id", options, _retrieval)


def _retrieval(key: str, group: list[dict[str, Any]], options: Options) -> dict[str, Any]:
    ordered = sorted(group, key=_position)
    return {
        "id": key,
        "question": ordered[0].get("input"),
        "contexts": [_passage(d.get("document"), d.get("document_score")) for d in ordered],
        "metadata": with_foreign(None, fields={"context.trace_id": ordered[0].get("context.trace_id")}),
    }


def document_relevance(rows: Iterable[Row | Problem], options: Options) -> Stream:
    """One row a document with a human `relevant` mark, grouped by `case_id`, else by question.

    The document is `document_text`; in older tables it is `reference`.
    """
    yield from _grouped(rows, "case_id", options, _relevance)


def _relevance(key: str, group: list[dict[str, Any]], options: Options) -> dict[str, Any]:
    ordered = sorted(group, key=_position) if all(d.get("document_position") is not None for d in group) else group
    marked = [(n, str(d.get("relevant")).lower()) for n, d in enumerate(ordered, 1) if d.get("relevant") is not None]
    return {
        "id": key if ordered[0].get("case_id") is not None else None,
        "question": ordered[0].get("input"),
        "contexts": [_passage(d.get("document_text", d.get("reference")), None) for d in ordered],
        "relevant": [f"c{n}" for n, mark in marked if mark in ("true", "1", "1.0", "relevant")] if marked else None,
    }


def _position(row: dict[str, Any]) -> float:
    value = number(row.get("document_position"))
    if value is None:
        raise FieldError(f"document_position: {shown(row.get('document_position'))}, a number is needed")
    return value


def _passage(text: Any, score: Any) -> dict[str, Any]:
    return {"text": text} | ({} if number(score) is None else {"score": number(score)})


def _grouped(
    rows: Iterable[Row | Problem],
    column: str,
    options: Options,
    make: Callable[[str, list[dict[str, Any]], Options], dict[str, Any]],
) -> Stream:
    groups: dict[str, list[dict[str, Any]]] = {}
    first_at: dict[str, int] = {}
    for row in rows:
        if isinstance(row, Problem):
            yield row
            continue
        data = filled(row.data, options)
        key = str(data[column] if data.get(column) is not None else data.get("input"))
        groups.setdefault(key, []).append(data)
        first_at.setdefault(key, row.at)
    for key, group in groups.items():
        try:
            yield Row(first_at[key], make(key, group, options))
        except FieldError as error:
            yield Problem(first_at[key], str(error))


def spans(rows: Iterable[Row | Problem], options: Options) -> Stream:
    """Traces: the root span has question and answer, the retriever span the contexts; oldest trace first."""
    oldest_first = sorted(_grouped(rows, "context.trace_id", options, _trace), key=_started)
    for row in oldest_first:
        if isinstance(row, Row):
            row.data.pop("started")
        yield row


def _started(row: Row | Problem) -> tuple[Any, int]:
    return (row.data["started"] if isinstance(row, Row) else "", -row.at)


def _trace(key: str, group: list[dict[str, Any]], options: Options) -> dict[str, Any]:
    roots = [span for span in group if span.get("parent_id") is None]
    if len(roots) != 1:
        raise FieldError(f"parent_id: trace {shown(key)} has {len(roots)} root spans, exactly one is needed")
    root = roots[0]
    retrievers = [span for span in group if span.get("span_kind") == "RETRIEVER"]
    kept = {"context.trace_id": key, "context.span_id": root.get("context.span_id")}
    kept["retriever_span_id"] = retrievers[0].get("context.span_id") if len(retrievers) == 1 else None
    return {
        "id": key,
        "question": root.get("attributes.input.value"),
        "answer": root.get("attributes.output.value"),
        "contexts": [_span_document(d) for span in retrievers for d in _documents(span, options)]
        if retrievers
        else None,
        "metadata": with_foreign(
            structure("attributes.metadata", root.get("attributes.metadata"), options), fields=kept
        ),
        "started": str(root.get("start_time")),
    }


def _documents(span: dict[str, Any], options: Options) -> list[Any]:
    column = "attributes.retrieval.documents"
    items = structure(column, span.get(column), options) or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FieldError(f"{column}: {shown(items)}, a list of documents is needed")
    return items


def _span_document(item: dict[str, Any]) -> dict[str, Any]:
    made = {
        "id": item.get("document.id"),
        "score": number(item.get("document.score")),
        "metadata": item.get("document.metadata"),
    }
    return {"text": item.get("document.content")} | {k: v for k, v in made.items() if v is not None}
