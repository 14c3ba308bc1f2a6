"""What the tests of a public data set read from its folder: a module names it as FOLDER."""

from __future__ import annotations

import json
from typing import Any

import pytest


@pytest.fixture(scope="module")
def pairs(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (request.module.FOLDER / "pairs.jsonl").open(encoding="utf-8")]


@pytest.fixture(scope="module")
def expected(request: pytest.FixtureRequest) -> Any:
    return json.loads((request.module.FOLDER / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def published(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Cell -> what the paper prints, of this data set."""
    folder = request.module.FOLDER
    rows = json.loads((folder.parent / "paper_targets.json").read_text(encoding="utf-8"))
    return {row["cell"]: row for row in rows if row["set"] == folder.name}
