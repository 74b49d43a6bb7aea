# SPDX-License-Identifier: Apache-2.0
"""The base of all kinds of queue: keys in a manifest, settings for the kernel, and their read-back.

Must not know any kind.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field

from longfat.spec.runspec import Queue, Scalar
from longfat.spec.units import Duration, Quantity, Ratio
from longfat.study.queues.limit import MOST_PACKETS, Limit, Place
from longfat.study.schema.fields import Closed
from longfat.study.schema.names import Finding

MOST_BYTES = 2**32 - 1  # a limit has 32 bits (struct tc_fifo_qopt in linux/pkt_sched.h)
TIME_SLACK_US = 2  # CoDel keeps times in units of 1024 ns, PIE in 64 ns; both take whole microseconds


class QueueKind(Closed):
    """A kind of queue whose settings are whole numbers: ``limit`` in packets, others by ``longfat.guest.options``.

    ``name`` is its name in the manifest and in tc. ``draws`` states whether it makes random decisions. ``words`` has
    the numbers of settings that are words in a manifest, ``slack`` the kernel's rounding of others. ``counts_packets``
    states whether its limit counts packets.
    """

    name: ClassVar[str]
    draws: ClassVar[bool] = False
    words: ClassVar[Mapping[str, Mapping[str, int]]] = {}
    slack: ClassVar[Mapping[str, int]] = {}
    counts_packets: ClassVar[bool] = True

    kind: str
    limit: Limit = Field(description="limit: packets, or a text such as 150 kB, 30 ms or 1.5 bdp")

    def to_run(self, place: Place) -> Queue:
        """Return the queue of a run, without settings that are left to the kernel."""
        return Queue(self.name, place.packets_in(self.limit), None, self.parameters())

    def findings(self, place: Place) -> Iterator[Finding]:
        """Yield the faults among its keys; paths begin at the queue."""
        return iter(())

    def range_findings(self, place: Place) -> Iterator[Finding]:
        """Yield settings that the kernel's unit cannot have; paths begin at the queue."""
        queue = self.to_run(place)
        for key, number in queue.parameters.items():
            value = getattr(self, key, None)
            if isinstance(value, Ratio) and isinstance(number, int) and value.value % 10_000:
                yield Finding((key,), f"{value.value / 10_000:g} % is not a whole percent, which the kernel counts in")
        for given, most, unit in ((queue.limit_packets, MOST_PACKETS, "packets"), (queue.limit_bytes, MOST_BYTES, "B")):
            if given is not None and given > most:
                yield Finding(("limit",), f"{self.limit} is {given} {unit} here; allowed: up to {most} {unit}")

    def parameters(self) -> dict[str, Scalar]:
        """Return its settings without the limit, in the kernel's units."""
        given = {key: getattr(self, key) for key in type(self).model_fields if key not in ("kind", "limit")}
        return {key: self._number(key, value) for key, value in given.items() if value is not None}

    def _number(self, key: str, value: Any) -> int:
        if key in self.words:
            return self.words[key][value]
        if isinstance(value, Ratio):
            return value.value // 10_000  # percent
        return value.value if isinstance(value, Quantity) else int(value)

    @classmethod
    def misses(cls, name: str, queue: Queue, found: Mapping[str, Any]) -> Iterator[str]:
        """Yield the settings of interface ``name`` that did not read back as declared."""
        for key, declared in queue.parameters.items():
            slack = TIME_SLACK_US if key in cls.times() else cls.slack.get(key, 0)
            value = found.get(key)
            if value is None or abs(value - int(declared)) > slack:
                yield f"{key} of {name} is {value}, declared {declared}"

    @classmethod
    def times(cls) -> frozenset[str]:
        """Return the settings that are lengths of time."""
        return frozenset(key for key, field in cls.model_fields.items() if Duration in _parts(field.annotation))


def _parts(annotation: Any) -> tuple[Any, ...]:
    """Return a type and the types inside it."""
    return (annotation, *(part for inner in typing.get_args(annotation) for part in _parts(inner)))
