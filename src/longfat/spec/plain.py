# SPDX-License-Identifier: Apache-2.0
"""Conversion of dataclasses to plain data for JSON, and back."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any

Scalar = bool | int | float | str

LATER = {"later": True}
"""Marks a field that was added later: its default is left out of the JSON text, so that earlier runs keep their id."""


def canonical_json(data: object) -> str:
    """Return the canonical JSON text of ``data``, from which digests are computed."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def plain(value: Any) -> Any:
    """Convert dataclasses, tuples and scalars to plain JSON data."""
    if dataclasses.is_dataclass(value):
        fields = ((f, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {f.name: plain(item) for f, item in fields if not (f.metadata.get("later") and item == f.default)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def build(kind: Any, value: Any) -> Any:
    """Convert plain JSON data to the dataclass, tuple or scalar ``kind``. Raises TypeError."""
    origin = typing.get_origin(kind)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise TypeError(f"{kind.__name__} needs an object, not {value!r}")
        hints = typing.get_type_hints(kind)
        unknown = set(value) - set(hints)
        if unknown:
            raise TypeError(f"{kind.__name__} has no field {sorted(unknown)[0]!r}")
        return kind(**{key: build(hints[key], item) for key, item in value.items()})
    if origin is tuple:
        return tuple(build(typing.get_args(kind)[0], item) for item in value)
    if origin in (typing.Union, types.UnionType):
        options = [option for option in typing.get_args(kind) if option is not type(None)]
        return value if value is None or len(options) > 1 else build(options[0], value)
    return value
