"""From one request to a validated answer: through instructor, which re-asks, or in one token with its probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from judge.errors import JudgeError, ProviderStop
from judge.llm import ledger
from judge.llm.budget import OverBudget
from judge.llm.capability import Capability, Output
from judge.llm.failures import CallFailed
from judge.llm.library import instructor
from judge.llm.request import legible
from judge.llm.sending import Asking, Sender
from judge.llm.structured import answer_model, can_be_strict

MOST_REASKS = 2
SLACK = 0.01  # rounding of the provider in probabilities
NO_LOGPROBS = "gives no token probabilities, which quick mode needs. Use --mode full, or another model."


class Answerer:
    """Turns replies of the sender into answers; one instructor function per output mode, made once."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._creates: dict[Output, Callable[..., Awaitable[Any]]] = {}
        self._gave_logprobs = False

    async def structured(self, asking: Asking, known: Capability) -> dict[str, Any]:
        """The validated output as plain JSON; an invalid reply is sent back with the reason, at most twice."""
        create = self._creates.get(known.output)
        if create is None:
            create = self._creates[known.output] = self._instructed(known.output)
        from instructor.core import InstructorRetryException

        try:
            parsed: dict[str, Any] = await create(
                response_model=answer_model(asking.request.output),
                messages=list(asking.request.messages),
                max_retries=MOST_REASKS,
                asking=asking,
                known=known,
            )
        except InstructorRetryException as error:
            raise _own_failure(asking, error.__cause__) from None
        return parsed

    async def quick(self, asking: Asking, known: Capability) -> list[tuple[str, float]]:
        """The alternatives of the one token with their log probabilities, the most likely first."""
        model = self._sender.spec.model
        if known.top_logprobs is None:
            raise ProviderStop(f"{model}: {NO_LOGPROBS}")
        body = {
            **known.quick_params,
            "messages": list(asking.request.messages),
            known.room: 1,
            "logprobs": True,
            "top_logprobs": known.top_logprobs,
        }
        response = await self._sender.send(asking, "retry" if asking.rows else "first", known, body)
        _check(asking, response)
        content = getattr(getattr(response.choices[0], "logprobs", None), "content", None)
        if not content:
            if self._gave_logprobs:
                raise CallFailed("unparsable", "the reply has no token probabilities, though earlier ones had")
            raise ProviderStop(f"{model}: {NO_LOGPROBS}")
        self._gave_logprobs = True
        return _distribution(asking, [content[0], *(content[0].top_logprobs or [])])

    def _instructed(self, output: Output) -> Callable[..., Awaitable[Any]]:
        """Instructor's create function for an output mode.

        `md_json` is instructor's JSON mode without response_format: its own Markdown mode takes the last of several
        objects in a reply, and several are no answer. `context` is never passed: it would render the messages as Jinja.
        """
        mode = instructor().Mode
        modes = {"json_schema": mode.JSON_SCHEMA, "tools": mode.TOOLS, "json": mode.JSON, "md_json": mode.JSON}

        async def complete(**call: Any) -> Any:
            return await self._complete(**call)

        client = instructor().from_litellm(complete, mode=modes[output])
        return client.chat.completions.create  # type: ignore[no-any-return]

    async def _complete(self, *, asking: Asking, known: Capability, messages: list[Any], **channel: Any) -> Any:
        """What instructor calls: one reply, refusals and cut-off replies sorted out before it parses anything.

        A reply cut off at the token limit is asked for once more with twice the room.
        """
        kind: ledger.Kind = "retry" if asking.rows else "first"
        if asking.rows and asking.rows[-1]["status"] == 200:
            kind, asking.rows[-1]["outcome"] = "reask", "unparsable"
        _enforce(channel, known, asking)
        body = {**known.params_beside_room, **channel, "messages": messages}
        response = await self._sent(asking, kind, known, body)
        if response.choices and response.choices[0].finish_reason == "length" and not asking.enlarged:
            asking.rows[-1]["outcome"] = "truncated"
            asking.enlarged, asking.max_tokens = True, asking.max_tokens * 2
            response = await self._sent(asking, "retry", known, body)
        _check(asking, response)
        if len(getattr(response.choices[0].message, "tool_calls", None) or ()) > 1:
            raise json.JSONDecodeError("the reply has several tool calls instead of one", "", 0)
        return _uncounted(response)

    async def _sent(self, asking: Asking, kind: ledger.Kind, known: Capability, body: dict[str, Any]) -> Any:
        """One reply; its text holds no lone surrogates, with which a re-ask could not be sent."""
        response = await self._sender.send(asking, kind, known, body | {known.room: asking.max_tokens})
        for choice in response.choices or ():
            choice.message.content = choice.message.content and legible(choice.message.content)
            for call in getattr(choice.message, "tool_calls", None) or ():
                call.function.arguments = call.function.arguments and legible(call.function.arguments)
        return response


def _distribution(asking: Asking, entries: list[Any]) -> list[tuple[str, float]]:
    """The alternatives, each once, the most likely first; CallFailed when they are no probabilities."""
    found = {legible(entry.token): float(entry.logprob) for entry in entries}
    likely = {token: logprob for token, logprob in found.items() if logprob != -math.inf}
    if not all(logprob <= SLACK for logprob in likely.values()) or sum(map(math.exp, likely.values())) > 1 + SLACK:
        asking.rows[-1]["outcome"] = "unparsable"
        raise CallFailed("unparsable", f"the log probabilities of the reply cannot be: {list(found.values())[:5]}")
    return sorted(likely.items(), key=lambda pair: -pair[1])


def _enforce(channel: dict[str, Any], known: Capability, asking: Asking) -> None:
    """Adds `strict` to what instructor prepared, where the schema allows it; OpenAI enforces nothing without it."""
    if known.output == "md_json":
        channel.pop("response_format", None)
    elif known.strict and asking.request.output and can_be_strict(asking.request.output):
        part = channel["tools"][0]["function"] if known.output == "tools" else channel["response_format"]["json_schema"]
        part["strict"] = True


def _check(asking: Asking, response: Any) -> None:
    """Raises CallFailed for a reply that came and is no answer: refused, filtered, cut off, empty."""
    failure: CallFailed | None = None
    choice = response.choices[0] if response.choices else None
    if choice is None:
        failure = CallFailed("unparsable", "the reply has no choices")
    elif refusal := getattr(choice.message, "refusal", None):
        failure = CallFailed("refused", f"the model refused: {str(refusal)[:300]}")
    elif choice.finish_reason == "content_filter":
        failure = CallFailed("filtered", "the provider's content filter stopped the reply")
    elif choice.finish_reason == "length" and asking.request.output is not None:
        failure = CallFailed("truncated", "the reply was cut off at the token limit, with twice the room too")
    if failure is not None:
        asking.rows[-1]["outcome"] = failure.kind
        raise failure


def _own_failure(asking: Asking, cause: BaseException | None) -> Exception:
    """What instructor's exception wraps: our own failure, or a reply that stayed invalid."""
    if isinstance(cause, OverBudget) and asking.rows:
        last = asking.rows[-1]["outcome"]
        return CallFailed("truncated" if last == "truncated" else "unparsable", f"not asked again: {cause}")
    if isinstance(cause, JudgeError):
        return cause
    asking.rows[-1]["outcome"] = "unparsable"
    reason = " ".join(str(cause).split())[:300]
    return CallFailed("unparsable", f"no valid reply after {MOST_REASKS} re-asks: {reason}")


def _uncounted(response: Any) -> Any:
    """The reply with its token counts at zero: instructor would add them up over re-asks, which the ledger does."""
    from openai.types import CompletionUsage

    none = CompletionUsage.model_construct(prompt_tokens=0, completion_tokens=0, total_tokens=0)
    return SimpleNamespace(choices=response.choices, usage=none)
