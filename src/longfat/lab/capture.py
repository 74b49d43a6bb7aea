# SPDX-License-Identifier: Apache-2.0
"""Capture of a flow's headers at its sender (tcpdump) and its outstanding data (tcptrace)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

HEADER_BYTES = 96  # Ethernet, IPv4 and TCP with timestamps and three SACK blocks
BUFFER_KIB = 16384
FLUSH_S = 1.1  # tcpdump asks the kernel for its packets once a second; those not asked for yet are lost when it ends


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


def outstanding_data(pcap: Path, folder: Path, origin_us: int) -> list[tuple[int, int]]:
    """Time (us since ``origin_us``, microseconds of the epoch) and outstanding bytes of the sending side.

    tcptrace's ``-N`` graphs hold one point for each data packet (``red``: the instantaneous value).
    Raises ValueError when the capture holds no connection.
    """
    folder.mkdir()
    subprocess.run(["tcptrace", "-N", "-y", "-n", str(pcap.resolve())], cwd=folder, check=True, capture_output=True)
    graphs = sorted(folder.glob("*_owin.xpl"))
    if not graphs:
        raise ValueError(f"tcptrace found no connection in {pcap.name}")
    sending = max(graphs, key=lambda graph: graph.stat().st_size)
    return parse_outstanding(sending.read_text(), origin_us)


def parse_outstanding(text: str, origin_us: int) -> list[tuple[int, int]]:
    """The instantaneous points (``dot TIME BYTES red``) of a tcptrace outstanding-data graph."""
    points = []
    for match in re.finditer(r"^dot (\d+)\.(\d{6}) (\d+) red$|^red\ndot (\d+)\.(\d{6}) (\d+)$", text, re.M):
        seconds, micros, value = (group for group in match.groups() if group is not None)
        points.append((int(seconds) * 1_000_000 + int(micros) - origin_us, int(value)))
    return points
