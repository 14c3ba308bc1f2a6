"""A case file gives exactly what was written in it, or one error that lists every bad row before anything is spent."""

from __future__ import annotations

import io
import json
import stat
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path

import pytest
from pydantic import ValidationError

from judge.cases import Case, Context, Label, Nugget, RetrievedItem, load_normalised, normalise, read_cases
from judge.errors import InputError, UsageError


def written(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def jsonl(tmp_path: Path, *rows: dict) -> Path:
    return written(tmp_path, "cases.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def cases_of(source, notes: list[str] | None = None, **options) -> list[Case]:
    return list(read_cases(path=source, notes=[] if notes is None else notes, **options))


def refused(source, **options) -> InputError:
    with pytest.raises(InputError) as error:
        cases_of(source, **options)
    return error.value


# --- the model -----------------------------------------------------------------------------------------------------


def test_short_forms_become_the_one_long_form() -> None:
    case = Case.from_row(
        {
            "question": "q",
            "contexts": ["a", {"text": "b", "doc": "D"}, {"id": 7, "text": "c"}],
            "reference": "r",
            "nuggets": ["n", {"nugget": "m", "importance": "okay"}],
            "answerable": False,
            "retrieved": ["x", {"id": "y", "score": 0.5}],
            "relevant": ["d", {"chunk": "k", "grade": 2}],
            "tags": "slow",
            "labels": {"faithfulness": 4, "tone": {"ann": "kind", "bob": None}},
        }
    )
    assert case.contexts == (Context(id="c1", text="a"), Context(id="c2", text="b", doc="D"), Context(id="7", text="c"))
    assert case.reference == ("r",)
    assert case.nuggets == (Nugget(nugget="n"), Nugget(nugget="m", importance="okay"))
    assert case.answerable == "no"
    assert case.retrieved == (RetrievedItem(id="x"), RetrievedItem(id="y", score=0.5))
    assert case.relevant == (Label(doc="d"), Label(chunk="k", grade=2))
    assert case.tags == ("slow",)
    assert case.labels == {"faithfulness": {"human": 4}, "tone": {"ann": "kind"}}


def test_a_case_survives_its_row_and_the_row_is_plain_json() -> None:
    case = Case(
        question="q", answer="", contexts=["a"], relevant=[{"text": "t"}], metadata={"none": None}, as_of="2026-11-30"
    )
    row = json.loads(json.dumps(case.to_row()))
    assert Case.from_row(row) == case
    assert (row["answer"], row["metadata"], row["as_of"]) == ("", {"none": None}, "2026-11-30")


def test_contexts_that_are_null_or_absent_differ_from_an_empty_list() -> None:
    assert Case(question="q").contexts is None
    assert Case(question="q", contexts=None).contexts is None
    assert Case(question="q", contexts=[]).contexts == ()
    assert Case.from_row(Case(question="q", contexts=[]).to_row()).contexts == ()


@pytest.mark.parametrize("answer", [None, "", "  ", "\n"])
def test_a_missing_or_blank_answer_is_kept_as_it_is(answer: str | None) -> None:
    assert Case.from_row(Case(question="q", answer=answer).to_row()).answer == answer


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ({"doc": "d"}, "doc"),
        ({"chunk": "c"}, "chunk"),
        ({"text": "t"}, "text"),
        ({"text": "t", "doc": "d"}, "text"),
        ({"doc": "d", "start": 0, "end": 5}, "offset"),
    ],
)
def test_a_label_has_one_of_four_kinds(label: dict, kind: str) -> None:
    assert Label(**label).kind == kind
    assert Label(**label).grade == 1


@pytest.mark.parametrize(
    "label",
    [{}, {"grade": 1}, {"chunk": "c", "doc": "d"}, {"doc": "d", "start": 1}, {"start": 0, "end": 2},
     {"doc": "d", "start": 5, "end": 5}, {"text": "t", "start": 0, "end": 1}, {"doc": "d", "start": -1, "end": 2}],
)  # fmt: skip
def test_a_label_that_mixes_or_lacks_kinds_is_refused(label: dict) -> None:
    with pytest.raises(ValidationError):
        Label(**label)


def test_the_ranking_is_retrieved_else_the_contexts_else_unknown() -> None:
    assert Case(question="q", contexts=["a"], retrieved=["x", "x"]).ranking() == (RetrievedItem(id="x"),) * 2
    assert Case(question="q", contexts=["a"]).ranking() == (RetrievedItem(id="c1", text="a"),)
    assert Case(question="q", contexts=[]).ranking() == ()
    assert Case(question="q").ranking() is None


def test_a_case_is_frozen() -> None:
    with pytest.raises(ValidationError):
        Case(question="q").answer = "a"


def test_the_content_hash_sees_what_a_judge_sees_and_nothing_else() -> None:
    case = Case(question="q", answer="a", contexts=["x"])
    beside = Case(id="other", question="q", answer="a", contexts=["x"], labels={"f": 1}, system="s", tags=["t"],
                  metadata={"k": 1}, feedback=True, latency_s=1, cost_usd=0, split="dev")  # fmt: skip
    assert beside.content_hash() == case.content_hash()
    for changed in ({"answer": "b"}, {"answer": ""}, {"contexts": ["y"]}, {"contexts": []}, {"reference": "r"}):
        assert (
            Case(**{"question": "q", "answer": "a", "contexts": ["x"], **changed}).content_hash() != case.content_hash()
        )


# --- ids -----------------------------------------------------------------------------------------------------------


def test_a_missing_id_is_the_content_hash_and_copies_are_numbered(tmp_path: Path) -> None:
    notes: list[str] = []
    cases = cases_of(jsonl(tmp_path, *[{"question": "q"}] * 3, {"question": "p", "id": "mine"}), notes)
    digest = Case(question="q").content_hash()[:12]
    assert [case.id for case in cases] == [digest, f"{digest}#2", f"{digest}#3", "mine"]
    assert [note for note in notes if "3 cases without id" in note] == notes


def test_a_generated_id_steps_aside_for_one_that_was_given(tmp_path: Path) -> None:
    digest = Case(question="q").content_hash()[:12]
    cases = cases_of(jsonl(tmp_path, {"question": "p", "id": f"{digest}#2"}, {"question": "q"}, {"question": "q"}))
    assert [case.id for case in cases] == [f"{digest}#2", digest, f"{digest}#3"]


def test_a_repeated_id_is_refused_and_both_places_are_named(tmp_path: Path) -> None:
    error = refused(jsonl(tmp_path, {"id": "a", "question": "q"}, {"question": "x"}, {"id": "a", "question": "q"}))
    assert error.rows == ["cases.jsonl:3 id: 'a', used before at cases.jsonl:1; ids are unique, rename one"]


def test_two_rows_may_ask_the_same_question(tmp_path: Path) -> None:
    assert len(cases_of(jsonl(tmp_path, {"id": "a", "question": "q"}, {"id": "b", "question": "q"}))) == 2


def test_ids_stay_text_and_a_number_in_json_becomes_its_text(tmp_path: Path) -> None:
    assert [c.id for c in cases_of(written(tmp_path, "c.csv", "id,question\n007,q\n1.0,q\nNone,q\n"))] == [
        "007",
        "1.0",
        "None",
    ]
    assert cases_of(jsonl(tmp_path, {"id": 7, "question": "q", "relevant": [3]}))[0].relevant == (Label(doc="3"),)


def test_a_context_id_that_occurs_twice_in_a_case_is_refused(tmp_path: Path) -> None:
    error = refused(
        jsonl(tmp_path, {"question": "q", "contexts": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]})
    )
    assert "contexts: id 'a' occurs twice" in error.rows[0]


# --- bad rows ------------------------------------------------------------------------------------------------------

BAD = [
    ({"question": 0}, "question: 0, must be text; write it in quotes"),
    ({"question": " "}, "question: ' ', must not be blank"),
    ({"question": "q", "answer": 0}, "answer: 0, must be text; write it in quotes"),
    ({"answer": "a"}, "question: missing, every case needs one; add it or pass --map question=COLUMN"),
    ({"qestion": "q"}, "question: missing, `qestion` looks like it; rename it or pass --map question=qestion"),
    ({"question": "q", "contexts": "ctx"}, "contexts: 'ctx', a list of passages is needed, write [\"...\"]; null = not recorded, [] = none"),
    ({"question": "q", "contexts": [None]}, "contexts.0.text: None, must be text"),
    ({"question": "q", "contexts": [{"id": "a"}]}, "contexts.0.text: {'id': 'a'}, is needed here"),
    ({"question": "q", "labels": {"f": [1]}}, "labels: {'f': [1]}, must be text, a number, true or false; {rubric: label} or {rubric: {rater: label}}"),
    ({"question": "q", "feedback": "good"}, "feedback: 'good', must be a number, true or false"),
    ({"question": "q", "metadata": [1]}, "metadata: [1], must be an object {...}"),
    ({"question": "q", "relevant": [{"doc": "d", "garde": 1}]}, "relevant.0.garde: 1, no such key here"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "line"), BAD)
def test_a_bad_row_is_named_with_field_value_and_rule(tmp_path: Path, row: dict, line: str) -> None:
    assert refused(jsonl(tmp_path, {"question": "fine"}, row)).rows == [f"cases.jsonl:2 {line}"]


def test_all_bad_rows_are_listed_and_the_message_shows_twenty(tmp_path: Path) -> None:
    rows = [{"id": f"n{n}", "question": "q" if n % 2 else 0} for n in range(60)]
    path = written(tmp_path, "c.jsonl", "".join(json.dumps(r) + "\n" for r in rows) + "{broken\n[1]\n")
    error = refused(path)
    assert len(error.rows) == 32
    assert "c.jsonl: 32 of 62 rows cannot be used; nothing was spent" in str(error)
    assert len(str(error).splitlines()) == 1 + 20 + 1
    assert str(error).endswith("... and 12 more")
    assert error.rows[-2].startswith("c.jsonl:61 row: '{broken', not JSON")
    assert error.rows[-1] == "c.jsonl:62 row: [1], a JSON object is needed"


def test_no_case_comes_after_the_first_bad_row(tmp_path: Path) -> None:
    reading = read_cases(jsonl(tmp_path, {"question": "a"}, {"question": 0}, {"question": "b"}), notes=[])
    assert next(reading).question == "a"
    with pytest.raises(InputError):
        next(reading)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"question": "q"}\n{"question": "caf\xe9"}\n', "c.jsonl:2: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        ('{"question": "q"}'.encode("utf-16"), "c.jsonl: the file is UTF-16; save it as UTF-8"),
        (b"", "c.jsonl: no cases in it"),
        (b"\n\n", "c.jsonl: no cases in it"),
    ],
)
def test_a_file_that_cannot_be_read_as_a_whole_says_so(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in str(refused(written(tmp_path, "c.jsonl", content)))


def test_csv_that_is_not_utf8_names_the_line(tmp_path: Path) -> None:
    assert "c.csv:3: byte 0xe9" in str(refused(written(tmp_path, "c.csv", b"question\nq\ncaf\xe9\n")))


def test_a_missing_file_and_a_wrong_type_are_plain_errors(tmp_path: Path) -> None:
    assert "no such file" in str(refused(tmp_path / "nothing.jsonl"))
    with pytest.raises(UsageError, match="a path, a DataFrame or a list of dicts is needed"):
        cases_of(5)
    assert "row: 5, a dict is needed" in refused([{"question": "q"}, 5]).rows[0]


# --- what is kept --------------------------------------------------------------------------------------------------


def test_unknown_fields_go_to_metadata_with_one_warning_and_a_suggestion(tmp_path: Path) -> None:
    notes: list[str] = []
    rows = [{"question": "q", "id": str(n), "anwser": "a", "team": 1, "metadata": {"k": 2}} for n in range(3)]
    cases = cases_of(jsonl(tmp_path, *rows), notes)
    assert cases[0].metadata == {"k": 2, "anwser": "a", "team": 1}
    assert notes == ["cases.jsonl: unknown fields kept under metadata: `anwser` (did you mean `answer`?), `team`"]


def test_unknown_fields_may_hold_objects_lists_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"question": "q", "checks": {"a": 1}, "n": 3}\n{"question": "r", "checks": {"a": 2}, "n": [4]}\n')
    notes: list[str] = []
    assert [case.metadata["n"] for case in read_cases(path, notes=notes)] == [3, [4]]
    assert any("`checks`" in note for note in notes)


def test_an_unknown_field_never_overwrites_metadata(tmp_path: Path) -> None:
    error = refused(jsonl(tmp_path, {"question": "q", "team": 1, "metadata": {"team": 2}}))
    assert "team: 1, also a key of metadata; rename one of the two" in error.rows[0]


def test_scores_of_contexts_become_the_ranking_and_extra_keys_are_kept(tmp_path: Path) -> None:
    contexts = [{"id": "a", "text": "x", "score": 0.9, "lang": "de"}, "y"]
    (case,) = cases_of(jsonl(tmp_path, {"id": "1", "question": "q", "contexts": contexts}))
    assert case.retrieved == (RetrievedItem(id="a", score=0.9), RetrievedItem(id="c2"))
    assert case.metadata == {"context_fields": {"a": {"lang": "de"}}}


def test_without_a_list_for_notes_each_warning_is_given_once(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(read_cases(jsonl(tmp_path, *[{"question": f"q{n}", "team": n} for n in range(5)])))
    assert [str(w.message).partition(": ")[2][:14] for w in caught] == ["unknown fields", "5 cases withou"]


TRICKY = {
    "id": "=SUM(1)",
    "question": 'a,b;c|d "quoted"\nsecond line 🚋 末班电车',
    "answer": "نعم، بعد الساعة\r\nx\ty \\ {x} {{ y }} None",
    "contexts": [{"id": "c1", "text": "| a | b |\n|---|---|"}, {"id": "c2", "text": "None"}, {"id": "c3", "text": " "}],
    "reference": ["[1]"],
    "metadata": {"deep": [1, {"x": None}]},
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_text_survives_jsonl_and_csv_with_bom_and_crlf(tmp_path: Path, newline: str, bom: str) -> None:
    line = json.dumps(TRICKY, ensure_ascii=False)
    (case,) = cases_of(written(tmp_path, "c.jsonl", bom + line + newline))
    assert case.to_row() == TRICKY
    cells = [v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in TRICKY.values()]
    quoted = ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)
    (case,) = cases_of(written(tmp_path, "c.csv", f"{bom}{','.join(TRICKY)}{newline}{quoted}{newline}"))
    assert case.to_row() == TRICKY


def test_csv_cells_keep_text_as_text_and_structures_as_json(tmp_path: Path) -> None:
    header = "question,answer,contexts,answerable,feedback,latency_s,reference,tags,as_of,labels"
    row = (
        'None,0,"[""a"", {""id"": ""z"", ""text"": ""b""}]",true,0.5,1.25,1931,"[""x"", ""y""]",2026-11-30,"{""f"": 3}"'
    )
    (case,) = cases_of(written(tmp_path, "c.csv", f"{header}\n{row}\n"))
    assert (case.question, case.answer, case.reference) == ("None", "0", ("1931",))
    assert [c.id for c in case.contexts] == ["c1", "z"]
    assert (case.answerable, case.feedback, case.latency_s) == ("yes", 0.5, 1.25)
    assert (case.tags, str(case.as_of), case.labels) == (("x", "y"), "2026-11-30", {"f": {"human": 3}})


def test_an_empty_csv_cell_is_an_absent_value(tmp_path: Path) -> None:
    (case,) = cases_of(written(tmp_path, "c.csv", "question,answer,contexts\nq,,\n"))
    assert (case.answer, case.contexts) == (None, None)


def test_a_csv_row_of_another_width_names_its_first_line(tmp_path: Path) -> None:
    error = refused(written(tmp_path, "c.csv", 'question,answer\n"two\nlines",a\nq,a,b\n'))
    assert error.rows == ["c.csv:4 row: 3 cells, the header has 2; quote cells that hold commas"]


def test_a_long_cell_is_read_whole(tmp_path: Path) -> None:
    text = "x" * 300_000
    (case,) = cases_of(written(tmp_path, "c.csv", f"question,answer\nq,{text}\n"))
    assert case.answer == text


def test_semicolon_separated_csv_is_read_and_said(tmp_path: Path) -> None:
    notes: list[str] = []
    (case,) = cases_of(written(tmp_path, "c.csv", "id;question;answer\n1;a,b;c\n"), notes)
    assert (case.question, case.answer) == ("a,b", "c")
    assert notes == ["c.csv: columns are separated by ';', as in the header line"]


@pytest.mark.parametrize(
    "document",
    [
        [{"id": "1", "question": "a"}, {"id": "2", "question": "b"}],
        {"id": ["1", "2"], "question": ["a", "b"]},
        {"id": {"0": "1", "1": "2"}, "question": {"0": "a", "1": "b"}},
    ],
)
def test_json_is_read_as_array_and_as_columns(tmp_path: Path, document: object) -> None:
    assert [(c.id, c.question) for c in cases_of(written(tmp_path, "c.json", json.dumps(document)))] == [
        ("1", "a"),
        ("2", "b"),
    ]


def test_broken_json_names_line_and_column(tmp_path: Path) -> None:
    assert "c.json:2: not JSON" in str(refused(written(tmp_path, "c.json", '[{"question": "q"},\n{oops}]')))


# --- tables from Python, Parquet, standard input -------------------------------------------------------------------


def test_a_dataframe_is_read_with_missing_values_as_absent() -> None:
    pandas = pytest.importorskip("pandas")
    numpy = pytest.importorskip("numpy")
    frame = pandas.DataFrame(
        {
            "id": numpy.array([7, 8]),
            "question": ["q", "p"],
            "answer": ["None", None],
            "contexts": [numpy.array(["a", "b"], dtype=object), None],
            "latency_s": [0.5, float("nan")],
        }
    )
    first, second = cases_of(frame)
    assert (first.id, first.answer, [c.text for c in first.contexts], first.latency_s) == ("7", "None", ["a", "b"], 0.5)
    assert (second.answer, second.contexts, second.latency_s) == (None, None, None)


def test_parquet_keeps_lists_and_nulls(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"id": "1", "question": "q", "contexts": ["a"]}, {"id": "2", "question": "q", "contexts": None}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "c.parquet")
    assert [c.contexts for c in cases_of(tmp_path / "c.parquet")] == [(Context(id="c1", text="a"),), None]


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UsageError, match=r"calibrated-judge\[parquet\]"):
        cases_of(written(tmp_path, "c.parquet", b"PAR1"))


def test_a_file_that_only_looks_like_parquet_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    assert "c.parquet: not a Parquet file" in str(refused(written(tmp_path, "c.parquet", b"PAR1")))


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ('{"question": "q", "answer": "a"}\n{"question": "q", "answer": "b"}\n', ["a", "b"]),
        ('[{"question": "q", "answer": "a"}]', ["a"]),
        ("question,answer\nq,a\n", ["a"]),
    ],
)
def test_standard_input_is_told_apart_by_its_first_character(
    monkeypatch: pytest.MonkeyPatch, text: str, answers: list[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))
    assert [case.answer for case in cases_of("-")] == answers


def test_importing_cases_loads_no_heavy_library() -> None:
    code = "import sys, judge.cases; print([m for m in ('pandas','numpy','pyarrow','litellm','scipy') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


# --- the normalised copy -------------------------------------------------------------------------------------------


def test_the_copy_holds_the_same_cases_and_a_stable_fingerprint(tmp_path: Path) -> None:
    source = jsonl(tmp_path, {"question": "q", "contexts": ["a"], "team": 1}, TRICKY)
    copy = tmp_path / "run" / "cases.jsonl"
    copy.parent.mkdir()
    made = normalise(source, copy)
    assert list(load_normalised(copy)) == cases_of(source)
    assert (made.n, made.note) == (2, None)
    assert ["unknown fields" in text or "without id" in text for text in made.warnings] == [True, True]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    again = normalise(copy, tmp_path / "again.jsonl")
    assert again.fingerprint == made.fingerprint
    assert again.warnings == ()


def test_a_bad_row_leaves_the_destination_untouched_and_no_temporary_file(tmp_path: Path) -> None:
    copy = written(tmp_path, "copy.jsonl", "old\n")
    with pytest.raises(InputError):
        normalise([{"question": "q"}, {"question": 1}], copy)
    assert copy.read_text() == "old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["copy.jsonl"]


def test_a_damaged_copy_names_its_line(tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    normalise([{"question": "q"}, {"question": "p"}], copy)
    copy.write_bytes(copy.read_bytes()[:-5] + b"\n")
    with pytest.raises(InputError, match=r"copy\.jsonl:2: damaged"):
        list(load_normalised(copy))


def test_reading_keeps_only_hashes_of_the_ids_in_memory(tmp_path: Path) -> None:
    line = json.dumps({"question": "q", "answer": "word " * 200, "contexts": ["word " * 100] * 2})
    path = tmp_path / "big.jsonl"
    with path.open("w") as file:
        for n in range(5_000):
            file.write(f'{{"id": "case-{n}", {line[1:]}\n')
    tracemalloc.start()
    try:
        n = sum(1 for _ in read_cases(path, notes=[]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert n == 5_000
    # The file has 10 MB; 5,000 pairs of hash and line number need about 0.6 MB.
    assert peak < path.stat().st_size / 8
