# SPDX-License-Identifier: Apache-2.0
"""The captures of one run while it happens: tcpdump at the sender of a flow, and what tcptrace makes of it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from random import Random

from longfat.guest import capture, traffic
from longfat.guest.processes import finish, started
from longfat.guest.reports import write_points
from longfat.guest.stage import Stage
from longfat.runspec import Flow


class Captures:
    """The captures of all flows that are sent from this machine and are to be captured."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._ports = traffic.ports(stage.spec)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start tcpdump for each flow."""
        for flow in self._stage.spec.flows:
            if flow.name in self._stage.spec.probes.capture_flows and self._stage.here(flow.sender):
                self._running[flow.name] = self._tcpdump(flow)

    def finish(self) -> dict[str, dict[str, int]]:
        """End tcpdump, read what it took; how many packets that are, for achieved.json."""
        if self._running:
            time.sleep(capture.FLUSH_S)
        return {name: self._end(name, process) for name, process in self._running.items()}

    def _tcpdump(self, flow: Flow) -> subprocess.Popen[bytes]:
        network, scratch = self._stage.network, self._stage.scratch
        interface = network.ports[flow.sender][0].name
        output = self._stage.cleanup.enter_context((scratch / f"{flow.name}.tcpdump").open("wb"))
        command = capture.tcpdump_command(interface, self._ports[flow.name], scratch / f"{flow.name}.pcap")
        return started(self._stage.cleanup, network.start_tool(flow.sender, command, output))

    def _end(self, name: str, process: subprocess.Popen[bytes]) -> dict[str, int]:
        stage = self._stage
        process.send_signal(signal.SIGINT)
        finish(process, f"tcpdump of flow {name}")
        counts = capture.parse_tcpdump_counts((stage.scratch / f"{name}.tcpdump").read_text())
        taken, pcap = stage.scratch / f"{name}.pcap", stage.folder / "captures" / f"{name}.pcap"
        loss, random = stage.spec.probes.capture_loss_percent, Random(f"{stage.spec.seed} {name}")
        counts["removed"] = capture.lose_packets(taken, pcap, loss, random)
        taken.unlink()
        stage.show_time()
        drawn = stage.folder / "tcptrace"  # not in scratch: graphs may be larger than the memory
        try:
            graphs = capture.trace(pcap, drawn)
            stage.show_time()
            outstanding = capture.outstanding_data(graphs.outstanding, stage.timeline.origin_epoch_us)
            write_points(stage.folder / "outstanding" / f"{name}.csv", "outstanding_bytes", outstanding)
            throughput = capture.throughput(graphs.throughput, stage.timeline.origin_epoch_us)
            write_points(stage.folder / "throughput" / f"{name}.csv", "bytes_per_s", throughput)
        finally:
            shutil.rmtree(drawn, ignore_errors=True)
        return counts
