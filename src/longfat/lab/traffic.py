# SPDX-License-Identifier: Apache-2.0
"""iperf2 (2.1): command lines and the reading of its CSV reports. Pure."""

from __future__ import annotations

from longfat.runspec import Flow

FIRST_PORT = 5001  # iperf2's default port; flow k listens on FIRST_PORT + k
BLOCK_BYTES = 1 << 20  # one system call moves this much; iperf2's own default is 128 KiB


def server_command(flow: Flow, port: int) -> list[str]:
    """The receiving iperf2: leaves after the flow's connections have closed."""
    command = ["iperf", "-s", "-p", str(port), "-l", str(BLOCK_BYTES), "-P", str(flow.streams), "-y", "C"]
    return command + _window(flow.window_bytes)


def client_command(flow: Flow, address: str, port: int) -> list[str]:
    """The sending iperf2: CCA by ``-Z``, duration by ``-t`` in seconds."""
    seconds = f"{flow.duration_us / 1e6:g}"
    command = ["iperf", "-c", address, "-p", str(port), "-t", seconds, "-l", str(BLOCK_BYTES)]
    command += ["-Z", flow.cca, "-P", str(flow.streams), "-y", "C"]
    return command + _window(flow.send_window_bytes or flow.window_bytes)


def _window(requested_bytes: int | None) -> list[str]:
    return [] if requested_bytes is None else ["-w", str(requested_bytes)]


def parse_report(text: str, streams: int) -> tuple[int, int]:
    """Bytes and bits per second of a flow from iperf2's ``-y C`` output, all its streams together.

    The rate is that of all bytes until the last stream's end: streams end at different times, and the sum of their
    own rates can exceed that of the path. A line is
    ``timestamp,address,port,address,port,id,interval,bytes,bits per second``; ``id`` -1 is iperf2's own sum and is
    left out. Raises ValueError when a stream has no report.
    """
    reports: dict[str, tuple[int, int]] = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) < 9 or not fields[5].lstrip("-").isdigit() or fields[5] == "-1":
            continue
        reports[fields[5]] = (int(fields[7]), int(fields[8]))
    if len(reports) != streams:
        raise ValueError(f"iperf2 reported {len(reports)} of {streams} streams: {text.strip()[-300:]!r}")
    total = sum(received for received, _ in reports.values())
    last_s = max((8 * received / rate for received, rate in reports.values() if rate), default=0.0)
    return total, round(8 * total / last_s) if last_s else 0
