"""--max-cost: money reserved before a call and settled after it, so that calls under way cannot overshoot together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from judge.errors import JudgeError


class OverBudget(JudgeError):
    """The next call might cost more than what is left; it was not made."""


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """US dollars per token."""

    input_per_token: float
    output_per_token: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        return self.input_per_token * input_tokens + self.output_per_token * output_tokens


class Budget:
    """At most `most` US dollars: `spent` so far plus `reserved` for calls under way never plan to exceed it.

    A reservation assumes the whole room for the reply is used. Prompt tokens are an upper estimate, not a count.
    """

    def __init__(self, most: float, price: TokenPrice) -> None:
        self.most = most
        self.price = price
        self.spent = 0.0
        self.reserved = 0.0
        self._settled = asyncio.Event()

    async def reserve(self, input_tokens: int, output_tokens: int) -> float:
        """Sets aside the most that a call can cost and returns it, waiting for calls under way where they hold it.

        Raises OverBudget when it is not left even with nothing under way.
        """
        amount = self.price.of(input_tokens, output_tokens)
        while self.spent + self.reserved + amount > self.most:
            if self.spent + amount > self.most:
                raise OverBudget(
                    f"--max-cost {self.most:g}: {self.spent:.4f} spent, the next call may cost {amount:.4f}"
                )
            self._settled.clear()
            await self._settled.wait()
        self.reserved += amount
        return amount

    def settle(self, reserved: float, paid: float | None) -> None:
        """The call is over: `paid` replaces what was set aside; an unknown cost counts as all of it."""
        self._settled.set()
        self.reserved -= reserved
        self.spent += reserved if paid is None else paid
