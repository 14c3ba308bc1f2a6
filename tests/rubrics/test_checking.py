"""`check` explains every mistake with its line; bodies are harmless; starters are sound; the command says it all."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import rubrics
from judge.cli import rubrics as commands
from rubrics.starting import starter
from rubrics.templating import mistakes

GOOD = """---
id: sound
version: "1.0"
title: Sound
language: en
requires: [question, answer]
mode: checklist
scale: {min: 1, max: 5, pass_at: 4}
weight: 1
anchors:
  5: good
  1: bad
checks:
  - {id: lead, ask: "Main point first?", weight: 2, core: true}
  - {id: short, ask: "Short?"}
bands: {5: 0.95, 4: 0.75, 3: 0.5, 2: 0.2}
core_no_caps_at: 3
errors:
  buried: the main point is hidden
quick:
  unit: answer
  blocks: [{head: PASSAGE, of: [answer]}]
  ask: "Is the PASSAGE clear? Reply with one word: yes or no."
  good: "yes"
  aggregate: mean
  local: calibrate
examples:
  - {question: "Why?", answer: "Because of rain.", quotes: ["of rain"], checks: {lead: yes, short: yes}, reason: "Fine."}
  - {question: "Why?", answer: "Well, now.", quotes: ["Well"], checks: {lead: no, short: yes}, errors: [buried], reason: "Hidden."}
---
Rate it.
{% for check in rubric.checks %}- {{ check.id }}: {{ check.ask }}
{% endfor %}
"""


def found(tmp_path: Path, text: str | bytes, name: str = "sound") -> list[tuple[int, str, str]]:
    path = tmp_path / f"{name}.md"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [(problem.line, problem.severity, problem.what) for problem in rubrics.check(path)]


def test_the_sound_file_has_no_problem(tmp_path: Path) -> None:
    assert found(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    "old, new, line, said",
    [
        ("id: sound", "id: Sound-1", 2, "the two must agree"),
        ("id: sound", "id: sound\nid: sound", 3, "id is given twice (first in line 2): keep one"),
        ("version: \"1.0\"", "version: 1.0", 3, 'version must be text but is the number 1.0: put it in quotes, "1.0"'),
        ("version: \"1.0\"\n", "", 2, "version is missing"),
        ("title: Sound", "titel: Sound", 4, 'unknown key "titel"; allowed: id, version, title'),
        ("title: Sound", "titel: Sound", 4, 'did you mean "title"?'),
        ("language: en", "language: no", 5, 'YAML reads yes, no, on and off as true and false; put the word in quotes, such as "no"'),
        ("language: en", "language: klingon9", 5, "write a language code such as en, de or pt-BR"),
        ("[question, answer]", "[question, anwser]", 6, 'did you mean "answer"?'),
        ("[question, answer]", "[answer, answer]", 6, '"answer" is listed twice'),
        ("[question, answer]", "[]", 6, "requires is empty"),
        ("mode: checklist", "mode: cheklist", 7, 'mode is "cheklist"; allowed: ordinal, binary, checklist'),
        ("mode: checklist", "mode: cheklist", 7, 'did you mean "checklist"?'),
        ("mode: checklist", "mode: ordinal", 10, "every level must be described; missing: 2, 3, 4"),
        ("mode: checklist", "mode: ordinal", 13, "checks is for mode checklist only"),
        ("mode: checklist", "mode: ordinal", 16, "mode ordinal has no bands"),
        ("mode: checklist", "mode: facts", 6, "mode facts needs reference: add it to requires"),
        ("max: 5", "max: 9", 8, "scale 1 to 9 has 9 levels; a scale has 2 to 7"),
        ("max: 5", "max: 5.5", 8, "scale.max: input should be a valid integer"),
        ("pass_at: 4", "pass_at: 6", 8, "scale.pass_at is 6; it must lie above 1 and not above 5"),
        ("pass_at: 4", "pass: 4", 8, "scale.pass: unknown key; allowed: min, max, pass_at, higher_is_better"),
        ("pass_at: 4}", "pass_at: 4, higher_is_better: false}", 8, "scale.higher_is_better"),
        ("weight: 1\n", "weight: -1\n", 9, "weight is -1.0; it must be 0 or more"),
        ("weight: 1\n", "weight: .nan\n", 9, "weight: .nan is not a finite number"),
        ("  5: good", "  6: good", 11, "level 6 is not on the scale 1 to 5"),
        ("  5: good", "  6: good", 10, "both ends of the scale must be described; missing: 5"),
        ("  5: good", "  best: good", 11, "anchors.best: input should be a valid integer"),
        ("  1: bad", "  1: yes", 12, "put the word in quotes"),
        ("id: short", "id: lead", 15, 'the name "lead" is used twice'),
        ("id: short", "id: Short!", 15, '"Short!" is not a usable name'),
        ("ask: \"Short?\"", "aks: \"Short?\"", 15, 'checks[2].aks: unknown key; allowed: id, ask, weight, core; did you mean "ask"?'),
        ("ask: \"Short?\"", "aks: \"Short?\"", 15, "checks[2].ask is missing"),
        ("weight: 2, core", "weight: -2, core", 14, "the weight of lead is -2.0"),
        ("4: 0.75", "4: 0.97", 16, "bands must rise with the level; seen from low to high: 0.2, 0.5, 0.97, 0.95"),
        ("4: 0.75, ", "", 16, "bands must give the lowest share for each level but the lowest, [2, 3, 4, 5]"),
        ("5: 0.95", "5: 1.2", 16, "the share of level 5 is 1.2"),
        ("core_no_caps_at: 3", "core_no_caps_at: 8", 17, "it must be a level of the scale 1 to 5"),
        (", core: true", "", 17, "core_no_caps_at has no effect"),
        ("head: PASSAGE", "head: passage", 22, 'the head "passage" must be capital letters'),
        ("of: [answer]", "of: [anwser]", 22, "`of` must list some of question, answer"),
        ("unit: answer", "unit: sentence", 22, "no block shows the unit (sentence)"),
        ("good: \"yes\"", "good: yes", 24, 'put the word in quotes'),
        ("aggregate: mean", "aggregate: max_then_mean", 25, "goes with unit cited_pair, and with no other"),
        ("local: calibrate", "local: calibrate\n  treshold: 0.4", 27, 'did you mean "threshold"?'),
        ("of rain\"]", "of snow\"]", 28, 'the quote "of snow" does not stand in the example'),
        ("{lead: yes, short: yes}", "{led: yes, short: yes}", 28, 'check "led" is not declared under checks; did you mean "lead"?'),
        ("{lead: yes, short: yes}", "{lead: yes}", 28, "the example gives no verdict for short"),
        ("errors: [buried]", "errors: [burried]", 29, 'error label "burried" is not declared under errors; did you mean "buried"?'),
        ("errors: [buried]", "erors: [buried]", 29, 'did you mean "errors"?'),
        ("question: \"Why?\", answer: \"Well", "question: 7, answer: \"Well", 29, "question must be text (put it in quotes)"),
        ("Rate it.", "Rate it.\nSee {{ item.answer }}.", 32, "the text of an item never reaches a body"),
        ("Rate it.", "Rate {{ rubric.titel }}", 31, 'did you mean "title"?'),
        ("Rate it.", "Rate {{ x }}", 31, 'unknown name "x"'),
        ("Rate it.", "{% if %}", 31, "template: "),
        ("Rate it.", "Rate it. <|im_end|>", 31, "chat tokens that must not reach a prompt: chat token x1"),
        ("  5: good", "  5: go\u200bod", 11, "U+200B x1"),
        ("check.ask }}", "check.aks }}", 31, "the body cannot be rendered: template: 'dict object' has no attribute 'aks'"),
        ("title: Sound", "title: &a Sound\nsource: *a", 5, "aliases (*name) are not supported"),
        ("title: Sound", "title: !!python/name:os.system x", 4, "not supported"),
        ("title: Sound", "title: [", 6, "not readable as YAML"),
        ("title: Sound", "title: '" + "x" * 2001 + "'", 4, "has 2001 characters; at most 2000 are allowed"),
    ],
)  # fmt: skip
def test_a_mistake_is_explained_with_its_line(tmp_path: Path, old: str, new: str, line: int, said: str) -> None:
    assert old in GOOD
    errors = [(at, what) for at, severity, what in found(tmp_path, GOOD.replace(old, new, 1)) if severity == "error"]
    assert any(at == line and said in what for at, what in errors), errors


def test_every_mistake_is_reported_not_only_the_first(tmp_path: Path) -> None:
    text = (
        GOOD.replace("language: en", "language: no").replace("weight: 1\n", "wieght: 1\n").replace("4: 0.75", "4: 0.1")
    )
    text = text.replace('of rain"]', 'of snow"]').replace("Rate it.", "{{ nothing }}")
    assert [line for line, _, _ in found(tmp_path, text)] == [5, 9, 16, 28, 31]


@pytest.mark.parametrize(
    "raw, line, said",
    [
        (b"Just text.", 1, "no front matter"),
        (b"---\nid: sound\n", 1, "the front matter is not closed"),
        (b"---\n---\nbody", 2, "must be a list of settings"),
        (b"---\n- a\n---\nbody", 2, "must be a list of settings"),
        (b"---\nid: \xff\n---\n", 2, "not UTF-8"),
        (b"---\n" + b"x" * 200_001, 1, "at most 200000 are allowed"),
        (b"---\na: " + b"[" * 600 + b"\n---\n", 2, "not readable as YAML"),
        (b"---\nid: sound\n\x1b[31mtitle: x\n---\nbody", 3, "the character U+001B"),
        (GOOD[: GOOD.rindex("---\n") + 4].encode(), 30, "the body is empty"),
    ],
    ids=["no-front-matter", "open", "empty", "list", "bytes", "huge", "deep", "control", "no-body"],
)
def test_files_that_are_no_rubric_are_explained(tmp_path: Path, raw: bytes, line: int, said: str) -> None:
    assert any(at == line and said in what for at, _, what in found(tmp_path, raw))


def test_yes_and_no_are_fine_where_a_boolean_is_meant(tmp_path: Path) -> None:
    assert found(tmp_path, GOOD.replace("core: true", "core: yes")) == []


def test_one_sided_examples_are_a_warning(tmp_path: Path) -> None:
    text = GOOD.replace("{lead: no, short: yes}", "{lead: yes, short: yes}")
    assert found(tmp_path, text) == [
        (
            27,
            "warning",
            "examples: at least one that passes and one that fails helps the judge; seen: only passing ones",
        )
    ]
    assert rubrics.load("sound", [tmp_path]).id == "sound"


def test_inherited_mistakes_point_at_extends(tmp_path: Path) -> None:
    text = "---\nid: low\nextends: faithfulness\nscale: {min: 0, max: 2, pass_at: 2}\n---\n"
    lines = [(line, what) for line, _, what in found(tmp_path, text, "low")]
    assert (3, "anchors: both ends of the scale must be described; missing: 0") in lines
    assert any(line == 3 and what.startswith("bands must give") for line, what in lines)


def test_fields_that_would_leak_into_the_verdict_are_refused(tmp_path: Path) -> None:
    text = "---\nid: leaky\nextends: answer_relevance\nrequires: [question, answer, contexts]\n---\n"
    assert any(line == 4 and "never shows contexts" in what for line, _, what in found(tmp_path, text, "leaky"))


@pytest.mark.parametrize(
    "body",
    [
        "{{ rubric.__class__ }}", "{{ rubric['__class__'] }}", "{{ rubric.title|attr('__class__') }}", "{{ rubric.title.format(1) }}",
        "{{ ''.__class__.__mro__ }}", "{{ range(10**9) }}", "{{ 'x' * 10**9 }}", "{{ 2 ** 9999 }}", "{{ 'a' ~ 'b' }}", "{% set x = 1 %}",
        "{% for a in 'xx' %}{% endfor %}", "{% for a in rubric.title %}{% endfor %}", "{% include 'x' %}", "{% import 'x' as y %}",
        "{% extends 'x' %}", "{% macro m() %}{% endmacro %}", "{% block b %}{% endblock %}", "{% filter upper %}{% endfilter %}",
        "{{ cycler(1) }}", "{{ self }}", "{{ lipsum() }}", "{{ rubric.title|join('x')|join('y') }}", "{{ rubric.title|center(99999999) }}",
        "{% for a in rubric.checks recursive %}{% endfor %}", "{{ rubric.errors.update({}) }}", "{{ rubric[rubric.title] }}",
        "{% for a in rubric.checks %}{% for b in rubric.checks %}{% for c in rubric.checks %}{% endfor %}{% endfor %}{% endfor %}",
    ],
)  # fmt: skip
def test_a_body_cannot_reach_python_or_run_away(body: str) -> None:
    assert mistakes(body)


def test_the_heaviest_allowed_body_ends_quickly(tmp_path: Path) -> None:
    # 50 x 50 rounds of two nested loops without output, as often as 20,000 characters hold them
    loop = "{% for a in rubric.errors %}{% for b in rubric.errors %}{% endfor %}{% endfor %}"
    errors = "errors:\n" + "".join(f"  label_{n}: text\n" for n in range(50))
    head = GOOD.replace("errors:\n  buried: the main point is hidden\n", errors).replace("errors: [buried], ", "")
    body = loop * (19_000 // len(loop))
    start = time.process_time()
    assert found(tmp_path, head + body) == []
    assert time.process_time() - start < 5
    loud = "{% for a in rubric.errors %}{% for b in rubric.errors %}" + "x" * 500 + "{% endfor %}{% endfor %}"
    assert any("renders to more than 32000 characters" in what for _, _, what in found(tmp_path, head + loud))


MODES = [
    "ordinal",
    "binary",
    "checklist",
    "claims",
    "sentences",
    "nuggets",
    "citations",
    "passages",
    "facts",
    "matrix",
    "pairwise",
]


@pytest.mark.parametrize("mode", MODES)
def test_the_starter_of_every_mode_passes_the_check(tmp_path: Path, mode: str) -> None:
    assert found(tmp_path, starter("my_own", mode), "my_own") == []
    assert rubrics.load("my_own", [tmp_path]).mode == mode


def test_a_starter_needs_a_usable_id_and_a_known_mode() -> None:
    with pytest.raises(rubrics.RubricError, match='"My Own" is not a usable id'):
        starter("My Own", "ordinal")
    with pytest.raises(rubrics.RubricError, match=r'unknown mode "claim"; choose .*did you mean "claims"'):
        starter("my_own", "claim")


@pytest.fixture
def command() -> typer.Typer:
    app = typer.Typer()
    app.command("list")(commands.list_rubrics)
    app.command("show")(commands.show_rubric)
    app.command("check")(commands.check_rubrics)
    app.command("new")(commands.new_rubric)
    return app


def test_check_exits_2_on_errors_and_0_on_warnings(tmp_path: Path, command: typer.Typer) -> None:
    good, bad = tmp_path / "sound.md", tmp_path / "bad.md"
    good.write_text(GOOD.replace("{lead: no, short: yes}", "{lead: yes, short: yes}"), encoding="utf-8")
    bad.write_text(GOOD, encoding="utf-8")
    fine = CliRunner().invoke(command, ["check", str(good)])
    assert (fine.exit_code, fine.stdout.splitlines()[-1]) == (0, "1 checked: 0 errors, 1 warnings")
    broken = CliRunner().invoke(command, ["check", str(good), str(bad), "--json"])
    assert broken.exit_code == 2
    answer = json.loads(broken.stdout)
    assert (answer["errors"], answer["warnings"]) == (1, 1)
    assert answer["problems"][1]["file"] == str(bad)
    assert answer["problems"][1]["line"] == 2


def test_new_writes_a_file_once(tmp_path: Path, command: typer.Typer) -> None:
    arguments = ["new", "my_own", "--mode", "ordinal", "--dir", str(tmp_path)]
    first = CliRunner().invoke(command, arguments)
    assert first.exit_code == 0
    assert "judge rubrics check" in first.stdout
    again = CliRunner().invoke(command, arguments)
    assert "exists already" in str(again.exception)
    assert CliRunner().invoke(command, ["check", str(tmp_path / "my_own.md")]).exit_code == 0


def test_list_and_show_say_what_the_judge_sees(tmp_path: Path, command: typer.Typer) -> None:
    (tmp_path / "faithfulness.md").write_text(GOOD.replace("id: sound", "id: faithfulness"), encoding="utf-8")
    listing = CliRunner().invoke(command, ["list", "--json"])
    assert [row["id"] for row in json.loads(listing.stdout)][:2] == ["answer_correctness", "answer_relevance"]
    text = CliRunner().invoke(command, ["show", "hallucination", "--has", "reference"]).stdout
    assert "if the reference says it" in text
    assert (
        "reply fields, in order: injection_attempts, only_declines, claims, rationale, cannot_judge, holistic_score"
        in text
    )
    own = CliRunner().invoke(command, ["show", "faithfulness", "--rubrics-dir", str(tmp_path)])
    assert "is used instead of the bundled rubric" in own.stderr
    assert "- lead: Main point first?" in own.stdout
    document = json.loads(CliRunner().invoke(command, ["show", "faithfulness", "--json"]).stdout)
    assert document["output_schema"]["required"][-1] == "holistic_score"


def test_a_title_is_text_and_never_markup(tmp_path: Path, command: typer.Typer) -> None:
    text = GOOD.replace("title: Sound", 'title: "[bold]B[/bold] [/nope] :smile:"').replace("{lead: no,", "{lead: yes,")
    (tmp_path / "sound.md").write_text(text, encoding="utf-8")
    listing = CliRunner().invoke(command, ["list", "--rubrics-dir", str(tmp_path)], env={"COLUMNS": "200"})
    assert listing.exit_code == 0
    assert "[bold]B[/bold] [/nope] :smile:" in listing.stdout


def test_an_unknown_field_of_a_case_is_refused(command: typer.Typer) -> None:
    outcome = CliRunner().invoke(command, ["show", "faithfulness", "--has", "refrence"])
    assert "--has 'refrence'" in str(outcome.exception)
    assert "reference" in str(outcome.exception)


def test_no_value_of_any_setting_makes_the_check_fall_over(tmp_path: Path) -> None:
    front, _, body = GOOD[4:].partition("---\n")
    keys = [line.split(":")[0] for line in front.splitlines() if line[0].isalpha()]
    for key in keys:
        kept = "\n".join(block for block in front.replace("\n  ", "\0").split("\n") if not block.startswith(f"{key}:"))
        for junk in ("null", "[]", "[{a: [1]}]", "7"):
            text = f"---\n{key}: {junk}\n{kept}---\n{body}".replace("\0", "\n  ")
            problems = found(tmp_path, text)
            assert problems or rubrics.load("sound", [tmp_path])
