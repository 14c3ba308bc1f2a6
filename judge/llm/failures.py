"""What went wrong with a call, sorted by what can be done: wait and retry, give up on the item, or stop the run."""

from __future__ import annotations

import email.utils
import os
import re
import time
from typing import Any

from judge.config import JudgeSpec
from judge.errors import JudgeError, ProviderStop
from judge.llm.library import litellm
from judge.llm.request import ErrorKind, legible

SHORTEST_KEY = 8

QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|insufficient credits|credit balance is too low", re.I
)
UNKNOWN_MODEL = re.compile(
    r"model.{0,80}(does not exist|not found|not exist|is not available)|invalid model|unknown model", re.I | re.S
)
BAD_PARAMETER = re.compile(
    r"unsupported_(parameter|value)|unsupported (parameter|value)|does not support .{0,40}parameter", re.I
)
NO_KEY = re.compile(r"missing credentials|api_key client option must be set", re.I)
NO_REPLY = re.compile(r"connection error|cannot connect to host|server disconnected|connection reset", re.I)
NO_COMPLETION = re.compile(
    r"empty or invalid response from LLM|invalid response object|expecting value: line|'choices' that is not a list",
    re.I,
)
KEY = re.compile(r"\bsk-[\w-]{6,}|(?<=Bearer )\S{6,}")
MODERATED = re.compile(r"content management policy|content policy|moderation|flagged", re.I)


class CallFailed(JudgeError):
    """One HTTP call, or the item it was made for, failed; `kind` is the error_kind of the reply.

    `retryable`: the same request may work later, not before `wait_s` seconds when the provider said so. `status` is the
    HTTP status, None when no response came.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        wait_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.status = status
        self.retryable = retryable
        self.wait_s = wait_s


class ParameterRefused(ProviderStop):
    """The provider knows a parameter or a value not at all: every call would fail, unless it is left out."""


def sorted_failure(error: Exception, spec: JudgeSpec) -> CallFailed | ProviderStop:
    """The failure that an exception of the LLM library stands for, in plain words."""
    lib = litellm()
    message = _first_line(error, spec)
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    if isinstance(error, TimeoutError | lib.Timeout):
        return CallFailed("timeout", f"no reply within {spec.timeout:g} s", retryable=not spec.is_local)
    if isinstance(error, lib.ContextWindowExceededError):
        return CallFailed("context_window", f"the prompt does not fit the model's context: {message}", status=400)
    if isinstance(error, lib.ContentPolicyViolationError) or (status in (400, 403) and MODERATED.search(message)):
        return CallFailed("filtered", f"the provider's content filter refused the prompt: {message}", status=status)
    if stop := _for_every_call(error, message, status, spec):
        return stop
    if isinstance(error, lib.RateLimitError):
        said = f"rate limited (429): {message}"
        return CallFailed("transport", said, status=429, retryable=True, wait_s=retry_after(error))
    if isinstance(error, lib.BadRequestError | lib.UnprocessableEntityError):
        return CallFailed("bad_request", f"the provider rejects the request ({status}): {message}", status=status)
    if NO_COMPLETION.search(message):
        said = f"what came back is no chat completion (is the address right?): {message}"
        return CallFailed("transport", said, retryable=True)
    if isinstance(error, lib.APIConnectionError | lib.BadGatewayError) or (status is not None and status >= 500):
        answered = None if NO_REPLY.search(message) else status
        return CallFailed("transport", message, status=answered, retryable=True, wait_s=retry_after(error))
    return CallFailed("bad_request", f"{type(error).__name__}: {message}", status=status)


def _for_every_call(error: Exception, message: str, status: int | None, spec: JudgeSpec) -> ProviderStop | None:
    """The reason why every further call would fail too, or None: quota, key, model, parameter."""
    lib = litellm()
    if status == 402 or (status in (400, 403, 429) and QUOTA.search(message)):
        return ProviderStop(f"{spec.model}: the account has no quota or credit left: {message}")
    if status in (401, 403) or NO_KEY.search(message):
        return ProviderStop(f"{spec.model}: the provider rejects the key: {message}\n{_key_advice(spec)}")
    if status == 404 or (status == 400 and UNKNOWN_MODEL.search(message)):
        where = f" at {spec.address}" if spec.address else ""
        return ProviderStop(f"{spec.model}: no such model{where}: {message}\nCheck the model string and the address.")
    if isinstance(error, lib.UnsupportedParamsError) or (status == 400 and BAD_PARAMETER.search(message)):
        advice = "Set it in judge.toml (params = {...}), or have it left out: drop_unsupported = true."
        return ParameterRefused(f"{spec.model} does not accept a parameter it was sent: {message}\n{advice}")
    return None


def retry_after(error: Exception) -> float | None:
    """Seconds until the provider wants to be asked again; None when it did not say.

    The header holds seconds or an HTTP date. It sits in `error.response.headers` for OpenAI routes and in
    `error.litellm_response_headers` for others.
    """
    for headers in (
        getattr(getattr(error, "response", None), "headers", None),
        getattr(error, "litellm_response_headers", None),
    ):
        value = _header(headers, "retry-after")
        if value is None:
            continue
        try:
            return max(0.0, float(value))
        except ValueError:
            pass
        try:
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
        except ValueError:
            continue
    return None


def _header(headers: Any, name: str) -> str | None:
    if headers is None:
        return None
    value = headers.get(name)
    if value is None:
        value = next((v for k, v in dict(headers).items() if str(k).lower() == name), None)
    return None if value is None else str(value).strip()


def _first_line(error: Exception, spec: JudgeSpec) -> str:
    """The provider's own words, at most 300 characters, without keys and the library's class names in front."""
    text = str(getattr(error, "message", None) or error)[:10_000].strip()
    text = re.sub(r"^(litellm\.\w+: ?)+", "", text).split("\n", 1)[0].strip()
    text = re.sub(r"^(\w*(Error|Exception)(: ?| - ))+", "", text)
    return legible(_without_keys(text, spec))[:300] or type(error).__name__


def _without_keys(text: str, spec: JudgeSpec) -> str:
    """The text with every key of the environment, and all that looks like one, left out: messages are archived."""
    names = [name for name in os.environ if name.endswith("_API_KEY") or name == spec.api_key_env]
    for key in filter(None, map(os.environ.get, names)):
        if len(key) >= SHORTEST_KEY:
            text = text.replace(key, "[key]")
    return KEY.sub("[key]", text)


def _key_advice(spec: JudgeSpec) -> str:
    if spec.api_key_env:
        return f"The key comes from the environment variable {spec.api_key_env}."
    missing = litellm().validate_environment(spec.model).get("missing_keys") or []
    return (
        f"Set {' or '.join(missing)}." if missing else "Check the provider's key in the environment (or api_key_env)."
    )
