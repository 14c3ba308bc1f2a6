"""Who deserves a retry, after how long, how often: no time passes here."""

from __future__ import annotations

import asyncio
import email.utils
import time
from types import SimpleNamespace
from typing import Any

import pytest

from judge.errors import ProviderStop
from judge.llm.client import Client
from judge.llm.failures import CallFailed, retry_after
from judge.llm.retry import LONGEST_WAIT_S, attempts
from tests.llm.conftest import GOOD, Asker, request


def http_error(**headers: str) -> Any:
    return SimpleNamespace(response=SimpleNamespace(headers=headers), litellm_response_headers=None)


@pytest.mark.parametrize(("value", "seconds"), [("30", 30), ("0.5", 0.5), ("-3", 0), ("soon", None)])
def test_retry_after_is_read_as_seconds(value: str, seconds: float | None) -> None:
    assert retry_after(http_error(**{"retry-after": value})) == seconds


def test_retry_after_is_read_as_a_date() -> None:
    later = email.utils.formatdate(time.time() + 90, usegmt=True)
    assert retry_after(http_error(**{"Retry-After": later})) == pytest.approx(90, abs=2)
    earlier = email.utils.formatdate(time.time() - 90, usegmt=True)
    assert retry_after(http_error(**{"retry-after": earlier})) == 0


def test_retry_after_is_found_where_other_routes_put_it() -> None:
    error: Any = SimpleNamespace(response=None, litellm_response_headers={"Retry-After": "7"})
    assert retry_after(error) == 7
    assert retry_after(SimpleNamespace()) is None  # type: ignore[arg-type]


def failing(*failures: CallFailed) -> tuple[Any, list[float]]:
    """Runs a call that fails in these ways and then succeeds; its outcome and what was slept."""
    left, slept = list(failures), []

    async def once() -> str:
        if left:
            raise left.pop(0)
        return "done"

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def run() -> Any:
        try:
            return await attempts(sleep)(once)
        except CallFailed as failure:
            return failure

    return asyncio.run(run()), slept


def busy(wait_s: float | None = None) -> CallFailed:
    return CallFailed("transport", "busy", status=429, retryable=True, wait_s=wait_s)


def slow() -> CallFailed:
    return CallFailed("timeout", "slow", retryable=True)


def test_the_wait_is_what_the_provider_asked_plus_up_to_a_quarter() -> None:
    outcome, slept = failing(busy(30), busy(30), busy(30))
    assert outcome == "done"
    assert all(30 <= seconds <= 37.5 for seconds in slept)


def test_a_wait_beyond_two_minutes_is_cut_to_two_minutes() -> None:
    _, slept = failing(busy(3600))
    assert LONGEST_WAIT_S <= slept[0] <= LONGEST_WAIT_S * 1.25


def test_without_a_wish_the_wait_grows_and_is_bounded() -> None:
    outcome, slept = failing(*[busy()] * 7)
    assert outcome == "done"
    assert all(seconds <= 30 for seconds in slept)


def test_eight_attempts_are_all() -> None:
    outcome, slept = failing(*[busy()] * 9)
    assert outcome.kind == "transport"
    assert len(slept) == 7


def test_three_timeouts_are_all() -> None:
    outcome, slept = failing(*[slow()] * 3)
    assert outcome.kind == "timeout"
    assert len(slept) == 2


def test_five_minutes_of_waiting_are_all() -> None:
    outcome, slept = failing(*[busy(100)] * 8)
    assert outcome.kind == "transport"
    assert sum(slept) < 300 + 125


def test_what_the_item_caused_is_not_retried() -> None:
    outcome, slept = failing(CallFailed("bad_request", "odd"))
    assert (outcome.kind, slept) == ("bad_request", [])


def test_every_call_gets_a_loop_of_its_own() -> None:
    assert attempts() is not attempts()


def test_the_wish_of_the_provider_is_honoured_over_http(asker: Asker) -> None:
    busy_reply = {"status": 429, "headers": {"retry-after": "30"}, "error": {"message": "slow down"}}
    asker.provider.script({"match": [], "replies": [busy_reply, busy_reply, {"content": GOOD}]})
    reply = asker.ask_one(request())
    assert reply.parsed == GOOD
    assert [(call["kind"], call["status"]) for call in reply.http_calls] == [
        ("first", 429),
        ("retry", 429),
        ("retry", 200),
    ]
    assert sum(seconds >= 30 for seconds in asker.slept) >= 2


def test_the_wish_is_found_on_a_route_without_the_openai_client(asker: Asker) -> None:
    busy_reply = {"status": 429, "headers": {"retry-after": "30"}, "error": {"message": "slow down"}}
    asker.provider.script({"match": [], "replies": [busy_reply, {"content": GOOD}]})
    reply = asker.ask_one(request(), model="hosted_vllm/own", output="json_schema")
    assert reply.parsed == GOOD
    assert max(asker.slept) >= 30


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_a_server_that_stays_broken_is_a_transport_error_after_exactly_eight_requests(
    asker: Asker, status: int
) -> None:
    asker.provider.script({"match": [], "replies": [{"status": status}]})
    reply = asker.ask_one(request())
    assert reply.error_kind == "transport"
    assert [call["status"] for call in reply.http_calls] == [status] * 8
    assert asker.provider.stats()["requests"] == 8


def test_a_lost_connection_is_retried_and_never_told_to_the_model(asker: Asker) -> None:
    asker.provider.script({"match": [], "replies": [{"fault": "reset"}, {"status": 500}, {"content": GOOD}]})
    reply = asker.ask_one(request())
    assert reply.parsed == GOOD
    sent = asker.provider.requests()
    assert sent[0]["messages"] == sent[-1]["messages"]


def test_a_provider_that_died_stops_the_run_after_ten_requests_given_up(asker: Asker) -> None:
    good = {"match": "alive", "replies": [{"content": GOOD}]}
    asker.provider.script(good, {"match": [], "replies": [{"fault": "reset"}]})

    async def work(client: Client) -> tuple[list[str | None], ProviderStop]:
        assert (await client.ask(request("alive"))).parsed == GOOD
        kinds = [(await client.ask(request(f"dead {n}"))).error_kind for n in range(9)]
        with pytest.raises(ProviderStop, match="10 requests in a row were given up") as stop:
            await client.ask(request("dead 9"))
        return kinds, stop.value

    kinds, stop = asker.run(work)
    assert kinds == ["transport"] * 9
    assert "the same command goes on" in str(stop)


def test_an_answer_in_between_keeps_the_run_going(asker: Asker) -> None:
    good = {"match": "alive", "replies": [{"content": GOOD}]}
    asker.provider.script(good, {"match": [], "replies": [{"fault": "reset"}]})

    async def work(client: Client) -> list[str | None]:
        asked = [f"alive {n}" if n % 5 == 0 else f"dead {n}" for n in range(15)]
        return [(await client.ask(request(text))).error_kind for text in asked]

    assert asker.run(work) == [None if n % 5 == 0 else "transport" for n in range(15)]
