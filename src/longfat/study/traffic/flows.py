# SPDX-License-Identifier: Apache-2.0
"""TCP flows: bulk traffic by iperf2, or the data of a limited application. Every backend has bulk traffic.

Most gates of flows are in ``longfat.spec.gates``, and ``longfat.dataset`` reads their table, because other parts of
a run refer to flows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from longfat.spec.gates import Evidence
from longfat.spec.runspec import Flow as Record
from longfat.spec.units import Duration
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding
from longfat.study.traffic.kind import Around, Cost, Path, Section, Sides, TcpEntry

SECONDS_PER_WRITE = 1e-4  # of a limited application: three system calls
LAST_WRITE_BYTES = 1448  # of a connection; its last write may be due too late
LINUX_DOUBLING = 2  # the kernel doubles the requested window (socket(7))


class Flow(TcpEntry):
    """One or several TCP flows from one host to another for a given time."""

    examples: ClassVar[tuple[str, ...]] = (
        "{name: bulk, from: client1, to: server, algorithm: reno, window: 1 MiB, duration: 60 s}",
    )

    window: f.Window | None = Field(
        default=None,
        description="socket buffer of both ends; the hosts' limits follow it unless `sysctls` has them (default: "
        "auto-tuning)",
    )
    send_window: f.Window | None = Field(
        default=None, description="socket buffer of the sending end (default: `window`)"
    )
    start_jitter: f.Delay = Field(
        default=Duration(0),
        description="largest random addition to `start`, drawn for each repetition (default 0 s)",
    )
    streams: f.Count = Field(default=1, description="parallel connections (default 1)")
    transfer: f.Transfer | None = Field(
        default=None,
        description="amount that a connection carries before another follows it, until `duration` is over (default: "
        "one connection for the whole duration)",
    )
    rate: f.LinkRate | None = Field(
        default=None,
        description="rate at which its application has data to send on all connections (default: unlimited)",
    )
    on_time: f.Length | None = Field(
        default=None,
        description="with a `rate`: time for which the application has data, before an `off_time` (default: always)",
    )
    off_time: f.Length | None = Field(
        default=None, description="time for which it then has none, in turn with `on_time`"
    )
    count: f.FlowCount | None = Field(
        default=None,
        description="number of equal flows, called NAME1, NAME2, ...: the first goes from `from` to `to`, the others "
        "between the following hosts in turn. From 200 connections on, flows without `transfer` and `rate` share "
        "a process at each host",
    )

    @property
    def draws(self) -> bool:
        """Whether its start has jitter."""
        return bool(self.start_jitter.value)

    def findings(self) -> Iterator[Finding]:
        """Yield keys of a limited application that exclude or need each other."""
        if self.rate and self.transfer:
            yield Finding(("rate",), "cannot be combined with transfer: an application has one way to end a connection")
        if (self.on_time is None) != (self.off_time is None):
            given, missing = ("on_time", "off_time") if self.on_time else ("off_time", "on_time")
            yield Finding((given,), f"needs {missing}: an application is on and off in turn")
        elif self.on_time and not self.rate:
            yield Finding(("on_time",), "needs a rate, at which the application has data in that time")

    def each(self, sides: Sides) -> Iterator[Flow]:
        """Yield the flows of an entry with a count, or the only one."""
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


def applications_gave_their_rate(evidence: Evidence) -> Iterator[str]:
    """Require that a limited application wrote what was due, except while its connections were blocked."""
    reports = {report["flow"]: report for report in evidence.reports}
    for flow in evidence.spec.flows:
        if flow.rate_bps is None or flow.name not in reports:
            continue
        report = reports[flow.name]
        sent, due = report["bytes_sent"], report["bytes_due"]
        excused = flow.rate_bps * report["blocked_us"] / flow.streams / 8e6 + flow.streams * LAST_WRITE_BYTES
        if not due - excused <= sent <= due:
            yield f"the application of {flow.name} gave {sent} bytes to send, its rate makes {due} due"


class Flows(Section[Flow, Record]):
    """The kind of bulk traffic."""

    model = Flow
    meaning = "the bulk traffic"
    one = "flow"
    gates = (applications_gave_their_rate,)

    def record(self, entry: Flow, around: Around) -> Record:
        """Return the flow without the jitter of its start, which each repetition draws."""
        return Record(
            **entry.common,
            cca=around.algorithm(entry.algorithm).cca,
            window_bytes=around.requested_window(entry.window) if entry.window else None,
            send_window_bytes=around.requested_window(entry.send_window) if entry.send_window else None,
            streams=entry.streams,
            transfer_bytes=entry.transfer.value if entry.transfer else None,
            rate_bps=entry.rate.value if entry.rate else None,
            on_us=entry.on_time.value if entry.on_time else None,
            off_us=entry.off_time.value if entry.off_time else None,
        )

    def words(self, record: Record) -> str:
        """Return the number of connections, and the rate of their application."""
        if record.rate_bps is None:
            return f"{record.streams} TCP"
        turns = (
            f", {record.on_us / 1e6:g} s on, {record.off_us / 1e6:g} s off" if record.on_us and record.off_us else ""
        )
        return f"{record.streams} TCP, given {record.rate_bps / 1e6:g} Mbit/s{turns}"

    def cost(self, record: Record, path: Path) -> Cost:
        """Return the packets of the path's rate, or of the application's or the window's if that is less."""
        bps = min(float(path.slowest_bps), record.mean_rate_bps or float("inf"))
        if record.window_bytes and path.round_trip_us:
            window_bits = 8 * LINUX_DOUBLING * record.window_bytes * record.streams
            bps = min(bps, window_bits * 1e6 / path.round_trip_us)
        packets = bps * record.duration_us / 1e6 / 8 / path.mtu_bytes
        writes = min(packets, record.duration_us / 1000) if record.rate_bps else 0.0
        return Cost(packets, writes * SECONDS_PER_WRITE)

    def drawn(self, record: Record) -> str:
        """Return the number of connections, if there are several."""
        return f"{record.streams} connections" if record.streams > 1 else ""


KIND = Flows()
