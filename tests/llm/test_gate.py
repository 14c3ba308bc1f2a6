"""The gate in virtual time: how many at once, how fast, and what a 429 does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from judge.llm.budget import Budget, OverBudget, TokenPrice
from judge.llm.gate import Gate


class Clock:
    """Time that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, until)


def through(gate: Gate, count: int, work: Callable[[int], Awaitable[None]]) -> None:
    async def one(number: int) -> None:
        async with gate.slot(100):
            await work(number)

    async def everybody() -> None:
        await asyncio.gather(*(one(number) for number in range(count)))

    asyncio.run(everybody())


def gate(most: int, clock: Clock | None = None, **rates: int) -> Gate:
    clock = clock or Clock()
    return Gate(most, clock=clock, sleep=clock.sleep, **rates)


def test_no_more_than_the_limit_are_inside() -> None:
    door, inside, most = gate(4), 0, 0

    async def work(_: int) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1

    through(door, 50, work)
    assert (most, door.busy) == (4, 0)


def test_successes_open_the_gate_to_its_upper_bound_and_not_beyond() -> None:
    door = gate(64)
    assert door.limit == 16
    for _ in range(100):
        door.succeeded()
    assert door.limit == 64


def test_a_429_shrinks_the_limit_once_per_half_second_and_growth_is_slow_after_it() -> None:
    clock = Clock()
    door = gate(64, clock)
    for _ in range(48):
        door.succeeded()
    door.rate_limited(None)
    door.rate_limited(None)
    assert door.limit == pytest.approx(64 * 0.7)
    clock.now += 0.5
    door.rate_limited(None)
    assert door.limit == pytest.approx(64 * 0.49)
    door.succeeded()
    assert door.limit == pytest.approx(64 * 0.49 + 1 / (64 * 0.49))
    for _ in range(40):
        clock.now += 1
        door.rate_limited(None)
    assert door.limit == 1


def test_a_wish_to_wait_holds_back_everybody() -> None:
    clock = Clock()
    door, entered = gate(8, clock), []

    async def work(number: int) -> None:
        entered.append(clock.now)
        if number == 0:
            door.rate_limited(30)

    through(door, 12, work)
    assert sorted(entered)[-1] >= 1030
    assert door.busy == 0


def test_requests_per_minute_are_spread_evenly() -> None:
    clock = Clock()
    door, entered = gate(4, clock, requests=60), []

    async def work(_: int) -> None:
        entered.append(clock.now)

    through(door, 11, work)
    assert max(entered) - min(entered) == pytest.approx(10, abs=0.01)


def test_tokens_per_minute_are_reserved_and_what_was_not_used_is_given_back() -> None:
    clock = Clock()
    door, entered = gate(1, clock, tokens=6000), []  # 100 tokens are reserved per call: one second each

    async def work(number: int) -> None:
        entered.append(clock.now)
        if number == 0:
            door.succeeded(unused_tokens=50)

    through(door, 3, work)
    assert [at - entered[0] for at in entered] == pytest.approx([0, 0.5, 1.5], abs=0.01)


def test_a_cancelled_waiter_gives_its_turn_to_the_next() -> None:
    async def run() -> int:
        door = gate(1)
        release = asyncio.Event()

        async def hold() -> None:
            async with door.slot():
                await release.wait()

        async def enter() -> None:
            async with door.slot():
                pass

        holder = asyncio.create_task(hold())
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(enter()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        release.set()
        await asyncio.sleep(0)
        waiting[1].cancel()
        await asyncio.gather(holder, *waiting, return_exceptions=True)
        return door.busy

    assert asyncio.run(asyncio.wait_for(run(), 5)) == 0


def test_a_budget_waits_for_what_is_under_way_and_refuses_what_can_never_fit() -> None:
    async def run() -> Budget:
        budget = Budget(1.0, TokenPrice(0.001, 0.002))
        first = await budget.reserve(200, 200)  # 0.2 + 0.4
        assert first == pytest.approx(0.6)
        waiting = asyncio.create_task(budget.reserve(200, 200))
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.settle(first, 0.1)
        second = await waiting
        budget.settle(second, None)
        with pytest.raises(OverBudget, match=r"--max-cost 1"):
            await budget.reserve(200, 200)
        return budget

    budget = asyncio.run(asyncio.wait_for(run(), 5))
    assert (budget.spent, budget.reserved) == pytest.approx((0.7, 0))
