"""Files as other tools write them give exactly the expected cases, or are refused in words.

`tests/data/imports/expected.json` says for each file what has to come out; each kind of expectation is one test here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.cases import Case, read_cases
from judge.errors import InputError, UsageError
from judge.imports.cells import parse_cell, text_or_list
from judge.retrieval.trec import read_qrels, read_ranking

DATA = Path(__file__).parent / "data" / "imports"
FILES: dict[str, dict] = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))["files"]

KINDS = {
    "cases", "cases_single_joined_context", "cases_without_contexts", "cases_with_row_errors", "error",
    "error_or_choice", "error_or_exact_cases", "labels_only", "qrels_only", "run_only",
}  # fmt: skip
CHOICES = {
    "deepeval/goldens.csv": {"map": {"context_delimiter": "|"}},
    "deepeval/goldens.jsonl": {"map": {"context_delimiter": "|"}},
    "deepeval/goldens_with_test_cases.csv": {"map": {"context_delimiter": "|"}},
    "deepeval/goldens_with_test_cases.jsonl": {"map": {"context_delimiter": "|"}},
    "langsmith/examples_inputs_outputs.jsonl": {"format": "langsmith"},
    "phoenix_evals/document_relevance_legacy_reference_column.csv": {"format": "phoenix.document_relevance"},
}


def files(*kinds: str) -> list[str]:
    return [name for name, entry in FILES.items() if entry["expect"] in kinds]


def load(name: str, **options) -> list[Case]:
    return list(read_cases(DATA / name, notes=[], **options))


def as_expected(case: Case, expected: dict) -> dict:
    """The case, written with the keys and conventions of expected.json; only keys that the expectation has."""
    contexts, relevant = case.contexts, case.relevant or ()
    scores = {item.id: item.score for item in case.ranking() or ()}
    foreign = case.metadata.get("foreign", {})
    made = {
        "id": case.id,
        "question": case.question,
        "answer": case.answer,
        "contexts": None if contexts is None else [
            {"id": c.id, "text": c.text, "joined": c.joined, "score": scores.get(c.id)} for c in contexts
        ],
        "reference": case.reference if case.reference is None or len(case.reference) > 1 else case.reference[0],
        "retrieved": None if case.ranking() is None else [item.id for item in case.ranking()],
        "reference_contexts": None if case.relevant is None else [label.text for label in relevant],
        "relevant": {label.doc: label.grade for label in relevant},
        "metadata": {k: v for k, v in case.metadata.items() if k not in ("foreign", "context_fields")},
        "scores": foreign.get("scores", {}),
        "labels": foreign.get("labels", {}),
    }  # fmt: skip
    made = {key: list(value) if isinstance(value, tuple) else value for key, value in made.items() if key in expected}
    if isinstance(expected.get("relevant"), list):
        made["relevant"] = list(made["relevant"])
        if expected["relevant"] and isinstance(expected["relevant"][0], int):
            made["relevant"] = [[c.id for c in contexts].index(name) for name in made["relevant"]]
    if made.get("contexts") and expected["contexts"]:
        made["contexts"] = [
            {key: value for key, value in item.items() if key in wanted}
            for item, wanted in zip(made["contexts"], expected["contexts"], strict=True)
        ]
    return made


def rounded(value):
    """Scores drift in some exports (0.95 and 0.9500000000000001); numbers are compared to 1e-9."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return pytest.approx(value, abs=1e-9) if isinstance(value, float) else value


def plain(wanted: dict) -> dict:
    """The expectation without its remarks: a glued text is what splitting at every `|` gives, null metadata is absent."""
    made = {key: value for key, value in wanted.items() if key != "ambiguous"}
    for key in ("contexts", "reference_contexts"):
        remark = made.get(key)
        if isinstance(remark, dict):
            pieces = remark["value"] if "value" in remark else remark["raw"].split("|")
            made[key] = pieces if key == "reference_contexts" else [{"text": text} for text in pieces]
    if "metadata" in made:
        made["metadata"] = {key: value for key, value in made["metadata"].items() if value is not None}
    return made


def check(cases: list[Case], expected: list[dict]) -> None:
    assert len(cases) == len(expected)
    for case, wanted in zip(cases, map(plain, expected), strict=True):
        assert as_expected(case, wanted) == rounded(wanted)


def test_every_kind_of_expectation_has_a_test() -> None:
    assert {entry["expect"] for entry in FILES.values()} == KINDS


@pytest.mark.parametrize("name", files("cases", "cases_single_joined_context", "error_or_exact_cases"))
def test_a_file_gives_exactly_its_cases(name: str) -> None:
    check(load(name), FILES[name]["cases"])


@pytest.mark.parametrize("name", files("cases_without_contexts"))
def test_a_file_without_contexts_gives_cases_whose_contexts_are_not_recorded(name: str) -> None:
    cases = load(name)
    check(cases, FILES[name]["cases"])
    assert all(case.contexts is None for case in cases)


@pytest.mark.parametrize("name", files("error", "labels_only"))
def test_a_file_that_holds_no_cases_is_refused_with_its_kind(name: str) -> None:
    with pytest.raises(InputError) as error:
        load(name)
    assert Path(name).name in str(error.value)
    assert FILES[name]["format"] in str(error.value)


@pytest.mark.parametrize("name", files("error_or_choice"))
def test_an_ambiguous_file_is_refused_with_the_choices_and_each_choice_works(name: str) -> None:
    entry = FILES[name]
    with pytest.raises(InputError) as error:
        load(name)
    assert Path(name).name in str(error.value)
    assert "--format" in str(error.value) or "--map context_delimiter" in str(error.value)
    check(load(name, **CHOICES[name]), entry.get("cases_if_split") or entry["cases"])


@pytest.mark.parametrize("name", [name for name in files("error_or_choice") if FILES[name].get("ambiguous_rows")])
def test_a_refusal_for_glued_passages_names_exactly_the_rows_that_cannot_be_split(name: str) -> None:
    with pytest.raises(InputError) as error:
        load(name)
    assert len(error.value.rows) == len(FILES[name]["ambiguous_rows"])


@pytest.mark.parametrize("name", files("cases_with_row_errors"))
def test_source_markers_split_safely_and_only_the_gold_column_of_one_row_is_refused(name: str) -> None:
    with pytest.raises(InputError) as error:
        load(name)
    assert len(error.value.rows) == 1
    assert " context: " in error.value.rows[0]
    cases = load(name, map={"context_delimiter": "|"})
    sure = [n for n, wanted in enumerate(FILES[name]["cases"]) if wanted["id"] != "q2"]
    check([cases[n] for n in sure], [FILES[name]["cases"][n] for n in sure])
    assert [c.id for c in cases[1].contexts] == ["d-21", "d-22"]


@pytest.mark.parametrize("name", files("qrels_only", "run_only"))
def test_a_trec_file_is_no_cases_file_and_says_where_it_belongs(name: str) -> None:
    with pytest.raises(InputError, match=r"no questions.*judge retrieval --(qrels|ranking)"):
        load(name)


@pytest.mark.parametrize("name", files("qrels_only"))
def test_qrels_keep_zero_and_negative_grades(name: str) -> None:
    assert read_qrels(DATA / name) == {case["id"]: case["relevant"] for case in FILES[name]["cases"]}


@pytest.mark.parametrize("name", files("run_only"))
def test_a_run_is_ordered_by_score_and_ties_stay_in_file_order(name: str) -> None:
    expected = {c["id"]: [(item["id"], item["score"]) for item in c["retrieved"]] for c in FILES[name]["cases"]}
    ranked = read_ranking(DATA / name)
    assert {query: list(zip(r.ids, r.scores, strict=True)) for query, r in ranked.items()} == expected


def test_python_literal_eval_would_glue_numpy_lists_and_we_keep_every_passage() -> None:
    lengths = [len(case.contexts) for case in load("ragas/hf_dataset.csv")]
    assert lengths == [2, 2, 1, 1, 0, 1, 1, 3]
    assert FILES["ragas/hf_dataset.csv"]["literal_eval_lengths_WRONG"] == [1, 1, 1, 1, 0, 1, 1, 1]


def test_what_was_mapped_is_said_once_and_names_the_format() -> None:
    notes: list[str] = []
    list(read_cases(DATA / "deepeval" / "goldens.json", notes=notes))
    assert [
        note for note in notes if "read as deepeval.goldens" in note and "answer <- actual_output" in note
    ] == notes[:1]


def test_foreign_scores_never_become_labels() -> None:
    for name in (
        "trulens/records_and_feedback.csv",
        "phoenix_evals/evals_result.csv",
        "langsmith/experiment_to_pandas.csv",
    ):
        assert all(case.labels == {} and "scores" in case.metadata["foreign"] for case in load(name))


def test_ids_that_are_needed_to_push_results_back_are_kept() -> None:
    fields = load("phoenix/spans_dataframe.csv")[0].metadata["foreign"]["fields"]
    assert set(fields) == {"context.trace_id", "context.span_id", "retriever_span_id"}
    assert (
        load("langsmith/experiment_to_pandas.csv")[0].metadata["foreign"]["fields"]["example_id"].startswith("dc822c70")
    )


def rows_of(tmp_path: Path, text: str, **options) -> list[Case]:
    path = tmp_path / "export.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return list(read_cases(path, notes=[], **options))


def test_constructor_calls_in_a_cell_are_refused_not_evaluated(tmp_path: Path) -> None:
    cell = "[Document(id='d-1', page_content='x')]"
    with pytest.raises(InputError, match="constructor calls are not read"):
        rows_of(tmp_path, f'user_input,response,retrieved_contexts\nq,a,"{cell}"\n')
    with pytest.raises(InputError, match="constructor calls are not read"):
        rows_of(tmp_path, "question,contexts\nq,\"[__import__('os').getcwd()]\"\n")


@pytest.mark.parametrize(
    ("cell", "rule"),
    [
        ("['a' ... 'z']", "shortened with '...'"),
        ("['a', 'b' 'c']", "without commas"),
        ("[1 2 3]", "without commas"),
        ("['a', 'b'", "not a complete list"),
        ("plain words", "must hold JSON"),
    ],
)
def test_a_list_cell_that_is_no_plain_list_is_refused_with_the_rule(tmp_path: Path, cell: str, rule: str) -> None:
    with pytest.raises(InputError) as error:
        rows_of(tmp_path, f'user_input,response,retrieved_contexts\nq,a,"{cell}"\n')
    assert rule in str(error.value)
    assert "export.csv:2 retrieved_contexts" in error.value.rows[0]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text()))
def test_lists_of_text_come_back_from_json_python_and_numpy_cells(items: list[str]) -> None:
    assert parse_cell("c", json.dumps(items)) == items
    assert parse_cell("c", repr(items)) == items
    assert parse_cell("c", f"[{' '.join(map(repr, items))}]") == items


@pytest.mark.parametrize("cell", ["[1]", "[]", "[see page 4]", "['a', 1]", "1931", "", "['a'"])
def test_a_reference_cell_that_is_no_list_of_strings_stays_text(cell: str) -> None:
    assert text_or_list(cell) == cell


def test_the_other_reading_of_inputs_and_outputs_makes_outputs_the_answer() -> None:
    rows = [{"inputs": {"question": "q"}, "outputs": {"answer": "1931"}}]
    (read_as_answer,) = read_cases(rows, format="mlflow", notes=[])
    (read_as_reference,) = read_cases(rows, format="langsmith", notes=[])
    assert (read_as_answer.answer, read_as_answer.reference) == ("1931", None)
    assert (read_as_reference.answer, read_as_reference.reference) == (None, ("1931",))


def test_map_overrides_one_field_of_a_recognised_export(tmp_path: Path) -> None:
    text = "user_input,response,better\nq,first,second\n"
    assert rows_of(tmp_path, text)[0].answer == "first"
    assert rows_of(tmp_path, text, map={"answer": "better"})[0].answer == "second"


def test_map_alone_reads_a_file_no_rule_knows(tmp_path: Path) -> None:
    case = rows_of(tmp_path, "prompt,reply,team\nq,a,ops\n", map={"question": "prompt", "answer": "reply"})[0]
    assert (case.question, case.answer, case.metadata) == ("q", "a", {"team": "ops"})


def test_a_dotted_path_maps_a_key_inside_an_object() -> None:
    rows = [{"inputs": {"user": "q", "tone": "kind"}, "outputs": {"text": "a"}, "expectations": {}}]
    with pytest.raises(InputError, match=r"--map question=inputs\.KEY"):
        list(read_cases(rows, notes=[]))
    (case,) = read_cases(rows, map={"question": "inputs.user"}, notes=[])
    assert case.question == "q"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map": {"anwser": "reply"}}, "did you mean `answer`"),
        ({"map": {"answer": "repyl"}}, "did you mean `reply`"),
        ({"format": "ragsa"}, "did you mean `ragas`"),
        ({"map": {"question": "prompt", "context_delimiter": "|"}}, "only for DeepEval"),
    ],
)
def test_a_mistyped_option_is_a_usage_error_with_a_suggestion(tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rows_of(tmp_path, "prompt,reply\nq,a\n", **options)


def test_an_unknown_table_lists_its_columns_and_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"columns: Qustion, reply; pass --map question=Qustion"):
        rows_of(tmp_path, "Qustion,reply\nq,a\n")


def test_a_forced_format_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a trulens export; columns: prompt, reply"):
        rows_of(tmp_path, "prompt,reply\nq,a\n", format="trulens")


def test_ragas_ids_and_passages_of_different_number_are_refused() -> None:
    row = {"user_input": "q", "response": "a", "retrieved_contexts": ["x", "y"], "retrieved_context_ids": ["1"]}
    with pytest.raises(InputError, match="1 ids for 2 retrieved_contexts"):
        list(read_cases([row], notes=[]))


def test_a_trace_without_a_root_span_is_a_named_problem() -> None:
    span = {"context.span_id": "s", "context.trace_id": "t", "span_kind": "CHAIN", "parent_id": "p"}
    with pytest.raises(InputError, match="trace 't' has 0 root spans"):
        list(read_cases([span], notes=[]))


def test_a_beir_folder_without_a_run_records_no_contexts(tmp_path: Path) -> None:
    for name in ("corpus.jsonl", "queries.jsonl"):
        (tmp_path / name).write_bytes((DATA / "beir" / name).read_bytes())
    cases = list(read_cases(tmp_path, notes=[]))
    assert [case.id for case in cases] == [f"q{n}" for n in range(1, 9)]
    assert all(case.contexts is None and case.ranking() is None and case.relevant is None for case in cases)


def test_a_run_that_names_an_unknown_document_is_refused(tmp_path: Path) -> None:
    for name in ("corpus.jsonl", "queries.jsonl"):
        (tmp_path / name).write_bytes((DATA / "beir" / name).read_bytes())
    (tmp_path / "run.trec").write_text("q1 Q0 d-99 1 0.5 x\n")
    with pytest.raises(InputError, match=r"'d-99' of query 'q1' is not in corpus\.jsonl"):
        list(read_cases(tmp_path, notes=[]))


def test_one_text_where_openevals_has_a_list_becomes_one_joined_passage() -> None:
    rows = [{"inputs": {"q": "q"}, "outputs": {"a": "a"}, "reference_outputs": {"a": "r"}, "context": "x\n\ny"}]
    (case,) = read_cases(rows, notes=[])
    assert [(c.text, c.joined) for c in case.contexts] == [("x\n\ny", True)]


def test_a_deepeval_test_run_gives_answers_and_keeps_its_scores_apart() -> None:
    tested = {
        "name": "t1", "input": "q", "actualOutput": "a", "expectedOutput": "r", "retrievalContext": ["x|y"],
        "context": ["gold"], "metricsData": [{"name": "Faithfulness", "score": 0.5}], "success": True,
    }  # fmt: skip
    (case,) = read_cases([tested], notes=[])
    assert (case.id, case.question, case.answer, case.reference) == ("t1", "q", "a", ("r",))
    assert [c.text for c in case.contexts] == ["x|y"]
    assert [label.text for label in case.relevant] == ["gold"]
    assert case.metadata["foreign"] == {"scores": {"Faithfulness": 0.5}, "fields": {"success": True}}


def test_a_phoenix_experiment_is_never_read_as_a_dataset_whose_output_is_the_reference() -> None:
    rows = [
        {"example_id": "e", "repetition_number": 1, "input": {"q": "q"}, "output": "a", "reference_output": {"r": "r"}}
    ]
    with pytest.raises(InputError, match=r"phoenix\.experiment"):
        list(read_cases(rows, notes=[]))
    mapping = {"question": "input.q", "answer": "output", "reference": "reference_output.r"}
    (case,) = read_cases(rows, map=mapping, notes=[])
    assert (case.question, case.answer, case.reference) == ("q", "a", ("r",))


def test_our_own_question_column_wins_over_columns_that_other_tools_use() -> None:
    (case,) = read_cases([{"question": "q", "answer": "a", "input": "i", "output": "o", "context": "c"}], notes=[])
    assert (case.question, case.answer, case.contexts) == ("q", "a", None)
    assert case.metadata == {"input": "i", "output": "o", "context": "c"}


def test_a_named_index_of_a_dataframe_is_a_column() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"input": ["q"], "output": ["a"], "context": ["x"]})
    frame.index = pandas.Index(["span-1"], name="context.span_id")
    (case,) = read_cases(frame, notes=[])
    assert (case.id, case.contexts[0].joined) == ("span-1", True)
