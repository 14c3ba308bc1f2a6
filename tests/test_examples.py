"""The bundled examples keep what their README promises."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from judge.cases import Case, read_cases
from judge.examples import DEMO_IDS, cases_path, path

FILES = ("cases.jsonl", "baseline.jsonl", "improved.jsonl")
RUBRICS = {"faithfulness", "answer_relevance", "completeness", "citation_accuracy", "refusal_correctness"}
KINDS = {
    "good", "altered_number", "altered_name", "altered_date", "altered_direction", "extra_claim", "contradiction",
    "dropped_condition", "unanswerable", "partly_answerable", "good_refusal", "made_up_answer", "over_refusal",
    "multi_hop", "multilingual", "cross_lingual", "wrong_citation", "unknown_citation", "missing_citation",
    "citation_padding", "conflicting_passages", "injection_answer", "injection_passage", "empty_answer", "padding",
    "off_topic", "adjacent_question", "evasive", "loose_reading", "partial", "retrieval_miss",
}  # fmt: skip


@cache
def cases(name: str) -> list[Case]:
    notes: list[str] = []
    read = list(read_cases(path() / name, notes=notes))
    assert notes == [], "the example files are plain contract files: nothing to map, nothing to warn about"
    return read


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path() / name).read_text(encoding="utf-8").splitlines()]


def markers(case: Case) -> list[str]:
    return re.findall(r"\[([a-z]+-\d+)\]", case.answer or "")


def author(case: Case, rubric: str) -> Any:
    return case.labels.get(rubric, {}).get("author")


@pytest.fixture(scope="module", params=FILES)
def file(request: pytest.FixtureRequest) -> list[Case]:
    return cases(request.param)


def test_every_file_holds_valid_cases_with_unique_ids(file: list[Case]) -> None:
    assert len({case.id for case in file}) == len(file)


def test_every_label_is_a_level_of_the_scale_and_has_a_one_sentence_reason(file: list[Case]) -> None:
    for case in file:
        reasons = case.metadata["label_reasons"]
        assert set(case.labels) == set(reasons) <= RUBRICS, case.id
        assert case.labels, f"{case.id} carries no label"
        for rubric, by_rater in case.labels.items():
            assert set(by_rater) == {"author"}, case.id
            assert by_rater["author"] in (1, 2, 3, 4, 5), (case.id, rubric)
            assert reasons[rubric].endswith("."), (case.id, rubric)
            assert len(reasons[rubric]) >= 12, (case.id, rubric)


def test_citations_name_passages_of_the_case_unless_the_case_is_about_an_unknown_one(file: list[Case]) -> None:
    for case in file:
        known = {context.id for context in case.contexts or ()}
        unknown = [marker for marker in markers(case) if marker not in known]
        assert bool(unknown) == ("unknown_citation" in case.tags), case.id
        assert set(case.expected_citations or ()) <= known, case.id


def test_reasons_speak_only_of_passages_that_the_case_shows(file: list[Case]) -> None:
    for case in file:
        shown = {context.id for context in case.contexts or ()}
        named = set(re.findall(r"\b[a-z]+-\d+\b", " ".join(case.metadata["label_reasons"].values())))
        assert named <= shown | set(markers(case)), case.id


def test_one_passage_id_always_means_one_text() -> None:
    texts: dict[str, set[str]] = {}
    for name in FILES:
        for case in cases(name):
            for context in case.contexts or ():
                texts.setdefault(context.id, set()).add(context.text)
    assert [name for name, seen in texts.items() if len(seen) > 1] == []


def test_passages_are_two_to_four_and_short_enough_for_a_small_judge(file: list[Case]) -> None:
    for case in file:
        assert 2 <= len(case.contexts or ()) <= 4, case.id
        for context in case.contexts or ():
            size = len(context.text) if case.lang == "zh" else len(context.text.split())
            assert 25 <= size <= 70, (case.id, context.id, size)


def test_contexts_are_the_head_of_the_ranking(file: list[Case]) -> None:
    for case in file:
        ranking = [item.id for item in case.retrieved or ()]
        shown = [context.id for context in case.contexts or ()]
        assert ranking[: len(shown)] == shown, case.id
        assert len(set(ranking)) == len(ranking), case.id


def test_a_needed_passage_is_missing_from_the_contexts_exactly_where_the_tag_says_so(file: list[Case]) -> None:
    for case in file:
        needed = {label.doc for label in case.relevant or ()}
        shown = {context.id for context in case.contexts or ()}
        assert (not needed <= shown) == ("retrieval_miss" in case.tags), case.id
        assert (not needed) == (case.answerable == "no"), case.id


def test_planted_retrieval_failures_show_at_several_depths() -> None:
    ranks: Counter[int | None] = Counter()
    for case in cases("cases.jsonl"):
        ranking = [item.id for item in case.retrieved or ()]
        for label in case.relevant or ():
            ranks[ranking.index(label.doc) + 1 if label.doc in ranking else None] += 1
    assert ranks[1] >= 20
    assert ranks[2] >= 8
    assert ranks[3] >= 1
    assert sum(n for rank, n in ranks.items() if rank and rank > 3) >= 2
    assert ranks[None] >= 1


def test_the_main_file_covers_topics_kinds_and_languages() -> None:
    main = cases("cases.jsonl")
    assert len(main) >= 32
    assert len({case.metadata["topic"] for case in main}) >= 5
    assert {case.lang for case in main} >= {"en", "es", "de", "zh"}
    tags = Counter(tag for case in main for tag in case.tags)
    assert KINDS - set(tags) == set()
    assert sum(case.nuggets is not None for case in main) >= 4


def test_about_half_of_the_main_file_is_fully_supported() -> None:
    marks = [author(case, "faithfulness") for case in cases("cases.jsonl")]
    assert 0.4 <= marks.count(5) / len(marks) <= 0.65
    assert {1, 2, 3} <= set(marks)


def test_good_cases_have_full_marks_and_faulty_ones_have_not() -> None:
    for case in (*cases("cases.jsonl"), *cases("improved.jsonl")):
        marks = [mark["author"] for mark in case.labels.values()]
        clean = bool({"good", "good_refusal"} & set(case.tags))
        assert (min(marks) == 5) == clean, case.id


@pytest.mark.parametrize(
    ("tag", "rubric", "allowed"),
    [
        ("altered_number", "faithfulness", {1, 2}),  # a contradicted core claim caps at 2
        ("altered_direction", "faithfulness", {1, 2}),
        ("contradiction", "faithfulness", {1, 2}),
        ("extra_claim", "faithfulness", {2, 3, 4}),  # one without backing among 2, 3 and 9 claims
        ("wrong_citation", "citation_accuracy", {1}),
        ("missing_citation", "citation_accuracy", {1}),
        ("unknown_citation", "citation_accuracy", {2, 3}),  # an unknown id caps at 3
        ("citation_padding", "citation_accuracy", {3}),  # precision 1/2, recall 1: F1 = 2/3
        ("padding", "answer_relevance", {2}),  # two of three sentences help nothing: share over .60
        ("off_topic", "answer_relevance", {1}),
        ("adjacent_question", "answer_relevance", {2}),
        ("loose_reading", "answer_relevance", {3}),
        ("partial", "completeness", {3, 4}),
        ("empty_answer", "completeness", {1}),
        ("over_refusal", "refusal_correctness", {1}),
        ("made_up_answer", "refusal_correctness", {1}),
        ("good_refusal", "refusal_correctness", {5}),
    ],
)
def test_labels_stay_within_the_bands_and_caps_of_what_was_planted(tag: str, rubric: str, allowed: set[int]) -> None:
    found = [case for name in ("cases.jsonl", "improved.jsonl") for case in cases(name) if tag in case.tags]
    assert found
    for case in found:
        assert author(case, rubric) in allowed, case.id


def test_refusals_and_empty_answers_carry_no_mark_that_needs_a_claim() -> None:
    for name in FILES:
        for case in cases(name):
            if {"good_refusal", "over_refusal", "empty_answer"} & set(case.tags):
                assert set(case.labels) <= {"completeness", "refusal_correctness"}, case.id


def test_both_systems_answer_the_same_questions_from_the_same_passages_with_different_words() -> None:
    baseline, improved = cases("baseline.jsonl"), cases("improved.jsonl")
    assert len(baseline) >= 14
    for old, new in zip(baseline, improved, strict=True):
        assert (old.id, old.question, old.contexts, old.reference) == (
            new.id,
            new.question,
            new.contexts,
            new.reference,
        )
        assert old.answer != new.answer, old.id
        assert (old.system, new.system) == ("baseline", "improved")


def test_the_baseline_rows_stand_in_the_main_file_word_for_word() -> None:
    baseline = rows("baseline.jsonl")
    assert rows("cases.jsonl")[: len(baseline)] == baseline


def test_the_improved_system_wins_most_pairs_loses_two_and_not_by_length() -> None:
    pairs = list(zip(cases("baseline.jsonl"), cases("improved.jsonl"), strict=True))
    outcomes = Counter(new.metadata["versus_baseline"]["outcome"] for _, new in pairs)
    assert outcomes == {"better": 12, "worse": 2, "tie": 4}
    lengths = [
        (len(new.answer or ""), len(old.answer or ""))
        for old, new in pairs
        if new.metadata["versus_baseline"]["outcome"] == "better"
    ]
    assert 5 <= sum(better < worse for better, worse in lengths) <= 7
    assert all(new.metadata["versus_baseline"]["reason"].endswith(".") for _, new in pairs)


def test_pair_outcomes_agree_with_the_marks() -> None:
    sign = {"better": 1, "tie": 0, "worse": -1}
    for old, new in zip(cases("baseline.jsonl"), cases("improved.jsonl"), strict=True):
        shared = set(old.labels) & set(new.labels)
        assert shared, old.id
        gain = sum(author(new, rubric) - author(old, rubric) for rubric in shared)
        assert (gain > 0) - (gain < 0) == sign[new.metadata["versus_baseline"]["outcome"]], old.id


def test_the_demo_is_a_dozen_of_short_cases_of_twelve_kinds() -> None:
    by_id = {case.id: case for case in cases("cases.jsonl")}
    dozen = [by_id[name] for name in DEMO_IDS]
    assert len(set(DEMO_IDS)) == 12
    tags = {tag for case in dozen for tag in case.tags}
    assert tags >= {
        "good", "altered_number", "extra_claim", "wrong_citation", "partial", "good_refusal", "off_topic", "multi_hop",
        "altered_direction", "empty_answer", "injection_answer", "multilingual",
    }  # fmt: skip
    for case in dozen:
        assert len((case.answer or "").split()) <= 30, case.id
        assert sum(len(context.text.split()) for context in case.contexts or ()) <= 80, case.id


def test_the_demo_needs_at_most_fifty_one_token_calls() -> None:
    """One call per answer sentence, per cited pair, per reference point, and one for relevance: about 2 s each."""
    by_id = {case.id: case for case in cases("cases.jsonl")}
    calls = 0
    for case in (by_id[name] for name in DEMO_IDS):
        if not case.answer:
            continue
        points = len(case.nuggets or ()) or sum(len(text.split("; ")) for text in case.reference or ())
        sentences = len(re.findall(r"[.!?](?:\s|$)", case.answer))
        calls += sentences + len(markers(case)) + points + 1
    assert 40 <= calls <= 50


def test_cases_path_is_the_main_file_inside_the_package() -> None:
    assert cases_path() == path() / "cases.jsonl"
    assert path() == Path(__file__).resolve().parents[1] / "judge" / "examples"
