"""From an output model to what is sent (a strict JSON schema), and from a reply to a validated object.

A reply is accepted when it is one JSON object, alone or in one code fence, after an optional think block. Anything else
(a second object, text around it, NaN, a key given twice) is sent back to the model with the reason.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from functools import lru_cache
from typing import Any

import orjson
from pydantic import BaseModel, create_model

from judge.llm.library import instructor

THINK = re.compile(r"\A<think(?:ing)?>.*?</think(?:ing)?>", re.S)
FENCE = re.compile(r"\A```[A-Za-z]*\s*\n(.*?)\n?\s*```\Z", re.S)
BLANK = " \t\r\n\ufeff\u200b"


def validated(output: type[BaseModel], text: str) -> dict[str, Any]:
    """The reply as the plain JSON of an `output` object.

    Raises pydantic.ValidationError or json.JSONDecodeError, whose message is fit to be sent back to the model.
    """
    given, body = sole_object(text)
    kept = output.model_validate_json(body, strict=True).model_dump(mode="json")
    if path := coerced(given, kept):
        raise json.JSONDecodeError(f"{path}: a value of another type was given", body, 0)
    return kept


@lru_cache(maxsize=256)
def answer_model(output: type[BaseModel]) -> Any:
    """The class handed to instructor for `output`: its name, `sent_schema` as schema, `validated` as parser.

    Instructor builds a new class per call from any other class, and walks all fields of this one five times per call:
    hence one class per output model, without fields.
    """
    schema = sent_schema(output)

    class Answer(instructor().OpenAISchema):  # type: ignore[misc]
        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return dict(schema)  # instructor writes a description into it in tools mode

        @classmethod
        def model_validate_json(cls, json_data: Any, **kwargs: Any) -> Any:
            return validated(output, json_data)

    return create_model(output.__name__, __base__=Answer, __doc__=output.__doc__, __module__=__name__)


def sole_object(text: str) -> tuple[dict[str, Any], str]:
    """The one JSON object that `text` consists of, as values and as text, think block and code fence removed.

    Raises json.JSONDecodeError when there is no object, more than one, or anything around it; also for NaN, Infinity,
    numbers too large for a float and keys given twice.
    """
    body = THINK.sub("", text.strip(BLANK)).strip(BLANK)
    if not body.startswith(("{", "`")) and "</think>" in body:  # the opening tag was part of the prompt
        body = body.partition("</think>")[2].strip(BLANK)
    if fenced := FENCE.match(body):
        body = fenced[1].strip(BLANK)
    if not body.startswith("{"):
        raise json.JSONDecodeError("the reply must be one JSON object and nothing else", body, 0)
    try:
        given, end = DECODER.raw_decode(body)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", body, 0) from None
    if body[end:].strip(BLANK):
        raise json.JSONDecodeError("the reply must be one JSON object; there is more after it", body, end)
    return given, body


def coerced(given: Any, kept: Any, path: str = "reply") -> str | None:
    """Where a boolean or a fraction was taken for a whole number (true for 1, 4.0 for 4), or None.

    Pydantic compares the values of a Literal by equality, and in Python True == 1 == 1.0, strict mode or not.
    """
    if type(given) in (bool, float):
        return path if type(kept) is int else None
    if isinstance(given, dict) and isinstance(kept, dict):
        pairs = [(value, kept[key], f"{path}.{key}") for key, value in given.items() if key in kept]
    elif isinstance(given, list) and isinstance(kept, list):
        pairs = [(a, b, f"{path}[{n}]") for n, (a, b) in enumerate(zip(given, kept, strict=False))]
    else:
        return None
    return next((found for pair in pairs if (found := coerced(*pair))), None)


def _constant(name: str) -> float:
    raise json.JSONDecodeError(f"{name} is not a JSON number", name, 0)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise json.JSONDecodeError(f"number out of range: {text[:20]}", text, 0)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise json.JSONDecodeError("a key is given twice", ", ".join(key for key, _ in pairs), 0)
    return found


DECODER = json.JSONDecoder(parse_constant=_constant, parse_float=_number, object_pairs_hook=_once)


@lru_cache(maxsize=256)
def sent_schema(output: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema as sent: every object closed, every key required, no titles or defaults inside.

    References with neighbours are written out and `oneOf` becomes `anyOf`, which strict decoders insist on.
    """
    schema = output.model_json_schema()
    definitions = schema.get("$defs", {})
    sent: dict[str, Any] = _closed(schema, definitions)
    sent["title"] = output.__name__
    return sent


def schema_hash(output: type[BaseModel]) -> str:
    """SHA-256 of the sent schema as it is, unsorted: the order of the fields is the order in which the model thinks."""
    return hashlib.sha256(orjson.dumps(sent_schema(output))).hexdigest()


@lru_cache(maxsize=256)
def can_be_strict(output: type[BaseModel]) -> bool:
    """False when the schema has an object with free keys, which strict decoders do not take."""
    return _all_closed(sent_schema(output))


def _all_closed(node: Any) -> bool:
    if isinstance(node, list):
        return all(map(_all_closed, node))
    if not isinstance(node, dict):
        return True
    if node.get("type") == "object" and node.get("additionalProperties") is not False:
        return False
    return all(map(_all_closed, node.values()))


def _closed(node: Any, definitions: dict[str, Any], inside: frozenset[str] = frozenset()) -> Any:
    if isinstance(node, list):
        return [_closed(item, definitions, inside) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node and len(node) > 1:
        name = node["$ref"].rpartition("/")[2]
        neighbours = {key: value for key, value in node.items() if key != "$ref"}
        if name in inside:  # recursive: the reference stays, what stood beside it goes
            return {"$ref": node["$ref"]}
        node, inside = {**definitions[name], **neighbours}, inside | {name}
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            out[key] = {name: _closed(part, definitions, inside) for name, part in value.items()}
        elif key in ("enum", "const", "examples"):
            out[key] = value
        elif key == "oneOf":
            out["anyOf"] = _closed(value, definitions, inside)
        elif key not in ("title", "default", "discriminator", "required"):
            out[key] = _closed(value, definitions, inside)
    if "properties" in out:
        out["required"] = list(out["properties"])
        out["additionalProperties"] = False
    return out
