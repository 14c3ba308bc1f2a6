"""litellm and instructor: loaded when the first call needs them, quiet, offline, and closed by the last client.

Importing litellm costs seconds and about 200 MB, so nothing here runs at import time.
"""

from __future__ import annotations

import inspect
import logging
import os
from functools import cache
from typing import Any

ENVIRONMENT = {
    "LITELLM_OFFLINE_MODE": "true",  # no fetch of price maps or headers on its own
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",  # do not read .env from the working directory
    "LITELLM_LOG": "ERROR",
}
_clients = 0


@cache
def litellm() -> Any:
    """The litellm module, set up once: no network of its own, no chatter, no dropped parameters."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import litellm as module

    module.suppress_debug_info = True
    module.drop_params = False
    return module


@cache
def instructor() -> Any:
    """The instructor module, its logger silenced: failures are reported as replies, not as log lines."""
    import instructor as module

    logging.getLogger("instructor").setLevel(logging.CRITICAL)
    return module


def opened() -> None:
    """Counts one more client that sends requests through the shared HTTP sessions."""
    global _clients
    _clients += 1


async def closed() -> None:
    """Counts one client less; the last one closes the HTTP sessions that litellm keeps for the process."""
    global _clients
    _clients -= 1
    if _clients > 0 or not litellm.cache_info().currsize:
        return
    from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER
    from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients

    await GLOBAL_LOGGING_WORKER.stop()
    kept = litellm().in_memory_llm_clients_cache
    await close_litellm_async_clients()  # type: ignore[no-untyped-call]
    for client in list(kept.cache_dict.values()):  # OpenAI clients, which litellm's own clean-up passes over
        close = getattr(client, "close", None)
        if inspect.iscoroutinefunction(close):
            await close()
    kept.flush_cache()
