"""The two values of this package: a request and its reply. And the key that names a request for good."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from pydantic import BaseModel

KEY_VERSION = 1
MASK = b"\\u0000marker"

ErrorKind = Literal[
    "transport", "timeout", "unparsable", "refused", "filtered", "truncated", "context_window", "bad_request"
]
Usage = dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of the model once.

    `output` is the pydantic model of the reply; None makes it a quick call: one token whose alternatives are wanted,
    `tokens` being the answers of interest (the first is the good one). `marker` is the secret block marker in the
    messages, masked in the key. `repeat` tells identical requests apart.
    """

    messages: tuple[dict[str, str], ...]
    output: type[BaseModel] | None
    max_tokens: int
    tokens: tuple[str, ...] = ()
    marker: str | None = None
    repeat: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back, or in `error_kind` and `error` why nothing did.

    `text` is the raw reply, `parsed` the validated output as plain JSON values. `usage` (input_tokens, output_tokens,
    reasoning_tokens) sums over every HTTP call made for it, re-asks too. `cost_usd` is None when a price is unknown and
    0 when `cached`. `http_calls` has one row per HTTP call (judge.llm.ledger). `token_logprobs` (quick calls) lists
    (token, logprob), the most likely first.
    """

    key: str
    text: str | None = None
    parsed: dict[str, Any] | None = None
    finish_reason: str | None = None
    model_returned: str | None = None
    usage: Usage = field(default_factory=dict)
    cost_usd: float | None = None
    cached: bool = False
    http_calls: list[dict[str, Any]] = field(default_factory=list)
    latency_s: float = 0.0
    token_logprobs: list[tuple[str, float]] | None = None
    error_kind: ErrorKind | None = None
    error: str | None = None


def legible(text: str) -> str:
    """The text as it can be written to a file: a lone surrogate, which is no character, becomes U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def key_head(constant: dict[str, Any]) -> Any:
    """SHA-256 state over everything of a key that does not change from request to request."""
    return hashlib.sha256(orjson.dumps({"key_version": KEY_VERSION, **constant}, option=orjson.OPT_SORT_KEYS))


def key_of(head: Any, request: Request) -> str:
    """64 hex digits: `head` plus the messages with the marker masked, the room for the reply and the repeat."""
    values = [request.messages, request.max_tokens, request.repeat]
    try:
        tail = orjson.dumps(values, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate: not UTF-8, but still text with a key
        tail = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
            errors="surrogatepass"
        )
    if request.marker:
        tail = tail.replace(orjson.dumps(request.marker)[1:-1], MASK)
    state = head.copy()
    state.update(tail)
    return str(state.hexdigest())
