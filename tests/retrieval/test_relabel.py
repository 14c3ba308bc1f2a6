"""Chunk labels turned into labels that survive a re-chunking."""

from __future__ import annotations

import pytest

from judge.cases import Case, Label
from judge.errors import InputError, UsageError
from judge.retrieval import evaluate, from_cases
from judge.retrieval.relabel import relabel_cases

OLD = {
    "c1": {"doc": "D1", "start": 0, "end": 50, "text": "The warranty period is 24 months from purchase."},
    "c2": {"doc": "D1", "start": 50, "end": 90, "text": "Damage caused by misuse is not covered."},
}


def case(*relevant: object) -> Case:
    return Case(id="1", question="?", relevant=list(relevant))


@pytest.mark.parametrize(
    ("to", "label"),
    [
        ("offset", Label(doc="D1", start=0, end=50, grade=2)),
        ("text", Label(doc="D1", text=OLD["c1"]["text"], grade=2)),
        ("doc", Label(doc="D1", grade=2)),
    ],
)
def test_each_form_keeps_the_grade(to: str, label: Label) -> None:
    made, changed = relabel_cases([case({"chunk": "c1", "grade": 2}, "D7")], OLD, to=to)
    assert made[0].relevant == (label, Label(doc="D7"))
    assert changed == 1


def test_the_new_labels_find_the_new_chunks() -> None:
    new = [{"id": "n1", "doc": "D1", "start": 0, "end": 30}, {"id": "n2", "doc": "D1", "start": 30, "end": 90}]
    before = Case(id="1", question="?", retrieved=new, relevant=[{"chunk": "c1"}, {"chunk": "c2"}])
    with pytest.raises(InputError, match="stale chunk labels"):
        evaluate(*from_cases([before]))
    after, _ = relabel_cases([before], OLD, to="offset")
    found = evaluate(*from_cases(after)).matches["1"]
    assert [(match.found_at, match.item) for match in found] == [(2, "n2"), (2, "n2")]


def test_plain_ids_are_chunks_only_when_told() -> None:
    assert relabel_cases([case("c1")], OLD)[0][0].relevant == (Label(doc="c1"),)
    made, changed = relabel_cases([case("c1")], OLD, plain_ids_are_chunks=True)
    assert (made[0].relevant, changed) == ((Label(doc="D1", start=0, end=50),), 1)


def test_a_text_may_come_from_the_cases_own_contexts() -> None:
    given = Case(id="1", question="?", contexts=[{"id": "c9", "text": "Shipping is free."}], relevant=[{"chunk": "c9"}])
    assert relabel_cases([given], {}, to="text")[0][0].relevant == (Label(text="Shipping is free."),)


def test_every_label_that_cannot_be_turned_is_named() -> None:
    with pytest.raises(InputError, match=r"(?s)^2 chunk labels.*case '1': chunk 'c8' is not in .*chunk 'c9' is not in"):
        relabel_cases([case({"chunk": "c8"}, {"chunk": "c1"}, {"chunk": "c9"})], OLD)
    with pytest.raises(InputError, match="chunk 'c1' has no start and end"):
        relabel_cases([case({"chunk": "c1"})], {"c1": "D1"})
    with pytest.raises(UsageError, match="to is 'offsets'"):
        relabel_cases([], OLD, to="offsets")
