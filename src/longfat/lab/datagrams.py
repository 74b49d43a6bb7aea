# SPDX-License-Identifier: Apache-2.0
"""UDP traffic and pings of one run while it happens: programs, receiving sockets, and the tables of both."""

from __future__ import annotations

import dataclasses
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from longfat.lab import echo, udp
from longfat.lab.namespaces import inside
from longfat.lab.network import Network
from longfat.lab.processes import finish, started
from longfat.lab.reports import write_points
from longfat.runspec import RunSpec, Udp


@dataclass(frozen=True)
class Timeline:
    """A run's time in microseconds since the measurement's start: now, and what is done at a time or repeatedly."""

    now_us: Callable[[], int]
    at: Callable[[int, Callable[[], None]], None]
    repeat: Callable[[int, Callable[[], None]], None]


class Datagrams:
    """All that a run sends beside TCP."""

    def __init__(self, spec: RunSpec, folder: Path) -> None:
        self._spec = spec
        self._folder = folder
        self._ports = {one.name: udp.FIRST_PORT + k for k, one in enumerate(spec.udp)}
        self._receivers: dict[str, socket.socket] = {}
        self._senders: dict[str, subprocess.Popen[bytes]] = {}
        self._ping: subprocess.Popen[bytes] | None = None
        self._mtu_bytes = min(link.mtu_bytes for link in spec.links)

    def plan(self, network: Network, cleanup: ExitStack, timeline: Timeline) -> None:
        """Open the sockets that UDP traffic goes to; put its start, their samples and the pings on the time line."""
        for one in self._spec.udp:
            with inside(network.pid(one.receiver)):
                self._receivers[one.name] = cleanup.enter_context(udp.open_receiver(self._ports[one.name]))
            timeline.at(one.start_us, partial(self._start_sender, network, cleanup, one))
        probes = self._spec.probes
        if self._receivers and probes.queue_interval_us:
            table = cleanup.enter_context((self._folder / "datagrams.csv").open("w"))
            print(udp.COLUMNS, file=table)
            timeline.repeat(probes.queue_interval_us, lambda: self._sample(timeline.now_us(), table))
        if probes.ping_interval_us:
            timeline.at(0, partial(self._start_ping, network, cleanup, probes.ping_interval_us))

    def _start_sender(self, network: Network, cleanup: ExitStack, one: Udp) -> None:
        """Start one UDP traffic."""
        address = network.topology.address(one.receiver)
        order = {"address": address, "port": self._ports[one.name], "packet_bytes": self._mtu_bytes}
        command = udp.sender_command({**dataclasses.asdict(one), **order})
        output = cleanup.enter_context((self._folder / f"{one.name}.udp.txt").open("wb"))
        self._senders[one.name] = started(cleanup, network.start_tool(one.sender, command, output))

    def _start_ping(self, network: Network, cleanup: ExitStack, interval_us: int) -> None:
        """Start the pings, from the first sender to the first receiver."""
        sender, receiver = (
            next(node.name for node in self._spec.nodes if node.role == role) for role in ("sender", "receiver")
        )
        command = echo.ping_command(network.topology.address(receiver), interval_us)
        output = cleanup.enter_context((self._folder / "ping.txt").open("wb"))
        self._ping = started(cleanup, network.start_tool(sender, command, output))

    def _sample(self, t_us: int, table: TextIO) -> None:
        """Note what has reached each receiving socket."""
        for name, receiver in self._receivers.items():
            packets = udp.received_packets(receiver)
            print(f"{t_us},{name},{packets},{packets * self._mtu_bytes}", file=table)

    def achieved(self) -> list[dict[str, object]]:
        """What has reached each receiving socket, for achieved.json."""
        return [
            {"udp": name, "received_packets": udp.received_packets(receiver)}
            for name, receiver in self._receivers.items()
        ]

    def finish(self, origin_epoch_us: int) -> None:
        """Wait for the senders, end the pings, write their table. Raises LaboratoryError when one of them failed."""
        for name, process in self._senders.items():
            finish(process, f"program of UDP traffic {name}")
        if self._ping:
            self._ping.send_signal(signal.SIGINT)
            finish(self._ping, "ping")
            said = (self._folder / "ping.txt").read_text()
            write_points(self._folder / "pings.csv", "rtt_us", echo.parse_replies(said, origin_epoch_us))
