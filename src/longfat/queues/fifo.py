# SPDX-License-Identifier: Apache-2.0
"""Queues that drop only what they have no room for."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from longfat.queues.kind import QueueKind
from longfat.queues.limit import Place
from longfat.runspec import Queue


class Pfifo(QueueKind):
    """The queue of a bottleneck that drops only what it has no room for."""

    examples: ClassVar[tuple[str, ...]] = ("{limit: 1.5 bdp}",)

    name: ClassVar[str] = "pfifo"

    kind: Literal["pfifo"] = Field(default="pfifo", description="first in, first out, tail drop, tc-pfifo(8)")


class Bfifo(QueueKind):
    """The same, with a limit in bytes of whole frames."""

    examples: ClassVar[tuple[str, ...]] = ("{kind: bfifo, limit: 150 kB}",)

    name: ClassVar[str] = "bfifo"
    counts_packets: ClassVar[bool] = False

    kind: Literal["bfifo"] = Field(description="first in, first out, limit in bytes, tc-bfifo(8)")

    def to_run(self, place: Place) -> Queue:
        """Its limit in bytes, room for one full packet at least."""
        return Queue("bfifo", None, max(place.frame_bytes, place.bytes_in(self.limit)))
