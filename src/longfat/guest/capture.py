# SPDX-License-Identifier: Apache-2.0
"""Capture of a flow's headers at its sender (tcpdump), its outstanding data and throughput (tcptrace)."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

HEADER_BYTES = 96  # Ethernet, IPv4 and TCP with timestamps and three SACK blocks
BUFFER_KIB = 16384
FLUSH_S = 1.1  # tcpdump asks the kernel for its packets once a second; those not asked for yet are lost when it ends
PCAP_HEADER_BYTES = 24
PCAP_RECORD = struct.Struct("=IIII")  # seconds, microseconds, bytes that follow, bytes on the wire

AVERAGED_SEGMENTS = 500  # 36 ms of full frames of 9000 bytes at 1 Gbit/s; a flow left with 1 % has a point each 4 s
THINNED_US = 10_000
END_OF_GRAPH = b"\ngo\n"
BUFFER_BYTES = 1 << 20  # a graph may have gigabytes


def tcpdump_command(interface: str, port: int, path: Path) -> list[str]:
    """Write the headers of one flow, both directions, to ``path``."""
    return [
        *("tcpdump", "-i", interface, "-s", str(HEADER_BYTES), "-B", str(BUFFER_KIB)),
        *("-n", "-Z", "root", "-w", str(path), "tcp", "port", str(port)),
    ]


def parse_tcpdump_counts(text: str) -> dict[str, int]:
    """``captured`` and ``dropped`` packets from what tcpdump prints when it ends. Raises ValueError.

    What the kernel's filter let through and tcpdump never fetched is dropped too.
    """
    captured = re.search(r"(\d+) packets? captured", text)
    received = re.search(r"(\d+) packets? received by filter", text)
    dropped = re.search(r"(\d+) packets? dropped by kernel", text)
    if not captured or not received or not dropped:
        raise ValueError(f"tcpdump gave no counts: {text.strip()[-300:]!r}")
    lost = max(int(dropped[1]), int(received[1]) - int(captured[1]))
    return {"captured": int(captured[1]), "dropped": lost}


@dataclass(frozen=True)
class Graphs:
    """tcptrace's graphs of the sending direction: files of points, lines and colours."""

    outstanding: Path
    throughput: Path


def lose_packets(pcap: Path, rest: Path, percent: float, random: Random) -> int:
    """Write to ``rest`` the capture without packets taken out with one probability for each; how many they were.

    Raises ValueError when the capture ends within a packet.
    """
    if not percent:
        shutil.copyfile(pcap, rest)
        return 0
    share, removed = percent / 100, 0
    with pcap.open("rb") as source, rest.open("wb") as target:
        target.write(source.read(PCAP_HEADER_BYTES))
        while header := source.read(PCAP_RECORD.size):
            if len(header) < PCAP_RECORD.size:
                raise ValueError(f"{pcap.name} ends within a packet")
            _, _, size, _ = PCAP_RECORD.unpack(header)
            packet = source.read(size)
            if len(packet) < size:
                raise ValueError(f"{pcap.name} ends within a packet")
            if random.random() < share:
                removed += 1
            else:
                target.write(header + packet)
    return removed


def trace(pcap: Path, folder: Path) -> Graphs:
    """Let tcptrace draw its graphs into ``folder``, which must not exist. They take some 360 bytes for each packet.

    The sending direction is that with the larger graph of outstanding data. Raises ValueError when the capture
    holds no connection, or a graph is not complete: on a full disk tcptrace ends as if nothing had happened.
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
                raise ValueError(f"tcptrace left {graph.name} of {pcap.name} without its end; is the disk full?")
    return found


def outstanding_data(graph: Path, origin_us: int) -> Iterator[tuple[int, int]]:
    """Time (us since ``origin_us``, microseconds of the epoch) and outstanding bytes of the sending side.

    tcptrace's ``-N`` graphs hold one point for each data packet (``red``: the instantaneous value).
    """
    with graph.open("rb", buffering=BUFFER_BYTES) as lines:
        yield from red_points(lines, origin_us)


def throughput(graph: Path, origin_us: int) -> Iterator[tuple[int, int]]:
    """Time (us since ``origin_us``, microseconds of the epoch) and bytes per second of the sending side.

    tcptrace's ``-T`` graphs hold one ``red`` point for each AVERAGED_SEGMENTS data packets: the bytes of their
    segments, those sent again included, over the time that they took; its time is that of the last. A flow
    with fewer packets has no point. What is left holds at most one point for each THINNED_US.
    """
    with graph.open("rb", buffering=BUFFER_BYTES) as lines:
        yield from thinned(red_points(lines, origin_us), THINNED_US)


def red_points(lines: Iterable[bytes], origin_us: int) -> Iterator[tuple[int, int]]:
    """The points of a tcptrace graph in red: ``dot SECONDS.MICROSECONDS VALUE red``, or ``red`` on the line before."""
    after_red = False
    for line in lines:
        # Three lines of four are none of them: no more is done with each than is needed.
        if (after_red or line.endswith(b" red\n")) and line.startswith(b"dot "):
            _, time, value, *colour = line.split()
            if value.isdigit() and colour in ([], [b"red"]):
                yield int(time.replace(b".", b"")) - origin_us, int(value)
        after_red = line == b"red\n"


def thinned(points: Iterable[tuple[int, int]], interval_us: int) -> Iterator[tuple[int, int]]:
    """The last point of each interval; the times must not go down."""
    last: tuple[int, int] | None = None
    for point in points:
        if last and point[0] // interval_us != last[0] // interval_us:
            yield last
        last = point
    if last:
        yield last
