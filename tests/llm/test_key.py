"""The key: what it depends on, what it does not, and that it never changes by accident."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from judge.config import JudgeSpec
from judge.llm.capability import capability_id
from judge.llm.client import Client
from judge.llm.request import Request
from tests.llm.conftest import Verdict, quick_request, request


class Reordered(BaseModel):
    """One verdict on one answer."""

    level: Literal[1, 2, 3, 4, 5]
    rationale: str
    cannot_judge: str | None


Reordered.__name__ = Verdict.__name__


class Other(BaseModel):
    level: Literal[1, 2, 3]


def key(asked: Request, resolved: dict[str, Any] | None = None, **spec: Any) -> str:
    """Computed without the LLM library: what the model supports is handed in."""
    judge = JudgeSpec(**{"name": "x", "model": "openai/m", "api_base": "http://h:1/v1", **spec})
    known = {
        "id": capability_id(judge),
        "model": judge.model,
        "output": "json_schema",
        "strict": True,
        "params": judge.params,
        "dropped": [],
        "top_logprobs": 20,
        "litellm_version": "1",
        **(resolved or {}),
    }
    return Client(judge, resolved=known).key(asked)


def test_the_key_is_the_sha_256_of_canonical_json() -> None:
    class Small(BaseModel):
        ok: bool

    asked = Request(messages=({"role": "user", "content": "é"},), output=Small, max_tokens=9)
    schema = {
        "properties": {"ok": {"type": "boolean"}},
        "type": "object",
        "required": ["ok"],
        "additionalProperties": False,
        "title": "Small",
    }
    head = {
        "key_version": 1,
        "model": "openai/m",
        "host": "h:1",
        "params": {"temperature": 0},
        "output": "json_schema",
        "strict": True,
        "schema": hashlib.sha256(json.dumps(schema, separators=(",", ":")).encode()).hexdigest(),
    }
    tail = [[{"content": "é", "role": "user"}], 9, 0]
    canonical = "".join(json.dumps(p, sort_keys=True, separators=(",", ":"), ensure_ascii=False) for p in (head, tail))
    assert key(asked) == hashlib.sha256(canonical.encode()).hexdigest()


def test_the_marker_is_masked_wherever_it_stands() -> None:
    one = request("begin m4rk\nend m4rk", marker="m4rk")
    other = request("begin zzzz\nend zzzz", marker="zzzz")
    assert key(one) == key(other)
    assert key(one) != key(request("begin m4rk\nend m4rk"))


def test_everything_that_may_change_the_reply_changes_the_key() -> None:
    base = key(request())
    changed = [
        key(request("another")),
        key(request(repeat=1)),
        key(request(max_tokens=401)),
        key(request(output=Other)),
        key(request(output=Reordered)),
        key(request(), model="openai/n"),
        key(request(), api_base="http://other:1/v1"),
        key(request(), params={"seed": 1}),
        key(request(), {"output": "tools"}),
        key(request(), {"strict": False}),
        key(quick_request(), None),
        key(quick_request(tokens=("no", "yes"))),
        key(quick_request(), {"top_logprobs": 5}),
    ]
    assert len({base, *changed}) == len(changed) + 1


def test_what_cannot_change_the_reply_does_not_change_the_key() -> None:
    assert key(request(), timeout=3, name="y", api_base="http://h:1/other") == key(request())
    assert key(request(), limits={"concurrency": 3}, price={"input_per_million": 1, "output_per_million": 1}) == key(
        request()
    )


@pytest.mark.parametrize("text", ["lone surrogate \ud800", "nul \x00", "\u200b\ufeff", "x" * 100_000])
def test_any_text_has_a_key(text: str) -> None:
    assert len(key(request(text))) == 64


def test_the_answer_model_has_one_schema_object_for_all_its_keys() -> None:
    from judge.llm.structured import sent_schema

    assert sent_schema(Verdict) is sent_schema(Verdict)
