# SPDX-License-Identifier: Apache-2.0
"""What looks at sockets and queues while a run happens, and the tables that it fills.

Where the kernel can take the samples itself (longfat.guest.sampler) the tables are written when the traffic has ended;
elsewhere a look is an action on the run's time line.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from longfat.guest import arrivals, netlink, qdisc, queues, sampler, sockets
from longfat.guest.ccas import parameter_names
from longfat.guest.network import Network
from longfat.guest.timeline import Timeline


@dataclass
class Probe:
    """One dump on some channels at an interval. ``rows`` makes lines of ``table`` of a time (us), the number of a
    channel and the messages that it gave.
    """

    table: TextIO
    interval_us: int
    message_type: int
    request: bytes
    channels: list[socket.socket]
    rows: Callable[[int, int, Iterable[bytes]], Iterable[str]]
    samplers: list[sampler.Sampler] = field(default_factory=list)

    def look(self, t_us: int) -> None:
        """Look now."""
        for number, channel in enumerate(self.channels):
            self._write(t_us, number, netlink.dump(channel, self.message_type, self.request))

    def sample(self, cleanup: ExitStack, folder: Path, origin_ns: int, end_us: int) -> None:
        """Let the kernel look, from the first interval to before ``end_us``."""
        interval_ns, request = 1000 * self.interval_us, netlink.dump_request(self.message_type, self.request)
        for number, channel in enumerate(self.channels):
            path = folder / f"{Path(self.table.name).stem}.{number}.samples"
            times = origin_ns + interval_ns, interval_ns, origin_ns + 1000 * end_us
            self.samplers.append(cleanup.enter_context(sampler.Sampler(channel, request, path, *times)))

    def finish(self, origin_ns: int) -> None:
        """Write what the kernel has seen. Raises LaboratoryError where it missed a sample."""
        for together in zip(*(one.samples() for one in self.samplers), strict=True):
            for number, (t_ns, messages) in enumerate(together):
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

    def rows(self, t_us: int, _number: int, messages: Iterable[bytes]) -> Iterator[str]:
        """Rows by port and stream."""
        found = [info for info in sockets.parse(messages) if info.destination_port in self.flows]
        found.sort(key=lambda info: info.inode)  # the kernel tells of them in the order of a hash of their ports
        for info in sorted(found, key=lambda info: (info.destination_port, self._stream(info))):
            name = self.flows[info.destination_port]
            self.ccas[name] = info.cca
            self.cca_values[name] = info.cca_values
            if info.has_rtt:
                self.min_rtt_us[name] = min(info.min_rtt, self.min_rtt_us.get(name, info.min_rtt))
            stream = self._stream(info)
            if self.states and (info.cca_state or info.cca_values):
                if info.cca not in self._parameters:
                    self._parameters[info.cca] = parameter_names(info.cca)
                lines = sockets.state_rows(t_us, name, stream, info, self._parameters[info.cca])
                self.states.writelines(f"{line}\n" for line in lines)
            yield sockets.row(t_us, name, stream, info)

    def _stream(self, info: sockets.TcpInfo) -> int:
        """Number of the connection within its flow, in the order in which they were made."""
        key = (self.flows[info.destination_port], info.source_port)
        taken = sum(flow == key[0] for flow, _ in self._streams)
        return self._streams.setdefault(key, taken)


class Probes:
    """All probes of a run. Files go to ``folder``; nothing is looked at before ``start``."""

    def __init__(self, folder: Path, cleanup: ExitStack) -> None:
        self._folder = folder
        self._cleanup = cleanup
        self._probes: list[Probe] = []
        self._actions: list[tuple[int, Callable[[int], None]]] = []

    def sockets(self, network: Network, senders: Iterable[str], seen: SeenSockets, interval_us: int) -> None:
        """Look at the sockets of ``senders``."""
        channels = [self._channel(network, sender, sockets.open_probe) for sender in sorted(set(senders))]
        table = self._table("sockets.csv", sockets.COLUMNS)
        seen.states = self._table("cca_state.csv", sockets.STATE_COLUMNS)
        self._probes.append(
            Probe(table, interval_us, sockets.SOCK_DIAG_BY_FAMILY, sockets.request(), channels, seen.rows)
        )

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

    def start(self, timeline: Timeline) -> None:
        """Begin: by the kernel where it can, else on the time line."""

        def plan(interval_us: int, look: Callable[[int], None]) -> None:
            timeline.repeat(interval_us, lambda: look(timeline.now_us()))

        for probe in self._probes:
            if sampler.DEVICE.exists():
                probe.sample(self._cleanup, self._folder, timeline.origin_ns, timeline.end_us)
            else:
                plan(probe.interval_us, probe.look)
        for interval_us, look in self._actions:
            plan(interval_us, look)

    def finish(self, origin_ns: int) -> None:
        """Complete the tables. Raises LaboratoryError where a sample is missing."""
        for probe in self._probes:
            probe.finish(origin_ns)

    def _table(self, name: str, columns: str) -> TextIO:
        table = self._cleanup.enter_context((self._folder / name).open("w"))
        print(columns, file=table)
        return table

    def _channel(self, network: Network, node: str, opened: Callable[[], socket.socket]) -> socket.socket:
        with network.inside(node):
            return self._cleanup.enter_context(opened())
