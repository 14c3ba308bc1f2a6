"""The one door to the model: key, cache, one flight per key, gate, retry, HTTP.

Nothing else in the project calls litellm or instructor. A failed item is a Reply with an `error_kind`; ProviderStop is
raised only when every further call would fail too.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from judge.config import JudgeSpec
from judge.errors import ProviderStop, UsageError
from judge.llm import capability, ledger, library
from judge.llm.cache import ReplyCache
from judge.llm.capability import FEWEST_TOP_LOGPROBS, Capability
from judge.llm.failures import CallFailed, sorted_failure
from judge.llm.gate import Gate
from judge.llm.request import Reply, Request, key_head, key_of
from judge.llm.retry import Sleep, attempts
from judge.llm.structured import answer_model, can_be_strict, sent_schema

MOST_REASKS = 2
UNREACHED_ATTEMPTS = 3
CHARS_PER_TOKEN = 4


@dataclass(slots=True)
class _Asking:
    """One request on its way: the room for the reply, the rows of its HTTP calls, the last reply."""

    request: Request
    max_tokens: int
    enlarged: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    response: Any = None


class Client:
    """Asks one judge. Belongs to one event loop; `aclose` (or `async with`) closes the HTTP sessions.

    `cache` None keeps nothing. `resolved` is an earlier client's `resolved`: with it, or with the cache, requests that
    are all cached need no LLM library. `sleep` and `clock` stand in for time in tests.
    """

    def __init__(
        self,
        spec: JudgeSpec,
        *,
        cache: ReplyCache | None = None,
        resolved: dict[str, Any] | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.spec = spec
        self._cache = cache
        self._capability = capability.from_dict(resolved, spec)
        self._sleep = sleep
        self._clock = clock
        self._gate = Gate(
            spec.limits.concurrency, requests=spec.limits.rpm, tokens=spec.limits.tpm, clock=clock, sleep=sleep
        )
        self._heads: dict[tuple[type[BaseModel] | None, tuple[str, ...]], Any] = {}
        self._flights: dict[str, asyncio.Task[Reply]] = {}
        self._create: Callable[..., Awaitable[Any]] | None = None
        self._connection: dict[str, Any] = {}
        self._reached = False
        library.opened()

    @property
    def resolved(self) -> dict[str, Any]:
        """What the model supports and which parameters are sent, as plain JSON; found out on first use."""
        return self._known().to_dict()

    def key(self, request: Request) -> str:
        """The name of this request for this judge: 64 hex digits, the same for the same question, markers apart."""
        head = self._heads.get((request.output, request.tokens))
        if head is None:
            head = self._heads[request.output, request.tokens] = key_head(self._constant_part(request))
        return key_of(head, request)

    async def ask(self, request: Request) -> Reply:
        """The reply to `request`: from the cache, from an identical request under way, or from the provider."""
        key = self.key(request)
        if (kept := self._kept(key)) is not None:
            return kept
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = asyncio.create_task(self._fetch(request, key))
            flight.add_done_callback(lambda task: self._landed(key, task))
        return await asyncio.shield(flight)

    async def aclose(self) -> None:
        """Cancels what is under way and, as the last client of the process, closes the HTTP sessions."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
        await library.closed()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # -- key and cache ------------------------------------------------------------------------------------------------

    def _known(self) -> Capability:
        if self._capability is None:
            name = f"capability:{capability.capability_id(self.spec)}"
            kept = self._cache.get(name) if self._cache else None
            self._capability = capability.from_dict(kept, self.spec)
            if self._capability is None:
                self._set_capability(capability.resolve(self.spec))
        return self._capability  # type: ignore[return-value]

    def _set_capability(self, found: Capability) -> None:
        self._capability = found
        self._heads.clear()
        if self._cache:
            self._cache.set(f"capability:{found.id}", found.to_dict())

    def _constant_part(self, request: Request) -> dict[str, Any]:
        known = self._known()
        constant = {"model": known.model, "host": self.spec.host, "params": known.params}
        if request.output is None:
            return constant | {"tokens": request.tokens, "top_logprobs": known.top_logprobs}
        return constant | {"output": known.output, "strict": known.strict, "schema": sent_schema(request.output)}

    def _kept(self, key: str) -> Reply | None:
        value = self._cache.get(key) if self._cache else None
        if not isinstance(value, dict):
            return None
        try:
            pairs = value.pop("token_logprobs", None)
            return Reply(
                key=key,
                cached=True,
                cost_usd=0.0,
                token_logprobs=None if pairs is None else [(token, logprob) for token, logprob in pairs],
                **value,
            )
        except (TypeError, ValueError):
            return None

    def _landed(self, key: str, task: asyncio.Task[Reply]) -> None:
        self._flights.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieved: the waiters may all be gone

    # -- one request --------------------------------------------------------------------------------------------------

    async def _fetch(self, request: Request, key: str) -> Reply:
        started = self._clock()
        asking = _Asking(request, request.max_tokens)
        try:
            reply = await (self._quick(asking) if request.output is None else self._structured(asking))
        except CallFailed as failure:
            reply = Reply(key=key, error_kind=failure.kind, error=str(failure), text=_text(asking.response))
        usage, cost = ledger.totals(asking.rows)
        reply = replace(
            reply,
            key=self.key(request),
            usage=usage,
            cost_usd=cost,
            http_calls=asking.rows,
            latency_s=round(self._clock() - started, 4),
        )
        if reply.error_kind is None and self._cache:
            self._cache.set(reply.key, _to_keep(reply))
        return reply

    async def _structured(self, asking: _Asking) -> Reply:
        """Through instructor, which turns an invalid reply into a question to the model: at most two re-asks."""
        if self._create is None:
            self._create = self._instructed()
        try:
            answer = await self._create(
                response_model=answer_model(asking.request.output),
                messages=list(asking.request.messages),
                max_retries=MOST_REASKS,
                asking=asking,
            )
        except library.instructor().core.InstructorRetryException as error:
            cause = error.__cause__
            if isinstance(cause, CallFailed | ProviderStop):
                raise cause from None
            asking.rows[-1]["outcome"] = "unparsable"
            raise CallFailed("unparsable", f"no valid reply after {MOST_REASKS} re-asks: {_reason(cause)}") from None
        return self._reply(asking, parsed=answer.model_dump(mode="json"))

    def _instructed(self) -> Callable[..., Awaitable[Any]]:
        lib = library.instructor()
        mode = {
            "json_schema": lib.Mode.JSON_SCHEMA,
            "tools": lib.Mode.TOOLS,
            "json": lib.Mode.JSON,
            "md_json": lib.Mode.JSON,
        }[self._known().output]

        async def complete(*, asking: _Asking, **kwargs: Any) -> Any:
            return await self._complete(asking, **kwargs)

        return lib.from_litellm(complete, mode=mode).chat.completions.create  # type: ignore[no-any-return]

    async def _quick(self, asking: _Asking) -> Reply:
        """One token and the probabilities of its alternatives; no instructor, and the length limit is no failure."""
        known = self._known()
        if known.top_logprobs is None:
            raise ProviderStop(f"{self.spec.model}: {NO_LOGPROBS}")
        try:
            response = await self._attempt(asking, "first", top_logprobs=known.top_logprobs)
        except CallFailed as failure:
            too_many = failure.kind == "bad_request" and "top_logprobs" in str(failure)
            if not too_many or known.top_logprobs <= FEWEST_TOP_LOGPROBS:
                raise
            if self._known().top_logprobs == known.top_logprobs:
                self._set_capability(replace(known, top_logprobs=FEWEST_TOP_LOGPROBS))
            response = await self._attempt(asking, "retry", top_logprobs=FEWEST_TOP_LOGPROBS)
        self._check(asking, response)
        return self._reply(asking, token_logprobs=self._first_token(response))

    def _first_token(self, response: Any) -> list[tuple[str, float]]:
        content = getattr(getattr(response.choices[0], "logprobs", None), "content", None)
        if not content:
            raise ProviderStop(f"{self.spec.model}: {NO_LOGPROBS}")
        found = {entry.token: entry.logprob for entry in [content[0], *(content[0].top_logprobs or [])]}
        return sorted(found.items(), key=lambda pair: -pair[1])

    def _reply(self, asking: _Asking, **found: Any) -> Reply:
        response = asking.response
        return Reply(
            key="",
            text=_text(response),
            finish_reason=response.choices[0].finish_reason,
            model_returned=response.model,
            **found,
        )

    # -- one reply ----------------------------------------------------------------------------------------------------

    async def _complete(self, asking: _Asking, *, messages: list[Any], **channel: Any) -> Any:
        """What instructor calls: one reply, refusals and cut-off replies sorted out before it parses anything.

        A reply cut off at the token limit is asked for once more with twice the room.
        """
        kind: ledger.Kind = "first"
        if asking.rows:
            kind, asking.rows[-1]["outcome"] = "reask", "unparsable"
        strict = self._known().strict and can_be_strict(sent_schema(asking.request.output))  # type: ignore[arg-type]
        if self._known().output == "md_json":
            channel.pop("response_format", None)
        elif strict and "tools" in channel:
            channel["tools"][0]["function"]["strict"] = True
        elif strict:
            channel["response_format"].get("json_schema", {})["strict"] = True
        response = await self._attempt(asking, kind, messages=messages, **channel)
        if response.choices and response.choices[0].finish_reason == "length" and not asking.enlarged:
            asking.rows[-1]["outcome"] = "truncated"
            asking.enlarged, asking.max_tokens = True, asking.max_tokens * 2
            response = await self._attempt(asking, "retry", messages=messages, **channel)
        self._check(asking, response)
        return _light(response)

    def _check(self, asking: _Asking, response: Any) -> None:
        failure = _unusable(response, quick=asking.request.output is None)
        if failure is not None:
            asking.rows[-1]["outcome"] = failure.kind
            raise failure

    # -- one HTTP request ---------------------------------------------------------------------------------------------

    async def _attempt(self, asking: _Asking, kind: ledger.Kind, **body: Any) -> Any:
        """One reply of the provider: as many HTTP requests as the retry policy allows, one row each."""
        tries = 0

        async def once() -> Any:
            nonlocal tries
            tries += 1
            return await self._send(asking, kind if tries == 1 else "retry", tries, body)

        asking.response = await attempts(self._sleep)(once)
        return asking.response

    async def _send(self, asking: _Asking, kind: ledger.Kind, tries: int, body: dict[str, Any]) -> Any:
        """Exactly one HTTP request. The clock of the timeout starts when the slot is entered."""
        room = asking.max_tokens
        reserved = room + sum(len(m["content"]) for m in asking.request.messages) // CHARS_PER_TOKEN
        async with self._gate.slot(reserved):
            started = self._clock()
            try:
                async with asyncio.timeout(self.spec.timeout):
                    response = await self._completion(asking, body)
            except Exception as error:
                failure = sorted_failure(error, self.spec)
                status = getattr(failure, "status", getattr(error, "status_code", None))
                outcome = failure.kind if isinstance(failure, CallFailed) else "stopped"
                asking.rows.append(ledger.row(kind, status=status, outcome=outcome, latency_s=self._clock() - started))
                raise self._after_failure(failure, tries) from error
            self._reached = True
            asking.rows.append(ledger.paid_row(kind, response, self.spec.price, self._clock() - started))
            usage = asking.rows[-1]["usage"] or ledger.NO_USAGE
            self._gate.succeeded(unused_tokens=reserved - usage["input_tokens"] - usage["output_tokens"])
            return response

    def _after_failure(self, failure: CallFailed | ProviderStop, tries: int) -> CallFailed | ProviderStop:
        if isinstance(failure, ProviderStop):
            return failure
        if failure.status is not None:
            self._reached = True
        if failure.status == 429:
            self._gate.rate_limited(failure.wait_s)
        if failure.kind == "transport" and not self._reached and tries >= UNREACHED_ATTEMPTS:
            where = self.spec.api_base or "the provider"
            return ProviderStop(f"{self.spec.model}: cannot reach {where}: {failure}\nIs the server running?")
        return failure

    async def _completion(self, asking: _Asking, body: dict[str, Any]) -> Any:
        known = self._known()
        if not self._connection:
            self._connection = self._connect()
        if asking.request.output is None:
            body = {"messages": list(asking.request.messages), "logprobs": True, "max_tokens": 1, **body}
            params = known.params
        else:
            body = {"max_tokens": asking.max_tokens, **body}
            params = known.params
        return await library.litellm().acompletion(**self._connection, **{**params, **body})

    def _connect(self) -> dict[str, Any]:
        """What every request carries: the model, where it is, the key, the library's own retries switched off."""
        if self.spec.is_local:
            capability.register_local(self.spec)
        fixed: dict[str, Any] = {
            "model": self._known().model,
            "timeout": self.spec.timeout,
            "num_retries": 0,
            "max_retries": 0,
        }
        if self.spec.api_base:
            fixed["api_base"] = self.spec.api_base
        if name := self.spec.api_key_env:
            if not os.environ.get(name):
                raise UsageError(f"judge {self.spec.name!r}: the environment variable {name} (api_key_env) is not set")
            fixed["api_key"] = os.environ[name]
        return fixed


NO_LOGPROBS = "gives no token probabilities, which quick mode needs. Use --mode full, or another model."


def _unusable(response: Any, *, quick: bool) -> CallFailed | None:
    """The failure that a 200 reply amounts to, or None."""
    if not response.choices:
        return CallFailed("unparsable", "the reply has no choices")
    choice = response.choices[0]
    if refusal := getattr(choice.message, "refusal", None):
        return CallFailed("refused", f"the model refused: {str(refusal)[:300]}")
    if choice.finish_reason == "content_filter":
        return CallFailed("filtered", "the provider's content filter stopped the reply")
    if choice.finish_reason == "length" and not quick:
        return CallFailed("truncated", "the reply was cut off at the token limit, with twice the room too")
    return None


def _text(response: Any) -> str | None:
    """The raw text of a reply: the arguments of the tool call when there is one."""
    if response is None or not response.choices:
        return None
    message = response.choices[0].message
    calls = getattr(message, "tool_calls", None)
    return calls[0].function.arguments if calls else message.content


def _light(response: Any) -> Any:
    """The reply without its token counts: instructor would add them up over re-asks, which the ledger does."""
    return SimpleNamespace(choices=response.choices, usage=None)


def _reason(error: BaseException | None) -> str:
    return " ".join(str(error).split())[:300]


def _to_keep(reply: Reply) -> dict[str, Any]:
    return {
        "text": reply.text,
        "parsed": reply.parsed,
        "finish_reason": reply.finish_reason,
        "model_returned": reply.model_returned,
        "usage": reply.usage,
        "latency_s": reply.latency_s,
        "token_logprobs": reply.token_logprobs,
    }
