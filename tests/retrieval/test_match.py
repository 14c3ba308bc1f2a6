"""Chunks, documents, passages: what finds a label, what survives a re-chunking, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.errors import InputError
from judge.retrieval import evaluate
from judge.retrieval.chunks import chunk_map_of
from judge.retrieval.match import tokens

WARRANTY = "The warranty period is 24 months from the date of purchase."
RETURNS = "Returns are accepted within 30 days in the original packaging."


def one(items: list[Any], labels: list[Any], k: int = 3, **options: Any) -> dict[str, float | None]:
    return evaluate({"q": items}, {"q": labels}, k=k, **options).per_query["q"]


def test_re_chunking_changes_nothing_for_text_and_offset_labels() -> None:
    document = f"Terms. {WARRANTY} {RETURNS} Damage caused by misuse is not covered."
    start = document.index(WARRANTY)
    labels = [{"text": WARRANTY}, {"doc": "D1", "start": start, "end": start + len(WARRANTY)}]
    for size in (40, 65, 200):
        cuts = range(0, len(document), size)
        items = [
            {
                "id": f"new-{size}-{a}",
                "doc": "D1",
                "start": a,
                "end": min(a + size, len(document)),
                "text": document[a : a + size],
            }
            for a in cuts
        ]
        assert one(items, labels, k=10)["recall@10"] == 1.0


def test_an_item_that_finds_two_labels_is_one_gain_and_one_ideal_unit() -> None:
    # c1 finds grades 1 and 3 at once: gain 3; the ideal list is [3 (merged), 2]
    items = [{"id": "c1", "text": f"{WARRANTY} {RETURNS}"}, {"id": "c2", "text": "Nothing about it here."}]
    labels = [{"text": WARRANTY, "grade": 1}, {"text": RETURNS, "grade": 3}, {"doc": "D9", "grade": 2}]
    values = one(items, labels)
    assert values["dcg@3"] == pytest.approx(3.0)
    assert values["ndcg@3"] == pytest.approx(3 / (3 + 2 / 1.584962500721156))
    assert values["recall@3"] == pytest.approx(2 / 3)
    assert values["ap@3"] == pytest.approx(1 / 2)


def test_a_second_chunk_of_a_found_document_is_relevant_but_redundant() -> None:
    items = [{"id": "D1#0", "doc": "D1"}, {"id": "D1#1", "doc": "D1"}, {"id": "D2#0", "doc": "D2"}]
    values = one(items, ["D1"])
    assert (values["precision@3"], values["redundancy@3"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert values["context_precision"] == 1.0


def test_the_first_part_of_a_long_label_is_relevant_and_not_redundant() -> None:
    items = [{"id": "a", "doc": "D", "start": 0, "end": 200}, {"id": "b", "doc": "D", "start": 100, "end": 200}]
    values = one(items, [{"doc": "D", "start": 0, "end": 1000}], k=2)
    assert (values["precision@2"], values["redundancy@2"], values["coverage@2"]) == (1.0, 0.5, 0.2)


def test_every_number_of_a_passage_must_be_there() -> None:
    label = [{"text": "Between 2019 and 2024 the city of Brackwater planted 310 lime trees along the canal."}]
    near = "Between 2019 and 2024 the city of Brackwater planted 301 lime trees along the canal."
    assert one([{"id": "c", "text": near}], label)["recall@3"] == 0.0
    assert one([{"id": "c", "text": near.replace("301", "310")}], label)["recall@3"] == 1.0


def test_scripts_without_spaces_match_by_character() -> None:
    assert tokens("港口站") == ("港", "口", "站")
    items = [{"id": "c", "text": "时刻表。港口站平日末班二十三点开出。周日停运。"}]
    assert one(items, [{"text": "港口站平日末班二十三点开出"}])["recall@3"] == 1.0
    assert tokens("Straße №5") == ("strasse", "no5")


def test_unit_doc_collapses_chunks_to_the_rank_of_the_first() -> None:
    items = [
        {"id": "D1#0", "doc": "D1"},
        {"id": "D1#3", "doc": "D1"},
        {"id": "D5#1", "doc": "D5"},
        {"id": "D2#2", "doc": "D2"},
    ]
    values = one(items, ["D1", "D2"], unit="doc")
    assert (values["recall@3"], values["precision@3"], values["rr"]) == (1.0, pytest.approx(2 / 3), 1.0)
    assert one(items, ["D1", "D2"], unit="chunk")["recall@3"] == 0.5


def test_unit_doc_is_the_same_for_bare_ids() -> None:
    ranking, labels = ["a", "b", "a", "c"], {"a": 2, "c": 1}
    for duplicates in ("first", "credit_once"):
        by_unit = [
            dict(evaluate({"q": ranking}, {"q": labels}, duplicates=duplicates, unit=unit).per_query)
            for unit in ("chunk", "doc")
        ]
        assert by_unit[0] == by_unit[1]


def test_the_document_of_an_id_comes_from_a_declared_pattern() -> None:
    assert one(["D1#0", "D5#1", "D2#2"], ["D2"], doc_pattern=r"^(.*)#\d+$")["rr"] == pytest.approx(1 / 3)
    assert one(["D1#0", "D5#1", "D2#2"], ["D2"])["rr"] == 0.0


def test_the_chunk_map_gives_documents_offsets_and_texts(tmp_path: Path) -> None:
    chunk_map = {
        "c1": {"doc": "D1", "start": 0, "end": 60, "text": RETURNS},
        "c2": {"doc": "D1", "start": 60, "end": 120, "text": WARRANTY},
    }
    labels = [{"text": WARRANTY}, {"doc": "D1", "start": 70, "end": 110}, {"chunk": "c2"}]
    as_object, as_lines = tmp_path / "map.json", tmp_path / "map.jsonl"
    as_object.write_text(json.dumps(chunk_map))
    as_lines.write_text("\ufeff" + "".join(json.dumps({"id": i, **chunk}) + "\n" for i, chunk in chunk_map.items()))
    for given in (chunk_map, as_object, str(as_lines)):
        result = evaluate({"q": ["c1", "c2"]}, {"q": labels}, k=2, chunk_map=given)
        assert [match.found_at for match in result.matches["q"]] == [2, 2, 2]
        assert result.conventions["chunk_map"] == "2 chunks"


def test_a_chunk_map_entry_whose_id_is_no_id_is_named(tmp_path: Path) -> None:
    path = tmp_path / "map.jsonl"
    path.write_text('{"id": ["c1"], "doc": "D1"}\n')
    with pytest.raises(InputError, match="entry 1"):
        chunk_map_of(path)


def test_stale_chunk_labels_are_named_with_the_map_and_zero_when_asked() -> None:
    chunk_map = {"n1": {"doc": "D1"}, "n2": {"doc": "D1"}}
    labels = {"q": [{"chunk": "n1"}], "r": [{"chunk": "c17"}]}
    rankings = {"q": ["n1"], "r": ["n2"]}
    with pytest.raises(InputError, match=r"(?s)1 of 2 chunk labels are not in the chunk map.*query 'r': chunk 'c17'"):
        evaluate(rankings, labels, chunk_map=chunk_map)
    result = evaluate(rankings, labels, chunk_map=chunk_map, stale="zero")
    assert result.measures["recall@5"].value == 0.5
    assert any("stale=zero" in text for text in result.warnings)


def test_a_chunk_label_that_was_just_not_retrieved_is_a_miss_not_an_error() -> None:
    assert one(["c1", "c9"], [{"chunk": "c1"}, {"chunk": "c2"}])["recall@3"] == 0.5


def test_labels_that_the_items_cannot_be_checked_against_are_errors() -> None:
    with pytest.raises(InputError, match="is a text, but item 'c1' has no text"):
        one(["c1"], [{"text": WARRANTY}])
    with pytest.raises(InputError, match="is an offset range, but item 'D1' of that document has no start and end"):
        one(["D1"], [{"doc": "D1", "start": 0, "end": 10}])
    with pytest.raises(InputError, match="has no words"):
        one([{"id": "c1", "text": "words"}], [{"text": "..."}])
    with pytest.raises(InputError, match=r"(?s)beyond their document.*D1\[0,900\), but its chunks end at 60"):
        one(["c1"], [{"doc": "D1", "start": 0, "end": 900}], chunk_map={"c1": {"doc": "D1", "start": 0, "end": 60}})
    with pytest.raises(InputError, match="names no doc"):
        one([{"id": "c1", "text": "words", "doc": "D1"}], [{"text": WARRANTY}], unit="doc")
    with pytest.raises(InputError, match="a label with `chunk` takes only `grade`"):
        one(["c1"], [{"chunk": "c1", "doc": "D1"}])


def test_short_text_labels_are_doubted() -> None:
    result = evaluate({"q": [{"id": "a", "text": "Paris is the capital."}]}, {"q": [{"text": "Paris"}]})
    assert any("fewer than 5 words" in text for text in result.warnings)


def test_repeated_chunks_are_dropped_or_keep_their_slot() -> None:
    items = [{"id": "c1", "doc": "D1"}, {"id": "c1", "doc": "D1"}, {"id": "c2", "doc": "D2"}]
    assert one(items, ["D2"])["rr"] == 0.5
    assert one(items, ["D2"], duplicates="credit_once")["rr"] == pytest.approx(1 / 3)
    assert evaluate({"q": items}, {"q": ["D2"]}).n_duplicates == 1
    with pytest.raises(InputError, match="id 'c1' comes 2 times"):
        one(items, ["D2"], duplicates="error")


def test_judged_only_drops_items_that_touch_no_label() -> None:
    items = [{"id": "x", "doc": "D7"}, {"id": "n", "doc": "D3"}, {"id": "a", "doc": "D1"}]
    assert one(items, [{"doc": "D1"}, {"doc": "D3", "grade": 0}], judged_only=True)["rr"] == 0.5


def test_averaging_over_ties_is_refused_for_passages() -> None:
    items = [{"id": "c1", "doc": "D1", "score": 1.0}, {"id": "c2", "doc": "D1", "score": 1.0}]
    with pytest.raises(InputError, match="equal scores"):
        one(items, ["D1"], ties="expected")
    assert one(items, ["D1"], ties="expected", unit="doc")["rr"] == 1.0


def test_every_label_reports_the_item_that_found_it_and_its_coverage() -> None:
    items = [
        {"id": "c1", "text": "... Terms. The warranty period is 24 months from"},
        {"id": "c2", "text": "the date of purchase. Damage caused by misuse is not covered."},
    ]
    found, missed = evaluate({"q": items}, {"q": [{"text": WARRANTY}, {"text": RETURNS}]}).matches["q"]
    assert (found.found_at, found.item, found.coverage) == (2, "c2", 1.0)
    assert (missed.found_at, missed.item, missed.coverage) == (None, None, 0.0)
    by_id = evaluate({"q": ["x", "a"]}, {"q": {"a": 2, "b": 1}}).matches["q"]
    assert [(m.label, m.found_at, m.item) for m in by_id] == [("a", 2, "a"), ("b", None, None)]
