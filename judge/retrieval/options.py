"""The conventions of a retrieval evaluation: every choice has a name, a default and is echoed in the output."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from typing import Any

from judge.errors import UsageError

CHOICES: dict[str, tuple[str, ...]] = {
    "precision_denominator": ("k", "retrieved"),
    "recall_denominator": ("relevant", "min_relevant_k"),
    "ap_denominator": ("relevant", "min_relevant_k", "retrieved_relevant"),
    "empty_labels": ("undefined", "zero", "error"),
    "missing_queries": ("zero", "error"),
    "extra_queries": ("ignore", "error"),
    "duplicates": ("first", "credit_once", "error"),
    "gain": ("linear", "exponential"),
    "ties": ("input", "docid_desc", "expected"),
    "mean": ("macro", "micro"),
    "unit": ("chunk", "doc"),
    "stale": ("error", "zero"),
}

PROFILES: dict[str, dict[str, str]] = {
    "trec": {"empty_labels": "zero", "ties": "docid_desc", "duplicates": "error"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One value per convention; the defaults are the first choices of `CHOICES`.

    `rel_level` is the least grade that the binary measures call relevant. `tau` is the share of a passage that has
    to be retrieved. `chunk_map` maps a chunk id to its doc, start, end and text; `doc_pattern` is a regular
    expression whose first group is the document of an item id.
    """

    precision_denominator: str = "k"
    recall_denominator: str = "relevant"
    ap_denominator: str = "relevant"
    empty_labels: str = "undefined"
    missing_queries: str = "zero"
    extra_queries: str = "ignore"
    duplicates: str = "first"
    gain: str = "linear"
    rel_level: float = 1
    judged_only: bool = False
    ties: str = "input"
    mean: str = "macro"
    unit: str = "chunk"
    tau: float = 0.8
    stale: str = "error"
    chunk_map: Any = None
    doc_pattern: str | None = None
    profile: str | None = None

    def conventions(self) -> dict[str, Any]:
        """The options as plain JSON values; a chunk map is shown by its number of chunks."""
        shown = asdict(self) if self.chunk_map is None else asdict(_without_map(self))
        if self.chunk_map is not None:
            shown["chunk_map"] = f"{len(self.chunk_map)} chunks"
        return shown


def _without_map(options: Options) -> Options:
    return Options(**{f.name: getattr(options, f.name) for f in fields(Options) if f.name != "chunk_map"})


OPTION_NAMES = tuple(field.name for field in fields(Options))


def choose(given: dict[str, Any]) -> Options:
    """Options from keyword arguments; a profile fills in what was not given. Unknown names and values are refused."""
    for name in given:
        if name not in OPTION_NAMES:
            near = get_close_matches(name, OPTION_NAMES, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(OPTION_NAMES)}"
            raise UsageError(f"option {name!r} is unknown: {hint}")
    profile = given.get("profile")
    if profile is not None and profile not in PROFILES:
        raise UsageError(f"profile is {profile!r}: choose one of {', '.join(PROFILES)}, or leave it out")
    options = Options(**({} if profile is None else PROFILES[profile]) | given)
    _check(options)
    return options


def _check(options: Options) -> None:
    for name, choices in CHOICES.items():
        value = getattr(options, name)
        if value not in choices:
            raise UsageError(f"{name} is {value!r}: choose one of {', '.join(choices)}")
    if not isinstance(options.judged_only, bool):
        raise UsageError(f"judged_only is {options.judged_only!r}: give true or false")
    if not _is_number(options.rel_level):
        raise UsageError(f"rel_level is {options.rel_level!r}: give a finite number, such as 1")
    if not _is_number(options.tau) or not 0 < options.tau <= 1:
        raise UsageError(f"tau is {options.tau!r}: give a share above 0 and at most 1, such as 0.8")
    if options.doc_pattern is not None:
        _check_pattern(options.doc_pattern)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_pattern(pattern: str) -> None:
    example = r"write the document part in brackets, such as ^(.*)#\d+$"
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise UsageError(f"doc_pattern {pattern!r} is no regular expression ({error}): {example}") from None
    if groups < 1:
        raise UsageError(f"doc_pattern {pattern!r} has no group: {example}")


def cutoffs(k: int | Iterable[int]) -> tuple[int, ...]:
    """The cut-offs, sorted, each once; whole numbers from 1. A number alone is one cut-off."""
    values: list[object] = list(k) if isinstance(k, Iterable) else [k]
    checked = []
    for value in values:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UsageError(
                f"k is {value!r}: cut-offs are whole numbers from 1, such as k=(1, 3, 5, 10); the measures over the "
                "whole list (rr, ap, ndcg, context_recall) are always there"
            )
        checked.append(value)
    if not checked:
        raise UsageError("k is empty: give at least one cut-off, such as k=(5,)")
    return tuple(sorted(set(checked)))
