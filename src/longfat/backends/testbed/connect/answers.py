# SPDX-License-Identifier: Apache-2.0
"""The answers of a host, each of which is validated before use. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from longfat.backends.collect import MAX_BYTES
from longfat.system.errors import RigError
from longfat.system.text import sentence

_Name = Annotated[str, Field(max_length=1000)]
_Names = list[_Name]
_Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class HostFailed(RigError):
    """Error of a host that is lost or cannot do its task; ``where`` is its name."""


class _Kernel(BaseModel, strict=True, extra="allow"):
    release: _Name
    ccas: _Names
    features: _Names
    reasons: _Names


class _Card(BaseModel, strict=True, extra="allow"):
    card: _Name
    address: _Name
    max_mtu_bytes: _Count
    speed_bps: _Count | None
    base: _Name | None
    pause: bool


class _Look(BaseModel, strict=True, extra="allow"):
    kernel: _Kernel
    build: _Name
    programs: dict[_Name, _Name | None]
    sysctls: _Names
    cards: dict[_Name, _Card]


class _Ready(BaseModel, strict=True, extra="allow"):
    nodes: dict[_Name, Any]
    interfaces: list[dict[str, Any]]


_STRICT = ConfigDict(strict=True)
_FORMS: Mapping[str, TypeAdapter[Any]] = {
    "here": TypeAdapter(_Name, config=_STRICT),
    "look": TypeAdapter(_Look),
    "clock": TypeAdapter(_Count, config=_STRICT),
    "ready": TypeAdapter(_Ready),
    "paths": TypeAdapter(dict[Annotated[str, Field(pattern="^[0-9]{1,6}$")], _Count | None], config=_STRICT),
    "measured": TypeAdapter(None),
    "done": TypeAdapter(dict[str, Any], config=_STRICT),
    "collect": TypeAdapter(Annotated[int, Field(ge=0, le=MAX_BYTES)], config=_STRICT),
    "end": TypeAdapter(None),
}


def read_message(line: bytes, host: str) -> dict[str, Any]:
    """Return the message in a line. Raises HostFailed if it is malformed, or reports a failure."""
    try:
        message = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise HostFailed(f"it sends something else than a message: {line[:60]!r}", where=host) from error
    if not isinstance(message, dict) or len(message) != 1:
        raise HostFailed(f"it sends something else than a message: {line[:60]!r}", where=host)
    if "failed" in message:
        raise HostFailed(sentence(str(message["failed"])), where=host)
    return message


def checked(verb: str, message: Mapping[str, Any], host: str) -> Any:
    """Return the value of a message, which must be the answer to ``verb``. Raises HostFailed."""
    if verb not in message:
        raise HostFailed(f"it answers {next(iter(message))[:60]!r} to {verb!r}", where=host)
    try:
        _FORMS[verb].validate_python(message[verb])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))[:200]
        raise HostFailed(f"its answer to {verb!r} is wrong: {place}: {first['msg'].lower()}", where=host) from error
    return message[verb]


@contextmanager
def understood(hosts: str) -> Iterator[None]:
    """Convert errors of a block that uses an answer to HostFailed."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise HostFailed(f"its settings cannot be read: {type(error).__name__}: {error}", where=hosts) from error


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number")
