"""A provider that answers anything, and shorthands for what the hostile tests look at."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import judge
from tests.test_score import rubric_dir

LEVEL_2 = {"injection_attempts": [], "rationale": "Weak.", "cannot_judge": None, "level": 2}


@pytest.fixture
def served() -> Iterator[Callable[..., str]]:
    """A server that answers every request with the given bytes; returns its address."""
    servers = []

    def serve(body: bytes | Any, status: int = 200, kind: str = "application/json") -> str:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/v1"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def completion(content: str | None = json.dumps(LEVEL_2), *, usage: Any = None, **choice: Any) -> dict[str, Any]:
    """A chat completion as a provider sends it."""
    message = {"role": "assistant", "content": content}
    usage = usage or {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": usage,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"} | choice]}  # fmt: skip


def own_rubric(tmp_path: Path, body: str, low: int = 1, high: int = 5) -> None:
    """A rubric `own` beside `plain`, with its own body and scale."""
    anchors = "\n".join(f"  {level}: Level {level}." for level in range(high, low - 1, -1))
    (rubric_dir(tmp_path) / "own.md").write_text(
        "---\nid: own\nversion: 1.0.0\ntitle: Own\nlanguage: en\nrequires: [question, answer]\nmode: ordinal\n"
        f"scale: {{min: {low}, max: {high}, pass_at: {high}, higher_is_better: true}}\nanchors:\n{anchors}\n---\n{body}\n"
    )


def only(result: judge.Result) -> dict[str, Any]:
    """The one line of a result."""
    [row] = result.to_frame().to_dict("records")
    return row
