"""Rubrics: what is asked of the judge, and how its reply becomes a score.

Data files and pure functions; the only reading from disk is that of rubric files. Names load on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rubrics.model import Item, Outcome, Prompt, Rubric, RubricError, Unit

if TYPE_CHECKING:
    from rubrics.frontmatter import Problem
    from rubrics.loading import check, list_rubrics, load, overrides
    from rubrics.prompting import instructions_text, render, render_pair
    from rubrics.quick import render_pair_quick, render_quick
    from rubrics.settling import precheck, settle, settle_pair, settle_quick, settle_ratings

_HOMES = {
    "Problem": "rubrics.frontmatter",
    "check": "rubrics.loading",
    "list_rubrics": "rubrics.loading",
    "load": "rubrics.loading",
    "overrides": "rubrics.loading",
    "instructions_text": "rubrics.prompting",
    "render": "rubrics.prompting",
    "render_pair": "rubrics.prompting",
    "render_pair_quick": "rubrics.quick",
    "render_quick": "rubrics.quick",
    "precheck": "rubrics.settling",
    "settle": "rubrics.settling",
    "settle_pair": "rubrics.settling",
    "settle_quick": "rubrics.settling",
    "settle_ratings": "rubrics.settling",
}

__all__ = [
    "Item",
    "Outcome",
    "Problem",
    "Prompt",
    "Rubric",
    "RubricError",
    "Unit",
    "check",
    "instructions_text",
    "list_rubrics",
    "load",
    "overrides",
    "precheck",
    "render",
    "render_pair",
    "render_pair_quick",
    "render_quick",
    "settle",
    "settle_pair",
    "settle_quick",
    "settle_ratings",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rubrics' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
