"""A bounded pool of workers over a stream of tasks: memory stays flat however long the stream is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from judge.background import Stop

T = TypeVar("T")
BREATHER = 32


async def run_pool(tasks: Iterator[T], work: Callable[[T], Awaitable[None]], *, workers: int, stop: Stop) -> None:
    """Runs `work` on every task, at most `workers` at a time, until the stream ends or a stop is requested.

    Tasks are taken in order; they may end in any order. An exception from `work` cancels the rest and is raised as
    it is (the first one, where several workers fail together).
    """
    taken = 0

    async def worker() -> None:
        nonlocal taken
        for task in tasks:
            await work(task)
            taken += 1
            if taken % BREATHER == 0:
                await asyncio.sleep(0)
            if stop.why is not None:
                return

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(worker())
    except BaseExceptionGroup as failures:
        raise _first(failures) from None


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
