"""The general route: rankings and labels of any form become ids, documents or passages, whichever decides.

ids        item ids alone decide: bare ids, or chunk labels only
documents  unit=doc: chunks collapse to their documents
passages   unit=chunk with documents, texts or offsets
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from judge.errors import InputError
from judge.retrieval.chunks import Origins, Passage, check_offsets, check_stale, first_of_each
from judge.retrieval.ids import match_ids, refuse_duplicates
from judge.retrieval.inputs import Ranked, Ranking, by_score, labels_of, ranking_of
from judge.retrieval.options import Options
from judge.retrieval.passages import match_passages, refuse_tied
from judge.retrieval.slots import Matched
from judge.retrieval.ties import docid_desc

if TYPE_CHECKING:
    from judge.cases import Label

Given = dict[str, float] | list["Label"]


def match_general(rankings: Mapping[str, Any], labels: Mapping[str, Any], options: Options) -> Matched:
    """Match after bringing everything into one shape; the labels of every query decide the route for all."""
    given: dict[str, Given] = {query: labels_of(query, value) for query, value in labels.items()}
    lists = {query: in_order(ranking_of(query, value), value, options) for query, value in rankings.items()}
    origins = Origins.of(options)
    objects = {query: value for query, value in given.items() if isinstance(value, list)}
    check_offsets(objects, origins)
    warnings = check_stale(
        {query: [label.chunk for label in value if label.chunk is not None] for query, value in objects.items()},
        chain.from_iterable(ranking.ids for ranking in lists.values()), origins, options.stale,
    )  # fmt: skip
    ids = id_grades(given, has_documents(lists, origins))
    if not any(ranking.scores for ranking in lists.values()):
        warnings.extend(without_scores(options))
    if ids is not None and (options.unit == "chunk" or not has_documents(lists, origins)):
        scores = {query: ranking.scores for query, ranking in lists.items() if ranking.scores is not None}
        averaged = scores if options.ties == "expected" else {}
        return match_ids({q: r.ids for q, r in lists.items()}, ids, options, scores=averaged, warnings=warnings)
    passages = {query: as_passages(ranking, origins) for query, ranking in lists.items()}
    warnings.extend(unmapped(passages, origins))
    if options.unit == "doc":
        return match_documents(passages, given, origins, options, warnings)
    if options.ties == "expected":
        refuse_tied(passages)
    every = {query: label_objects(query, value) for query, value in given.items()}
    warnings.extend(chunk_ids_as_documents(passages, every))
    return match_passages(passages, every, options, warnings)


def without_scores(options: Options) -> list[str]:
    """The warning about a tie rule that somebody chose for rankings without scores."""
    if options.ties == "input" or options.profile is not None:
        return []
    return [f"ties={options.ties} changes nothing: no ranking has scores"]


def in_order(ranking: Ranking, given: Any, options: Options) -> Ranking:
    """The ranking in its order: as given, or by score when there is no order or the tie rule goes by score."""
    if ranking.scores is None:
        return ranking
    ranked = Ranked(ranking.ids, ranking.scores)
    if options.ties == "docid_desc":
        ranked = docid_desc(ranked)
    elif options.ties == "expected" or isinstance(given, Mapping):
        ranked = by_score(ranked)
    if ranking.items is None:
        return Ranking(ranked.ids, ranked.scores)
    waiting: dict[tuple[str, float | None], list[Any]] = {}
    for item in reversed(ranking.items):
        waiting.setdefault((item.id, item.score), []).append(item)
    items = [waiting[pair].pop() for pair in zip(ranked.ids, ranked.scores, strict=True)]
    return Ranking(ranked.ids, ranked.scores, items)


def has_documents(rankings: Mapping[str, Ranking], origins: Origins) -> bool:
    """Whether any item belongs to a document other than itself."""
    items = chain.from_iterable(ranking.items or () for ranking in rankings.values())
    return origins.declared or any(item.doc is not None and item.doc != item.id for item in items)


def id_grades(given: Mapping[str, Given], documents: bool) -> dict[str, dict[str, float]] | None:
    """{id: grade} per query when item ids decide everything; None when documents, texts or offsets are needed."""
    made = {}
    for query, value in given.items():
        pairs = list(value.items()) if isinstance(value, dict) else []
        kinds = {"doc"} if pairs else set()
        if not isinstance(value, dict):
            kinds = {str(label.kind) for label in value}
            pairs = [(label.chunk or label.doc or "", label.grade) for label in value]
        if len(kinds) > 1 or not kinds <= {"chunk", "doc"} or (documents and "doc" in kinds):
            return None
        made[query] = unique_grades(query, pairs)
    return made


def unique_grades(query: str, pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """{label: grade} of pairs; the same label again is one label, with another grade an error."""
    grades: dict[str, float] = {}
    for name, grade in pairs:
        if grades.setdefault(name, grade) != grade:
            two = f"{grades[name]:g} and {grade:g}"
            raise InputError(f"labels of query {query!r}: {name!r} has two grades, {two}: keep one")
    return grades


def label_objects(query: str, value: Given) -> list[Label]:
    """Label objects, each once."""
    from judge.cases import Label

    listed = [Label(doc=i, grade=grade) for i, grade in value.items()] if isinstance(value, dict) else value
    names = [repr(label.model_dump(exclude={"grade"}, exclude_none=True)) for label in listed]
    unique_grades(query, zip(names, (label.grade for label in listed), strict=True))
    return list(dict(zip(names, listed, strict=True)).values())


def as_passages(ranking: Ranking, origins: Origins) -> list[Passage]:
    """The items with everything that is known about them."""
    if ranking.items is not None:
        return [origins.passage(item) for item in ranking.items]
    passages = [origins.passage(i) for i in ranking.ids]
    if ranking.scores is None:
        return passages
    return [replace(passage, score=score) for passage, score in zip(passages, ranking.scores, strict=True)]


def match_documents(
    passages: Mapping[str, Sequence[Passage]],
    given: Mapping[str, Given],
    origins: Origins,
    options: Options,
    warnings: Sequence[str],
) -> Matched:
    """Each document at the rank of its first chunk, the list compacted; labels collapse with the largest grade."""
    home = {p.id: p.doc for ranking in passages.values() for p in ranking if p.doc is not None}
    labels = {query: document_grades(query, value, origins, home) for query, value in given.items()}
    repeated = [q for q in labels if len({p.id for p in passages.get(q, ())}) < len(passages.get(q, ()))]
    if repeated and options.duplicates == "error":
        refuse_duplicates(repeated, {query: [p.id for p in passages[query]] for query in repeated})
    first = {q: first_of_each(ranking, lambda passage: passage.document) for q, ranking in passages.items()}
    scores = {q: [p.score for p in ranking if p.score is not None] for q, ranking in first.items()}
    averaged = {q: s for q, s in scores.items() if s and options.ties == "expected"}
    documents = {q: [p.document for p in ranking] for q, ranking in first.items()}
    matched = match_ids(documents, labels, options, scores=averaged, warnings=warnings)
    return replace(matched, n_duplicates=sum(len(passages[q]) - len({p.id for p in passages[q]}) for q in repeated))


def document_grades(query: str, value: Given, origins: Origins, home: Mapping[str, str]) -> dict[str, float]:
    """{document: largest grade} of the labels of a query."""
    if isinstance(value, dict):
        return value
    grades: dict[str, float] = {}
    for label in value:
        if label.chunk is not None:
            document = home.get(label.chunk) or origins.document(label.chunk) or label.chunk
        elif label.doc is not None:
            document = label.doc
        else:
            raise InputError(
                f"labels of query {query!r}: the text label {label.text!r} names no doc, so it cannot be counted at "
                "unit=doc: add doc, or use unit=chunk"
            )
        grades[document] = max(label.grade, grades.get(document, label.grade))
    return grades


def unmapped(passages: Mapping[str, Sequence[Passage]], origins: Origins) -> list[str]:
    """The warning about retrieved ids that a chunk map does not know."""
    if origins.chunks is None:
        return []
    ids = {p.id for ranking in passages.values() for p in ranking if p.doc is None and p.id not in origins.chunks}
    if not ids:
        return []
    return [f"{len(ids)} retrieved ids are not in the chunk map and count as their own document, e.g. {min(ids)!r}"]


def chunk_ids_as_documents(
    passages: Mapping[str, Sequence[Passage]], labels: Mapping[str, Sequence[Label]]
) -> list[str]:
    """The warning about plain id labels that name a chunk: a bare id is a document id."""
    home = {p.id: p.document for ranking in passages.values() for p in ranking if p.document != p.id}
    names = [label.doc or "" for given in labels.values() for label in given if label.kind == "doc"]
    hit = [name for name in names if name in home]
    if not hit:
        return []
    return [
        f"{len(hit)} labels name a retrieved chunk as a document, e.g. {hit[0]!r} (of document {home[hit[0]]!r}): "
        f"a bare id is a document id; write {{'chunk': {hit[0]!r}}}"
    ]
