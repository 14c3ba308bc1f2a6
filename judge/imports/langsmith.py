"""Rows with `inputs` and `outputs`: LangSmith examples, runs and experiments, openevals and MLflow rows.

In a LangSmith example `outputs` is the reference; everywhere else it is the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judge.imports.foreign import Options, documents, filled, number, pick, reference, structure, with_foreign

_IO = ("inputs", "outputs", "reference_outputs", "expectations", "context", "metadata")
_LISTED = (str, list)


def _opened(data: dict[str, Any], options: Options) -> dict[str, Any]:
    row = filled(data, options)
    return {k: structure(k, v, options) if k in _IO and _written(v) else v for k, v in row.items()}


def _written(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip().startswith(("{", "["))


def _question(row: Mapping[str, Any], options: Options) -> Any:
    return None if "question" in options.mapped else pick("inputs", row.get("inputs"), "question", "question")


def _answer(row: Mapping[str, Any], options: Options) -> Any:
    return None if "answer" in options.mapped else pick("outputs", row.get("outputs"), "answer", "answer")


def _reference(column: str, row: Mapping[str, Any], options: Options) -> Any:
    return None if "reference" in options.mapped else pick(column, row.get(column), "answer", "reference", _LISTED)


def _contexts(column: str, values: Any) -> list[Any] | None:
    if not isinstance(values, Mapping):
        return None
    name = next((key for key in ("documents", "contexts") if values.get(key) is not None), None)
    return None if name is None else documents(f"{column}.{name}", values[name])


def _kept(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k not in _IO and k != "id"}


def example(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """A dataset example: `outputs` is the reference, there is no answer."""
    row = _opened(data, options)
    metadata = dict(row.get("metadata") or {})
    splits = metadata.pop("dataset_split", None) or row.get("split")
    one = splits[0] if isinstance(splits, list) and len(splits) == 1 else None
    return {
        "id": row.get("id"),
        "question": _question(row, options),
        "contexts": _contexts("inputs", row.get("inputs")),
        "reference": _reference("outputs", row, options),
        "split": one,
        "metadata": with_foreign(
            metadata, fields={**_kept(row), "split": None, "dataset_split": None if one else splits}
        ),
    }


def run(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """A run: `outputs` is the answer; the reference would need a join on reference_example_id."""
    row = _opened(data, options)
    return {
        "id": row.get("id"),
        "question": _question(row, options),
        "answer": _answer(row, options),
        "contexts": _contexts("outputs", row.get("outputs")),
        "metadata": with_foreign(row.get("metadata"), fields=_kept(row)),
    }


def experiment(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """A row of an experiment as a table: inputs.*, outputs.*, reference.*, feedback.* columns."""
    row = filled(data, options)
    groups: dict[str, dict[str, Any]] = {"inputs": {}, "outputs": {}, "reference": {}, "feedback": {}}
    for column, value in row.items():
        group, _, key = column.partition(".")
        if key and group in groups:
            groups[group][key] = value
    numeric = {k: number(v) for k, v in groups["feedback"].items()}
    outputs = groups["outputs"]
    for name in ("contexts", "documents"):
        if outputs.get(name) is not None:
            contexts = documents(f"outputs.{name}", structure(f"outputs.{name}", outputs[name], options))
            break
    else:
        contexts = None
    truth = (
        None
        if "reference" in options.mapped
        else pick("reference", groups["reference"], "answer", "reference", _LISTED)
    )
    others = {k: v for k, v in row.items() if k.partition(".")[0] not in groups and k not in ("id", "execution_time")}
    return {
        "id": row.get("id"),
        "question": _question(groups, options),
        "answer": _answer(groups, options),
        "contexts": contexts,
        "reference": reference(truth, options),
        "latency_s": number(row.get("execution_time")),
        "metadata": with_foreign(
            None,
            scores={k: v for k, v in numeric.items() if v is not None},
            labels={k: v for k, v in groups["feedback"].items() if numeric[k] is None and v is not None},
            fields=others,
        ),
    }


def openevals(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """Keyword arguments of an openevals evaluator: `outputs` is the answer, `reference_outputs` the reference."""
    row = _opened(data, options)
    context = row.get("context")
    return {
        "id": row.get("id"),
        "question": _question(row, options),
        "answer": _answer(row, options),
        "contexts": _contexts("context", context) if isinstance(context, dict) else documents("context", context),
        "reference": _reference("reference_outputs", row, options),
        "metadata": with_foreign(row.get("metadata"), fields=_kept(row)),
    }


def mlflow(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """MLflow evaluation data: `outputs` is the answer, `expectations.expected_response` the reference."""
    row = _opened(data, options)
    expected = dict(row.get("expectations") or {})
    return {
        "id": row.get("id"),
        "question": _question(row, options),
        "answer": _answer(row, options),
        "reference": expected.pop("expected_response", None),
        "metadata": with_foreign(row.get("metadata"), fields={**_kept(row), "expectations": expected}),
    }
