# SPDX-License-Identifier: Apache-2.0
"""Limits of queues as a manifest gives them: packets, a size, a time, or a multiple of the BDP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

from longfat.spec.network import frame_bytes
from longfat.spec.runspec import Egress
from longfat.spec.units import Duration, Quantity, Rate, Size
from longfat.study.schema import fields as f
from longfat.study.schema.names import shown
from longfat.system.errors import StudyError

MOST_PACKETS = 1_000_000


@dataclass(frozen=True, order=True)
class Products(Quantity):
    """Multiples of a path's BDP, in thousandths."""

    dimension = "a multiple of the BDP"
    example = "1.5 bdp"
    units: ClassVar[Mapping[str, int]] = {"bdp": 1000}

    def __str__(self) -> str:
        return f"{self.value / 1000:g} bdp"


@dataclass(frozen=True)
class Place:
    """The place of a queue: its port's rate, the path's round-trip time, the MTU of the links."""

    rate: Rate
    rtt: Duration
    mtu_bytes: int

    @property
    def frame_bytes(self) -> int:
        """Length of a full packet as the rate counts it."""
        return frame_bytes(self.mtu_bytes, Egress())

    def bytes_in(self, limit: int | Quantity) -> int:
        """Return a limit in bytes of frames, rounded down; a bare number counts full packets."""
        if isinstance(limit, int):
            return limit * self.frame_bytes
        if isinstance(limit, Size):
            return limit.value
        time_us = Fraction(limit.value * self.rtt.value, 1000) if isinstance(limit, Products) else limit.value
        return int(time_us * self.rate.value / 8_000_000)

    def us_in(self, limit: int | Quantity) -> int:
        """Return the time in which a full queue drains, in microseconds, rounded down, at least 1."""
        return (
            limit.value if isinstance(limit, Duration) else max(1, self.bytes_in(limit) * 8_000_000 // self.rate.value)
        )

    def packets_in(self, limit: int | Quantity) -> int:
        """Return a limit in full packets, rounded down, at least 1."""
        return limit if isinstance(limit, int) else max(1, self.bytes_in(limit) // self.frame_bytes)


class _LimitText:
    """Annotation of a limit: a whole number of packets, or a text with a unit."""

    kinds: tuple[type[Quantity], ...] = (Products, Duration, Size)

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, _schema: Any, _handler: Any) -> dict[str, Any]:
        units = "|".join(unit for kind in self.kinds for unit in kind.units)
        text = {"type": "string", "pattern": rf"^\s*\+?[0-9]{{1,15}}(\.[0-9]{{1,15}})?\s*({units})\s*$"}
        return {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MOST_PACKETS}, text]}

    def read(self, given: object) -> int | Quantity:
        if isinstance(given, int) and not isinstance(given, bool):
            if 1 <= given <= MOST_PACKETS:
                return given
            raise f.fault(f"{given} is out of range; allowed: 1 to {MOST_PACKETS} packets")
        allowed = 'write packets, or a text such as "150 kB", "30 ms" or "1.5 bdp"'
        if not isinstance(given, str):
            raise f.fault(f"{shown(given)} is not a limit of a queue", allowed)
        for kind in self.kinds:
            if given.strip().lstrip("+.0123456789 ") in kind.units:
                try:
                    quantity = kind.parse(given)
                except StudyError as error:
                    raise f.fault(error.message, error.hint) from error
                if quantity.value:
                    return quantity
                raise f.fault(f"{shown(given)} is 0; a queue holds at least one packet")
        raise f.fault(f"{shown(given)} is not a limit of a queue", allowed)


Limit = Annotated[int | Quantity, _LimitText()]
