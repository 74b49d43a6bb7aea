# SPDX-License-Identifier: Apache-2.0
"""Captures of headers (tcpdump), and outstanding data and throughput of a flow from them (tcptrace)."""

from __future__ import annotations

import re
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from longfat.guest.files import write_points
from longfat.guest.processes import end_with_run, finish
from longfat.spec.network import Port, capture_port
from longfat.spec.runspec import Program, Sent

if TYPE_CHECKING:  # tests have no Mininet
    from longfat.guest.kinds.kind import Traffic
    from longfat.guest.run import RunContext

LONGEST_HEADER_BYTES = 96  # Ethernet 14, IPv4 without options 20 (RFC 791), TCP at most 60 (RFC 9293)
ETHERNET_BYTES = 14
ETHERTYPE_IPV4 = b"\x08\x00"
TCP = 6
TRANSPORT_BYTES = {1: 8, 17: 8}  # ICMP (RFC 792) and UDP (RFC 768)
BUFFER_KIB = 16384
FLUSH_S = 1.1  # tcpdump fetches its packets once a second, and loses the rest at its end
PCAP_HEADER_BYTES = 24
PCAP_RECORD = struct.Struct("=IIII")  # seconds, microseconds, bytes that follow, bytes on the wire

AVERAGED_SEGMENTS = 500  # 36 ms of frames of 9000 bytes at 1 Gbit/s; a flow with 1 % of it has a point every 4 s
THINNED_US = 10_000
END_OF_GRAPH = b"\ngo\n"
BUFFER_BYTES = 1 << 20  # a graph may have gigabytes


@dataclass(frozen=True)
class Packets:
    """Both directions of a traffic: the addresses of its hosts and the port of its server.

    Only the first fragment of a datagram has ports; ``fragments`` includes all later fragments between the hosts.
    """

    hosts: tuple[str, str]
    port: int
    fragments: bool = False

    @property
    def expression(self) -> str:
        """Filter in the language of pcap."""
        first, second = self.hosts
        own = f"(host {first} or host {second}) and port {self.port}"
        later = f"host {first} and host {second} and ip[6:2] & 0x1fff != 0"
        return f"({own}) or ({later})" if self.fragments else own  # in pcap "and" and "or" have the same precedence


def tcpdump_command(interface: str, packets: Packets, path: Path) -> list[str]:
    """Return the command that writes the packets of an interface to ``path``."""
    return [
        *("tcpdump", "-i", interface, "-s", str(LONGEST_HEADER_BYTES), "-B", str(BUFFER_KIB)),
        *("-n", "-Z", "root", "-w", str(path), packets.expression),
    ]


def header_bytes(frame: bytes) -> int:
    """Return the length of an Ethernet frame's headers: link layer, IPv4, and TCP (with options), UDP or ICMP."""
    if frame[12:ETHERNET_BYTES] != ETHERTYPE_IPV4 or len(frame) <= ETHERNET_BYTES:
        return min(ETHERNET_BYTES, len(frame))
    transport = ETHERNET_BYTES + 4 * (frame[ETHERNET_BYTES] & 0xF)
    if len(frame) < transport or int.from_bytes(frame[20:22], "big") & 0x1FFF:
        return min(transport, len(frame))
    protocol, length = frame[23], 0
    if protocol == TCP and len(frame) > transport + 12:
        length = 4 * (frame[transport + 12] >> 4)
    return min(transport + TRANSPORT_BYTES.get(protocol, length), len(frame))


def parse_tcpdump_counts(text: str) -> dict[str, int]:
    """Return ``captured`` and ``dropped`` packets from the last output of tcpdump. Raises ValueError.

    Packets that passed the kernel's filter and were never fetched are dropped, too.
    """
    captured = re.search(r"(\d+) packets? captured", text)
    received = re.search(r"(\d+) packets? received by filter", text)
    dropped = re.search(r"(\d+) packets? dropped by kernel", text)
    if not captured or not received or not dropped:
        raise ValueError(f"tcpdump printed no counts: {text.strip()[-300:]!r}")
    lost = max(int(dropped[1]), int(received[1]) - int(captured[1]))
    return {"captured": int(captured[1]), "dropped": lost}


@dataclass(frozen=True)
class Graphs:
    """tcptrace's graphs of the sending direction: files of points, lines and colours."""

    outstanding: Path
    throughput: Path


def copy_headers(pcap: Path, target: Path, percent: float, random: Random) -> int:
    """Copy a capture without payload, and return the number of packets that were left out.

    Each packet is left out with a probability of ``percent``. The payload of bulk traffic is arbitrary memory of the
    guest. Raises ValueError if the capture ends within a packet.
    """
    share, removed = percent / 100, 0
    with pcap.open("rb", buffering=BUFFER_BYTES) as source, target.open("wb", buffering=BUFFER_BYTES) as copy:
        copy.write(source.read(PCAP_HEADER_BYTES))
        while record := source.read(PCAP_RECORD.size):
            if len(record) < PCAP_RECORD.size:
                raise ValueError(f"{pcap.name} ends within a packet")
            seconds, microseconds, size, on_wire = PCAP_RECORD.unpack(record)
            frame = source.read(size)
            if len(frame) < size:
                raise ValueError(f"{pcap.name} ends within a packet")
            if percent and random.random() < share:
                removed += 1
                continue
            length = header_bytes(frame)
            copy.write(PCAP_RECORD.pack(seconds, microseconds, length, on_wire) + frame[:length])
    return removed


def trace(pcap: Path, folder: Path) -> Graphs:
    """Let tcptrace write its graphs into ``folder``, which must not exist: about 360 bytes for each packet.

    The sending direction has the larger graph of outstanding data. Raises ValueError if the capture has no connection,
    or if a graph is incomplete: on a full disk tcptrace reports no error.
    """
    folder.mkdir()
    command = ["tcptrace", "-N", "-T", f"-A{AVERAGED_SEGMENTS}", "-y", "-n", str(pcap.resolve())]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    graphs = sorted(folder.glob("*_owin.xpl"))
    if not graphs:
        raise ValueError(f"tcptrace found no connection in {pcap.name}")
    sending = max(graphs, key=lambda graph: graph.stat().st_size)
    found = Graphs(sending, sending.with_name(sending.name.replace("_owin", "_tput")))
    for graph in (found.outstanding, found.throughput):
        with graph.open("rb") as file:
            file.seek(max(0, graph.stat().st_size - len(END_OF_GRAPH)))
            if file.read() != END_OF_GRAPH:
                raise ValueError(f"tcptrace wrote an incomplete {graph.name} of {pcap.name}; is the disk full?")
    return found


def outstanding_data(graph: Path, origin_us: int) -> Iterator[tuple[int, int]]:
    """Yield time (us since ``origin_us``, microseconds of the epoch) and outstanding bytes of the sender.

    A ``-N`` graph of tcptrace has a point for each data packet (``red``: the instantaneous value).
    """
    with graph.open("rb", buffering=BUFFER_BYTES) as lines:
        yield from red_points(lines, origin_us)


def throughput(graph: Path, origin_us: int) -> Iterator[tuple[int, int]]:
    """Yield time (us since ``origin_us``, microseconds of the epoch) and bytes per second of the sender.

    A ``-T`` graph of tcptrace has a ``red`` point for every AVERAGED_SEGMENTS data packets, at the time of the last:
    their bytes, including retransmissions, over their duration. A flow with fewer packets has no point. The result has
    at most one point for each THINNED_US.
    """
    with graph.open("rb", buffering=BUFFER_BYTES) as lines:
        yield from thinned(red_points(lines, origin_us), THINNED_US)


def red_points(lines: Iterable[bytes], origin_us: int) -> Iterator[tuple[int, int]]:
    """Yield the red points of a graph: ``dot SECONDS.MICROSECONDS VALUE red``, or ``red`` on the line before."""
    after_red = False
    for line in lines:
        # Three of four lines are not points: the test must be quick.
        if (after_red or line.endswith(b" red\n")) and line.startswith(b"dot "):
            _, at_s, value, *colour = line.split()
            if value.isdigit() and colour in ([], [b"red"]):
                yield int(at_s.replace(b".", b"")) - origin_us, int(value)
        after_red = line == b"red\n"


def thinned(points: Iterable[tuple[int, int]], interval_us: int) -> Iterator[tuple[int, int]]:
    """Yield the last point of each interval; times must not decrease."""
    last: tuple[int, int] | None = None
    for point in points:
        if last and point[0] // interval_us != last[0] // interval_us:
            yield last
        last = point
    if last:
        yield last


class Captures:
    """Captures of a run on this machine, by the names of their files."""

    def __init__(self, context: RunContext, kinds: Iterable[Traffic]) -> None:
        self._context = context
        self._ports = {name: port for kind in kinds for name, port in kind.ports.items()}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start tcpdump for each capture at a node of this machine."""
        spec = self._context.spec
        sent = {one.name: one for one in spec.sent}
        for file, (name, place) in spec.probes.captures.items():
            port = capture_port(spec, sent[name], place)
            if self._context.here(port.node):
                self._running[file] = self._tcpdump(file, sent[name], port)

    def finish(self) -> dict[str, dict[str, int]]:
        """End tcpdump, read its files, and return the packet counts for achieved.json."""
        if self._running:
            time.sleep(FLUSH_S)
        counts = {file: self._end(file, process) for file, process in self._running.items()}
        for flow in self._context.spec.traced:
            if flow.name in self._running:
                self._trace(flow.name)
        return counts

    def _tcpdump(self, file: str, one: Sent, port: Port) -> subprocess.Popen[bytes]:
        network, scratch = self._context.network, self._context.scratch
        output = self._context.cleanup.enter_context((scratch / f"{file}.tcpdump").open("wb"))
        hosts = network.topology.address(one.sender), network.topology.address(one.receiver)
        packets = Packets(hosts, self._ports[one.name], fragments=isinstance(one, Program))
        command = tcpdump_command(port.name, packets, scratch / f"{file}.pcap")
        return end_with_run(self._context.cleanup, network.start_tool(port.node, command, output))

    def _end(self, file: str, process: subprocess.Popen[bytes]) -> dict[str, int]:
        context = self._context
        process.send_signal(signal.SIGINT)
        finish(process, f"tcpdump of {file}")
        counts = parse_tcpdump_counts((context.scratch / f"{file}.tcpdump").read_text())
        taken, pcap = context.scratch / f"{file}.pcap", context.folder / "captures" / f"{file}.pcap"
        loss, random = context.spec.probes.capture_loss_percent, Random(f"{context.spec.seed} {file}")
        counts["removed"] = copy_headers(taken, pcap, loss, random)
        taken.unlink()
        context.show_time()
        return counts

    def _trace(self, name: str) -> None:
        """Write the time series of tcptrace from the capture of a flow at its sender."""
        context = self._context
        folder = context.folder / "tcptrace"  # not in scratch: graphs may be larger than the memory
        try:
            graphs = trace(context.folder / "captures" / f"{name}.pcap", folder)
            context.show_time()
            origin_us = context.timeline.origin_epoch_us
            points = outstanding_data(graphs.outstanding, origin_us)
            write_points(context.folder / "outstanding" / f"{name}.csv", "outstanding_bytes", points)
            write_points(
                context.folder / "throughput" / f"{name}.csv", "bytes_per_s", throughput(graphs.throughput, origin_us)
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        context.show_time()
