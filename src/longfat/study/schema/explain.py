# SPDX-License-Identifier: Apache-2.0
"""Messages for pydantic's errors: given value, allowed values, nearest match. Validates nothing itself."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache, reduce
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails, core_schema

from longfat.spec.units import Quantity
from longfat.study.schema.fields import WAITING
from longfat.study.schema.names import Finding, Path, nearest, shown, unknown


class JsonSchema(GenerateJsonSchema):
    """pydantic's generator; mappings of free keys keep the schema of their values."""

    def encode_default(self, dft: Any) -> Any:
        """Return a quantity as text, a model as the keys that were set."""
        if isinstance(dft, Quantity):
            return str(dft)
        if isinstance(dft, BaseModel):
            return dft.model_dump(exclude_unset=True)
        return super().encode_default(dft)

    def dict_schema(self, schema: core_schema.DictSchema) -> dict[str, Any]:
        """Return ``additionalProperties`` for the values of free keys, ``propertyNames`` for the keys."""
        keys = self.generate_inner(schema["keys_schema"]) if "keys_schema" in schema else {}
        values = self.generate_inner(schema["values_schema"]) if "values_schema" in schema else {}
        names = {key: keys[key] for key in ("pattern", "enum") if key in keys}
        result: dict[str, Any] = {"type": "object", "additionalProperties": values or True}
        result |= {"propertyNames": names} if names else {}
        return result | ({"minProperties": schema["min_length"]} if schema.get("min_length") else {})


MISSING = "is required here but missing"
_SHAPES = {
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "dict_type": "a mapping of keys to values",
    "tuple_type": "a list",
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
}


_ALTERNATIVE = re.compile(r"(function-\w+|dict|tuple)\[.*\]", re.DOTALL)  # pydantic's name of one type of several


def explain(error: ValidationError, model: type[BaseModel]) -> list[Finding]:
    """Return a finding for each error of data validated against ``model``; one if no type of several fits a value."""
    every = error.errors()
    details = [detail for detail in every if not _follows(detail, every)]
    fitting: dict[Path, str] = {}
    for detail in details:
        for place, name in _alternative(detail):
            if place not in fitting or name != detail["loc"][-1]:  # an error inside of a value: its type fits
                fitting[place] = name
    return [
        _finding(detail, model)
        for detail in details
        if all(fitting[place] == name for place, name in _alternative(detail))
    ]


def _alternative(detail: ErrorDetails) -> list[tuple[Path, str]]:
    """Return the types of several that an error is about, with the places of their values."""
    loc = detail["loc"]
    return [(loc[:at], name) for at, name in enumerate(loc) if isinstance(name, str) and _ALTERNATIVE.fullmatch(name)]


def with_nearest_kinds(error: ValidationError, data: object) -> object | None:
    """Return a copy of the data in which each unknown ``kind`` is the nearest known one; None if no name is near."""
    repaired = deepcopy(data)
    found = False
    for detail in error.errors():
        allowed = _tags(detail)
        near = difflib.get_close_matches(str(detail["input"].get("kind")), allowed, n=1) if allowed else ()
        if near:
            node = reduce(lambda part, key: part[key], _path(detail), cast("Any", repaired))
            node["kind"], found = near[0], True
    return repaired if found else None


def _tags(detail: ErrorDetails) -> list[str]:
    """Return the kinds that a mapping of an unknown kind may have; none for another error."""
    tags = str(detail.get("ctx", {}).get("expected_tags", "")) if isinstance(detail["input"], dict) else ""
    return [tag for tag in re.findall(r"<([^<>]+)>", tags) if tag != WAITING]


def _path(detail: ErrorDetails) -> Path:
    """Return the place of an error in the data, without the tags and types of unions."""
    return tuple(
        part
        for part in detail["loc"]
        if not (isinstance(part, str) and (part[:1] in "<[" or _ALTERNATIVE.fullmatch(part)))
    )


def _follows(detail: ErrorDetails, every: Sequence[ErrorDetails]) -> bool:
    """Return whether an error only follows from others: pydantic calls a list with wrong items too short."""
    place = detail["loc"]
    return detail["type"] == "too_short" and any(
        one["loc"][: len(place)] == place and len(one["loc"]) > len(place) for one in every
    )


def _finding(detail: ErrorDetails, model: type[BaseModel]) -> Finding:
    path = _path(detail)
    given, context, kind = detail["input"], detail.get("ctx", {}), detail["type"]
    if kind == "fault":
        return Finding(path, context["message"], context["hint"])
    if kind == "extra_forbidden":
        *above, key = detail["loc"]  # a key may begin like a tag, as `<<` does
        return _unknown_key(detail["loc"], (*_path({**detail, "loc": tuple(above)}), key), _schema(model))
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _kind(path, given, _tags(detail))
    if kind == "missing":
        return Finding(path, MISSING)
    if kind in _SHAPES:
        return Finding(path, f"{shown(given)} is not {_SHAPES[kind]}")
    if kind == "literal_error":
        allowed = [part.strip("'") for part in context["expected"].replace(" or ", ", ").split(", ")]
        return Finding(path, f"{shown(given)} is not allowed; allowed: {', '.join(allowed)}", nearest(given, allowed))
    if kind == "too_short":
        least, number = context["min_length"], len(given)
        return Finding(path, f"has {number} of at least {least} entries" if number else "is empty; give at least one")
    if kind in ("greater_than_equal", "less_than_equal"):
        bound = f"{context['ge']} or more" if "ge" in context else f"up to {context['le']}"
        return Finding(path, f"{given} is out of range; allowed: {bound}")
    return Finding(path, detail["msg"][:1].lower() + detail["msg"][1:])


def _unknown_key(place: Path, path: Path, schema: Mapping[str, Any]) -> Finding:
    """Return the finding of a key that its mapping does not have; the tags in ``place`` name the mapping's kind."""
    allowed = _keys(schema, schema, place[:-1])
    message, hint = unknown("key", path[-1], allowed)
    kind = place[-2] if len(place) > 1 else None
    if isinstance(kind, str) and ("kind" in allowed or kind.strip("<>") in allowed):
        message = message.replace(";", f" for kind {kind.strip('<>')};", 1)
    return Finding(path, message, hint)


def _kind(path: Path, given: object, allowed: list[str]) -> Finding:
    """Return the finding of a mapping of unknown kind (``fields.by_kind``)."""
    if not isinstance(given, dict):
        return Finding(path, f"{shown(given)} is not {_SHAPES['dict_type']}")
    if "kind" not in given:
        return Finding((*path, "kind"), f"{MISSING}; allowed: {', '.join(allowed)}")
    return Finding((*path, "kind"), *unknown("kind", given["kind"], allowed))


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(schema_generator=JsonSchema)


def _keys(node: Mapping[str, Any], schema: Mapping[str, Any], path: Path) -> list[str]:
    """Return the keys that the JSON Schema allows at an error's place, where a tag selects among alternatives."""
    options = list(_options(node, schema))
    if path and isinstance(path[0], str) and path[0][:1] in "<[":
        tag, path = path[0].strip("<>"), path[1:]
        options = [option for option in options if _is_of(tag, option)] or options
    for option in options:
        if not path and "properties" in option:
            return list(option["properties"])
        if path and (inner := _child(option, path[0])) is not None and (keys := _keys(inner, schema, path[1:])):
            return keys
    return []


def _is_of(kind: str, option: Mapping[str, Any]) -> bool:
    """Return whether an alternative has this ``kind``, or requires the kind as a key, like a figure."""
    return kind in (option.get("properties", {}).get("kind", {}).get("const"), *option.get("required", ()))


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
