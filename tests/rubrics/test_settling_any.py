"""No reply that the schema lets through breaks settling."""

from __future__ import annotations

import json
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from rubrics.model import Check, Rubric, Scale
from rubrics.outputs import output_model
from tests.rubrics.items import Case, Point, Text
from tests.rubrics.judged_cases import BUNDLED, LABELLED, judged, simple

WORDS = st.sampled_from(
    ["", "d1", "d2", "Nine hours", "stays hot for nine hours", "It burns ash wood.", "…", "a * b_c", "1902"]
)


def values(annotation: Any) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, UnionType):
        return st.one_of(*(values(one) for one in arguments))
    if origin is list:
        return st.lists(values(arguments[0]), max_size=3)
    if annotation is type(None):
        return st.none()
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        return st.integers(0, 3)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return st.fixed_dictionaries(
            {name: values(field.annotation) for name, field in annotation.model_fields.items()}
        )
    return WORDS | st.text(max_size=12)


SETTLED = [BUNDLED[name] for name in LABELLED] + [
    simple("ordinal", 0, 6), simple("binary", 0, 1), BUNDLED["faithfulness"].model_copy(update={"scale": Scale(min=1, max=3, pass_at=2), "bands": {}}),
    simple("checklist", checks=(Check(id="d1", ask="?"), Check(id="d2", ask="?", weight=0))),
]  # fmt: skip
ITEMS = [
    Case(),
    Case(answer="", contexts=()),
    Case(answer="无法确定。", reference=None, nuggets=(Point("x"),)),
    Case(contexts=(Text("d1", ""),)),
]


@pytest.mark.parametrize("rubric", SETTLED, ids=lambda rubric: f"{rubric.id}-{rubric.scale.max}")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_reply_that_the_schema_lets_through_breaks_settling(rubric: Rubric, data: st.DataObject) -> None:
    body, item = data.draw(values(output_model(rubric))), data.draw(st.sampled_from(ITEMS))
    outcome = judged(rubric, item, body)
    assert (outcome.score is None) == (outcome.status != "scored")
    assert (outcome.reason is None) == (outcome.status == "scored")
    assert (outcome.error_kind is None) == (outcome.status != "error")
    if outcome.score is not None:
        assert rubric.scale.min <= outcome.score <= rubric.scale.max
        assert 0 <= (outcome.normalized if outcome.normalized is not None else -1) <= 1
        assert outcome.passed == (outcome.score >= rubric.scale.pass_at)
    assert len(set(outcome.flags)) == len(outcome.flags)
    assert set(outcome.errors) <= set(rubric.errors)
    json.dumps(dict(outcome.details), allow_nan=False)
