"""Our reference vectors by name, each with its own tolerance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[1] / "data" / "calibration" / "vectors.json"
VECTORS: dict[str, dict[str, Any]] = {v["name"]: v for v in json.loads(DATA.read_text(encoding="utf-8"))["vectors"]}


def named(prefix: str) -> list[str]:
    return [name for name in VECTORS if name.startswith(prefix)]


def near(expected: Any, vector: dict[str, Any]) -> Any:
    """The expected value within the tolerance of the vector (absolute or relative, whichever is larger)."""
    return pytest.approx(expected, abs=vector["tol"], rel=vector["tol"])
