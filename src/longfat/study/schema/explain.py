# SPDX-License-Identifier: Apache-2.0
"""Messages for pydantic's errors: given value, allowed values, nearest match. Validates nothing itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from longfat.study.schema.fields import WAITING
from longfat.study.schema.json_schema import JsonSchema
from longfat.study.schema.names import Finding, Path, nearest, shown, unknown

_SHAPES = {
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "dict_type": "a mapping of keys to values",
    "tuple_type": "a list",
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
}


def explain(error: ValidationError, data: object, model: type[BaseModel]) -> list[Finding]:
    """Return a finding for each error of ``data`` validated against ``model``."""
    return [_finding(detail, data, model) for detail in error.errors() if not _follows(detail)]


def _follows(detail: ErrorDetails) -> bool:
    """Return whether an error only follows from others: pydantic calls a list with wrong items too short."""
    return detail["type"] == "too_short" and bool(detail["input"])


def _finding(detail: ErrorDetails, data: object, model: type[BaseModel]) -> Finding:
    path = tuple(part for part in detail["loc"] if not (isinstance(part, str) and part[:1] in "<["))
    given, context, kind = detail["input"], detail.get("ctx", {}), detail["type"]
    if kind == "fault":
        return Finding(path, context["message"], context["hint"])
    if kind == "extra_forbidden":
        return _unknown_key(path, data, model)
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _kind(path, given, str(context.get("expected_tags", "")))
    if kind == "missing":
        return Finding(path, "is required here but missing")
    if kind in _SHAPES:
        return Finding(path, f"{shown(given)} is not {_SHAPES[kind]}")
    if kind == "literal_error":
        allowed = [part.strip("'") for part in context["expected"].replace(" or ", ", ").split(", ")]
        return Finding(path, f"{shown(given)} is not allowed; allowed: {', '.join(allowed)}", nearest(given, allowed))
    if kind == "too_short":
        return Finding(path, "is empty; give at least one")
    if kind in ("greater_than_equal", "less_than_equal"):
        bound = f"{context['ge']} or more" if "ge" in context else f"up to {context['le']}"
        return Finding(path, f"{given} is out of range; allowed: {bound}")
    return Finding(path, detail["msg"][:1].lower() + detail["msg"][1:])


def _unknown_key(path: Path, data: object, model: type[BaseModel]) -> Finding:
    schema = _schema(model)
    allowed = _keys(schema, schema, data, path[:-1])
    return Finding(path, *unknown("key", path[-1], allowed))


def _kind(path: Path, given: object, tags: str) -> Finding:
    """Return the finding of a mapping of unknown kind (``fields.by_kind``); ``tags`` lists the known kinds."""
    allowed = [tag for tag in re.findall(r"<([^<>]+)>", tags) if tag != WAITING]
    if not isinstance(given, dict):
        return Finding(path, f"{shown(given)} is not {_SHAPES['dict_type']}")
    if "kind" not in given:
        return Finding((*path, "kind"), f"is required here but missing; allowed: {', '.join(allowed)}")
    return Finding((*path, "kind"), *unknown("kind", given["kind"], allowed))


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(schema_generator=JsonSchema)


def _keys(node: Mapping[str, Any], schema: Mapping[str, Any], data: Any, path: Path) -> list[str]:
    """Return the keys that the JSON Schema allows at a path; the ``kind`` in the data selects among alternatives."""
    for option in _options(node, schema):
        properties = option.get("properties", {})
        kind = properties.get("kind", {}).get("const")
        if kind and kind != data.get("kind"):
            continue
        if not path and properties:
            return list(properties)
        if path and (inner := _child(option, path[0])) is not None:
            keys = _keys(inner, schema, data[path[0]], path[1:])
            if keys:
                return keys
    return []


def _child(option: Mapping[str, Any], part: str | int) -> Mapping[str, Any] | None:
    """Return the schema one step down: an item of a list, a named key, or a key of a free mapping."""
    if isinstance(part, int):
        inner = option.get("items")
    else:
        inner = option.get("properties", {}).get(part, option.get("additionalProperties"))
    return inner if isinstance(inner, dict) else None


def _options(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the node itself, or all its alternatives."""
    if "$ref" in node:
        yield from _options(schema["$defs"][node["$ref"].rsplit("/", 1)[1]], schema)
        return
    alternatives = [*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())]
    for alternative in alternatives:
        yield from _options(alternative, schema)
    if not alternatives:
        yield node
