"""Which judge answers: a model string, or a judge described in judge.toml (CONTRACTS 8).

Keys are never in the file: `api_key_env` names the environment variable that holds one.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from judge.errors import UsageError

OutputMode = Literal["auto", "json_schema", "tools", "json", "md_json"]
Source = Literal["option", "config", "default", "fallback"]
JUDGE_TOML = Path("judge.toml")
LOCAL_TIMEOUT_S = 600.0
LOCAL_ROOM_TOKENS = 1024  # a small model that starts to repeat itself fills whatever room it has
OURS = frozenset(
    {"model", "messages", "api_key", "api_base", "base_url", "custom_llm_provider", "extra_headers", "timeout"}
    | {"stream", "n", "tools", "tool_choice", "response_format", "logprobs", "top_logprobs", "max_completion_tokens"}
    | {"num_retries", "max_retries", "fallbacks", "mock_response"}
)


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Price(Strict):
    """US dollars per million tokens; overrides the price map."""

    input_per_million: float = Field(ge=0)
    output_per_million: float = Field(ge=0)


class Limits(Strict):
    """Upper bound of simultaneous calls; requests and tokens per minute (None: not limited here)."""

    concurrency: int = Field(default=64, ge=1, le=4096)
    rpm: int | None = Field(default=None, ge=1)
    tpm: int | None = Field(default=None, ge=1)


class JudgeSpec(Strict):
    """One judge: everything that decides what is sent and where.

    `params` are sent as they are (temperature 0 unless said otherwise); `params.max_tokens` overrides the room that
    a prompt asks for, which a reasoning model needs. `source` says how this judge was chosen.
    """

    name: str
    model: str = Field(min_length=1)
    api_base: str | None = None
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    params: dict[str, Any] = Field(default={}, validate_default=True)
    drop_unsupported: bool = False
    output: OutputMode = "auto"
    price: Price | None = None
    limits: Limits = Limits()
    timeout: float = Field(default=60.0, gt=0, le=86_400, description="seconds a call may take")
    source: Source = "option"

    @property
    def is_local(self) -> bool:
        """True for the embedded model: `local` or `local:/path/to.gguf`."""
        return self.model == "local" or self.model.startswith("local:")

    @property
    def host(self) -> str | None:
        """Host and port of the server that answers: of `api_base`, else of the address that the environment sets.

        The LLM library reads OPENAI_BASE_URL and its like (PROVIDER_BASE_URL, PROVIDER_API_BASE); two servers behind
        one model name must not share replies. None: the provider's own address.
        """
        base = self.api_base or self._address_of_environment()
        return urlsplit(base).netloc.rpartition("@")[2] or None if base else None

    def _address_of_environment(self) -> str | None:
        if self.is_local:
            return None
        provider = self.model.partition("/")[0] if "/" in self.model else "openai"
        names = (f"{re.sub(r'[^A-Za-z0-9]', '_', provider).upper()}_{ending}" for ending in ("BASE_URL", "API_BASE"))
        return next((value for name in names if (value := os.environ.get(name))), None)

    @property
    def address(self) -> str | None:
        """`api_base` fit to be shown: without user, password and query."""
        return public_address(self.api_base) if self.api_base else None

    @field_validator("api_base")
    @classmethod
    def _http_url(cls, value: str | None) -> str | None:
        if value is not None and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).netloc):
            raise ValueError("must be an http:// or https:// address")
        if value is not None and "@" in urlsplit(value).netloc:
            raise ValueError("must hold no user or password: keys come only from the environment (api_key_env)")
        return value

    @field_validator("params")
    @classmethod
    def _only_model_parameters(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(OURS & value.keys())
        if taken:
            raise ValueError(f"{', '.join(taken)}: set by the judge itself, not a model parameter")
        room = value.get("max_tokens", 1)
        if type(room) is not int or room < 1:
            raise ValueError("max_tokens must be a whole number, 1 or more")
        return {"temperature": 0, **value}

    @model_validator(mode="before")
    @classmethod
    def _local_defaults(cls, data: Any) -> Any:
        if isinstance(data, dict) and str(data.get("model", "")).partition(":")[0] == "local":
            params = {"max_tokens": LOCAL_ROOM_TOKENS} | (data.get("params") or {})
            free = Price(input_per_million=0, output_per_million=0)
            return {"timeout": LOCAL_TIMEOUT_S, "price": free} | data | {"params": params}
        return data

    @model_validator(mode="after")
    def _local_runs_alone(self) -> Self:
        if self.is_local and self.limits.concurrency != 1:
            object.__setattr__(self, "limits", self.limits.model_copy(update={"concurrency": 1}))
        return self

    def override(self, *, concurrency: int | None = None, **changes: Any) -> JudgeSpec:
        """The same judge with command-line values in place; None leaves a value as it is."""
        given = {name: value for name, value in changes.items() if value is not None}
        if concurrency is not None:
            given["limits"] = {**self.limits.model_dump(), "concurrency": concurrency}
        return _judge({**self.model_dump(exclude_defaults=True), **given}, "the judge's options")


def public_address(url: str) -> str:
    """An address without what may be a secret in it: user, password, query and fragment."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def find_judge(model: str | None, config: Path | None = None) -> JudgeSpec:
    """The judge for `--model` and `--config`.

    `model` is the name of a judge in judge.toml, else a model string. Without it: the default of judge.toml, else the
    embedded model (`source` is then "fallback", to be said aloud). Raises UsageError for a file that cannot be used.
    """
    path = config or JUDGE_TOML
    if config is not None and not config.is_file():
        raise UsageError(f"--config {config}: no such file")
    default, judges = _read(path) if path.is_file() else (None, {})
    if model is not None:
        return judges.get(model) or _judge({"name": model, "model": model, "source": "option"}, f"--model {model!r}")
    if default is not None:
        return judges[default].model_copy(update={"source": "default"})
    return _judge({"name": "local", "model": "local", "source": "fallback"}, "local")


def _read(path: Path) -> tuple[str | None, dict[str, JudgeSpec]]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path}: not readable as TOML: {error}") from error
    for key in table:
        if key not in ("default", "judges"):
            raise UsageError(f"{path}: unknown key {key!r}{_did_you_mean(key, ('default', 'judges'))}")
    tables, default = table.get("judges", {}), table.get("default")
    if not isinstance(tables, dict) or not all(isinstance(entry, dict) for entry in tables.values()):
        raise UsageError(f'{path}: judges must be tables: [judges.NAME] with model = "..."')
    if default is not None and default not in tables:
        known = ", ".join(tables) or "none"
        raise UsageError(f"{path}: default = {default!r} is not a judge of this file (known: {known})")
    return default, {
        name: _judge({"name": name, "source": "config", **entry}, f"{path}: [judges.{name}]")
        for name, entry in tables.items()
    }


def _judge(fields: dict[str, Any], where: str) -> JudgeSpec:
    try:
        return JudgeSpec.model_validate(fields)
    except ValidationError as error:
        raise UsageError("\n".join(f"{where} {_problem(item)}" for item in error.errors())) from None


def _problem(item: Any) -> str:
    """One validation error as "field: rule, value seen", with a suggestion for an unknown key."""
    *path, field = [str(part) for part in item["loc"]] or ["judge"]
    name = ".".join([*path, field])
    if item["type"] != "extra_forbidden":
        seen = public_address(item["input"]) if field == "api_base" else item["input"]
        return f"{name}: {item['msg'].removeprefix('Value error, ')} (seen: {seen!r})"
    if field == "api_key":
        return "api_key: keys come only from the environment; name the variable with api_key_env"
    tables: dict[str, type[BaseModel]] = {"price": Price, "limits": Limits}
    table = tables.get(path[-1], JudgeSpec) if path else JudgeSpec
    return f"{name}: unknown key{_did_you_mean(field, tuple(table.model_fields))}"


def _did_you_mean(key: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f" (known: {', '.join(known)})"
