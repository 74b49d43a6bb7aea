# SPDX-License-Identifier: Apache-2.0
"""Kinds of queue outside the guest: one class each, listed in ``_EVERY``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import ConfigDict, Field

from longfat.spec.gates import Evidence
from longfat.study.queues.aqm import KINDS as DECIDING
from longfat.study.queues.fifo import Bfifo, Pfifo
from longfat.study.queues.kind import QueueKind
from longfat.study.queues.limit import Limit
from longfat.study.queues.red import Red
from longfat.study.schema.fields import REFERENCE, WAITING, by_kind

_EVERY: tuple[type[QueueKind], ...] = (Pfifo, Bfifo, Red, *DECIDING)

KINDS: dict[str, type[QueueKind]] = {kind.name: kind for kind in _EVERY}
"""Every kind by its name."""


class Waiting(QueueKind):
    """A queue whose kind is a factor's value: its keys depend on the point of the sweep."""

    model_config = ConfigDict(extra="allow")
    name: ClassVar[str] = WAITING
    counts_packets: ClassVar[bool] = False

    kind: Annotated[str, Field(pattern=REFERENCE.pattern)]
    limit: Limit = 1


if TYPE_CHECKING:
    AnyQueue = QueueKind
else:
    # The type of a key with a queue of any kind.
    AnyQueue = by_kind({**KINDS, WAITING: Waiting}, default="pfifo")


def settings_hold(evidence: Evidence) -> Iterator[str]:
    """Each setting of a shaped interface's queue except its limit reads back as declared."""
    for port, found in evidence.present_ports():
        queue = port.egress.queue
        if port.egress.rate_bps is not None and found["queue_kind"] == queue.kind:
            yield from KINDS[queue.kind].misses(port.name, queue, found.get("queue_parameters", {}))
