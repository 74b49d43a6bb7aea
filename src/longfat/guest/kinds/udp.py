# SPDX-License-Identifier: Apache-2.0
"""The UDP traffic of a run: sending programs, receiving sockets, and the table of arrivals."""

from __future__ import annotations

import dataclasses
import socket
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from longfat.guest import udp
from longfat.guest.files import report_of, write_json
from longfat.guest.processes import end_with_run, finish
from longfat.spec.network import longest_rtt_us, smallest_mtu_bytes
from longfat.spec.runspec import RunSpec, Udp

if TYPE_CHECKING:
    from longfat.guest.run import RunContext

ARRIVAL_S = 0.2  # no packet is under way if none arrives for this time, or for a round-trip time if that is longer


class Traffic:
    """All UDP traffic of a run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self.ports = {one.name: udp.FIRST_PORT + k for k, one in enumerate(context.spec.udp)}
        self._receivers: dict[str, socket.socket] = {}
        self._senders: dict[str, subprocess.Popen[bytes]] = {}
        self._in_time: dict[str, int] = {}
        self._mtu_bytes = smallest_mtu_bytes(context.spec)

    def prepare(self) -> None:
        """Do nothing: the kernel counts arriving packets."""

    def plan(self) -> None:
        """Open the receiving sockets; plan the start of the senders and the samples."""
        context = self._context
        for one in context.spec.udp:
            with context.network.inside(one.receiver):
                self._receivers[one.name] = context.cleanup.enter_context(udp.open_receiver(self.ports[one.name]))
            context.timeline.at(one.start_us, partial(self._start_sender, one))
            context.timeline.at(one.start_us + one.duration_us, partial(self._note_received, one))
        if self._receivers and context.spec.probes.queue_interval_us:
            table = context.cleanup.enter_context((context.folder / "datagrams.csv").open("w"))
            print(udp.COLUMNS, file=table)
            context.timeline.repeat(context.spec.probes.queue_interval_us, partial(self._sample, table))

    def finish(self) -> None:
        """Wait for the senders and for packets under way, and write udp.json."""
        for name, process in self._senders.items():
            finish(process, f"program of UDP traffic {name}", within_s=self._context.drain_s)
        arrived = self._arrived()
        while True:
            time.sleep(max(ARRIVAL_S, longest_rtt_us(self._context.spec) / 1e6))
            before, arrived = arrived, self._arrived()
            if arrived == before:
                break
        write_json(self._context.folder / "udp.json", [self._report(one, arrived) for one in self._context.spec.udp])

    def achieved(self) -> dict[str, Any]:
        """Return no members: UDP traffic has no settings."""
        return {}

    def _report(self, one: Udp, arrived: dict[str, int]) -> dict[str, Any]:
        return report_of("udp", one) | {
            "packet_bytes": self._mtu_bytes,
            "due_packets": round(udp.due_bytes(dataclasses.asdict(one), one.duration_us / 1e6) / self._mtu_bytes),
            "sent_packets": int((self._context.folder / f"{one.name}.udp.txt").read_text()) // self._mtu_bytes,
            "received_packets": self._in_time[one.name],
            "arrived_packets": arrived[one.name],
        }

    def _arrived(self) -> dict[str, int]:
        return {name: udp.received_packets(receiver) for name, receiver in self._receivers.items()}

    def _note_received(self, one: Udp) -> None:
        self._in_time[one.name] = udp.received_packets(self._receivers[one.name])

    def _start_sender(self, one: Udp) -> None:
        address = self._context.network.topology.address(one.receiver)
        order = {"address": address, "port": self.ports[one.name], "packet_bytes": self._mtu_bytes}
        command = udp.sender_command({**dataclasses.asdict(one), **order})
        output = self._context.output(f"{one.name}.udp.txt")
        self._senders[one.name] = end_with_run(
            self._context.cleanup, self._context.network.start_tool(one.sender, command, output)
        )

    def _sample(self, table: TextIO) -> None:
        """Write the packets received by each socket."""
        t_us = self._context.timeline.now_us()
        for name, receiver in self._receivers.items():
            packets = udp.received_packets(receiver)
            print(f"{t_us},{name},{packets},{packets * self._mtu_bytes}", file=table)


def report(spec: RunSpec, folder: Path) -> None:
    """Do nothing: datagrams.csv and udp.json are complete."""
