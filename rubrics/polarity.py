"""Whether a quote seems to say the opposite of the claim that it is to back: a flag for a person, never a verdict."""

from __future__ import annotations

import re

from rubrics.evidence import NEGATION, normalise, sentences
from rubrics.overlap import content_words, recall

_SAME_MATTER = 0.7
_WORD = re.compile(r"[^\W\d_]+")
_PAIRS = """
open/closed opens/closes opened/closed allowed/forbidden allowed/prohibited permitted/forbidden permitted/prohibited
included/excluded includes/excludes include/exclude before/after above/below over/under more/less more/fewer
most/least maximum/minimum increases/decreases increased/decreased increase/decrease rises/falls rose/fell rise/fall
higher/lower highest/lowest earlier/later early/late first/last always/sometimes all/some enabled/disabled
enable/disable enables/disables accepted/rejected accepts/rejects approved/rejected approved/denied won/lost
wins/loses starts/ends started/ended begins/ends began/ended inside/outside left/right hot/cold warm/cold wet/dry
north/south east/west northern/southern eastern/western true/false correct/incorrect safe/unsafe legal/illegal
possible/impossible free/paid full/empty public/private optional/required optional/mandatory odd/even
buy/sell bought/sold import/export imports/exports heavier/lighter longer/shorter larger/smaller older/newer
older/younger faster/slower cheaper/dearer day/night morning/evening summer/winter male/female present/absent
abierto/cerrado abierta/cerrada antes/después ouvert/fermé ouverte/fermée avant/après geöffnet/geschlossen
offen/geschlossen erlaubt/verboten vor/nach aperto/chiuso aperta/chiusa prima/dopo
"""
_OPPOSITES: dict[str, set[str]] = {}
for _pair in _PAIRS.split():
    _one, _other = _pair.split("/")
    _OPPOSITES.setdefault(_one, set()).add(_other)
    _OPPOSITES.setdefault(_other, set()).add(_one)


def opposed(claim: str, quote: str) -> bool:
    """Whether claim and quote differ by one reversal: a negation, or one word for its opposite, but not by both.

    Read against the one sentence of the quote that shares most content words with the claim, so that a negation
    elsewhere in a long quote does not count; it has to hold at least 70 % of the claim's other content words, or the
    two speak of different things. "Open on Mondays" against "closed on Mondays", and against "not open on Mondays", is
    opposed; "not open" against "closed" is not. Opposites of a closed list (English, a few of es fr de it).
    """
    wanted = content_words(claim)
    parts = sentences(quote) or [quote]
    nearest = normalise(max(parts, key=lambda part: len(wanted & content_words(part))))
    said = normalise(claim)
    given, found = set(_WORD.findall(said)), set(_WORD.findall(nearest))
    swapped = {word for word in (given - found) & _OPPOSITES.keys() if _OPPOSITES[word] & (found - given)}
    shared = recall(wanted - content_words(" ".join(swapped)), content_words(nearest))
    if shared is None or shared < _SAME_MATTER:
        return False
    return (len(NEGATION.findall(said)) + len(NEGATION.findall(nearest)) + len(swapped)) % 2 == 1
