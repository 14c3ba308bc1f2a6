"""A judge examined before it is used: capabilities, one probe call in each form, price, cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from judge.config import find_judge
from judge.errors import JudgeError
from judge.llm.cache import ReplyCache
from judge.llm.client import Client
from judge.llm.request import Reply, Request
from judge.report.page import Section

SYSTEM = {"role": "system", "content": "You answer exactly in the form that is asked for."}


class ProbeReply(BaseModel):
    """The smallest structured reply."""

    model_config = ConfigDict(extra="forbid")

    word: str
    number: int


async def examine(
    model: str | None, config: Path | None = None, api_base: str | None = None, cache: Path | None = None
) -> dict[str, Any]:
    """What this judge supports and whether it answers; two tiny calls are made, neither cached."""
    spec = find_judge(model, config).override(api_base=api_base)
    kept = ReplyCache(cache)
    client = Client(spec, cache=None)
    try:
        full = await _probe(
            client, Request(messages=_asked("Give the word ready and the number 7."), output=ProbeReply, max_tokens=200)
        )
        quick = await _probe(
            client,
            Request(
                messages=_asked("Is water wet? Reply with one word: yes or no."),
                output=None,
                tokens=("yes", "no"),
                max_tokens=1,
            ),
        )
        resolved = client.resolved if full["ok"] or quick["ok"] else None
        price = client.price() if resolved else None
    finally:
        await client.aclose()
    return {
        "model": spec.model,
        "chosen_by": spec.source,
        "endpoint": spec.host,
        "resolved": resolved,
        "price_per_million": None
        if price is None
        else {"input": price.input_per_token * 1e6, "output": price.output_per_token * 1e6},
        "probe": full,
        "quick_probe": quick,
        "cache": kept.describe(),
    }


def sections(found: Mapping[str, Any]) -> list[Section]:
    """The page of `judge doctor`."""
    price = found["price_per_million"]
    rows = [
        ["model", found["model"]],
        ["endpoint", found["endpoint"] or "the provider's own"],
        ["full mode", _worked(found["probe"])],
        ["quick mode", _worked(found["quick_probe"])],
    ]
    if found["resolved"]:
        resolved = found["resolved"]
        known = f"${price['input']:.2f} in, ${price['output']:.2f} out" if price else "unknown: give it in judge.toml"
        rows.append(["price per million tokens", known])
        strict = " (strict)" if resolved["strict"] else ""
        rows += [
            ["structured output", f"{resolved['output']}{strict}"],
            ["parameters sent", str(resolved["params"])],
            ["parameters dropped", ", ".join(resolved["dropped"]) or "none"],
            ["token probabilities", str(resolved["top_logprobs"] or "not offered")],
        ]
    cache = found["cache"]
    size = "size unknown" if cache["bytes"] is None else f"{cache['bytes'] / 1e6:.1f} MB"
    rows.append(["cache", f"{cache['directory']}: {cache['entries']} entries, {size}"])
    if not (cache["readable"] and cache["writable"]):
        rows.append(["cache trouble", f"readable {cache['readable']}, writable {cache['writable']}"])
    return [Section("Judge", ["what", "found"], rows)]


async def _probe(client: Client, request: Request) -> dict[str, Any]:
    try:
        reply = await client.ask(request)
    except JudgeError as error:
        return {"ok": False, "why": str(error), "latency_s": None, "model_returned": None}
    return _seen(reply)


def _seen(reply: Reply) -> dict[str, Any]:
    return {
        "ok": reply.error_kind is None,
        "why": reply.error,
        "latency_s": reply.latency_s,
        "model_returned": reply.model_returned,
    }


def _worked(probe: Mapping[str, Any]) -> str:
    if probe["ok"]:
        return f"works ({probe['latency_s']:.2f} s, answered by {probe['model_returned']})"
    return f"does not work: {probe['why']}"


def _asked(text: str) -> tuple[dict[str, str], ...]:
    return (SYSTEM, {"role": "user", "content": text})
