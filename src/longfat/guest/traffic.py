# SPDX-License-Identifier: Apache-2.0
"""iperf2 (2.1), and the sender of a limited application: command lines and the reading of CSV reports. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from longfat.guest import app_rate, program
from longfat.runspec import Flow, RunSpec

FIRST_PORT = 5001  # iperf2's default port; flow k listens on FIRST_PORT + k
TIMED_OUT = 124  # timeout(1) had to end its command
_AGAIN = 'for stream in {streams}; do while "$@"; do :; done & done; wait'
# Its SYN is marked as capable of ECN, and only a listener of its kind takes that (tcp_ecn_create_request).
NEEDING_ECN = frozenset({"dctcp"})
BLOCK_BYTES = 1 << 20  # one system call moves this much; iperf2's own default is 128 KiB
ALL_BLOCKS_BYTES = 64 * BLOCK_BYTES  # of one end of all connections: programs fill their blocks, page by page
PAGE_BYTES = 4096


def ports(spec: RunSpec) -> dict[str, int]:
    """The port that each flow is received at, by its name."""
    return {flow.name: FIRST_PORT + k for k, flow in enumerate(spec.flows)}


def block_bytes(spec: RunSpec) -> int:
    """What one system call of a connection moves: in a run of many connections less than else."""
    connections = sum(flow.streams for flow in spec.flows)
    share = ALL_BLOCKS_BYTES // max(connections, 1) // PAGE_BYTES * PAGE_BYTES
    return min(BLOCK_BYTES, max(share, PAGE_BYTES))


def server_command(flow: Flow, port: int, block: int = BLOCK_BYTES) -> list[str]:
    """The receiving iperf2: leaves after the flow's connections have closed, or stays when others follow them."""
    command = ["iperf", "-s", "-p", str(port), "-l", str(block), "-y", "C"]
    if flow.transfer_bytes is None:
        command += ["-P", str(flow.streams)]
    if flow.cca in NEEDING_ECN:
        command += ["-Z", flow.cca]
    return command + _window(flow.window_bytes)


def client_command(flow: Flow, address: str, port: int, block: int = BLOCK_BYTES) -> list[str]:
    """The sending iperf2: CCA by ``-Z``, duration by ``-t`` in seconds.

    Where a connection has only so much to carry (``-n``), a shell starts the next for each stream, and timeout(1) ends
    them all. A flow with a rate is sent by a program of the project.
    """
    if flow.rate_bps is not None:
        order = {name: getattr(flow, name) for name in ("cca", "duration_us", "streams", "rate_bps", "on_us", "off_us")}
        window = flow.send_window_bytes or flow.window_bytes
        return program.command(
            app_rate.MODULE, "send", {**order, "address": address, "port": port, "window_bytes": window}
        )
    seconds = f"{flow.duration_us / 1e6:g}"
    command = ["iperf", "-c", address, "-p", str(port), "-l", str(block), "-Z", flow.cca, "-y", "C"]
    command += _window(flow.send_window_bytes or flow.window_bytes)
    if flow.transfer_bytes is None:
        return [*command, "-t", seconds, "-P", str(flow.streams)]
    again = _AGAIN.format(streams=" ".join(str(number) for number in range(flow.streams)))
    return ["timeout", seconds, "sh", "-c", again, "sh", *command, "-n", str(flow.transfer_bytes)]


def client_status(flow: Flow) -> int:
    """What the sending end ends with when all is well: timeout(1) has a number of its own."""
    return 0 if flow.transfer_bytes is None else TIMED_OUT


def _window(requested_bytes: int | None) -> list[str]:
    return [] if requested_bytes is None else ["-w", str(requested_bytes)]


def parse_report(text: str, streams: int) -> tuple[int, int]:
    """Bytes and bits per second of a flow from iperf2's ``-y C`` output, all its streams together.

    The rate is that of all bytes until the last stream's end: streams end at different times, and the sum of their
    own rates can exceed that of the path. A line is
    ``timestamp,address,port,address,port,id,interval,bytes,bits per second``; ``id`` -1 is iperf2's own sum and is
    left out. Raises ValueError when a stream has no report.
    """
    reports = {fields[5]: (int(fields[7]), int(fields[8])) for fields in _lines(text)}
    if len(reports) != streams:
        raise ValueError(f"iperf2 reported {len(reports)} of {streams} streams: {text.strip()[-300:]!r}")
    total = sum(received for received, _ in reports.values())
    last_s = max((8 * received / rate for received, rate in reports.values() if rate), default=0.0)
    return total, round(8 * total / last_s) if last_s else 0


def parse_blocked(text: str) -> int:
    """Microseconds in which the connections of a limited application took no data, of all connections together."""
    return sum(int(fields[9]) for fields in _lines(text))


def parse_transfers(text: str, port: int) -> list[tuple[int, int]]:
    """The sender's port and the bytes of each connection that iperf2's ``-y C`` output tells of, in order of their end.

    ``port`` is that which all go to.
    """
    return [(next(end for end in map(int, fields[2:5:2]) if end != port), int(fields[7])) for fields in _lines(text)]


def _lines(text: str) -> Iterator[list[str]]:
    """The fields of each line that tells of one connection."""
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) >= 9 and fields[5].isdigit():
            yield fields
