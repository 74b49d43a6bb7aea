# SPDX-License-Identifier: Apache-2.0
"""Captures of a run: tcpdump at each place, and the time series of tcptrace for flows at their sender."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING

from longfat.guest import capture
from longfat.guest.files import write_points
from longfat.guest.kinds.kind import Traffic
from longfat.guest.processes import finish, started
from longfat.network import Port, capture_port
from longfat.runspec import Program, Sent

if TYPE_CHECKING:
    from longfat.guest.run import RunContext


class Captures:
    """Captures of a run on this machine, by the names of their files."""

    def __init__(self, context: RunContext, kinds: Iterable[Traffic]) -> None:
        self._context = context
        self._ports = {name: port for kind in kinds for name, port in kind.ports.items()}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start tcpdump for each capture."""
        spec = self._context.spec
        sent = {one.name: one for one in spec.sent}
        for file, (name, place) in spec.probes.captures.items():
            port = capture_port(spec, sent[name], place)
            if self._context.here(port.node):
                self._running[file] = self._tcpdump(file, sent[name], port)

    def finish(self) -> dict[str, dict[str, int]]:
        """End tcpdump, read its files, and return the packet counts for achieved.json."""
        if self._running:
            time.sleep(capture.FLUSH_S)
        counts = {file: self._end(file, process) for file, process in self._running.items()}
        for flow in self._context.spec.traced:
            if flow.name in self._running:
                self._trace(flow.name)
        return counts

    def _tcpdump(self, file: str, one: Sent, port: Port) -> subprocess.Popen[bytes]:
        network, scratch = self._context.network, self._context.scratch
        output = self._context.cleanup.enter_context((scratch / f"{file}.tcpdump").open("wb"))
        hosts = network.topology.address(one.sender), network.topology.address(one.receiver)
        packets = capture.Packets(hosts, self._ports[one.name], fragments=isinstance(one, Program))
        command = capture.tcpdump_command(port.name, packets, scratch / f"{file}.pcap")
        return started(self._context.cleanup, network.start_tool(port.node, command, output))

    def _end(self, file: str, process: subprocess.Popen[bytes]) -> dict[str, int]:
        context = self._context
        process.send_signal(signal.SIGINT)
        finish(process, f"tcpdump of {file}")
        counts = capture.parse_tcpdump_counts((context.scratch / f"{file}.tcpdump").read_text())
        taken, pcap = context.scratch / f"{file}.pcap", context.folder / "captures" / f"{file}.pcap"
        loss, random = context.spec.probes.capture_loss_percent, Random(f"{context.spec.seed} {file}")
        counts["removed"] = capture.copy_headers(taken, pcap, loss, random)
        taken.unlink()
        context.show_time()
        return counts

    def _trace(self, name: str) -> None:
        """Write the time series of tcptrace from the capture of a flow at its sender."""
        context = self._context
        drawn = context.folder / "tcptrace"  # not in scratch: graphs may be larger than the memory
        try:
            graphs = capture.trace(context.folder / "captures" / f"{name}.pcap", drawn)
            context.show_time()
            outstanding = capture.outstanding_data(graphs.outstanding, context.timeline.origin_epoch_us)
            write_points(context.folder / "outstanding" / f"{name}.csv", "outstanding_bytes", outstanding)
            throughput = capture.throughput(graphs.throughput, context.timeline.origin_epoch_us)
            write_points(context.folder / "throughput" / f"{name}.csv", "bytes_per_s", throughput)
        finally:
            shutil.rmtree(drawn, ignore_errors=True)
        context.show_time()
