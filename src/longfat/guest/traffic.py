# SPDX-License-Identifier: Apache-2.0
"""Command lines and CSV reports of iperf2 (2.1) and of the sender with a rate. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from longfat.guest import app_rate, program
from longfat.spec.runspec import Flow, RunSpec

FIRST_PORT = 5001  # iperf2's default port; flow k listens on FIRST_PORT + k
TIMED_OUT = 124  # status of timeout(1) after it has ended its command
_AGAIN = 'for stream in {streams}; do while "$@"; do :; done & done; wait'
# CCAs whose SYN is ECN-capable, which only a listener with the same CCA accepts (tcp_ecn_create_request).
NEEDING_ECN = frozenset({"dctcp"})
BLOCK_BYTES = 1 << 20  # bytes of one system call; iperf2's default is 128 KiB
ALL_BLOCKS_BYTES = 64 * BLOCK_BYTES  # for all connections at one end, which fill their blocks page by page
PAGE_BYTES = 4096
LEAST_CONNECTIONS = 200  # of a run, from which its flows share processes; with fewer each flow has its own iperf2
CROWD = "longfat.guest.crowd"


def ports(spec: RunSpec) -> dict[str, int]:
    """Return the receiving port of each flow by its name."""
    return {flow.name: FIRST_PORT + k for k, flow in enumerate(spec.flows)}


def block_bytes(spec: RunSpec) -> int:
    """Return the bytes of one system call of a connection, fewer in a run with many connections."""
    connections = sum(flow.streams for flow in spec.flows)
    share = ALL_BLOCKS_BYTES // max(connections, 1) // PAGE_BYTES * PAGE_BYTES
    return min(BLOCK_BYTES, max(share, PAGE_BYTES))


def server_command(flow: Flow, port: int, block: int = BLOCK_BYTES) -> list[str]:
    """Return the receiving iperf2: it ends with the flow's connections, unless further connections follow."""
    command = ["iperf", "-s", "-p", str(port), "-l", str(block), "-y", "C"]
    if flow.transfer_bytes is None:
        command += ["-P", str(flow.streams)]
    if flow.cca in NEEDING_ECN:
        command += ["-Z", flow.cca]
    return command + _window(flow.window_bytes)


def client_command(flow: Flow, address: str, port: int, block: int = BLOCK_BYTES) -> list[str]:
    """Return the sending iperf2, with the CCA by ``-Z`` and the duration by ``-t`` in seconds.

    For transfers (``-n``) a shell starts the next connection of each stream, and timeout(1) ends them all. The sender
    of a flow with a rate is the project's own.
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
    """Return the exit status of a successful sender."""
    return 0 if flow.transfer_bytes is None else TIMED_OUT


def crowd(spec: RunSpec) -> dict[str, Flow]:
    """Return the flows of a run that share processes by name; none in a run with few connections."""
    plain = {flow.name: flow for flow in spec.flows if flow.transfer_bytes is None and flow.rate_bps is None}
    return plain if sum(flow.streams for flow in plain.values()) >= LEAST_CONNECTIONS else {}


def crowd_sender(flows: Iterable[tuple[Flow, str, int]], origin_ns: int) -> list[str]:
    """Return the command of a host's sender of many flows, each with its receiver's address and port.

    Flows start at their times after ``origin_ns`` of CLOCK_MONOTONIC.
    """
    orders = [
        {
            "flow": [flow.start_us, flow.duration_us, flow.streams, flow.cca],
            "window": flow.send_window_bytes or flow.window_bytes,
            "to": [address, port],
        }
        for flow, address, port in flows
    ]
    return program.command(CROWD, "send", {"origin_ns": origin_ns, "flows": orders})


def crowd_receiver(flows: Iterable[tuple[Flow, int]]) -> list[str]:
    """Return the command of a host's receiver of many flows, each with its port."""
    orders = [
        {
            "port": port,
            "streams": flow.streams,
            "window": flow.window_bytes,
            "cca": flow.cca if flow.cca in NEEDING_ECN else None,
        }
        for flow, port in flows
    ]
    return program.command(CROWD, "receive", {"flows": orders})


def _window(requested_bytes: int | None) -> list[str]:
    return [] if requested_bytes is None else ["-w", str(requested_bytes)]


def parse_report(text: str, streams: int) -> tuple[int, int]:
    """Return aggregate bytes and bits per second of a flow's streams from iperf2's ``-y C`` output.

    The rate is of all bytes until the end of the last stream: streams end at different times, and the sum of their
    rates can exceed the rate of the path. A line is ``timestamp,address,port,address,port,id,interval,bytes,bits per
    second``; the line with ``id`` -1 is iperf2's sum and is ignored. Raises ValueError if a stream has no report.
    """
    reports = {fields[5]: (int(fields[7]), int(fields[8])) for fields in _lines(text)}
    if len(reports) != streams:
        raise ValueError(f"iperf2 reported {len(reports)} of {streams} streams: {text.strip()[-300:]!r}")
    total = sum(received for received, _ in reports.values())
    last_s = max((8 * received / rate for received, rate in reports.values() if rate), default=0.0)
    return total, round(8 * total / last_s) if last_s else 0


def parse_blocked(text: str) -> int:
    """Return the total blocked microseconds of the connections of a limited application."""
    return sum(int(fields[9]) for fields in _lines(text))


def parse_transfers(text: str, port: int) -> list[tuple[int, int]]:
    """Return the sender's port and the bytes of each connection to ``port`` in iperf2's ``-y C`` output."""
    return [(next(end for end in map(int, fields[2:5:2]) if end != port), int(fields[7])) for fields in _lines(text)]


def _lines(text: str) -> Iterator[list[str]]:
    """Yield the fields of each line about a connection."""
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) >= 9 and fields[5].isdigit():
            yield fields
