"""`--model local`: the embedded model as a litellm provider of its own, in this process."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.llm import llama, weights
from judge.llm.library import litellm

PROVIDER = "local"
TIMEOUT_S = 600.0
PASSED_ON = {"max_tokens", "temperature", "seed", "stop", "logprobs", "top_logprobs", "response_format"}


@dataclass(frozen=True, slots=True)
class _Model:
    """A registered GGUF: the name that replies carry, its SHA-256, and its slot."""

    name: str
    sha256: str
    slot: llama.Slot


_models: dict[str, _Model] = {}
_registering = threading.Lock()


def register(model: str) -> str:
    """Make `local` or `local:/path/to.gguf` callable through litellm; returns the litellm model string.

    `local` becomes `local/qwen2.5-coder-1.5b`; a file of one's own `local/STEM@HASH`, so that two files of one name
    never share cached replies (hashing reads the file once, about a second per GB). Nothing is loaded or fetched here:
    the first call loads. Raises UsageError when the runtime, the weights or the file is missing, or is no GGUF.
    """
    llama.runtime()
    if model == PROVIDER:
        path, sha256, stem = _embedded(), weights.pinned().sha256, weights.NAME
        key = stem
    else:
        path = _own_file(model)
        sha256, stem = _sha256(path, path.stat().st_mtime_ns), path.stem
        key = f"{stem}@{sha256[:12]}"
    with _registering:
        if key not in _models:
            _models[key] = _Model(f"{stem}@{sha256[:12]}", sha256, llama.Slot(path))
            _announce(f"{PROVIDER}/{key}")
    return f"{PROVIDER}/{key}"


def describe(model: str) -> dict[str, Any]:
    """What a registered model string stands for: file, SHA-256, size, context, runtime, and this process's memory peak.

    `peak_rss_bytes` is null where the system does not tell (Windows).
    """
    known = _models[model.removeprefix(f"{PROVIDER}/")]
    return {
        "name": known.name,
        "path": str(known.slot.path),
        "sha256": known.sha256,
        "size_bytes": known.slot.path.stat().st_size,
        "context_tokens": llama.CONTEXT_TOKENS,
        "runtime": f"xllamacpp {version('xllamacpp')}",
        "loaded": known.slot.loaded,
        "peak_rss_bytes": _peak_rss(),
    }


def loaded(model: str) -> bool:
    """Whether this model string is registered and its weights are in memory."""
    known = _models.get(model.removeprefix(f"{PROVIDER}/"))
    return known is not None and known.slot.loaded


def unload() -> None:
    """Free every loaded model. A model string must be registered again before its next call."""
    with _registering:
        while _models:
            _models.popitem()[1].slot.close()


def _embedded() -> Path:
    if not weights.installed():
        raise UsageError(
            f"The embedded model is not on this machine. `judge model pull` fetches it.\n{weights.ALTERNATIVES}"
        )
    return weights.model_path()


def _own_file(model: str) -> Path:
    name = model.removeprefix(f"{PROVIDER}:")
    path = Path(name).expanduser().resolve()
    if not path.is_file():
        raise UsageError(f"--model {model}: there is no file {path}. Give the path of a GGUF file, or `local` alone.")
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        raise UsageError(f"--model {model}: not a GGUF file (it begins with {magic!r}, a GGUF with b'GGUF').")
    return path


@cache
def _sha256(path: Path, changed_ns: int) -> str:
    return weights.file_sha256(path)


def _announce(model: str) -> None:
    """Tell litellm of the provider, once, and of the model: free of charge, its context, JSON schemas enforced."""
    library = litellm()
    if not any(entry["provider"] == PROVIDER for entry in library.custom_provider_map):
        entry = {"provider": PROVIDER, "custom_handler": _provider()}
        library.custom_provider_map = [*library.custom_provider_map, entry]
    free = dict.fromkeys(("input_cost_per_token", "output_cost_per_token"), 0.0)
    cached_free = dict.fromkeys(("cache_creation_input_token_cost", "cache_read_input_token_cost"), 0.0)
    facts = {"litellm_provider": PROVIDER, "mode": "chat", "supports_response_schema": True}
    library.register_model({model: {**free, **cached_free, **facts, "max_input_tokens": llama.CONTEXT_TOKENS}})


@cache
def _provider() -> Any:
    litellm()
    from litellm.llms.custom_llm import CustomLLM

    class LocalProvider(CustomLLM):
        """litellm's two doors, plain and async; the call waits in the model's queue."""

        def completion(self, model: str, messages: list[Any], *_: Any, **call: Any) -> Any:
            pending, stop = _submit(model, messages, call)
            try:
                return _response(model, pending.result())
            except llama.SlotError as error:
                raise _litellm_error(error, model) from error
            finally:
                stop.set()

        async def acompletion(self, model: str, messages: list[Any], *_: Any, **call: Any) -> Any:
            pending, stop = _submit(model, messages, call)
            try:
                return _response(model, await asyncio.wrap_future(pending))
            except llama.SlotError as error:
                raise _litellm_error(error, model) from error
            finally:
                stop.set()

    return LocalProvider()


def _submit(model: str, messages: list[Any], call: dict[str, Any]) -> tuple[Future[llama.Answer], threading.Event]:
    """Queue the call. Setting the event ends it, so that a caller who went away leaves the slot free."""
    if model not in _models:
        raise litellm().NotFoundError(f"{PROVIDER}/{model} is not registered in this process", model, PROVIDER)
    params = {name: value for name, value in call["optional_params"].items() if name != "max_retries"}  # litellm's own
    if unknown := sorted(set(params) - PASSED_ON):
        raise litellm().UnsupportedParamsError(
            f"the embedded model takes no {', '.join(unknown)} (it takes {', '.join(sorted(PASSED_ON))})",
            llm_provider=PROVIDER,
            model=model,
        )
    stop = threading.Event()
    body = {"messages": messages, "temperature": 0.0, **params}
    return _models[model].slot.submit(body, _seconds(call["timeout"]), stop), stop


def _seconds(timeout: Any) -> float:
    """Seconds of a litellm timeout: a number, an httpx.Timeout (its read part), or none."""
    value = getattr(timeout, "read", timeout)
    return TIMEOUT_S if value is None else float(value)


def _response(model: str, answer: llama.Answer) -> Any:
    usage = {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
    }
    choice = {
        "index": 0,
        "finish_reason": answer.finish_reason,
        "message": {"role": "assistant", "content": answer.text},
        "logprobs": {"content": [_with_alternatives(entry) for entry in answer.token_logprobs]},
    }
    if not answer.token_logprobs:
        del choice["logprobs"]
    return litellm().ModelResponse(model=_models[model].name, choices=[choice], usage=usage)


def _with_alternatives(entry: dict[str, Any]) -> dict[str, Any]:
    return {**_token(entry), "top_logprobs": [_token(other) for other in entry["top_logprobs"]]}


def _token(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in ("token", "logprob", "bytes")}


def _litellm_error(error: llama.SlotError, model: str) -> Exception:
    """The litellm exception whose meaning callers already know."""
    library = litellm()
    kinds = {
        "context_window": library.ContextWindowExceededError,
        "timeout": library.Timeout,
        "bad_request": library.BadRequestError,
        "load": library.NotFoundError,
    }
    kind = kinds.get(error.kind, library.InternalServerError)
    found: Exception = kind(message=str(error), model=model, llm_provider=PROVIDER)
    return found


def _peak_rss() -> int | None:
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
