"""Bundled cases with reference labels, written for this project; README.md beside this file explains them."""

from __future__ import annotations

from pathlib import Path

DEMO_IDS = (
    "ex-46",  # good
    "ex-01",  # altered number
    "ex-47",  # extra claim
    "ex-12",  # wrong citation
    "ex-02",  # partial
    "ex-35",  # refusal
    "ex-31",  # off topic
    "ex-09",  # multi-hop
    "ex-50",  # two colours swapped: the deliberate failure, which the embedded judge passes
    "ex-30",  # empty answer
    "ex-27",  # order to the judge inside the answer
    "ex-19",  # Spanish
)


def path() -> Path:
    """The folder of the example files: cases.jsonl, baseline.jsonl, improved.jsonl, README.md."""
    return Path(__file__).resolve().parent


def cases_path() -> Path:
    """The main example file: every question once, in `judge score` form, with labels of rater `author`."""
    return path() / "cases.jsonl"
