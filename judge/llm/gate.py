"""How many calls may be under way: a limit that adapts to the provider, a pause it asked for, and fixed rates."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from judge.llm.retry import LONGEST_WAIT_S, Sleep

START = 16
SHRINK = 0.7
SHRINK_EVERY_S = 0.5


class TokenBucket:
    """At most `per_minute` units a minute, spread evenly; None is no limit."""

    def __init__(self, per_minute: int | None, clock: Callable[[], float]) -> None:
        self._rate = per_minute / 60 if per_minute else None
        self._clock = clock
        self._free_at = clock()

    def reserve(self, amount: float) -> float:
        """Takes `amount` and returns the seconds to wait before using it."""
        if self._rate is None:
            return 0.0
        now = self._clock()
        wait = max(0.0, self._free_at - now)
        self._free_at = max(self._free_at, now) + amount / self._rate
        return wait

    def refund(self, amount: float) -> None:
        """Gives back what was reserved and not used (negative: takes what was used beyond it)."""
        if self._rate is not None:
            self._free_at -= amount / self._rate


class Gate:
    """Adaptive concurrency: grows by one per success until the first 429, then by 1/limit; shrinks by 0.7 on a 429.

    A Retry-After pauses everybody. `most` is the upper bound; `requests` and `tokens` are per minute.
    """

    def __init__(
        self,
        most: int,
        *,
        requests: int | None = None,
        tokens: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.most = most
        self.limit = float(min(most, START))
        self.busy = 0
        self._clock = clock
        self._sleep = sleep
        self._requests = TokenBucket(requests, clock)
        self._tokens = TokenBucket(tokens, clock)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._paused_until = 0.0
        self._shrunk_at = float("-inf")
        self._probing = True

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[None]:
        """One of the slots; entered when there is one, no pause holds and the rates allow a call of `tokens`."""
        await self._enter()
        try:
            while (pause := self._paused_until - self._clock()) > 0:
                await self._sleep(pause)
            if wait := max(self._requests.reserve(1), self._tokens.reserve(tokens)):
                await self._sleep(wait)
            yield
        finally:
            self.busy -= 1
            self._admit()

    def succeeded(self, *, unused_tokens: int = 0) -> None:
        """A reply came: the limit grows; tokens reserved and not used are given back."""
        self._tokens.refund(unused_tokens)
        self.limit = min(self.most, self.limit + (1 if self._probing else 1 / self.limit))

    def rate_limited(self, wait_s: float | None) -> None:
        """A 429 came: the limit shrinks (once per half second) and everybody waits as long as the provider asked."""
        now = self._clock()
        self._probing = False
        if now - self._shrunk_at >= SHRINK_EVERY_S:
            self._shrunk_at = now
            self.limit = max(1.0, self.limit * SHRINK)
        if wait_s:
            self._paused_until = max(self._paused_until, now + min(wait_s, LONGEST_WAIT_S))

    async def _enter(self) -> None:
        if self.busy < int(self.limit) and not self._waiting:
            self.busy += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was handed over in the same moment
                self.busy -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self.busy < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self.busy += 1
                turn.set_result(None)
