"""What a model supports, found out once before the first request: output mode, parameters, token probabilities.

The result is plain data, so a run directory or the cache can hand it back and a cached re-run needs no LLM library.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import orjson

from judge.config import JudgeSpec
from judge.errors import ProviderStop
from judge.llm.library import litellm

Output = Literal["json_schema", "tools", "json", "md_json"]
LOCAL_TOP_LOGPROBS = 40
MOST_TOP_LOGPROBS = {"fireworks_ai": 5, "xai": 8}
USUAL_TOP_LOGPROBS = 20
FEWEST_TOP_LOGPROBS = 5
STRICT_TOOLS = ("openai", "azure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """How one judge is asked. `top_logprobs` is None when the model gives no token probabilities.

    `room` is the name of the limit on the reply. `params` are the parameters that are sent; `dropped` the ones left out
    because the model does not know them.
    """

    id: str
    model: str
    output: Output
    strict: bool
    params: dict[str, Any]
    dropped: list[str]
    top_logprobs: int | None
    litellm_version: str
    room: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"

    @property
    def quick_params(self) -> dict[str, Any]:
        """The parameters of a one-token call: probabilities are wanted as they are, so temperature is 0."""
        cold = {"temperature": 0} if "temperature" in self.params else {}
        return self.params_beside_room | cold

    @property
    def params_beside_room(self) -> dict[str, Any]:
        """The parameters without max_tokens, which is sent as the room of each call."""
        return {name: value for name, value in self.params.items() if name != "max_tokens"}

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def capability_id(spec: JudgeSpec) -> str:
    """Names everything of the judge that the capability depends on."""
    parts = [spec.model, spec.host, spec.params, spec.output, spec.drop_unsupported, _weights(spec)]
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def _weights(spec: JudgeSpec) -> list[int] | None:
    """Size and time of a GGUF of one's own, which may be another model under the same name tomorrow."""
    file = Path(spec.model.removeprefix("local:")).expanduser()
    if not spec.is_local or spec.model == "local" or not file.is_file():
        return None
    return [file.stat().st_size, file.stat().st_mtime_ns]


def from_dict(data: Any, spec: JudgeSpec) -> Capability | None:
    """The stored capability, or None when it is not one of this judge."""
    if not isinstance(data, dict) or data.get("id") != capability_id(spec):
        return None
    try:
        return Capability(**data)
    except TypeError:
        return None


def resolve(spec: JudgeSpec) -> Capability:
    """Asks the LLM library what the model supports; nothing is sent.

    Raises ProviderStop for a model without a known provider and for parameters that the model does not accept, unless
    the judge says `drop_unsupported = true`.
    """
    return _resolve_local(spec) if spec.is_local else _resolve_remote(spec)


def _resolve_local(spec: JudgeSpec) -> Capability:
    """The embedded model: grammar-enforced JSON and the probabilities of many tokens."""
    return Capability(
        id=capability_id(spec),
        model=register_local(spec),
        output="json_schema" if spec.output == "auto" else spec.output,
        strict=True,
        params=spec.params,
        dropped=[],
        top_logprobs=LOCAL_TOP_LOGPROBS,
        litellm_version=version("litellm"),
    )


def _resolve_remote(spec: JudgeSpec) -> Capability:
    try:
        name, provider, _, _ = litellm().get_llm_provider(model=spec.model, api_base=spec.api_base)
    except litellm().BadRequestError as error:
        raise ProviderStop(
            f"model {spec.model!r}: unknown provider. Write provider/model, for example openai/{spec.model}"
        ) from error
    params, dropped = _accepted(spec, name, provider)
    known = set(litellm().get_supported_openai_params(model=spec.model) or ())
    output = _pick_output(spec.model, known) if spec.output == "auto" else spec.output
    return Capability(
        id=capability_id(spec),
        model=spec.model,
        output=output,
        strict=output == "json_schema" or (output == "tools" and provider in STRICT_TOOLS),
        params=params,
        dropped=dropped,
        top_logprobs=_top_logprobs(provider, known),
        litellm_version=version("litellm"),
    )


def register_local(spec: JudgeSpec) -> str:
    """Makes the embedded model known to the LLM library; its model string there."""
    litellm()
    from judge.llm import local

    return str(local.register(spec.model))


def adjusted(known: Capability, refusal: str, *, drop: bool) -> Capability | None:
    """What a provider's refusal of a parameter teaches; None when it teaches nothing.

    Fewer alternatives per token, the newer name of max_tokens, and (only with `drop`) a parameter to leave out.
    """
    if "top_logprobs" in refusal and (known.top_logprobs or 0) > FEWEST_TOP_LOGPROBS:
        return replace(known, top_logprobs=FEWEST_TOP_LOGPROBS)
    if "max_completion_tokens" in refusal and known.room == "max_tokens":
        return replace(known, room="max_completion_tokens")
    refused = [name for name in known.params if re.search(rf"\b{re.escape(name)}\b", refusal)]
    if not drop or not refused:
        return None
    kept = {name: value for name, value in known.params.items() if name not in refused}
    return replace(known, params=kept, dropped=[*known.dropped, *refused])


def release_local(known: Capability) -> list[str]:
    """Frees the embedded model if it was loaded, and says what it took."""
    import sys

    local = sys.modules.get("judge.llm.local")
    if local is None or not local.loaded(known.model):
        return []
    facts = local.describe(known.model)
    local.unload()
    peak = facts["peak_rss_bytes"]
    memory = "" if peak is None else f", peak memory {peak / 1e9:.1f} GB"
    return [f"embedded model {facts['name']}{memory}; unloaded"]


def _pick_output(model: str, known: set[str]) -> Output:
    if "response_format" in known and litellm().supports_response_schema(model=model):
        return "json_schema"
    if {"tools", "tool_choice"} <= known:
        return "tools"
    return "json" if "response_format" in known else "md_json"


def _top_logprobs(provider: str, known: set[str]) -> int | None:
    if not {"logprobs", "top_logprobs"} <= known:
        return None
    return MOST_TOP_LOGPROBS.get(provider, USUAL_TOP_LOGPROBS)


def _accepted(spec: JudgeSpec, name: str, provider: str) -> tuple[dict[str, Any], list[str]]:
    """The parameters that the model takes, and the names of those it does not."""
    from litellm.utils import get_optional_params

    params, refused = {}, {}
    for key, value in spec.params.items():
        try:
            get_optional_params(model=name, custom_llm_provider=provider, **{key: value})
        except litellm().UnsupportedParamsError as error:
            refused[key] = value
            reason = str(error.message).partition("To drop")[0].removeprefix("litellm.UnsupportedParamsError: ").strip()
        else:
            params[key] = value
    if refused and not spec.drop_unsupported:
        shown = ", ".join(f"{key} = {value!r}" for key, value in refused.items())
        raise ProviderStop(
            f"{spec.model} does not accept {shown}: {reason}\nNothing was sent. Give another value in judge.toml "
            f"(params = {{...}}), or let the judge leave it out and record that: drop_unsupported = true."
        )
    return params, list(refused)
