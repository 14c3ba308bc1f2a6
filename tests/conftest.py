"""The fake provider: one process for the whole test session, reset before every test that asks for it."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

for name, value in {
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "ERROR",
}.items():
    os.environ.setdefault(name, value)


gc.set_threshold(100_000, 50, 50)  # the LLM library's many objects are walked less often: a tenth of the suite's time


class FakeProvider:
    """Talks to the running fake provider: options, scripted replies, counters, the requests it saw."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.root = base_url.removesuffix("/v1")
        self.defaults = self.config()

    def call(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data=data, method="GET" if body is None else "POST")
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.loads(response.read())

    def config(self, **options: Any) -> dict[str, Any]:
        """Set options (see fake_provider.py, class Cfg); returns all of them."""
        return self.call("/config", options)

    def script(self, *rules: dict[str, Any]) -> None:
        """Scripted replies: {"match": text, "replies": [{"content": ..., "status": ..., ...}]}."""
        self.call("/script", list(rules))

    def stats(self) -> dict[str, Any]:
        return self.call("/stats")

    def requests(self) -> list[dict[str, Any]]:
        """Bodies of the requests since the last reset."""
        return self.call("/requests")

    def reset(self) -> None:
        """Forget counters, scripts and requests; default options, no latency."""
        self.call("/reset", {})
        self.config(**self.defaults | {"latency_ms": 0.0})


@pytest.fixture(scope="session")
def fake_provider() -> Iterator[FakeProvider]:
    script = Path(__file__).with_name("fake_provider.py")
    process = subprocess.Popen([sys.executable, str(script), "--port", "0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield FakeProvider(process.stdout.readline().split()[-1])
    process.terminate()
    process.wait(timeout=10)


@pytest.fixture
def provider(fake_provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    """A freshly reset fake provider; OPENAI_API_KEY and ANTHROPIC_API_KEY are set to a dummy."""
    fake_provider.reset()
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key")
    return fake_provider
