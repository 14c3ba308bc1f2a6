"""Each way a call can end has a name, and the number of HTTP requests behind it is known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judge.errors import ProviderStop, UsageError
from tests.conftest import FakeProvider
from tests.llm.conftest import GOOD, Asker, quick_request, request

MODES = ["json_schema", "tools", "json", "md_json"]


def rows(reply: Any) -> list[tuple[str, int | None, str]]:
    return [(call["kind"], call["status"], call["outcome"]) for call in reply.http_calls]


@pytest.mark.parametrize("output", MODES)
def test_every_output_mode_gives_a_validated_object_from_one_request(asker: Asker, output: str) -> None:
    asker.provider.script({"match": [], "replies": [{"content": GOOD}]})
    reply = asker.ask_one(request(), output=output)
    assert (reply.error_kind, reply.parsed) == (None, GOOD)
    assert json.loads(reply.text or "") == GOOD
    assert rows(reply) == [("first", 200, "ok")]
    assert asker.provider.stats()["requests"] == 1


def test_the_strict_schema_is_sent_in_schema_and_tool_mode(asker: Asker) -> None:
    asker.ask_one(request(), output="json_schema")
    asker.ask_one(request(), output="tools")
    by_schema, by_tool = asker.provider.requests()
    sent = by_schema["response_format"]["json_schema"]
    function = by_tool["tools"][0]["function"]
    assert sent["strict"] is True
    assert function["strict"] is True
    assert sent["schema"]["required"] == sorted(sent["schema"]["properties"], key=list(GOOD).index)
    assert function["parameters"]["additionalProperties"] is False


def test_markdown_mode_sends_the_schema_in_words_and_no_response_format(asker: Asker) -> None:
    asker.ask_one(request(), output="md_json")
    (sent,) = asker.provider.requests()
    assert "response_format" not in sent
    assert '"additionalProperties": false' in sent["messages"][0]["content"]


@pytest.mark.parametrize("output", MODES)
@pytest.mark.parametrize(
    ("scripted", "kind"),
    [({"refusal": "I can't help with that."}, "refused"), ({"content": "", "finish": "content_filter"}, "filtered")],
)
def test_a_refusal_and_a_filtered_reply_cost_one_request_and_are_named(
    asker: Asker, output: str, scripted: dict[str, Any], kind: str
) -> None:
    asker.provider.script({"match": [], "replies": [scripted]})
    reply = asker.ask_one(request(), output=output)
    assert reply.error_kind == kind
    assert rows(reply) == [("first", 200, kind)]
    assert asker.provider.stats()["requests"] == 1


def test_an_invalid_reply_is_asked_again_with_the_reason_and_every_request_is_paid_once(asker: Asker) -> None:
    asker.provider.script({"match": [], "replies": [{"content": {**GOOD, "level": 9}}, {"content": GOOD}]})
    reply = asker.ask_one(request(), output="json_schema")
    assert (reply.error_kind, reply.parsed) == (None, GOOD)
    assert rows(reply) == [("first", 200, "unparsable"), ("reask", 200, "ok")]
    assert reply.usage["input_tokens"] == sum(call["usage"]["input_tokens"] for call in reply.http_calls)
    stats = asker.provider.stats()
    assert reply.usage["input_tokens"] == stats["prompt_tokens"]
    assert reply.usage["output_tokens"] == stats["completion_tokens"]
    assert reply.cost_usd == pytest.approx(0.15e-6 * stats["prompt_tokens"] + 0.6e-6 * stats["completion_tokens"])
    assert "Input should be 1, 2, 3, 4 or 5" in asker.provider.requests()[1]["messages"][-1]["content"]


@pytest.mark.parametrize("output", MODES)
@pytest.mark.parametrize("text", ["not json", json.dumps(GOOD) + json.dumps(GOOD), '{"level": 4}'])
def test_a_reply_that_stays_invalid_is_unparsable_after_two_reasks(asker: Asker, output: str, text: str) -> None:
    asker.provider.script({"match": [], "replies": [{"content": text}]})
    reply = asker.ask_one(request(), output=output)
    assert (reply.error_kind, reply.parsed, reply.text) == ("unparsable", None, text)
    assert rows(reply) == [(kind, 200, "unparsable") for kind in ("first", "reask", "reask")]


def test_two_objects_are_never_read_as_the_first_or_the_last(asker: Asker) -> None:
    twice = json.dumps({**GOOD, "level": 1}) + "\n" + json.dumps({**GOOD, "level": 5})
    asker.provider.script({"match": [], "replies": [{"content": twice}, {"content": GOOD}]})
    reply = asker.ask_one(request(), output="md_json")
    assert reply.parsed == GOOD
    assert rows(reply)[0] == ("first", 200, "unparsable")


def test_a_think_block_and_a_fence_are_no_obstacle_and_stay_in_the_raw_text(asker: Asker) -> None:
    text = f"maybe {{5}}</think>\n```json\n{json.dumps(GOOD)}\n```"
    asker.provider.script({"match": [], "replies": [{"content": text}]})
    reply = asker.ask_one(request(), output="json_schema")
    assert (reply.parsed, reply.text) == (GOOD, text)


def test_several_tool_calls_are_no_answer(asker: Asker) -> None:
    asker.provider.script({"match": [], "replies": [{"content": GOOD, "calls": 2}, {"content": GOOD}]})
    reply = asker.ask_one(request(), output="tools")
    assert reply.parsed == GOOD
    assert rows(reply) == [("first", 200, "unparsable"), ("reask", 200, "ok")]


def test_a_provider_that_rejects_whatever_is_sent_stops_the_run(asker: Asker) -> None:
    said = {"status": 400, "error": {"message": "response_format is not known here"}}
    asker.provider.script({"match": [], "replies": [said]})
    with pytest.raises(ProviderStop, match=r"the first 20 requests failed.*\n.*`output`"):
        asker.ask(*(request(f"case {number}") for number in range(40)), limits={"concurrency": 1})


def test_a_cut_off_reply_is_asked_once_more_with_twice_the_room(asker: Asker) -> None:
    cut = {"content": '{"rationale": "the', "finish": "length"}
    asker.provider.script({"match": [], "replies": [cut, {"content": GOOD}]})
    reply = asker.ask_one(request(max_tokens=150))
    assert reply.parsed == GOOD
    assert rows(reply) == [("first", 200, "truncated"), ("retry", 200, "ok")]
    assert [sent["max_tokens"] for sent in asker.provider.requests()] == [150, 300]


def test_a_reply_cut_off_twice_is_truncated(asker: Asker) -> None:
    asker.provider.script({"match": [], "replies": [{"content": '{"rationale": "the', "finish": "length"}]})
    reply = asker.ask_one(request())
    assert reply.error_kind == "truncated"
    assert rows(reply) == [("first", 200, "truncated"), ("retry", 200, "truncated")]


def test_a_prompt_beyond_the_context_is_named_and_not_retried(asker: Asker) -> None:
    asker.provider.config(context_tokens=50)
    reply = asker.ask_one(request("word " * 400))
    assert reply.error_kind == "context_window"
    assert len(reply.http_calls) == 1


def test_a_rejected_request_is_an_item_error_that_cost_nothing(asker: Asker) -> None:
    asker.provider.script({"match": [], "replies": [{"status": 400, "error": {"message": "messages[1] is too odd"}}]})
    reply = asker.ask_one(request())
    assert (reply.error_kind, reply.cost_usd) == ("bad_request", 0)
    assert "messages[1] is too odd" in (reply.error or "")
    assert rows(reply) == [("first", 400, "bad_request")]


def test_a_hanging_provider_is_a_timeout_after_three_requests(asker: Asker) -> None:
    asker.provider.script({"match": [], "replies": [{"fault": "hang"}]})
    reply = asker.ask_one(request(), timeout=0.15)
    assert (reply.error_kind, reply.error) == ("timeout", "no reply within 0.15 s")
    assert rows(reply) == [("first", None, "timeout"), ("retry", None, "timeout"), ("retry", None, "timeout")]


def test_a_reply_that_comes_too_late_is_a_timeout_and_asked_again(asker: Asker) -> None:
    asker.provider.script({"match": [], "replies": [{"content": GOOD, "delay_s": 5}, {"content": GOOD}]})
    reply = asker.ask_one(request(), timeout=0.15)
    assert rows(reply) == [("first", None, "timeout"), ("retry", 200, "ok")]


STOPS = [
    (401, {"message": "Incorrect API key provided"}, "rejects the key"),
    (403, {"message": "project has no access"}, "rejects the key"),
    (404, {"message": "The model `x` does not exist", "code": "model_not_found"}, "no such model"),
    (400, {"message": "invalid model ID"}, "no such model"),
    (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}, "no quota"),
    (402, {"message": "Insufficient credits"}, "no quota"),
    (400, {"message": "Unsupported value: 'temperature' does not support 0 with this model."}, "drop_unsupported"),
    (400, {"message": "Unsupported parameter: 'seed' is not supported with this model."}, "drop_unsupported"),
]


@pytest.mark.parametrize(("status", "error", "said"), STOPS)
def test_what_would_fail_for_every_item_stops_the_run_after_one_request(
    asker: Asker, status: int, error: dict[str, Any], said: str
) -> None:
    asker.provider.script({"match": [], "replies": [{"status": status, "error": error}]})
    with pytest.raises(ProviderStop, match=said) as stop:
        asker.ask_one(request())
    assert error["message"] in str(stop.value)
    assert "gpt-4o-mini" in str(stop.value)
    assert asker.provider.stats()["requests"] == 1


def test_a_rejected_key_names_the_variable_it_came_from(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_JUDGE_KEY", "wrong")
    asker.provider.config(api_key="right")
    with pytest.raises(ProviderStop, match="MY_JUDGE_KEY"):
        asker.ask_one(request(), api_key_env="MY_JUDGE_KEY")
    monkeypatch.delenv("MY_JUDGE_KEY")
    with pytest.raises(UsageError, match=r"MY_JUDGE_KEY \(api_key_env\) is not set"):
        asker.ask_one(request(), api_key_env="MY_JUDGE_KEY")


def test_a_missing_key_is_named_before_anything_is_sent(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ProviderStop, match="OPENAI_API_KEY"):
        asker.ask_one(request(), api_base=None)
    assert asker.provider.stats().get("requests", 0) == 0


def test_nobody_listening_stops_the_run_with_the_address(asker: Asker) -> None:
    with pytest.raises(ProviderStop, match=r"cannot reach http://127\.0\.0\.1:9"):
        asker.ask_one(request(), api_base="http://127.0.0.1:9/v1")


def test_a_model_without_a_provider_is_refused_with_the_way_to_write_it(asker: Asker) -> None:
    with pytest.raises(ProviderStop, match="openai/nonesuch"):
        asker.ask_one(request(), model="nonesuch", api_base=None)


def test_an_unsupported_parameter_is_refused_before_the_first_request(asker: Asker) -> None:
    with pytest.raises(ProviderStop, match=r"o3-mini does not accept temperature = 0.*\n.*drop_unsupported"):
        asker.ask_one(request(), model="openai/o3-mini")
    assert asker.provider.stats().get("requests", 0) == 0


def test_an_unsupported_parameter_is_left_out_and_recorded_when_the_judge_says_so(asker: Asker) -> None:
    async def work(client: Any) -> Any:
        return await client.ask(request()), client.resolved, client.warnings

    reply, resolved, warnings = asker.run(work, model="openai/o3-mini", drop_unsupported=True)
    assert reply.error_kind is None
    assert (resolved["params"], resolved["dropped"]) == ({}, ["temperature"])
    assert "temperature" in warnings[0]
    assert "temperature" not in asker.provider.requests()[0]


def test_parameters_and_room_of_the_judge_are_sent(asker: Asker) -> None:
    asker.ask_one(request(), params={"seed": 7, "max_tokens": 2000})
    (sent,) = asker.provider.requests()
    assert (sent["seed"], sent["temperature"], sent["max_tokens"]) == (7, 0, 2000)


def test_an_unknown_price_is_unknown_and_a_price_of_the_judge_is_used(asker: Asker) -> None:
    assert asker.ask_one(request(), model="openai/some-own-model").cost_usd is None
    priced = asker.ask_one(
        request(), model="openai/some-own-model", price={"input_per_million": 1, "output_per_million": 10}
    )
    assert priced.cost_usd == pytest.approx((priced.usage["input_tokens"] + 10 * priced.usage["output_tokens"]) / 1e6)


def test_another_provider_route_works_the_same(asker: Asker) -> None:
    root = asker.provider.root
    asker.provider.script({"match": [], "replies": [{"content": {**GOOD, "level": 9}}, {"content": GOOD}]})
    reply = asker.ask_one(request(), model="anthropic/claude-sonnet-4-5", api_base=root)
    assert (reply.error_kind, reply.parsed) == (None, GOOD)
    assert rows(reply) == [("first", 200, "unparsable"), ("reask", 200, "ok")]


def test_a_quick_call_gives_the_alternatives_of_one_token(asker: Asker) -> None:
    reply = asker.ask_one(quick_request())
    assert (reply.error_kind, reply.text, reply.finish_reason) == (None, "yes", "length")
    assert [token for token, _ in reply.token_logprobs or []] == ["yes", "no", "Yes", "No"]
    (sent,) = asker.provider.requests()
    wanted = {"max_tokens": 1, "logprobs": True, "top_logprobs": 20, "temperature": 0}
    assert {name: sent[name] for name in wanted} == wanted


def test_a_quick_call_is_cold_whatever_the_judge_says(asker: Asker) -> None:
    asker.ask_one(quick_request(), params={"temperature": 0.7, "max_tokens": 900})
    (sent,) = asker.provider.requests()
    assert (sent["temperature"], sent["max_tokens"]) == (0, 1)


def test_a_model_without_token_probabilities_cannot_judge_in_quick_mode(asker: Asker) -> None:
    with pytest.raises(ProviderStop, match="no token probabilities"):
        asker.ask_one(quick_request(), model="anthropic/claude-sonnet-4-5", api_base=asker.provider.root)
    assert asker.provider.stats().get("requests", 0) == 0
    asker.provider.script({"match": [], "replies": [{"content": "yes", "logprobs": False}]})
    with pytest.raises(ProviderStop, match="--mode full"):
        asker.ask_one(quick_request())


def test_where_twenty_alternatives_are_refused_five_are_asked_for(asker: Asker) -> None:
    refusal = {"status": 400, "error": {"message": "top_logprobs must be at most 5"}}
    asker.provider.script({"match": [], "replies": [refusal, {"content": "yes"}]})

    async def work(client: Any) -> Any:
        before = client.key(quick_request())
        return await client.ask(quick_request()), before, client.key(quick_request()), client.resolved

    reply, before, after, resolved = asker.run(work)
    assert reply.error_kind is None
    assert rows(reply) == [("first", 400, "bad_request"), ("retry", 200, "ok")]
    assert [sent["top_logprobs"] for sent in asker.provider.requests()] == [20, 5]
    assert resolved["top_logprobs"] == 5
    assert reply.key == after != before


def test_a_parameter_that_the_provider_refuses_is_left_out_when_the_judge_says_so(asker: Asker) -> None:
    refusal = {"status": 400, "error": {"message": "Unsupported value: 'temperature' does not support 0"}}
    asker.provider.script({"match": [], "replies": [refusal, {"content": GOOD}]})

    async def work(client: Any) -> Any:
        return await client.ask(request()), await client.ask(request("another")), client.resolved

    reply, other, resolved = asker.run(work, drop_unsupported=True)
    assert (reply.error_kind, other.error_kind, resolved["dropped"]) == (None, None, ["temperature"])
    assert rows(reply) == [("first", 400, "stopped"), ("retry", 200, "ok")]
    assert rows(other) == [("first", 200, "ok")]


def test_a_model_that_wants_the_newer_name_of_max_tokens_gets_it(asker: Asker) -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    asker.provider.script({"match": [], "replies": [{"status": 400, "error": {"message": said}}, {"content": GOOD}]})
    reply = asker.ask_one(request(max_tokens=123))
    assert reply.parsed == GOOD
    assert "max_tokens" not in asker.provider.requests()[1]
    assert asker.provider.requests()[1]["max_completion_tokens"] == 123


def test_a_refusal_in_quick_mode_is_named(asker: Asker) -> None:
    asker.provider.script({"match": [], "replies": [{"refusal": "no"}]})
    assert asker.ask_one(quick_request()).error_kind == "refused"


def test_the_fake_provider_is_reset_between_tests(provider: FakeProvider) -> None:
    assert provider.stats().get("requests", 0) == 0
