"""What is sent as schema, and which replies count as an answer."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

from judge.llm.structured import answer_model, can_be_strict, schema_hash, sent_schema, sole_object, validated
from tests.llm.conftest import GOOD, Verdict

OBJECT = '{"level": 4}'


@pytest.mark.parametrize(
    "text",
    [
        OBJECT,
        f"  \n{OBJECT}\n",
        f"\ufeff\u200b{OBJECT}",
        f"```json\n{OBJECT}\n```",
        f"```\n{OBJECT}\n```",
        f"<think>the level is {{hidden}} 5?</think>\n{OBJECT}",
        f"<thinking>hm</thinking>```json\n{OBJECT}\n```",
        f"the opening tag was part of the prompt {{1}}</think>{OBJECT}",
    ],
)
def test_one_object_alone_or_fenced_or_after_a_think_block_is_accepted(text: str) -> None:
    given, body = sole_object(text)
    assert given == json.loads(body) == {"level": 4}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4",
        "[4]",
        "level: 4",
        f"{OBJECT} {OBJECT}",
        f"{OBJECT}\n{{}}",
        f"{OBJECT} as requested",
        f"Here you are: {OBJECT}",
        f"```json\n{OBJECT}\n``` and ```json\n{OBJECT}\n```",
        '{"level": 4',
        '{"level": 4,}',
        '{"level": NaN}',
        '{"level": Infinity}',
        '{"level": 1e999}',
        '{"level": 1, "level": 5}',
        "{" * 200_000,
        '{"a":' * 100_000,
    ],
)
def test_anything_else_is_not_an_answer(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        sole_object(text)


@pytest.mark.parametrize("level", ['"4"', "4.5", "4.0", "true", "null", "0", "6", "98989", '"four"', "[4]"])
def test_the_level_must_be_one_of_the_scale_as_a_whole_number(level: str) -> None:
    text = json.dumps(GOOD).replace('"level": 4', f'"level": {level}')
    with pytest.raises((ValidationError, json.JSONDecodeError)):
        validated(Verdict, text)


def test_a_valid_reply_gives_the_plain_values_of_the_output_model() -> None:
    assert validated(Verdict, json.dumps(GOOD)) == GOOD
    assert answer_model(Verdict).model_validate_json(json.dumps(GOOD)) == GOOD


class Part(BaseModel):
    title: str = Field(default="x", description="a heading")
    size: int | None = None


class Whole(BaseModel):
    first: Part = Field(description="the first part")
    rest: list[Part] = []
    kind: Literal["a", "b"] = "a"


class Free(BaseModel):
    counts: dict[str, int]


def objects(node: Any) -> list[dict[str, Any]]:
    found = [node] if isinstance(node, dict) and node.get("type") == "object" else []
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    return found + [item for child in children for item in objects(child)]


def test_every_object_of_the_sent_schema_is_closed_and_requires_all_keys() -> None:
    found = objects(sent_schema(Whole))
    assert len(found) == 3  # Whole, Part where it is referenced, Part written out beside its description
    for node in found:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])


def test_the_sent_schema_keeps_descriptions_and_a_field_called_title_but_no_defaults() -> None:
    schema = sent_schema(Whole)
    assert schema["properties"]["first"]["description"] == "the first part"
    assert schema["properties"]["first"]["properties"]["title"] == {"description": "a heading", "type": "string"}
    assert '"default"' not in json.dumps(schema)
    assert schema["title"] == "Whole"


def test_only_a_schema_without_free_keys_can_be_enforced_strictly() -> None:
    assert can_be_strict(Whole)
    assert not can_be_strict(Free)


def test_the_name_of_a_request_does_not_depend_on_what_instructor_did_to_the_schema_before() -> None:
    class Mark(BaseModel):
        level: int

    before = schema_hash(Mark)
    answer_model(Mark).openai_schema  # noqa: B018 - what tools mode reads; it writes a description
    answer_model(Mark).model_json_schema()["description"] = "something"
    assert schema_hash(Mark) == before
