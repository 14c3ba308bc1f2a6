"""One event loop in one thread of its own, for as long as the process lives.

Synchronous functions, notebooks and programs with a running loop all use the same loop, so there is one HTTP session
and one code path. The core itself is async and knows nothing of this.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
_left = threading.Event()


@dataclass(slots=True)
class Stop:
    """A request to stop early: workers finish what is in flight and take no more. `why` is None until then."""

    why: str | None = None

    def request(self, why: str) -> None:
        if self.why is None:
            self.why = why


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="judge", daemon=True).start()
    return loop


os.register_at_fork(after_in_child=_loop.cache_clear)  # the thread of the loop does not live on in a forked process


def left_behind() -> bool:
    """Whether a second Ctrl-C left work behind: its thread may hold a lock that the interpreter needs to end."""
    return _left.is_set()


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Starts a coroutine in the background loop."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


def run(work: Coroutine[Any, Any, T], stop: Stop) -> T:
    """Runs a coroutine to its end from synchronous code, also where a loop is already running.

    The first Ctrl-C asks to stop (in-flight calls finish and are kept); the second cancels at once.
    """
    future = submit(work)
    while True:
        try:
            return future.result()
        except KeyboardInterrupt:
            if stop.why is not None:
                future.cancel()
                _left.set()
                raise
            stop.request("interrupted")
            print("stopping: calls in flight finish first; Ctrl-C again stops at once", file=sys.stderr, flush=True)
