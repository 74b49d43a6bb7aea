# SPDX-License-Identifier: Apache-2.0
"""Dataclasses as plain data for JSON, and back."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any

Scalar = bool | int | float | str

LATER = {"later": True}
"""Metadata of a field that format 1 lacked at first: its default is left out of the JSON text, so that older runs keep
their identity."""


def canonical_json(data: object) -> str:
    """Return the canonical JSON text of ``data``, for digests."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def plain(value: Any) -> Any:
    """Return dataclasses, tuples and scalars as plain JSON data."""
    if dataclasses.is_dataclass(value):
        fields = ((f, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {f.name: plain(item) for f, item in fields if not (f.metadata.get("later") and item == f.default)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def build(kind: Any, value: Any) -> Any:
    """Build the dataclass, tuple or scalar ``kind`` from plain JSON data."""
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
