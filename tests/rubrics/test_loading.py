"""Rubric files are found, merged and hashed; the bundled ones are in order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rubrics
from rubrics.loading import BUNDLED
from tests.rubrics.items import DATA, Case

IDS = [
    "answer_correctness", "answer_relevance", "citation_accuracy", "completeness", "context_relevance", "faithfulness",
    "hallucination", "preference", "refusal_correctness",
]  # fmt: skip
OWN = """---
id: tone
version: "1"
title: Tone
requires: [question, answer]
mode: ordinal
scale: {min: 0, max: 1, pass_at: 1}
anchors: {0: rude, 1: kind}
---
Rate the tone.
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    return path


def extending(name: str, parent: str, more: str = "", body: str = "") -> str:
    return f"---\nid: {name}\nextends: {parent}\n{more}---\n{body}"


def test_nine_rubrics_are_bundled_and_pass_their_own_check() -> None:
    assert [rubric.id for rubric in rubrics.list_rubrics()] == IDS
    for id in IDS:
        assert rubrics.check(BUNDLED / f"{id}.md") == []


def test_bundled_examples_are_balanced_and_one_holds_an_ignored_injection() -> None:
    for rubric in rubrics.list_rubrics():
        assert 2 <= len(rubric.examples) <= 4
        assert any(example["reply"]["injection_attempts"] for example in rubric.examples)


def test_bundled_examples_end_with_the_score_that_the_program_computes() -> None:
    # a judge that copies the examples must not learn a level that the score map contradicts
    from rubrics.examples import case_of

    for rubric in (one for one in rubrics.list_rubrics() if one.mode != "pairwise"):
        for example in rubric.examples:
            item = case_of(example)
            prompt = rubrics.render(rubric, item, secret=b"s")
            outcome = rubrics.settle(rubric, item, example["reply"], prompt)
            assert outcome.status == "scored", (rubric.id, outcome.reason)
            assert outcome.computed_score == example["reply"]["holistic_score"], (rubric.id, example["question"])
            assert outcome.quotes["failed"] == 0


def test_files_without_front_matter_are_ignored(tmp_path: Path) -> None:
    write(tmp_path, "README", "# Notes\n")
    write(tmp_path, "tone", OWN)
    assert (BUNDLED / "README.md").exists()
    assert [rubric.id for rubric in rubrics.list_rubrics([tmp_path])] == sorted([*IDS, "tone"])


def test_a_user_rubric_is_added_and_wins_on_the_same_id_and_that_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, "faithfulness", OWN.replace("id: tone", "id: faithfulness"))
    assert rubrics.load("faithfulness", [tmp_path]).title == "Tone"
    assert rubrics.load("faithfulness").title != "Tone"
    assert rubrics.overrides([tmp_path]) == [f"faithfulness: {path} is used instead of the bundled rubric"]
    assert rubrics.overrides() == []


def test_an_unknown_id_lists_the_known_ones() -> None:
    with pytest.raises(
        rubrics.RubricError,
        match=r'unknown rubric "faithfulnes"; known: answer_correctness,.*did you mean "faithfulness"',
    ):
        rubrics.load("faithfulnes")


@pytest.mark.parametrize("id", ["../faithfulness", "README", ".", ""])
def test_an_id_is_never_a_path(id: str) -> None:
    with pytest.raises(rubrics.RubricError, match="unknown rubric"):
        rubrics.load(id)


def test_a_missing_folder_is_named() -> None:
    with pytest.raises(rubrics.RubricError, match="nowhere is not a folder"):
        rubrics.load("faithfulness", ["nowhere"])


def test_extends_overrides_only_the_given_keys_and_keeps_the_parents_body(tmp_path: Path) -> None:
    write(tmp_path, "strict", extending("strict", "faithfulness", "weight: 2\nerrors: {made_up: invented}\n"))
    parent, child = rubrics.load("faithfulness"), rubrics.load("strict", [tmp_path])
    assert (child.weight, dict(child.errors), child.root, child.extends) == (
        2,
        {"made_up": "invented"},
        "faithfulness",
        "faithfulness",
    )
    assert (child.body, child.anchors, child.quick) == (parent.body, parent.anchors, parent.quick)
    assert child.examples == ()  # the parent's examples use error labels that are gone


def test_extends_follows_chains_and_a_new_body_replaces_the_old(tmp_path: Path) -> None:
    write(tmp_path, "one", extending("one", "hallucination", "weight: 2\n"))
    write(tmp_path, "two", extending("two", "one", "title: Two\n", "Only this.\n"))
    two = rubrics.load("two", [tmp_path])
    assert (two.root, two.weight, two.title) == ("hallucination", 2, "Two")
    assert "Only this." in rubrics.instructions_text(two)
    # the five verdicts of hallucination follow the root
    assert "reference_backed" in rubrics.instructions_text(two)


def test_circles_and_unknown_parents_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "one", extending("one", "two"))
    write(tmp_path, "two", extending("two", "one"))
    write(tmp_path, "self_made", extending("self_made", "self_made"))
    write(tmp_path, "lost", extending("lost", "faithfullness"))
    with pytest.raises(rubrics.RubricError, match=r"one.md:3: .*two.md:3: extends runs in a circle: one -> two -> one"):
        rubrics.load("one", [tmp_path])
    with pytest.raises(rubrics.RubricError, match="circle: self_made -> self_made"):
        rubrics.load("self_made", [tmp_path])
    with pytest.raises(rubrics.RubricError, match=r'extends "faithfullness".*did you mean "faithfulness"'):
        rubrics.load("lost", [tmp_path])


def test_a_broken_file_does_not_keep_another_rubric_from_loading(tmp_path: Path) -> None:
    write(tmp_path, "broken", "---\nid: broken\n---\n")
    assert rubrics.load("faithfulness", [tmp_path]).id == "faithfulness"
    with pytest.raises(rubrics.RubricError, match=r"broken.md:2: version is missing"):
        rubrics.list_rubrics([tmp_path])


def test_line_ends_and_byte_order_mark_do_not_change_the_hash_but_words_and_settings_do(tmp_path: Path) -> None:
    def hash_of(raw: bytes) -> str:
        (tmp_path / "tone.md").write_bytes(raw)
        return rubrics.load("tone", [tmp_path]).rubric_hash

    raw = OWN.encode()
    first = hash_of(raw)
    assert hash_of(b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n")) == first
    assert hash_of(raw.replace(b"title: Tone", b'title: "Tone"   # same value')) == first
    assert hash_of(raw.replace(b"Rate the tone.", b"Rate the tone!")) != first
    assert hash_of(raw.replace(b"pass_at: 1}", b"pass_at: 1}\nweight: 0.5")) != first


def test_the_hash_of_an_extending_rubric_covers_what_it_inherits(tmp_path: Path) -> None:
    write(tmp_path, "tone", OWN)
    write(tmp_path, "mild", extending("mild", "tone", 'version: "2"\n'))
    before = rubrics.load("mild", [tmp_path]).rubric_hash
    write(tmp_path, "tone", OWN.replace("Rate the tone.", "Rate it."))
    assert rubrics.load("mild", [tmp_path]).rubric_hash != before


def test_the_plain_language_rubric_of_a_user_works() -> None:
    rubric = rubrics.load("plain_language", [DATA])
    assert rubrics.check(DATA / "plain_language.md") == []
    text = rubrics.render(rubric, Case(), secret=b"s").messages[1]["content"]
    assert "- terms: Is each technical term explained or avoided?" in text
    assert "A reference answer is supplied; use it for the meaning of terms only." in text
    assert "=== BEGIN reference |" in text  # the body asks about it, so it is shown
    # terms (weight 2 of 4) fails: share 0.5 is level 3, and the core check caps at 3
    assert (
        '"met":true}],"rationale":"Three unexplained terms; a customer cannot tell what to do.","cannot_judge":null,"holistic_score":3}'
        in text
    )
    without = rubrics.render(rubric, Case(reference=None), secret=b"s").messages[1]["content"]
    assert "A reference answer is supplied" not in without


def test_importing_the_package_loads_no_template_engine_and_no_yaml() -> None:
    code = (
        "import sys, rubrics; print([m for m in ('jinja2', 'yaml', 'litellm', 'pandas', 'scipy') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_the_public_names_are_the_intended_ones() -> None:
    for name in rubrics.__all__:
        assert getattr(rubrics, name) is not None
