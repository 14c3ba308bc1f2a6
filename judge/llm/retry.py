"""Who deserves a retry, after how long, and how often. The only retry layer: the libraries' own are switched off."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import tenacity

from judge.llm.failures import CallFailed

MOST_ATTEMPTS = 8
MOST_TIMEOUTS = 3
MOST_SLEPT_S = 300.0
LONGEST_WAIT_S = 120.0  # cap on Retry-After: a provider that wants more is asked again after this

Sleep = Callable[[float], Awaitable[None]]


def deserves_retry(error: BaseException) -> bool:
    """Rate limits, server errors, lost connections and timeouts; nothing that the item itself caused."""
    return isinstance(error, CallFailed) and error.retryable


class WaitRetryAfter(tenacity.wait.wait_base):
    """What the provider asked for (up to 120 s) plus up to a quarter of jitter, else exponential with jitter."""

    backoff = tenacity.wait_random_exponential(multiplier=0.5, max=30)

    def __call__(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.wait_s if isinstance(error, CallFailed) else None
        if asked is None:
            return float(self.backoff(state))
        return min(asked, LONGEST_WAIT_S) * (1 + random.random() / 4)


def stop_trying(state: tenacity.RetryCallState) -> bool:
    """After 8 attempts, after 3 when the last one timed out, or after 300 s slept. Time spent queueing is free."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, CallFailed) and error.kind == "timeout" and state.attempt_number >= MOST_TIMEOUTS:
        return True
    return state.attempt_number >= MOST_ATTEMPTS or state.idle_for >= MOST_SLEPT_S


def attempts(sleep: Sleep = asyncio.sleep) -> tenacity.AsyncRetrying:
    """A fresh retry loop; one per call, because tenacity keeps the state of the loop on the object."""
    return tenacity.AsyncRetrying(
        sleep=sleep,
        stop=stop_trying,
        wait=WaitRetryAfter(),
        retry=tenacity.retry_if_exception(deserves_retry),
        reraise=True,
    )
