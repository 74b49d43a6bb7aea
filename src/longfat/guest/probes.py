# SPDX-License-Identifier: Apache-2.0
"""Probes of sockets and queues during a run, and their tables.

If the kernel can take the samples itself (longfat.guest.sampler), the tables are written after the end of the traffic;
otherwise each sample is an action on the run's time line.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from longfat.guest import closings, counters, netlink, qdisc, queues, sampler, sockets
from longfat.guest.ccas import parameter_names
from longfat.guest.timeline import Timeline

if TYPE_CHECKING:  # tests of rows have no Mininet
    from longfat.guest.network import Network


@dataclass
class Probe:
    """A dump on some channels at an interval; without an interval, only at the end.

    ``rows`` makes lines of ``table`` from a time (us), the number of a channel and its messages. ``between`` has the
    messages between these dumps.
    """

    table: TextIO
    interval_us: int | None
    message_type: int
    request: bytes
    channels: list[socket.socket]
    rows: Callable[[int, int, Iterable[bytes]], Iterable[str]]
    between: closings.Closings | None = None
    samplers: list[sampler.Sampler] = field(default_factory=list)

    def look(self, t_us: int, origin_ns: int) -> None:
        """Take a sample now."""
        self._write_between(origin_ns, origin_ns + 1000 * t_us)
        for number, channel in enumerate(self.channels):
            self._write(t_us, number, netlink.dump(channel, self.message_type, self.request))

    def look_between(self) -> None:
        """Take a sample now, in addition to the interval."""
        for number, channel in enumerate(self.channels):
            found = list(netlink.dump(channel, self.message_type, self.request))
            if self.between:
                self.between.add(number, found)

    def sample(self, cleanup: ExitStack, folder: Path, origin_ns: int, end_us: int) -> None:
        """Let the kernel take the samples, from the first interval to before ``end_us``."""
        assert self.interval_us
        interval_ns, request = 1000 * self.interval_us, netlink.dump_request(self.message_type, self.request)
        for number, channel in enumerate(self.channels):
            path = folder / f"{Path(self.table.name).stem}.{number}.samples"
            times = origin_ns + interval_ns, interval_ns, origin_ns + 1000 * end_us
            self.samplers.append(cleanup.enter_context(sampler.Sampler(channel, request, path, *times)))

    def finish(self, origin_ns: int, now_us: int) -> None:
        """Write the kernel's samples, and the sockets that are still open. Raises GuestError on a lost sample."""
        for together in zip(*(one.samples() for one in self.samplers), strict=True):
            self._write_between(origin_ns, together[0][0])
            for number, (t_ns, messages) in enumerate(together):
                self._write((t_ns - origin_ns) // 1000, number, messages)
        if self.between:
            self.between.stop()
            self._write_between(origin_ns, None)
            self.look(now_us, origin_ns)

    def _write_between(self, origin_ns: int, until_ns: int | None) -> None:
        for t_ns, number, messages in self.between.until(until_ns) if self.between else ():
            self._write((t_ns - origin_ns) // 1000, number, messages)

    def _write(self, t_us: int, number: int, messages: Iterable[bytes]) -> None:
        for row in self.rows(t_us, number, messages):
            print(row, file=self.table)


@dataclass
class SeenSockets:
    """Observations of the senders' sockets, for rows of sockets.csv. ``flows`` has the flow of each port.

    Rows of cca_state.csv go to ``states`` meanwhile.
    """

    flows: Mapping[int, str]
    ccas: dict[str, str] = field(default_factory=dict)
    cca_values: dict[str, dict[str, int]] = field(default_factory=dict)
    min_rtt_us: dict[str, int] = field(default_factory=dict)
    states: TextIO | None = None
    _parameters: dict[str, frozenset[str]] = field(default_factory=dict)
    _streams: dict[tuple[str, int], int] = field(default_factory=dict)
    _last_us: int = 0
    _made: Counter[str] = field(default_factory=Counter)

    def rows(self, t_us: int, _number: int, messages: Iterable[bytes]) -> Iterator[str]:
        """Yield the rows, sorted by port and stream."""
        found = [one for one in sockets.parse(messages) if one.destination_port in self.flows]
        found.sort(key=lambda one: one.inode)  # the kernel sorts them by a hash of their ports
        for one in sorted(found, key=lambda one: (one.destination_port, self._stream(one))):
            name, stream = self.flows[one.destination_port], self._stream(one)
            closed = one.info["state"] == sockets.TCP_CLOSE
            if closed:
                del self._streams[name, one.source_port]  # another connection may get its port
                last_ack_ms = one.info["last_ack_recv"] or 0
                t_us = max(t_us - 1000 * last_ack_ms, self._last_us)  # its program may close it later
            else:
                self._last_us = t_us
                self.ccas[name] = one.cca
                self.cca_values[name] = one.cca_values
            if one.min_rtt_us is not None:
                self.min_rtt_us[name] = min(one.min_rtt_us, self.min_rtt_us.get(name, one.min_rtt_us))
            if self.states and not closed and (one.cca_state or one.cca_values):
                if one.cca not in self._parameters:
                    self._parameters[one.cca] = parameter_names(one.cca)
                lines = sockets.state_rows(t_us, name, stream, one, self._parameters[one.cca])
                self.states.writelines(f"{line}\n" for line in lines)
            yield sockets.row(t_us, name, stream, one)

    def _stream(self, one: sockets.Socket) -> int:
        """Return the number of the connection within its flow, in the order of creation."""
        key = (self.flows[one.destination_port], one.source_port)
        if key not in self._streams:
            self._streams[key] = self._made[key[0]]
            self._made[key[0]] += 1
        return self._streams[key]


class Probes:
    """All probes of a run. Files go to ``folder``; the first sample comes after ``start``."""

    def __init__(self, folder: Path, cleanup: ExitStack) -> None:
        self._folder = folder
        self._cleanup = cleanup
        self._probes: list[Probe] = []
        self._sockets: Probe | None = None
        self._actions: list[tuple[int, Callable[[int], None]]] = []

    def sockets(self, network: Network, senders: Iterable[str], seen: SeenSockets, interval_us: int | None) -> None:
        """Sample the sockets of ``senders`` at the interval, at the end of each flow, and at their own end."""
        channels = [self._channel(network, sender, sockets.open_probe) for sender in sorted(set(senders))]
        listeners = [self._channel(network, sender, closings.open_listener) for sender in sorted(set(senders))]
        closed = self._cleanup.enter_context(closings.Closings(listeners))
        table = self._table("sockets.csv", sockets.COLUMNS)
        seen.states = self._table("cca_state.csv", sockets.STATE_COLUMNS)
        asked = sockets.SOCK_DIAG_BY_FAMILY, sockets.request()
        self._sockets = Probe(table, interval_us, *asked, channels, seen.rows, closed)
        self._probes.append(self._sockets)

    def queues(self, network: Network, interval_us: int) -> None:
        """Sample the queues of all shaped interfaces."""
        channels, places = [], []
        for node, ports in network.ports.items():
            shaped = {port.name for port in ports if port.egress.rate_bps}
            if shaped:
                with network.inside(node):
                    places.append((node, {index: name for index, name in socket.if_nameindex() if name in shaped}))
                channels.append(self._channel(network, node, queues.open_probe))

        def rows(t_us: int, number: int, messages: Iterable[bytes]) -> Iterator[str]:
            node, indices = places[number]
            for state in queues.parse(messages):
                if state.interface_index in indices and state.handle == qdisc.QUEUE_HANDLE:
                    yield queues.row(t_us, node, indices[state.interface_index], state)

        table = self._table("queues.csv", queues.COLUMNS)
        self._probes.append(Probe(table, interval_us, queues.RTM_GETQDISC, queues.request(), channels, rows))

    def arrivals(self, network: Network, receivers: Iterable[str], interval_us: int) -> None:
        """Count the packets that reach ``receivers``, and the marked packets among them."""
        table = self._table("arrivals.csv", counters.ARRIVAL_COLUMNS)
        opened: list[tuple[str, TextIO]] = []
        for receiver in sorted(set(receivers)):
            with network.inside(receiver):
                opened.append((receiver, self._cleanup.enter_context(counters.open_arrivals())))

        def look(t_us: int) -> None:
            for node, file in opened:
                print(t_us, node, *counters.read_arrivals(file), sep=",", file=table)

        self._actions.append((interval_us, look))

    def start(self, timeline: Timeline, ends_us: Iterable[int]) -> None:
        """Start the samples, by the kernel if it can, else on the time line. Flows end at ``ends_us``."""
        if self._sockets:
            for t_us in sorted(set(ends_us)):
                timeline.at(t_us, self._sockets.look_between)

        def plan(interval_us: int, look: Callable[[int], None]) -> None:
            timeline.repeat(interval_us, lambda: look(timeline.now_us()))

        for probe in self._probes:
            if probe.interval_us and sampler.DEVICE.exists():
                probe.sample(self._cleanup, self._folder, timeline.origin_ns, timeline.end_us)
            elif probe.interval_us:
                plan(probe.interval_us, partial(probe.look, origin_ns=timeline.origin_ns))
        for interval_us, look in self._actions:
            plan(interval_us, look)

    def finish(self, timeline: Timeline) -> None:
        """Complete the tables after the end of all traffic. Raises GuestError on a missing sample."""
        for probe in self._probes:
            probe.finish(timeline.origin_ns, timeline.now_us())

    def _table(self, name: str, columns: str) -> TextIO:
        table = self._cleanup.enter_context((self._folder / name).open("w"))
        print(columns, file=table)
        return table

    def _channel(self, network: Network, node: str, opened: Callable[[], socket.socket]) -> socket.socket:
        with network.inside(node):
            return self._cleanup.enter_context(opened())
