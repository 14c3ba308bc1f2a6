"""From a judge's reply to an outcome: verdicts are checked, the score is computed, every non-answer gets a name.

One function per mode (settling_claims.py, settling_citations.py, settling_verdicts.py) makes a draft; what all modes
share is added here.
Pure functions: settling a stored reply again costs no call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rubrics.model import Item, Mode, Outcome, Prompt, Rubric
from rubrics.outputs import output_model
from rubrics.overlap import overlap
from rubrics.prechecks import precheck
from rubrics.quoting import Quotes
from rubrics.scoring import Draft, abstention, outcome
from rubrics.screening import case_flags
from rubrics.settling_citations import settle_citations
from rubrics.settling_claims import settle_claims
from rubrics.settling_pair import PairVerdict, settle_pair, settle_ratings
from rubrics.settling_quick import settle_quick
from rubrics.settling_verdicts import (
    settle_checklist,
    settle_facts,
    settle_level,
    settle_matrix,
    settle_nuggets,
    settle_passages,
    settle_sentences,
)

__all__ = ["PairVerdict", "precheck", "settle", "settle_pair", "settle_quick", "settle_ratings"]

_MODES: Mapping[Mode, Callable[[Rubric, Item, Mapping[str, Any], Prompt], tuple[Draft, Quotes]]] = {
    "ordinal": settle_level,
    "binary": settle_level,
    "checklist": settle_checklist,
    "claims": settle_claims,
    "sentences": settle_sentences,
    "nuggets": settle_nuggets,
    "citations": settle_citations,
    "passages": settle_passages,
    "facts": settle_facts,
    "matrix": settle_matrix,
}


def settle(rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt) -> Outcome:
    """The outcome of one reply in full mode.

    `parsed` is the reply as validated by `output_model(rubric)`, `prompt` the call that it answers (its aliases map
    ids as shown to ids of the item). The score is computed from the verdicts that survive the checks; the judge's own
    level is kept beside it as holistic_score. A filled `cannot_judge` gives status cannot_judge with the judge's words.
    A reply whose lists do not match what was asked is an error `unparsable`, an empty inventory of an answer that makes
    statements an error `no_inventory`. Errors: ValueError for a pairwise rubric (use `settle_pair`).
    """
    if rubric.mode not in _MODES:
        raise ValueError(f"{rubric.id} compares two answers: use settle_pair")
    flags, details = case_flags(rubric, item, parsed.get("injection_attempts") or ())
    if _out_of_order(parsed):
        flags.append("order_violation")
    common: dict[str, Any] = {
        "rationale": parsed.get("rationale"),
        "holistic_score": parsed.get("level", parsed.get("holistic_score")),
    }
    draft, quotes = _draft(rubric, item, parsed, prompt)
    details = {**draft.details, **details}
    if draft.status != "cannot_judge":
        details["overlap"] = overlap(rubric, item)
    flags = list(dict.fromkeys((*draft.flags, *quotes.flags, *flags)))
    draft = replace(draft, details=details, flags=tuple(flags))
    return outcome(rubric, draft, quotes=quotes.counts, **common)


def _draft(rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt) -> tuple[Draft, Quotes]:
    required = (name for name, field in output_model(rubric).model_fields.items() if field.is_required())
    lacking = [name for name in required if name not in parsed]
    if lacking:
        reason = f"the reply lacks {', '.join(lacking)}"
        return Draft(status="error", error_kind="unparsable", reason=reason), Quotes.of({})
    words = abstention(parsed)
    if words:
        return Draft(status="cannot_judge", reason=words), Quotes.of({})
    return _MODES[rubric.mode](rubric, item, parsed, prompt)


def _out_of_order(parsed: Mapping[str, Any]) -> bool:
    """Whether the closing level was written before the verdicts that should lead to it."""
    keys = [key for key in parsed if key not in ("injection_attempts", "cannot_judge")]
    return any(key in keys[:-1] for key in ("holistic_score", "level"))
