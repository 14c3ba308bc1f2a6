"""The one door to the model: key, cache, one flight per key, then the provider.

A failed item is a Reply with an `error_kind`; ProviderStop is raised only when every further call would fail too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from judge.config import JudgeSpec
from judge.errors import ProviderStop
from judge.llm import capability, ledger
from judge.llm.answering import Answerer
from judge.llm.budget import Budget, TokenPrice
from judge.llm.cache import ReplyCache
from judge.llm.capability import Capability
from judge.llm.failures import CallFailed, ParameterRefused
from judge.llm.request import Reply, Request, key_head, key_of, legible
from judge.llm.retry import Sleep
from judge.llm.sending import Asking, Sender
from judge.llm.structured import schema_hash


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
        self._clock = clock
        self._sender = Sender(spec, sleep=sleep, clock=clock)
        self._answerer = Answerer(self._sender)
        self._heads: dict[tuple[type[BaseModel] | None, tuple[str, ...]], Any] = {}
        self._flights: dict[str, asyncio.Task[Reply]] = {}

    # -- what is known without asking ---------------------------------------------------------------------------------

    @property
    def resolved(self) -> dict[str, Any]:
        """What the model supports and which parameters are sent, as plain JSON; found out on first use."""
        return self._known().to_dict()

    @property
    def warnings(self) -> list[str]:
        """What the user should hear: a cache that cannot be used, parameters left out."""
        said = list(self._cache.warnings) if self._cache else []
        if self._capability and self._capability.dropped:
            said.append(
                f"{self.spec.model}: not sent, the model does not accept it: {', '.join(self._capability.dropped)}"
            )
        return said

    @property
    def budget(self) -> Budget | None:
        """The money limit; `ask` raises OverBudget instead of sending what might exceed it."""
        return self._sender.budget

    @budget.setter
    def budget(self, budget: Budget | None) -> None:
        self._sender.budget = budget

    def identity(self, mode: str, layout: str) -> dict[str, Any]:
        """What makes two judgments comparable: model, endpoint, parameters sent, output mode, mode and layout."""
        known = self._known()
        return {
            "name": self.spec.name,
            "model": self.spec.model,
            "endpoint": self.spec.host,
            "params": known.params,
            "dropped": known.dropped,
            "output": known.output,
            "mode": mode,
            "layout": layout,
        }

    def price(self) -> TokenPrice | None:
        """The price of judge.toml, else of the price map; None when nobody knows it."""
        return ledger.price_of(self.spec, self._known().model)

    def count_tokens(self, request: Request) -> int:
        """Prompt tokens of a request: an estimate (about 20 % off for tokenizers that are not public)."""
        return ledger.count_tokens(self.spec, self._known().model, request.messages)

    def key(self, request: Request) -> str:
        """The name of this request for this judge: 64 hex digits, the same for the same question, markers apart."""
        head = self._heads.get((request.output, request.tokens))
        if head is None:
            head = self._heads[request.output, request.tokens] = key_head(self._constant_part(request))
        return key_of(head, request)

    def cached(self, key: str) -> bool:
        """Whether the reply to this key is in the cache."""
        return self._kept(key) is not None

    # -- asking -------------------------------------------------------------------------------------------------------

    async def ask(self, request: Request) -> Reply:
        """The reply to `request`: from the cache, from an identical request under way, or from the provider.

        Who joins a request under way gets its reply as `cached`: the calls and the cost are the first one's.
        """
        key = self.key(request)
        if (kept := self._kept(key)) is not None:
            return kept
        flight = self._flights.get(key)
        if flight is not None:
            return replace(await asyncio.shield(flight), cached=True, cost_usd=0.0, http_calls=[])
        flight = self._flights[key] = asyncio.create_task(self._fetch(request, key))
        flight.add_done_callback(lambda task: self._landed(key, task))
        return await asyncio.shield(flight)

    async def aclose(self) -> list[str]:
        """Cancels what is under way, frees the embedded model, closes the HTTP sessions with the last client.

        Returns what is worth saying at the end: the memory that the embedded model took.
        """
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
        await self._sender.aclose()
        return capability.release_local(self._capability) if self.spec.is_local and self._capability else []

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _fetch(self, request: Request, key: str) -> Reply:
        started = self._clock()
        room = self.spec.params.get("max_tokens", request.max_tokens)
        asking = Asking(request, room, sum(len(message["content"]) for message in request.messages))
        try:
            found = await self._answered(asking)
        except CallFailed as failure:
            found = {"error_kind": failure.kind, "error": legible(str(failure))}
        usage, cost = ledger.totals(asking.rows)
        reply = Reply(
            key=self.key(request),  # not `key`: what the model supports may have been learned on the way
            usage=usage,
            cost_usd=cost,
            http_calls=asking.rows,
            latency_s=round(self._clock() - started, 4),
            **ledger.read(asking.response),
            **found,
        )
        if reply.error_kind is None and self._cache:
            self._cache.set(reply.key, _to_keep(reply))
        return reply

    async def _answered(self, asking: Asking) -> dict[str, Any]:
        """The answer's part of the reply; a refused parameter is learned from and the request sent again."""
        while True:
            known = self._known()
            try:
                if asking.request.output is None:
                    return {"token_logprobs": await self._answerer.quick(asking, known)}
                return {"parsed": await self._answerer.structured(asking, known)}
            except (CallFailed, ParameterRefused) as failure:
                if isinstance(failure, CallFailed) and failure.kind != "bad_request":
                    raise
                better = capability.adjusted(known, str(failure), drop=self.spec.drop_unsupported)
                if better is None:
                    raise
                if self._capability is known:  # else another request has learned it meanwhile
                    self._learned(better)

    def _landed(self, key: str, task: asyncio.Task[Reply]) -> None:
        self._flights.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieved: the waiters may all be gone

    # -- capability and cache -----------------------------------------------------------------------------------------

    def _known(self) -> Capability:
        if self._capability is None:
            kept = self._cache.get(f"capability:{capability.capability_id(self.spec)}") if self._cache else None
            self._capability = capability.from_dict(kept, self.spec)
        if self._capability is None:
            self._learned(capability.resolve(self.spec))
        if self._capability is None:
            raise ProviderStop(f"{self.spec.model}: nothing is known about this model")
        return self._capability

    def _learned(self, known: Capability) -> None:
        self._capability = known
        self._heads.clear()
        if self._cache:
            self._cache.set(f"capability:{known.id}", known.to_dict())

    def _constant_part(self, request: Request) -> dict[str, Any]:
        known = self._known()
        constant = {"model": known.model, "host": self.spec.host}
        if request.output is None:
            quick = {"params": known.quick_params, "tokens": request.tokens, "top_logprobs": known.top_logprobs}
            return constant | quick
        schema = schema_hash(request.output)
        return constant | {"params": known.params, "output": known.output, "strict": known.strict, "schema": schema}

    def _kept(self, key: str) -> Reply | None:
        value = self._cache.get(key) if self._cache else None
        if not isinstance(value, dict):
            return None
        try:
            pairs = value.pop("token_logprobs", None)
            logprobs = None if pairs is None else [(str(token), float(logprob)) for token, logprob in pairs]
            return Reply(key=key, cached=True, cost_usd=0.0, token_logprobs=logprobs, **value)
        except (TypeError, ValueError):
            return None


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
