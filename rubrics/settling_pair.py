"""What one comparison call says: a positional verdict or two ratings, the notes checked against the two answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel

from rubrics.model import Item, Prompt, Rubric
from rubrics.outputs import pair_output_model, ratings_output_model
from rubrics.quoting import ANSWER, Quotes
from rubrics.scoring import abstention
from rubrics.screening import case_flags

Verdict = Literal["first", "second", "tie", "both_fail"]
Margin = Literal["slight", "clear", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdict:
    """What one order of a comparison says, by position shown.

    `verdict` is None exactly when there is none; `reason` then says why (the judge's words, or what is wrong with the
    reply, with `error_kind`). `margin` is none for tie and both_fail, and None where the replies were rated. `ratings`
    are the levels of the first and the second reply; the verdict follows from them. A note whose quote fails stands,
    with flag quote_failed. `quotes` counts total, exact, near, failed over both lists of notes.
    """

    verdict: Verdict | None = None
    margin: Margin | None = None
    ratings: tuple[int, int] | None = None
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
    found = _notes(rubric, item, parsed, pair_output_model(), first_answer, second_answer)
    if found.reason is not None:
        return found
    verdict, margin, flags = parsed["verdict"], parsed["margin"], found.flags
    if verdict in ("tie", "both_fail"):
        margin = "none"
    elif margin == "none":
        margin, flags = "slight", (*flags, "margin_mismatch")
    return replace(found, verdict=verdict, margin=margin, flags=flags)


def settle_ratings(
    rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt, first_answer: str, second_answer: str
) -> PairVerdict:
    """The ratings of one reply of `render_pair(..., ask="ratings")`, and which reply they put first (equal: tie)."""
    found = _notes(rubric, item, parsed, ratings_output_model(rubric), first_answer, second_answer)
    if found.reason is not None:
        return found
    first, second = ratings = parsed["rating_first"], parsed["rating_second"]
    verdict: Verdict = "tie" if first == second else "first" if first > second else "second"
    return replace(found, verdict=verdict, ratings=ratings)


def _notes(
    rubric: Rubric, item: Item, parsed: Mapping[str, Any], model: type[BaseModel], first_answer: str, second_answer: str
) -> PairVerdict:
    """The reply without its verdict: notes checked, or the reason why it counts for nothing."""
    flags, _ = case_flags(rubric, item, parsed.get("injection_attempts") or (), (first_answer, second_answer))
    required = (name for name, info in model.model_fields.items() if info.is_required())
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
    if tally["failed"]:
        flags.append("quote_failed")
    return PairVerdict(
        flags=tuple(flags), difference=parsed["decisive_difference"], notes_first=tuple(parsed["notes_first"]),
        notes_second=tuple(parsed["notes_second"]), quotes=tally,
    )  # fmt: skip
