# SPDX-License-Identifier: Apache-2.0
"""Bulk traffic: flows of iperf2. Every backend has them, and everything else about a run may refer to them.

So their gates are among those of every run (``longfat.gates``) and their table is read by ``longfat.dataset`` itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from longfat.manifest import fields as f
from longfat.runspec import Flow as Record
from longfat.traffic.kind import Around, Cost, Path, Section, Sides, TcpEntry
from longfat.units import Duration

LINUX_DOUBLING = 2  # the kernel doubles the window that is asked for (socket(7))


class Flow(TcpEntry):
    """TCP traffic from one host to another for a given time, or several such flows."""

    window: f.Window | None = Field(
        default=None,
        description="socket buffer of both ends; limits of the hosts follow it unless `sysctls` has them (default: "
        "auto-tuning)",
    )
    send_window: f.Window | None = Field(
        default=None, description="socket buffer of the sending end alone (default: that of `window`)"
    )
    start_jitter: f.Delay = Field(
        default=Duration(0),
        description="largest random addition to `start`, drawn for each repetition (default 0 s)",
    )
    streams: f.Count = Field(default=1, description="parallel connections (default 1)")
    transfer: f.Transfer | None = Field(
        default=None,
        description="what a connection carries before another follows it, until `duration` is over (default: one "
        "connection for all of the duration)",
    )
    count: f.Count | None = Field(
        default=None,
        description="so many flows alike, called NAME1, NAME2, ...: the first is from `from` to `to`, the others from "
        "and to the hosts that follow these in turn",
    )

    @property
    def draws(self) -> bool:
        """The jitter of its start."""
        return bool(self.start_jitter.value)

    def each(self, sides: Sides) -> Iterator[Flow]:
        """The flows that an entry with a count stands for, or the only one."""
        if self.count is None:
            yield self
            return
        side = {host: hosts for hosts in sides for host in hosts}
        for number in range(self.count):
            sender, receiver = (
                side[first][(side[first].index(first) + number) % len(side[first])]
                for first in (self.sender, self.receiver)
            )
            name = f"{self.name}{number + 1}"
            yield self.model_copy(update={"name": name, "sender": sender, "receiver": receiver, "count": None})


class Flows(Section[Flow, Record]):
    """See the module."""

    model = Flow
    meaning = "the bulk traffic"
    example = "{name: bulk, from: client1, to: server, algorithm: reno, window: 1 MiB, duration: 60 s}"
    one = "flow"
    some = "a flow"

    def record(self, entry: Flow, around: Around) -> Record:
        """The flow without the jitter of its start, which each repetition draws."""
        return Record(
            name=entry.name,
            sender=entry.sender,
            receiver=entry.receiver,
            cca=around.algorithm(entry.algorithm).cca,
            duration_us=entry.duration.value,
            window_bytes=around.requested_window(entry.window) if entry.window else None,
            send_window_bytes=around.requested_window(entry.send_window) if entry.send_window else None,
            start_us=entry.start.value,
            streams=entry.streams,
            transfer_bytes=entry.transfer.value if entry.transfer else None,
        )

    def words(self, record: Record) -> str:
        """How many connections."""
        return f"{record.streams} TCP"

    def cost(self, record: Record, path: Path) -> Cost:
        """The packets of the path's rate, or of the window's if that is less."""
        bps = float(path.slowest_bps)
        if record.window_bytes and path.round_trip_us:
            window_bits = 8 * LINUX_DOUBLING * record.window_bytes * record.streams
            bps = min(bps, window_bits * 1e6 / path.round_trip_us)
        return Cost(packets=bps * record.duration_us / 1e6 / 8 / path.mtu_bytes)

    def drawn(self, record: Record) -> str:
        """How many connections, where there are several."""
        return f"{record.streams} connections" if record.streams > 1 else ""


KIND = Flows()
