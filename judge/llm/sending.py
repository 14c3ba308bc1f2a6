"""One reply of the provider: gate, retry, HTTP, and a ledger row per request. The only caller of litellm."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from judge.config import JudgeSpec
from judge.errors import JudgeError, ProviderStop, UsageError
from judge.llm import ledger
from judge.llm.budget import Budget
from judge.llm.capability import Capability, register_local
from judge.llm.failures import CallFailed, sorted_failure
from judge.llm.gate import Gate
from judge.llm.library import closed, litellm, opened
from judge.llm.request import Request
from judge.llm.retry import MOST_ATTEMPTS, MOST_TIMEOUTS, Sleep, attempts

UNREACHED_ATTEMPTS = 3
REJECTED_AT_FIRST = 20
LOST_IN_A_ROW = 10  # requests given up after all attempts, with no answer to any other meanwhile
GRACE_S = 1.0
BUSY = (429, 503, 529)
CHARS_PER_TOKEN = 3  # low, so that what is reserved is rarely too little


@dataclass(slots=True)
class Asking:
    """One request on its way: the room for the reply, the rows of its HTTP requests, the last reply."""

    request: Request
    max_tokens: int
    prompt_chars: int
    enlarged: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    response: Any = None


class Sender:
    """Sends the requests of one judge. `budget` (None: no limit) may be set before the first request."""

    def __init__(self, spec: JudgeSpec, *, sleep: Sleep, clock: Callable[[], float] = time.monotonic) -> None:
        limits = spec.limits
        self.spec = spec
        self.budget: Budget | None = None
        self._sleep = sleep
        self._clock = clock
        self._gate = Gate(limits.concurrency, requests=limits.rpm, tokens=limits.tpm, clock=clock, sleep=sleep)
        self._fixed: dict[str, Any] = {}
        self._reached = self._accepted = False
        self._rejected = self._lost = 0

    async def send(self, asking: Asking, kind: ledger.Kind, known: Capability, body: dict[str, Any]) -> Any:
        """The provider's reply to `body` (messages, max_tokens, parameters), after as many requests as retry allows.

        Raises CallFailed when there is none, ProviderStop when there never will be, OverBudget before spending more.
        """
        call = self._connection(known) | body
        room = body[known.room]
        tries = 0

        async def once() -> Any:
            nonlocal tries
            tries += 1
            return await self._request(asking, kind if tries == 1 else "retry", call, room, tries)

        asking.response = await attempts(self._sleep)(once)
        return asking.response

    async def _request(self, asking: Asking, kind: ledger.Kind, call: dict[str, Any], room: int, tries: int) -> Any:
        """Exactly one HTTP request. The clock of the timeout starts when the slot is entered."""
        input_tokens = asking.prompt_chars // CHARS_PER_TOKEN
        reserved = await self.budget.reserve(input_tokens, room) if self.budget else 0.0
        paid: float | None = 0.0
        try:
            async with self._gate.slot(input_tokens + room):
                started = self._clock()
                try:
                    async with self._time_limit():
                        response = await litellm().acompletion(**call)
                except JudgeError:
                    raise
                except Exception as error:
                    failure = sorted_failure(error, self.spec)
                    asking.rows.append(self._failed_row(kind, failure, error, self._clock() - started))
                    raise self._after_failure(failure, tries) from error
                row = ledger.paid_row(kind, response, self.spec.price, self._clock() - started)
                asking.rows.append(row)
                paid = row["cost_usd"]
                self._reached = self._accepted = True
                self._lost = 0
                used = row["usage"] or ledger.NO_USAGE
                self._gate.succeeded(unused_tokens=input_tokens + room - used["input_tokens"] - used["output_tokens"])
                return response
        finally:
            if self.budget:
                self.budget.settle(reserved, paid)

    async def aclose(self) -> None:
        """Closes the HTTP sessions when no other sender of this process uses them."""
        if self._fixed:
            self._fixed = {}
            await closed()

    def _time_limit(self) -> Any:
        """Ends what the library's own timeout does not: a trickling reply. The embedded model keeps its own time."""
        return nullcontext() if self.spec.is_local else asyncio.timeout(self.spec.timeout + GRACE_S)

    def _failed_row(
        self, kind: ledger.Kind, failure: CallFailed | ProviderStop, error: Exception, latency_s: float
    ) -> dict[str, Any]:
        if isinstance(failure, CallFailed):
            return ledger.row(kind, status=failure.status, outcome=failure.kind, latency_s=latency_s)
        return ledger.row(kind, status=getattr(error, "status_code", None), outcome="stopped", latency_s=latency_s)

    def _after_failure(self, failure: CallFailed | ProviderStop, tries: int) -> CallFailed | ProviderStop:
        if isinstance(failure, ProviderStop):
            return failure
        if failure.status is not None:
            self._reached = True
        if failure.status in BUSY:
            self._gate.rate_limited(failure.wait_s)
        self._rejected += failure.kind == "bad_request"
        if failure.kind == "bad_request" and not self._accepted and self._rejected >= REJECTED_AT_FIRST:
            advice = "If it is about response_format or tools, give another `output` for this judge in judge.toml."
            return ProviderStop(f"{self.spec.model}: the first {self._rejected} requests failed: {failure}\n{advice}")
        lost_after = MOST_TIMEOUTS if failure.kind == "timeout" else MOST_ATTEMPTS
        if failure.status is None and failure.retryable and tries >= lost_after:
            self._lost += 1
            if self._lost >= LOST_IN_A_ROW:
                return ProviderStop(
                    f"{self.spec.model}: no answer any more, {self._lost} requests in a row were given up: {failure}\n"
                    "What was judged is kept; the same command goes on from there."
                )
        if failure.kind == "transport" and not self._reached and tries >= UNREACHED_ATTEMPTS:
            where = self.spec.address or "the provider"
            return ProviderStop(f"{self.spec.model}: cannot reach {where}: {failure}\nIs the server running?")
        return failure

    def _connection(self, known: Capability) -> dict[str, Any]:
        """What every request carries: the model, where it is, the key, the library's own retries switched off."""
        if self._fixed:
            return self._fixed
        if self.spec.is_local:
            register_local(self.spec)
        fixed = {"model": known.model, "timeout": self.spec.timeout, "num_retries": 0, "max_retries": 0}
        if self.spec.api_base:
            fixed["api_base"] = self.spec.api_base
        if name := self.spec.api_key_env:
            if not os.environ.get(name):
                raise UsageError(f"judge {self.spec.name!r}: the environment variable {name} (api_key_env) is not set")
            fixed["api_key"] = os.environ[name]
        opened()
        self._fixed = fixed
        return fixed
