# SPDX-License-Identifier: Apache-2.0
"""The captures of one run while it happens: tcpdump at each place, and tcptrace's series of flows at their sender."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from random import Random

from longfat.guest import capture
from longfat.guest.kinds.kind import Traffic
from longfat.guest.processes import finish, started
from longfat.guest.reports import write_points
from longfat.guest.stage import Stage
from longfat.network import Port, capture_port
from longfat.runspec import Program, Sent


class Captures:
    """The captures of a run that are taken on this machine, by the names of their files."""

    def __init__(self, stage: Stage, kinds: Iterable[Traffic]) -> None:
        self._stage = stage
        self._ports = {name: port for kind in kinds for name, port in kind.ports.items()}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start tcpdump for each capture."""
        spec = self._stage.spec
        sent = {one.name: one for one in spec.sent}
        for file, (name, place) in spec.probes.captures.items():
            port = capture_port(spec, sent[name], place)
            if self._stage.here(port.node):
                self._running[file] = self._tcpdump(file, sent[name], port)

    def finish(self) -> dict[str, dict[str, int]]:
        """End tcpdump, read its files, and return the counts of packets for achieved.json."""
        if self._running:
            time.sleep(capture.FLUSH_S)
        counts = {file: self._end(file, process) for file, process in self._running.items()}
        for flow in self._stage.spec.traced:
            if flow.name in self._running:
                self._trace(flow.name)
        return counts

    def _tcpdump(self, file: str, one: Sent, port: Port) -> subprocess.Popen[bytes]:
        network, scratch = self._stage.network, self._stage.scratch
        output = self._stage.cleanup.enter_context((scratch / f"{file}.tcpdump").open("wb"))
        hosts = network.topology.address(one.sender), network.topology.address(one.receiver)
        packets = capture.Packets(hosts, self._ports[one.name], fragments=isinstance(one, Program))
        command = capture.tcpdump_command(port.name, packets, scratch / f"{file}.pcap")
        return started(self._stage.cleanup, network.start_tool(port.node, command, output))

    def _end(self, file: str, process: subprocess.Popen[bytes]) -> dict[str, int]:
        stage = self._stage
        process.send_signal(signal.SIGINT)
        finish(process, f"tcpdump of {file}")
        counts = capture.parse_tcpdump_counts((stage.scratch / f"{file}.tcpdump").read_text())
        taken, pcap = stage.scratch / f"{file}.pcap", stage.folder / "captures" / f"{file}.pcap"
        loss, random = stage.spec.probes.capture_loss_percent, Random(f"{stage.spec.seed} {file}")
        counts["removed"] = capture.copy_headers(taken, pcap, loss, random)
        taken.unlink()
        stage.show_time()
        return counts

    def _trace(self, name: str) -> None:
        """Write what tcptrace reads from the capture of a flow at its sender."""
        stage = self._stage
        drawn = stage.folder / "tcptrace"  # not in scratch: graphs may be larger than the memory
        try:
            graphs = capture.trace(stage.folder / "captures" / f"{name}.pcap", drawn)
            stage.show_time()
            outstanding = capture.outstanding_data(graphs.outstanding, stage.timeline.origin_epoch_us)
            write_points(stage.folder / "outstanding" / f"{name}.csv", "outstanding_bytes", outstanding)
            throughput = capture.throughput(graphs.throughput, stage.timeline.origin_epoch_us)
            write_points(stage.folder / "throughput" / f"{name}.csv", "bytes_per_s", throughput)
        finally:
            shutil.rmtree(drawn, ignore_errors=True)
        stage.show_time()
