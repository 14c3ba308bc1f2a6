"""Rankings and labels as users have them, turned into one shape per query; nothing is guessed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from judge.errors import InputError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from judge.cases import Case, Label, RetrievedItem

Part = TypeVar("Part", bound="BaseModel")

QUERY_COLUMNS = ("query_id", "qid", "query", "case_id")
ID_COLUMNS = ("doc_id", "docno", "docid", "chunk_id", "id")
GRADE_COLUMNS = ("grade", "relevance", "rel", "label")


@dataclass(frozen=True, slots=True)
class Ranked:
    """A ranking with scores: ids in the order given, one finite score each."""

    ids: list[str]
    scores: list[float]


@dataclass(frozen=True, slots=True)
class Ranking:
    """One query's list: ids in order, scores when every item has one, the full items when they hold more than that."""

    ids: list[str]
    scores: list[float] | None = None
    items: list[RetrievedItem] | None = None


def id_text(value: Any, where: str) -> str:
    """An id as text: whole numbers are written out, everything else but non-empty text is refused."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if hasattr(value, "item") and isinstance(value.item(), int) and not isinstance(value.item(), bool):
        return str(value.item())
    raise InputError(f"{where}: {value!r} ({type(value).__name__}) is no id: ids are non-empty text or whole numbers")


def number(value: Any, name: str, where: str) -> float:
    """A finite number as float (a grade or a score)."""
    try:
        made = float(value) if not isinstance(value, str | bytes) else math.nan
    except (TypeError, ValueError):
        made = math.nan
    if not math.isfinite(made):
        raise InputError(f"{where}: {name} is {value!r}: give a finite number")
    return made


def by_query(given: Any, name: str) -> Mapping[str, Any]:
    """The mapping query id -> value with text keys; a DataFrame is grouped by its query column."""
    if hasattr(given, "columns") and hasattr(given, "to_dict"):
        return _from_frame(given, name)
    if not isinstance(given, Mapping):
        raise InputError(f"{name} is a {type(given).__name__}: give a mapping of query id to its list, or a DataFrame")
    if set(map(type, given)) <= {str}:
        return given
    made = {id_text(query, name): value for query, value in given.items()}
    if len(made) < len(given):
        raise InputError(f"{name}: a query id is given both as text and as a number: use one form")
    return made


def ranking_of(query: str, value: Any) -> Ranking:
    """A ranking from a list of ids or items, an id -> score mapping, or `Ranked`."""
    where = f"ranking of query {query!r}"
    if isinstance(value, Ranked):
        return Ranking(value.ids, value.scores)
    if isinstance(value, Mapping):
        return Ranking([id_text(i, where) for i in value], [number(s, "score", where) for s in value.values()])
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(f"{where} is {value!r}: give a list of ids, such as ['D1', 'D7']")
    listed = list(value)
    if all(not _is_item(entry) for entry in listed):
        return Ranking([id_text(entry, where) for entry in listed])
    items = [_item(entry, where) for entry in listed]
    ids = [item.id for item in items]
    scored = [item.score for item in items if item.score is not None]
    if scored and len(scored) < len(items):
        raise InputError(f"{where}: {len(scored)} of {len(items)} items have a score: give all of them one, or none")
    plain = all(item.text is None and item.doc is None and item.start is None for item in items)
    return Ranking(ids, scored or None, None if plain else items)


def labels_of(query: str, value: Any) -> dict[str, float] | list[Label]:
    """Labels from ids, an id -> grade mapping, or label objects; {id: grade} when ids are all there is."""
    where = f"labels of query {query!r}"
    if isinstance(value, Mapping):
        grades = {id_text(i, where): grade_of(g, i, where) for i, g in value.items()}
        if len(grades) < len(value):
            raise InputError(f"{where}: an id is given both as text and as a number: use one form")
        return grades
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(f"{where} is {value!r}: give a list of ids, a mapping id -> grade, or a list of label objects")
    listed = list(value)
    if all(not _is_item(entry) for entry in listed):
        return dict.fromkeys((id_text(entry, where) for entry in listed), 1.0)
    return [_label(entry, where) for entry in listed]


def grade_of(value: Any, label: Any, where: str) -> float:
    """A grade as finite number; the message for a label object given in place of a list says so."""
    if isinstance(value, str) and label in ("doc", "chunk", "text"):
        raise InputError(f"{where} look like one label object: put it in a list, [{{{label!r}: ...}}]")
    return number(value, f"grade of {label!r}", where)


def _is_item(entry: Any) -> bool:
    return isinstance(entry, Mapping) or hasattr(entry, "id") or hasattr(entry, "grade")


def _item(entry: Any, where: str) -> RetrievedItem:
    from judge.cases import RetrievedItem

    if isinstance(entry, RetrievedItem):
        return entry
    if not isinstance(entry, Mapping):
        return RetrievedItem(id=id_text(entry, where))
    return _validated(RetrievedItem, {**entry, "id": id_text(entry.get("id"), where)}, where)


def _label(entry: Any, where: str) -> Label:
    from judge.cases import Label

    if isinstance(entry, Label):
        return entry
    if not isinstance(entry, Mapping):
        return Label(doc=id_text(entry, where))
    ids = {key: id_text(entry[key], where) for key in ("doc", "chunk") if entry.get(key) is not None}
    return _validated(Label, {**entry, **ids}, where)


def _validated(model: type[Part], fields: Mapping[str, Any], where: str) -> Part:
    from pydantic import ValidationError

    try:
        return model.model_validate(fields)
    except ValidationError as error:
        rows = [f"{'.'.join(map(str, e['loc'])) or 'label'}: {e['msg']} (seen {e['input']!r})" for e in error.errors()]
        raise InputError(f"{where}: {len(rows)} problems in {dict(fields)!r}", rows) from None


def _from_frame(frame: Any, name: str) -> dict[str, Any]:
    query = _column(frame, QUERY_COLUMNS, name)
    ids = [id_text(i, name) for i in frame[_column(frame, ID_COLUMNS, name)].tolist()]
    queries = [id_text(q, name) for q in frame[query].tolist()]
    if name == "labels":
        column = next((c for c in GRADE_COLUMNS if c in frame.columns), None)
        grades = [1.0] * len(ids) if column is None else frame[column].tolist()
        labels: dict[str, dict[str, float]] = {}
        for q, i, grade in zip(queries, ids, grades, strict=True):
            given = labels.setdefault(q, {})
            if given.setdefault(i, number(grade, f"grade of {i!r}", f"labels of query {q!r}")) != grade:
                raise InputError(f"labels of query {q!r}: {i!r} has two grades, {given[i]:g} and {grade}: keep one")
        return labels
    return _rows_to_rankings(frame, queries, ids)


def _rows_to_rankings(frame: Any, queries: Sequence[str], ids: Sequence[str]) -> dict[str, Any]:
    order = list(range(len(ids)))
    if "rank" in frame.columns:
        ranks = frame["rank"].tolist()
        order.sort(key=lambda i: number(ranks[i], "rank", f"ranking of query {queries[i]!r}"))
    scores = frame["score"].tolist() if "score" in frame.columns else None
    rankings: dict[str, Ranked] = {}
    for i in order:
        ranked = rankings.setdefault(queries[i], Ranked([], []))
        ranked.ids.append(ids[i])
        if scores is not None:
            ranked.scores.append(number(scores[i], "score", f"ranking of query {queries[i]!r}"))
    if scores is None:
        return {q: ranked.ids for q, ranked in rankings.items()}
    return rankings if "rank" in frame.columns else {q: by_score(ranked) for q, ranked in rankings.items()}


def by_score(ranked: Ranked) -> Ranked:
    """The same ranking from the highest score down; equal scores keep their order."""
    order = sorted(range(len(ranked.ids)), key=lambda i: -ranked.scores[i])
    return Ranked([ranked.ids[i] for i in order], [ranked.scores[i] for i in order])


def _column(frame: Any, names: Sequence[str], name: str) -> str:
    found = next((column for column in names if column in frame.columns), None)
    if found is None:
        seen = ", ".join(map(str, frame.columns))
        raise InputError(f"{name}: none of {', '.join(names)} is among the columns {seen}: rename one")
    return found


def from_cases(cases: Iterable[Case]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rankings and labels of cases, by case id.

    The ranking is `retrieved`, else the contexts; a case where neither was recorded has no ranking. Retrieved ids
    that are also contexts take text, document and offsets from there. A case without `relevant` has no labels; an
    empty `relevant` says that nothing is relevant.
    """
    rankings: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    for case in cases:
        ranking = case.ranking()
        if ranking is not None:
            contexts = {context.id: context for context in case.contexts or ()}
            rankings[case.id] = [_filled(item, contexts.get(item.id)) for item in ranking]
        if case.relevant is not None:
            labels[case.id] = list(case.relevant)
    return rankings, labels


def _filled(item: RetrievedItem, context: Any) -> RetrievedItem:
    if context is None:
        return item
    empty = [name for name in ("text", "doc", "start", "end") if getattr(item, name) is None]
    return item.model_copy(update={name: getattr(context, name) for name in empty})
