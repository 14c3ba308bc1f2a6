"""The quotes of one reply, checked and counted as they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rubrics.evidence import QuoteCheck, normalise, verify_quote
from rubrics.overlap import content_words

ANSWER = "answer"


@dataclass(slots=True)
class Quotes:
    """Texts that may be quoted (id -> normalised text) and the tally of the checks made against them.

    `aliases` maps ids as the judge saw them to ids of the item. `shortest` is the shortest quote that proves anything.
    """

    texts: Mapping[str, str]
    aliases: Mapping[str, str] = field(default_factory=dict)
    shortest: int = 8
    tally: Counter[str] = field(default_factory=Counter)
    _words: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Mapping[str, str], aliases: Mapping[str, str] | None = None, shortest: int = 8) -> Quotes:
        return cls({name: normalise(text) for name, text in texts.items()}, aliases or {}, shortest)

    def check(self, quote: str, cited_id: str) -> QuoteCheck:
        """Verify one quote against the id as shown to the judge, and count the result."""
        found = verify_quote(quote, self.texts, self.aliases.get(cited_id, cited_id), shortest=self.shortest)
        self.tally[found.result] += 1
        return found

    def check_all(self, evidence: Sequence[Mapping[str, Any]]) -> list[QuoteCheck]:
        return [self.check(entry["quote"], entry["context_id"]) for entry in evidence]

    def words(self, name: str) -> frozenset[str]:
        """Content words of one of the texts, worked out once."""
        if name not in self._words:
            self._words[name] = content_words(self.texts[name])
        return self._words[name]

    def holds(self, quote: str | None, cited_id: str = ANSWER) -> bool:
        """Whether a single quote is given and found in the text that it has to come from."""
        if quote is None or not quote.strip():
            return False
        found = self.check(quote, cited_id)
        return found.verified and found.passage == self.aliases.get(cited_id, cited_id)

    @property
    def counts(self) -> dict[str, int]:
        """quotes{total, exact, near, failed}: a corrected id counts as exact, a quote too short as failed."""
        tally = self.tally
        return {
            "total": tally.total(),
            "exact": tally["exact"] + tally["wrong_id"],
            "near": tally["near"],
            "failed": tally["failed"] + tally["too_short"],
        }

    @property
    def flags(self) -> list[str]:
        failed = self.tally["failed"] + self.tally["too_short"]
        return [*(["quote_failed"] if failed else []), *(["wrong_id"] if self.tally["wrong_id"] else [])]
