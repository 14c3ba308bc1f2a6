"""A small output model, ways to build requests and clients, and a sleep that takes no time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from judge.config import JudgeSpec
from judge.llm.cache import ReplyCache
from judge.llm.client import Client
from judge.llm.request import Reply, Request
from tests.conftest import FakeProvider

GOOD = {"rationale": "says so", "cannot_judge": None, "level": 4}


class Verdict(BaseModel):
    """One verdict on one answer."""

    rationale: str
    cannot_judge: str | None
    level: Literal[1, 2, 3, 4, 5]


def request(text: str = "Judge this. [[q=0.8]]", **changes: Any) -> Request:
    messages = ({"role": "system", "content": "You are a judge."}, {"role": "user", "content": text})
    return Request(**{"messages": messages, "output": Verdict, "max_tokens": 400, **changes})


def quick_request(text: str = "Reply yes or no. [[q=0.8]]", **changes: Any) -> Request:
    messages = ({"role": "user", "content": text},)
    given = {"messages": messages, "output": None, "max_tokens": 1, "tokens": ("yes", "no"), **changes}
    return Request(**given)


class Asker:
    """Runs requests through a fresh client against the fake provider; remembers how long it would have slept."""

    def __init__(self, provider: FakeProvider) -> None:
        self.provider = provider
        self.slept: list[float] = []
        self._skipped = 0.0

    def spec(self, **changes: Any) -> JudgeSpec:
        given = {"name": "test", "model": "openai/gpt-4o-mini", "api_base": self.provider.base_url, "timeout": 20}
        return JudgeSpec(**{**given, **changes})

    async def sleep(self, seconds: float) -> None:
        """Moves the clock instead of waiting."""
        until = self.clock() + seconds
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self._skipped += max(0.0, until - self.clock())

    def clock(self) -> float:
        return time.monotonic() + self._skipped

    def run(
        self, work: Callable[[Client], Coroutine[Any, Any, Any]], *, cache: ReplyCache | None = None, **spec: Any
    ) -> Any:
        async def inside() -> Any:
            async with Client(self.spec(**spec), cache=cache, sleep=self.sleep, clock=self.clock) as client:
                return await work(client)

        return asyncio.run(inside())

    def ask(self, *requests: Request, cache: ReplyCache | None = None, **spec: Any) -> list[Reply]:
        """All replies, asked concurrently, in order."""

        async def work(client: Client) -> list[Reply]:
            return list(await asyncio.gather(*(client.ask(one) for one in requests)))

        return list(self.run(work, cache=cache, **spec))

    def ask_one(self, asked: Request, *, cache: ReplyCache | None = None, **spec: Any) -> Reply:
        return self.ask(asked, cache=cache, **spec)[0]


@pytest.fixture
def asker(provider: FakeProvider) -> Asker:
    return Asker(provider)
