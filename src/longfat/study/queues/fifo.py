# SPDX-License-Identifier: Apache-2.0
"""FIFO queues, which drop packets only when they are full."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from longfat.spec.runspec import Queue
from longfat.study.queues.kind import QueueKind
from longfat.study.queues.limit import Place


class Pfifo(QueueKind):
    """A FIFO with a limit in packets."""

    examples: ClassVar[tuple[str, ...]] = ("{limit: 1.5 bdp}",)

    name: ClassVar[str] = "pfifo"

    kind: Literal["pfifo"] = Field(default="pfifo", description="first in, first out, tail drop, tc-pfifo(8)")


class Bfifo(QueueKind):
    """A FIFO with a limit in bytes of whole frames."""

    examples: ClassVar[tuple[str, ...]] = ("{kind: bfifo, limit: 150 kB}",)

    name: ClassVar[str] = "bfifo"
    counts_packets: ClassVar[bool] = False

    kind: Literal["bfifo"] = Field(description="first in, first out, limit in bytes, tc-bfifo(8)")

    def to_run(self, place: Place) -> Queue:
        """Return the queue of a run, with room for at least one full packet."""
        return Queue("bfifo", None, max(place.frame_bytes, place.bytes_in(self.limit)))
