"""One GGUF model inside this process: one server, one slot, one call at a time.

Knows llama.cpp (through xllamacpp) and nothing of litellm; `judge.llm.local` translates.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from judge.errors import UsageError

CONTEXT_TOKENS = 8192
# Between two batches of the prompt a call can be stopped: 256 tokens are a few seconds on two cores.
BATCH_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said: text, why it ended, one entry per token with its alternatives, and token counts."""

    text: str
    finish_reason: str
    token_logprobs: list[dict[str, Any]]
    input_tokens: int
    cached_tokens: int
    output_tokens: int


Kind = Literal["load", "context_window", "bad_request", "timeout", "stopped", "failed"]


class SlotError(Exception):
    """A call that gave no answer; `kind` says what can be done about it."""

    def __init__(self, kind: Kind, message: str) -> None:
        self.kind = kind
        super().__init__(message)


def runtime() -> Any:
    """The xllamacpp module; UsageError with the install line when it is absent.

    Idle OpenMP threads must sleep, not spin, or they starve the rest of the machine; that is read at the first import.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        return import_module("xllamacpp")
    except ImportError as error:
        raise UsageError(
            f"--model local needs xllamacpp, which cannot be imported ({error}). "
            "pip install 'calibrated-judge[local]', or choose another model with --model."
        ) from error


def load(path: Path) -> Any:
    """A running xllamacpp server for the file, silent and closed to others; SlotError `load` when it cannot be had."""
    xllamacpp = runtime()
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.n_batch = BATCH_TOKENS
    params.cache_ram_mib = 0  # earlier prompts would pile up to 8 GiB; the slot's own prefix is kept anyway
    # Without these two, a score depends on how much of the prompt the call before happened to share (by up to 0.04).
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.no_extra_bufts = True
    params.warmup = False
    params.offline = True
    params.verbosity = -1
    # The runtime opens a port on 127.0.0.1 that nobody here uses: no page, and a key that nobody has.
    params.api_keys = [secrets.token_urlsafe(32)]
    params.ui = False
    params.endpoint_slots = False
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise SlotError(
            "load",
            f"{path} could not be loaded: damaged, of an architecture that this llama.cpp does not know, or larger "
            "than the free memory. Try another GGUF file, or another model.",
        ) from error


class Slot:
    """The model file at `path`, loaded at the first call; calls queue up and run one after another.

    `load` and `clock` stand in for the model and for time in tests.
    """

    def __init__(
        self, path: Path, *, load: Callable[[Path], Any] = load, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = path
        self._load = load
        self._clock = clock
        self._server: Any = None
        self._last: Any = None
        self._queue = ThreadPoolExecutor(max_workers=1, thread_name_prefix="local-model")

    @property
    def loaded(self) -> bool:
        return self._server is not None

    def submit(self, body: dict[str, Any], timeout: float, stop: threading.Event) -> Future[Answer]:
        """Queue one chat call. Its `timeout` seconds start when it enters the slot, with the model loaded.

        Setting `stop` ends a running call at its next token or prompt batch. The future raises SlotError.
        """
        return self._queue.submit(self._run, body, timeout, stop)

    def close(self) -> None:
        """Free the model; waiting calls are cancelled, a running one is waited for."""
        self._queue.shutdown(wait=True, cancel_futures=True)
        self._server = None

    def _run(self, body: dict[str, Any], timeout: float, stop: threading.Event) -> Answer:
        if self._server is None:
            self._server = self._load(self.path)
        deadline = self._clock() + timeout
        chunks: list[dict[str, Any]] = []

        def take(chunk: dict[str, Any]) -> bool:
            chunks.append(chunk)
            return stop.is_set() or self._clock() > deadline

        # The same prompt again would leave one token to compute, which takes another path through the arithmetic.
        again, self._last = body.get("messages") == self._last, body.get("messages")
        streamed = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
        try:
            self._server.handle_chat_completions({**body, **streamed, "cache_prompt": not again}, take)
        except ValueError as error:
            raise SlotError("bad_request", f"the embedded model refused the request: {error}") from error
        except RuntimeError as error:
            raise SlotError("failed", f"the embedded model failed: {error}") from error
        if chunks and "error" in chunks[-1]:
            raise _refused(chunks[-1]["error"])
        if not chunks or "usage" not in chunks[-1]:
            raise _cut_short(stop.is_set(), self._clock() > deadline, timeout)
        return _answer(chunks)


def _refused(error: dict[str, Any]) -> SlotError:
    if error.get("type") == "exceed_context_size_error":
        return SlotError(
            "context_window",
            f"the prompt has {error.get('n_prompt_tokens')} tokens, the embedded model reads {error.get('n_ctx')}",
        )
    return SlotError(
        "bad_request" if error.get("code") == 400 else "failed",
        f"the embedded model refused the request: {error.get('message')}",
    )


def _cut_short(stopped: bool, late: bool, timeout: float) -> SlotError:
    if stopped:
        return SlotError("stopped", "the call was stopped")
    if late:
        return SlotError("timeout", f"no answer of the embedded model within {timeout:g} s of entering the slot")
    return SlotError("failed", "the embedded model ended without an answer")


def _answer(chunks: list[dict[str, Any]]) -> Answer:
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    usage = chunks[-1]["usage"]
    return Answer(
        text="".join(choice["delta"].get("content") or "" for choice in choices),
        finish_reason=next(choice["finish_reason"] for choice in reversed(choices) if choice["finish_reason"]),
        token_logprobs=[token for choice in choices for token in (choice.get("logprobs") or {}).get("content") or []],
        input_tokens=usage["prompt_tokens"],
        cached_tokens=usage["prompt_tokens_details"]["cached_tokens"],
        output_tokens=usage["completion_tokens"],
    )
