"""The verdict of one comparison call: positional, with its notes checked against the two answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rubrics.model import Item, Prompt, Rubric
from rubrics.outputs import pair_output_model
from rubrics.quoting import ANSWER, Quotes
from rubrics.scoring import abstention
from rubrics.screening import case_flags

Verdict = Literal["first", "second", "tie", "both_fail"]
Margin = Literal["slight", "clear", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdict:
    """What one order of a comparison says, by position shown.

    `verdict` is None exactly when there is none; `reason` then says why (the judge's words, or what is wrong with the
    reply, with `error_kind`). `margin` is none for tie and both_fail. A note whose quote fails stands, with flag
    quote_failed. `quotes` counts total, exact, near, failed over both lists of notes.
    """

    verdict: Verdict | None = None
    margin: Margin | None = None
    flags: tuple[str, ...] = ()
    reason: str | None = None
    error_kind: str | None = None
    difference: str | None = None
    notes_first: tuple[Mapping[str, str], ...] = ()
    notes_second: tuple[Mapping[str, str], ...] = ()
    quotes: Mapping[str, int] = field(default_factory=lambda: {"total": 0, "exact": 0, "near": 0, "failed": 0})


def settle_pair(
    rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt, first_answer: str, second_answer: str
) -> PairVerdict:
    """The verdict of one reply of `render_pair`; combining the two orders is the caller's part.

    A win with margin none is kept as slight, flagged margin_mismatch, since a verdict and no difference contradict.
    """
    flags, _ = case_flags(rubric, item, parsed.get("injection_attempts") or (), (first_answer, second_answer))
    required = (name for name, info in pair_output_model().model_fields.items() if info.is_required())
    lacking = [name for name in required if name not in parsed]
    if lacking:
        reason = f"the reply lacks {', '.join(lacking)}"
        return PairVerdict(reason=reason, error_kind="unparsable", flags=tuple(flags))
    words = abstention(parsed)
    if words:
        return PairVerdict(reason=words, flags=tuple(flags))
    tally = {"total": 0, "exact": 0, "near": 0, "failed": 0}
    for name, answer in (("notes_first", first_answer), ("notes_second", second_answer)):
        quotes = Quotes.of({ANSWER: answer}, shortest=2)
        for note in parsed[name]:
            if note["quote"].strip():
                quotes.check(note["quote"], ANSWER)
        tally = {key: tally[key] + count for key, count in quotes.counts.items()}
    verdict, margin = parsed["verdict"], parsed["margin"]
    if tally["failed"]:
        flags.append("quote_failed")
    if verdict in ("tie", "both_fail"):
        margin = "none"
    elif margin == "none":
        margin = "slight"
        flags.append("margin_mismatch")
    return PairVerdict(
        verdict=verdict, margin=margin, flags=tuple(flags), difference=parsed["decisive_difference"],
        notes_first=tuple(parsed["notes_first"]), notes_second=tuple(parsed["notes_second"]), quotes=tally,
    )  # fmt: skip
