"""Free lexical twins of judged rubrics: shared words and numbers, no model; shown beside a score, never mixed in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from rubrics.citations import parse, statements, unmarked
from rubrics.evidence import words
from rubrics.model import Item, Rubric
from rubrics.numbers import answer_numerals, unknown_numerals

_REMEMBERED_LENGTH = 4000  # the passages of a case are read again for each of its rubrics; long ones cost memory
_WORD = re.compile(r"[^\W_]+(?:[.,]\d+)*")
_NO_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_STOP_WORDS = words(
    "a an the of and or to in on at by for from with as is are was were be been being it its this that these those he"
    " she they them his her their we you i our your not no do does did has have had can could will would shall should"
    " may might must if then than so but about into over under there here what which who whom whose when where why"
    " how many much also only very just such any all each both more most other some one two up out"
    " el la los las de del y en un una es son por para con que se su al lo"
    " le les des et est dans une du au aux pour sur avec qui il elle ce cette"
    " der die das und ist in den von zu mit auf für ein eine im dem des"
    " il lo gli di che è per non si o os as e um uma do da no na het een van te dat zijn"
)
_SUFFIXES = ("ations", "ation", "ingly", "edly", "ments", "ment", "ities", "ness", "ings", "ing", "ies", "ied", "ers",
             "est", "ed", "es", "er", "ly", "al", "s", "e")  # fmt: skip


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    if len(word) > 3 and not word[0].isdigit():
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= 3:
                word = word[: -len(suffix)]
                break
        if len(word) > 3 and (word[-1] == word[-2] or word[-1] in "yi"):
            word = word[:-1]
    return word


def content_words(text: str) -> frozenset[str]:
    """Crude stems of the words that carry content; scripts without spaces (CJK, Thai, ...) as pairs of characters."""
    return _remembered(text) if len(text) <= _REMEMBERED_LENGTH else _content_words(text)


@lru_cache(maxsize=1024)
def _remembered(text: str) -> frozenset[str]:
    return _content_words(text)


def _content_words(text: str) -> frozenset[str]:
    text = text.casefold()
    found: set[str] = set()
    if not text.isascii():
        for run in _NO_SPACES.findall(text):
            found.update(run[i : i + 2] for i in range(max(len(run) - 1, 1)))
        text = _NO_SPACES.sub(" ", text)
    found.update(_stem(word) for word in set(_WORD.findall(text)) - _STOP_WORDS)
    return frozenset(found)


def recall(wanted: frozenset[str], given: frozenset[str]) -> float | None:
    """Share of the wanted words that are given; None when nothing is wanted."""
    return len(wanted & given) / len(wanted) if wanted else None


def _grounded(answer: str, sources: Sequence[str], numerals: Sequence[str]) -> float | None:
    shared = recall(content_words(answer), frozenset().union(*map(content_words, sources)))
    if shared is None or not numerals:
        return shared
    return shared * (1 - len(unknown_numerals(numerals, sources)) / len(numerals))


def _faithfulness(item: Item) -> float | None:
    contexts = item.contexts or ()
    sources = [passage.text for passage in contexts if passage.text.strip()]
    if not sources or not item.answer:
        return None
    text = unmarked(item.answer, 0, len(item.answer), parse(item.answer, contexts))
    return _grounded(text, [*sources, item.question], answer_numerals(text, contexts, ()))


def _citations(item: Item, scope: str) -> float | None:
    contexts = item.contexts or ()
    texts = {passage.id: passage.text for passage in contexts}
    values = []
    for row in statements(item.answer or "", contexts, "paragraph" if scope == "paragraph" else "sentence"):
        if not row.citations:
            continue
        cited = [texts[mark.id] for mark in row.citations if mark.id is not None]
        value = _grounded(row.text, cited, answer_numerals(row.text, contexts, ())) if cited else 0.0
        if value is not None:
            values.append(value)
    return sum(values) / len(values) if values else None


def _reference_recall(item: Item) -> float | None:
    if not (item.answer or "").strip():
        return 0.0
    given = content_words(f"{item.question} {item.answer}")
    wanted = [" ".join(nugget.nugget for nugget in item.nuggets)] if item.nuggets else list(item.reference or ())
    shares = [share for text in wanted if (share := recall(content_words(text), given)) is not None]
    return max(shares, default=None)


def _question_recall(item: Item) -> float | None:
    asked = content_words(item.question)
    shares = [share for p in item.contexts or () if (share := recall(asked, content_words(p.text))) is not None]
    return sum(shares) / len(shares) if shares else None


def overlap(rubric: Rubric, item: Item) -> float | None:
    """The lexical twin of a rubric for an item, 0..1; None where the mode has none or a text is missing.

    claims: share of the answer's content words found in passages or question, times the share of its numbers found
    there. citations: the same for each cited sentence against its cited passages (unknown marks only: 0), averaged.
    nuggets and facts: share of the reference's (or the nuggets') words found in question or answer; the best of several
    references; 0 for an empty answer. passages: share of the question's words found in a passage, averaged.
    """
    match rubric.mode:
        case "claims":
            return _faithfulness(item)
        case "citations":
            return _citations(item, rubric.citation_scope)
        case "nuggets" | "facts":
            return _reference_recall(item)
        case "passages":
            return _question_recall(item)
        case _:
            return None
