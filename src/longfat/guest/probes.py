# SPDX-License-Identifier: Apache-2.0
"""What looks at sockets and queues while a run happens, and the tables that it fills.

Where the kernel can take the samples itself (longfat.guest.sampler) the tables are written when the traffic has ended;
elsewhere a look is an action on the run's time line.
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

from longfat.guest import arrivals, closings, netlink, qdisc, queues, sampler, sockets
from longfat.guest.ccas import parameter_names
from longfat.guest.timeline import Timeline

if TYPE_CHECKING:  # there is no Mininet where rows are tested
    from longfat.guest.network import Network


@dataclass
class Probe:
    """One dump on some channels at an interval; without an interval, only at the end. ``rows`` makes lines of ``table``
    of a time (us), the number of a channel and its messages. ``between`` has what comes between these dumps.
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
        """Look now."""
        self._write_between(origin_ns, origin_ns + 1000 * t_us)
        for number, channel in enumerate(self.channels):
            self._write(t_us, number, netlink.dump(channel, self.message_type, self.request))

    def look_between(self) -> None:
        """Look now, at a time that is not one of the interval."""
        for number, channel in enumerate(self.channels):
            found = list(netlink.dump(channel, self.message_type, self.request))
            if self.between:
                self.between.add(number, found)

    def sample(self, cleanup: ExitStack, folder: Path, origin_ns: int, end_us: int) -> None:
        """Let the kernel look, from the first interval to before ``end_us``."""
        assert self.interval_us
        interval_ns, request = 1000 * self.interval_us, netlink.dump_request(self.message_type, self.request)
        for number, channel in enumerate(self.channels):
            path = folder / f"{Path(self.table.name).stem}.{number}.samples"
            times = origin_ns + interval_ns, interval_ns, origin_ns + 1000 * end_us
            self.samplers.append(cleanup.enter_context(sampler.Sampler(channel, request, path, *times)))

    def finish(self, origin_ns: int, now_us: int) -> None:
        """Write what the kernel has seen, and sockets that are still open. Raises LaboratoryError for a lost sample."""
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
    """The senders' sockets of some flows, whose ports are given: what their CCAs say, and rows of sockets.csv.

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
        """Rows by port and stream."""
        found = [info for info in sockets.parse(messages) if info.destination_port in self.flows]
        found.sort(key=lambda info: info.inode)  # the kernel tells of them in the order of a hash of their ports
        for info in sorted(found, key=lambda info: (info.destination_port, self._stream(info))):
            name, stream = self.flows[info.destination_port], self._stream(info)
            if info.state == sockets.TCP_CLOSE:
                del self._streams[name, info.source_port]  # another connection may have its port
                t_us = max(t_us - 1000 * info.last_ack_ms, self._last_us)  # its program may close it later
            else:
                self._last_us = t_us
                self.ccas[name] = info.cca
                self.cca_values[name] = info.cca_values
            if info.has_rtt:
                self.min_rtt_us[name] = min(info.min_rtt, self.min_rtt_us.get(name, info.min_rtt))
            if self.states and info.state != sockets.TCP_CLOSE and (info.cca_state or info.cca_values):
                if info.cca not in self._parameters:
                    self._parameters[info.cca] = parameter_names(info.cca)
                lines = sockets.state_rows(t_us, name, stream, info, self._parameters[info.cca])
                self.states.writelines(f"{line}\n" for line in lines)
            yield sockets.row(t_us, name, stream, info)

    def _stream(self, info: sockets.TcpInfo) -> int:
        """Number of the connection within its flow, in the order in which they were made."""
        key = (self.flows[info.destination_port], info.source_port)
        if key not in self._streams:
            self._streams[key] = self._made[key[0]]
            self._made[key[0]] += 1
        return self._streams[key]


class Probes:
    """All probes of a run. Files go to ``folder``; nothing is looked at before ``start``."""

    def __init__(self, folder: Path, cleanup: ExitStack) -> None:
        self._folder = folder
        self._cleanup = cleanup
        self._probes: list[Probe] = []
        self._sockets: Probe | None = None
        self._actions: list[tuple[int, Callable[[int], None]]] = []

    def sockets(self, network: Network, senders: Iterable[str], seen: SeenSockets, interval_us: int | None) -> None:
        """Look at the sockets of ``senders``, at the end of each flow too, and note the last state of each.

        Without an interval there is no other look.
        """
        channels = [self._channel(network, sender, sockets.open_probe) for sender in sorted(set(senders))]
        listeners = [self._channel(network, sender, closings.open_listener) for sender in sorted(set(senders))]
        closed = self._cleanup.enter_context(closings.Closings(listeners))
        table = self._table("sockets.csv", sockets.COLUMNS)
        seen.states = self._table("cca_state.csv", sockets.STATE_COLUMNS)
        asked = sockets.SOCK_DIAG_BY_FAMILY, sockets.request()
        self._sockets = Probe(table, interval_us, *asked, channels, seen.rows, closed)
        self._probes.append(self._sockets)

    def queues(self, network: Network, interval_us: int) -> None:
        """Look at the queues of all shaped interfaces."""
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
        """Count the packets that arrive at ``receivers``, and the marked ones among them."""
        table = self._table("arrivals.csv", arrivals.COLUMNS)
        counters: list[tuple[str, TextIO]] = []
        for receiver in sorted(set(receivers)):
            with network.inside(receiver):
                counters.append((receiver, self._cleanup.enter_context(arrivals.open_probe())))

        def look(t_us: int) -> None:
            for node, counted in counters:
                print(arrivals.row(t_us, node, *arrivals.read_arrivals(counted)), file=table)

        self._actions.append((interval_us, look))

    def start(self, timeline: Timeline, ends_us: Iterable[int]) -> None:
        """Begin: by the kernel where it can, else on the time line. Flows end at ``ends_us``."""
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
        """Complete the tables when all traffic has ended. Raises LaboratoryError where a sample is missing."""
        for probe in self._probes:
            probe.finish(timeline.origin_ns, timeline.now_us())

    def _table(self, name: str, columns: str) -> TextIO:
        table = self._cleanup.enter_context((self._folder / name).open("w"))
        print(columns, file=table)
        return table

    def _channel(self, network: Network, node: str, opened: Callable[[], socket.socket]) -> socket.socket:
        with network.inside(node):
            return self._cleanup.enter_context(opened())
