"""Which tool wrote a table: one row per format, decided by column names and, where they collide, by value types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from judge.errors import InputError, UsageError
from judge.imports import deepeval, langsmith, phoenix, ragas, trulens
from judge.imports.foreign import Options
from judge.imports.native import did_you_mean
from judge.imports.rows import Problem, Row, Stream, each

Convert = Callable[[dict[str, Any], Options], dict[str, Any]]
Read = Callable[[Iterable[Row | Problem], Options], Stream]


@dataclass(frozen=True, slots=True)
class Look:
    """What the first rows of a table show: all column names, and a first value that is not missing for each."""

    columns: frozenset[str]
    values: dict[str, Any] = field(default_factory=dict)

    def has(self, *names: str) -> bool:
        return self.columns.issuperset(names)

    def any(self, *names: str) -> bool:
        return not self.columns.isdisjoint(names)

    def nested(self, name: str) -> bool:
        value = self.values.get(name)
        return isinstance(value, dict) or (isinstance(value, str) and value.startswith("{"))

    def listed(self, name: str) -> bool:
        value = self.values.get(name)
        return isinstance(value, list) or (isinstance(value, str) and value.startswith("[{"))


@dataclass(frozen=True, slots=True)
class Format:
    """`fits` recognises it; `read` makes native rows; `note` says what goes where; without `read` it is refused."""

    id: str
    fits: Callable[[Look], bool]
    read: Read | None
    note: str

    @property
    def family(self) -> str:
        return self.id.partition(".")[0]


def by_row(convert: Convert) -> Read:
    """A reader that looks at one row at a time."""
    return lambda rows, options: each(rows, lambda data: convert(data, options))


def look(sample: Iterable[Row | Problem]) -> Look:
    """Columns and first values of some rows."""
    values: dict[str, Any] = {}
    for row in sample:
        if isinstance(row, Row):
            for name, value in row.data.items():
                if values.get(name) in (None, ""):
                    values[name] = value
    return Look(frozenset(values), values)


def _table(seen: Look, *names: str) -> bool:
    return seen.has(*names) and not seen.has("context.span_id")


NATIVE = Format("native", lambda s: s.has("question") and not _before_02(s), by_row(lambda row, _: row), "own fields")
FORMATS = (
    NATIVE,
    Format(
        "ragas.samples", lambda s: s.has("user_input") and not s.listed("user_input"), by_row(ragas.sample),
        "question <- user_input, answer <- response, contexts <- retrieved_contexts, reference <- reference, "
        "relevant <- reference_context_ids and reference_contexts",
    ),
    Format(
        "ragas.multi_turn", lambda s: s.listed("user_input"), None,
        "conversations are not judged turn by turn; export single-turn samples",
    ),
    Format(
        "ragas.v1", lambda s: _before_02(s), by_row(ragas.before_02),
        "question, answer, contexts as they are, reference <- ground_truth or ground_truths",
    ),
    Format(
        "deepeval.goldens", lambda s: s.has("input", "retrieval_context") and s.any("actual_output", "expected_output"),
        by_row(deepeval.golden),
        "question <- input, answer <- actual_output, contexts <- retrieval_context (empty text = no passages), "
        "reference <- expected_output, relevant <- context (gold), id <- name",
    ),
    Format(
        "deepeval.test_run", lambda s: s.has("input", "actualOutput", "metricsData"), by_row(deepeval.test_case),
        "question <- input, answer <- actualOutput, contexts <- retrievalContext, reference <- expectedOutput, "
        "relevant <- context (gold), metricsData -> metadata.foreign",
    ),
    Format(
        "deepeval.conversational", lambda s: s.has("scenario", "turns"), None,
        "conversations are not judged turn by turn; export single-turn goldens",
    ),
    Format(
        "langsmith.examples",
        lambda s: s.has("inputs", "outputs") and s.any("dataset_id", "source_run_id", "use_source_run_io", "created_at")
        and not s.any("run_type", "expectations"),
        by_row(langsmith.example),
        "question <- inputs, reference <- outputs (a dataset has no answers), contexts <- inputs.documents",
    ),
    Format(
        "langsmith.runs", lambda s: s.has("inputs", "run_type") and s.any("trace_id", "dotted_order"),
        by_row(langsmith.run), "question <- inputs, answer <- outputs, contexts <- outputs.documents; no reference",
    ),
    Format(
        "langsmith.experiment",
        lambda s: s.has("example_id") and any(c.startswith("inputs.") for c in s.columns),
        by_row(langsmith.experiment),
        "question <- inputs.*, answer <- outputs.*, contexts <- outputs.contexts, reference <- reference.*, "
        "feedback.* -> metadata.foreign",
    ),
    Format(
        "openevals.rows", lambda s: s.has("inputs", "outputs", "reference_outputs"), by_row(langsmith.openevals),
        "question <- inputs, answer <- outputs, contexts <- context, reference <- reference_outputs",
    ),
    Format(
        "mlflow.eval_data", lambda s: s.has("inputs", "expectations"), by_row(langsmith.mlflow),
        "question <- inputs, answer <- outputs, reference <- expectations.expected_response; no contexts",
    ),
    Format(
        "phoenix.spans", lambda s: s.has("context.span_id", "context.trace_id", "span_kind", "parent_id"),
        phoenix.spans,
        "one case a trace: question and answer <- root span, contexts <- retriever spans",
    ),
    Format(
        "phoenix.qa_context", lambda s: s.has("context.span_id", "input", "output", "context"),
        by_row(phoenix.question_context),
        "question <- input, answer <- output, contexts <- context as ONE passage that may glue several (joined)",
    ),
    Format(
        "phoenix.retrieved_documents", lambda s: s.has("context.span_id", "document_position", "document"),
        phoenix.retrieved_documents, "one case a span: question <- input, contexts <- document by position; no answer",
    ),
    Format(
        "phoenix.dataset",
        lambda s: s.any("example_id", "node_id") and s.nested("input") and not s.has("reference_output"),
        by_row(phoenix.example),
        "question <- input, reference <- output (a dataset has no answers)",
    ),
    Format(
        "phoenix.evals", lambda s: _table(s, "input", "output", "context") and not s.nested("input"),
        by_row(phoenix.evaluator),
        "question <- input, answer <- output, reference <- reference, contexts <- context as ONE passage that may glue "
        "several (joined), *_score -> metadata.foreign",
    ),
    Format(
        "phoenix.document_relevance", lambda s: _table(s, "input", "document_text"), phoenix.document_relevance,
        "one case a question: contexts <- documents by position, relevant <- relevant; no answer",
    ),
    Format(
        "phoenix.experiment", lambda s: s.has("example_id", "reference_output"), None,
        "experiment runs (output = answer, reference_output = reference) need the keys named: "
        "--map question=input.KEY --map answer=output --map reference=reference_output.KEY",
    ),
    Format(
        "phoenix.annotations", lambda s: s.has("span_id", "annotation_name"), None,
        "annotations of spans, no questions or answers; export the spans and give this file as labels",
    ),
    Format(
        "phoenix.openai_export", lambda s: s.has("messages") and s.columns <= {"messages", "ideal"}, None,
        "chat messages without question and answer columns; export the dataset as JSON or CSV",
    ),
    Format(
        "trulens.records", lambda s: s.has("record_id", "input", "output") and s.any("record_json", "app_json"),
        by_row(trulens.record),
        "question <- input, answer <- output, feedback -> metadata.foreign; no contexts (TruLens does not export them)",
    ),
)  # fmt: skip


def _before_02(seen: Look) -> bool:
    return seen.has("question") and seen.any("ground_truth", "ground_truths") and not seen.has("reference")


AMBIGUOUS: tuple[tuple[Callable[[Look], bool], dict[str, str]], ...] = (
    (
        lambda s: s.has("inputs", "outputs"),
        {"langsmith.examples": "outputs = reference", "mlflow.eval_data": "outputs = answer"},
    ),
    (
        lambda s: s.has("input", "output") and not s.has("context"),
        {"phoenix.dataset": "output = reference", "phoenix.evals": "output = answer"},
    ),
    (
        lambda s: s.has("input", "reference"),
        {"phoenix.document_relevance": "reference = a document", "phoenix.evals": "reference = accepted answer"},
    ),
)


def names() -> list[str]:
    """Every value that --format takes for a tool: families and full format ids."""
    return sorted({f.id for f in FORMATS} | {f.family for f in FORMATS})


def choose(name: str, seen: Look, wanted: str | None, mapped: frozenset[str]) -> Format:
    """The format of a table. A `question` column, or one that --map names where no tool is sure, makes it our own.

    Raises InputError with the choices when it cannot be told or holds no cases, UsageError for an unknown `wanted`.
    """
    fitting = [f for f in FORMATS if f.fits(seen)]
    if wanted is not None:
        fitting = _wanted(name, seen, wanted, fitting)
    elif NATIVE in fitting or ("question" in mapped and sum(f.read is not None for f in fitting) != 1):
        return NATIVE
    if len(fitting) != 1:
        raise _undecided(name, seen, fitting)
    if fitting[0].read is None:
        raise InputError(f"{name}: this is {fitting[0].id}: {fitting[0].note}")
    return fitting[0]


def _undecided(name: str, seen: Look, fitting: list[Format]) -> InputError:
    columns = ", ".join(sorted(seen.columns)) or "(none)"
    choices = {f.id: f.note for f in fitting} or next((c for test, c in AMBIGUOUS if test(seen)), {})
    if choices:
        listed = "; ".join(f"--format {_short(c, choices)} ({why})" for c, why in choices.items())
        return InputError(
            f"{name}: columns {columns} fit more than one tool; choose {listed}; or name the columns: "
            "--map question=COLUMN --map answer=COLUMN"
        )
    near = next((c for c in sorted(seen.columns) if did_you_mean(c, ["question"])), "COLUMN")
    return InputError(
        f"{name}: no `question` column and no known export; columns: {columns}; pass --map question={near} "
        f"(and answer=, contexts=), or --format with one of {', '.join(names())}"
    )


def _wanted(name: str, seen: Look, wanted: str, fitting: list[Format]) -> list[Format]:
    if wanted not in names():
        raise UsageError(
            f"--format {wanted}: unknown{did_you_mean(wanted, names())}; "
            f"known: jsonl, json, csv, tsv, parquet, beir, {', '.join(names())}"
        )
    exact = [f for f in FORMATS if f.id == wanted]
    possible = {c for test, choices in AMBIGUOUS if test(seen) for c in choices}
    of_family = [f for f in fitting if f.family == wanted] or [
        f for f in FORMATS if f.family == wanted and f.id in possible
    ]
    if not exact and not of_family:
        raise InputError(f"{name}: not a {wanted} export; columns: {', '.join(sorted(seen.columns))}")
    return exact or of_family


def _short(choice: str, choices: Iterable[str]) -> str:
    family = choice.partition(".")[0]
    alone = sum(c.partition(".")[0] == family for c in choices) == 1
    return family if alone else choice
