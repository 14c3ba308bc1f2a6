"""One row per HTTP call: what came back, how long it took, how many tokens, how much money."""

from __future__ import annotations

from typing import Any, Literal

from judge.config import JudgeSpec, Price
from judge.llm.budget import TokenPrice
from judge.llm.library import litellm
from judge.llm.request import Usage, legible

Kind = Literal["first", "retry", "reask"]
MOST_TOKENS = 10**9
NO_USAGE: Usage = {"input_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0}


def row(kind: Kind, *, status: int | None, outcome: str, latency_s: float) -> dict[str, Any]:
    """The row of a call without tokens: it failed. `status` is None when no response came."""
    return {
        "kind": kind,
        "status": status,
        "outcome": outcome,
        "latency_s": round(latency_s, 4),
        "usage": None,
        "cost_usd": None,
    }


def paid_row(kind: Kind, response: Any, price: Price | None, latency_s: float) -> dict[str, Any]:
    """The row of a call that was answered. `cost_usd` is None when nobody knows the price, never 0 for that."""
    usage = usage_of(response)
    return {
        "kind": kind,
        "status": 200,
        "outcome": "ok",
        "latency_s": round(latency_s, 4),
        "usage": usage,
        "cost_usd": cost_of(response, usage, price),
    }


def usage_of(response: Any) -> Usage | None:
    """Tokens as the provider counted them; None when it did not say, or said what cannot be."""
    usage = getattr(response, "usage", None)
    if usage is None:
        return None
    details = getattr(usage, "completion_tokens_details", None)
    counts = {
        "input_tokens": usage.prompt_tokens or 0,
        "output_tokens": usage.completion_tokens or 0,
        "reasoning_tokens": getattr(details, "reasoning_tokens", None) or 0,
    }
    return counts if all(0 <= count <= MOST_TOKENS for count in counts.values()) else None


def cost_of(response: Any, usage: Usage | None, price: Price | None) -> float | None:
    """US dollars: the price of judge.toml, else what the price map gave for this one call; None = unknown."""
    if price is None:
        cost = response._hidden_params.get("response_cost")
        return float(cost) if cost is not None and usage is not None else None
    if usage is None:
        return None
    dollars = price.input_per_million * usage["input_tokens"] + price.output_per_million * usage["output_tokens"]
    return dollars / 1e6


def totals(rows: list[dict[str, Any]]) -> tuple[Usage, float | None]:
    """Sums over the calls that were answered; the cost is None when one of them has an unknown price."""
    usage = dict(NO_USAGE)
    cost: float | None = 0.0
    for entry in rows:
        if entry["status"] != 200:
            continue
        for name, count in (entry["usage"] or NO_USAGE).items():
            usage[name] += count
        cost = None if cost is None or entry["cost_usd"] is None else cost + entry["cost_usd"]
    return usage, cost


def read(response: Any) -> dict[str, Any]:
    """What a reply says of itself: raw text (the arguments, when it is a tool call), finish reason, model version."""
    if response is None or not response.choices:
        return {"model_returned": _text(getattr(response, "model", None))}
    choice = response.choices[0]
    calls = getattr(choice.message, "tool_calls", None)
    text = calls[0].function.arguments if calls else choice.message.content
    return {
        "text": _text(text),
        "finish_reason": _text(choice.finish_reason),
        "model_returned": _text(response.model),
    }


def _text(value: Any) -> str | None:
    return None if value is None else legible(str(value))


def price_of(spec: JudgeSpec, model: str) -> TokenPrice | None:
    """The price of judge.toml, else of the library's price map; None when nobody knows it."""
    if spec.price is not None:
        return TokenPrice(spec.price.input_per_million / 1e6, spec.price.output_per_million / 1e6)
    entry = litellm().model_cost.get(model) or litellm().model_cost.get(model.partition("/")[2]) or {}
    asked, answered = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    return None if asked is None or answered is None else TokenPrice(float(asked), float(answered))


def count_tokens(spec: JudgeSpec, model: str, messages: tuple[dict[str, str], ...]) -> int:
    """Prompt tokens by the library's tokenizer; by characters for the embedded model, whose tokenizer it lacks."""
    if spec.is_local:
        return sum(len(message["content"]) for message in messages) // 4
    return int(litellm().token_counter(model=model, messages=list(messages)))
