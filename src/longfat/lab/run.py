# SPDX-License-Identifier: Apache-2.0
"""The life of one run: build, start, sample, collect. Writes the raw files of docs/formats.md.

Whatever goes wrong ends in outcome.json with status ``failed`` and the reason: a run is never half told.
"""

from __future__ import annotations

import heapq
import platform
import shutil
import signal
import socket
import subprocess
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import IO, Any, Protocol, TextIO

from longfat.lab import arrivals, capture, qdisc, queues, sockets, traffic
from longfat.lab.ccas import offered_ccas, parameter_names, refused_ccas
from longfat.lab.counters import difference, read_counters
from longfat.lab.datagrams import Datagrams, Timeline
from longfat.lab.namespaces import inside
from longfat.lab.network import Maker, Network, Part, whole
from longfat.lab.pressure import pressure_us
from longfat.lab.processes import DRAIN_S, finish, started
from longfat.lab.reports import flow_results, web_results, write_json, write_points
from longfat.lab.sysctls import LaboratoryError
from longfat.lab.web import looks_us
from longfat.lab.web_traffic import WebTraffic
from longfat.runspec import Flow, RunSpec

LEAD_US = 100_000  # servers and captures are up this long before the measurement starts
DROP_WINDOW_US = 200_000  # a deliberate drop must have happened by then
CLOCK_US = 100_000  # how often the virtual clock is shown to the host
REPORT_S = 0.5  # how long after a connection iperf2 may write of it
ESTABLISHED = "01"  # of enum tcp_states (net/tcp_states.h), as /proc/net/tcp shows it


class Meeting(Protocol):
    """Where the machines of a run wait for each other."""

    def start(self, network: Network) -> None:
        """Called when all is ready here; returns at the moment when the measurement starts everywhere."""

    def leave(self) -> None:
        """Called when everything has been read here; returns when no machine needs the others' ends of its links."""


class Alone:
    """The meeting of a machine that has the whole run."""

    def start(self, network: Network) -> None:
        """Leave servers and captures some time."""
        time.sleep(LEAD_US / 1e6)

    def leave(self) -> None:
        """Nobody is there to wait for."""


def run(
    spec: RunSpec,
    folder: Path,
    scratch: Path,
    maker: Maker | None = None,
    part: Part | None = None,
    meeting: Meeting | None = None,
) -> None:
    """Execute ``spec`` and write its raw files into ``folder``. ``scratch`` is for what is not kept.

    ``maker`` says what hosts are made of; Mininet's network namespaces when it is None. Where other machines take
    part, ``part`` says what of the run is here; flows.json needs the files of all of them and is not written then.
    """
    outcome: dict[str, Any] = {"status": "ok", "reason": None, "end_us": 0}
    measurement = Measurement(spec, folder, scratch, maker, part or whole(spec), meeting or Alone())
    try:
        measurement.execute()
        if part is None:
            write_json(folder / "flows.json", flow_results(spec, folder))
            if spec.web:
                write_json(folder / "web.json", web_results(spec, folder))
    except (LaboratoryError, OSError, ValueError, subprocess.SubprocessError) as error:
        outcome.update(status="failed", reason=f"{type(error).__name__}: {error}")
        (folder / "traceback.txt").write_text(traceback.format_exc())
    outcome["end_us"] = measurement.now_us() if measurement.origin_ns else 0
    write_json(folder / "outcome.json", outcome)


class Measurement:
    """One run, or one machine's part of it, while it happens: its processes, probes and time line."""

    def __init__(
        self, spec: RunSpec, folder: Path, scratch: Path, maker: Maker | None, part: Part, meeting: Meeting
    ) -> None:
        self.spec = spec
        self._maker = maker
        self._part = part
        self._meeting = meeting
        self.folder = folder
        self.scratch = scratch
        self.origin_ns = 0
        self.origin_epoch_us = 0
        self.ports = {flow.name: traffic.FIRST_PORT + k for k, flow in enumerate(spec.flows)}
        self.sending = [flow for flow in spec.flows if flow.sender in part.nodes]
        self.receiving = [flow for flow in spec.flows if flow.receiver in part.nodes]
        self.flow_ccas: dict[str, str] = {}
        self.flow_cca_values: dict[str, dict[str, int]] = {}
        self.flow_min_rtt_us: dict[str, int] = {}
        self.web = WebTraffic(spec, folder, scratch)
        self.datagrams = Datagrams(spec, folder)
        self._streams: dict[tuple[str, int], int] = {}
        self._timeline: list[tuple[int, int, Callable[[], None]]] = []

    def now_us(self) -> int:
        """Microseconds since the start of the measurement."""
        return (time.monotonic_ns() - self.origin_ns) // 1000

    def execute(self) -> None:
        """Build the network, let the flows run and write every file but outcome.json."""
        offered = offered_ccas()
        write_json(self.folder / "environment.json", {"kernel_release": platform.release(), "ccas": offered})
        if reasons := refused_ccas(self.spec, offered):
            raise LaboratoryError("; ".join(reasons))
        for name in ("iperf", "captures", "outstanding", "throughput"):
            (self.folder / name).mkdir()
        with Network(self.spec, self.scratch, self._maker, self._part) as network, ExitStack() as cleanup:
            self._measure(network, cleanup)

    def _measure(self, network: Network, cleanup: ExitStack) -> None:
        counters_before = {node.name: read_counters(network, node.name) for node in network.nodes}
        drops_before = network.drops()
        captured = [flow for flow in self.sending if flow.name in self.spec.probes.capture_flows]
        captures = {flow.name: self._start_capture(network, cleanup, flow) for flow in captured}
        servers = {flow.name: self._start_server(network, cleanup, flow) for flow in self.receiving}
        self.web.start_servers(network, cleanup)
        self._meeting.start(network)
        self.origin_ns, self.origin_epoch_us = time.monotonic_ns(), time.time_ns() // 1000
        pressure_before = pressure_us()

        clients: dict[str, subprocess.Popen[bytes]] = {}
        for flow in self.sending:
            self._at(flow.start_us, partial(self._start_client, network, cleanup, flow, clients))
        for users in self.spec.web:
            self._at(users.start_us, partial(self.web.start_users, network, cleanup, users, self.origin_ns))
            for t_us in looks_us(users):
                self._at(t_us, partial(self.web.look, network, users))
        self.datagrams.plan(network, cleanup, Timeline(self.now_us, self._at, self._repeat))
        deliberate = self._plan_drops(network)
        self._plan_probes(network, cleanup)
        self._repeat(CLOCK_US, self._tell_time)
        self._play()
        pressure = None if pressure_before is None else (pressure_us() or 0) - pressure_before

        for flow in self.spec.flows:
            if flow in self.sending:
                finish(clients[flow.name], f"iperf2 client of flow {flow.name}", traffic.client_status(flow))
            if flow in self.receiving:
                if flow.transfer_bytes is not None:
                    self._wait_for_last_transfer(network, flow)
                    servers[flow.name].terminate()
                finish(servers[flow.name], f"iperf2 server of flow {flow.name}")
        self.web.finish()
        self.datagrams.finish(self.origin_epoch_us)
        achieved = network.achieved(drops_before)
        for interface in achieved["interfaces"]:
            interface["deliberate_drops"] = deliberate.get(interface["interface"], 0)
        counters = {
            node.name: difference(counters_before[node.name], read_counters(network, node.name))
            for node in network.nodes
        }
        achieved["flows"] = [
            {
                "flow": f.name,
                "cca": self.flow_ccas.get(f.name),
                "cca_parameters": self._parameters(f),
                "base_rtt_us": self.flow_min_rtt_us.get(f.name),
            }
            for f in self.sending
        ]
        if captures:
            time.sleep(capture.FLUSH_S)
        achieved["capture"] = {name: self._end_capture(name, process) for name, process in captures.items()}
        (self.folder / "clock").unlink(missing_ok=True)
        achieved["cpu_pressure_us"] = pressure
        if self.spec.web:
            achieved["web"] = self.web.achieved()
        if self.spec.udp:
            achieved["udp"] = self.datagrams.achieved()
        achieved["memory_pressure"] = sum(c.get("TcpExt.TCPMemoryPressures", 0) for c in counters.values())
        write_json(self.folder / "counters.json", counters)
        write_json(self.folder / "achieved.json", achieved)
        self._meeting.leave()

    # -- traffic ---------------------------------------------------------------------------------------

    def _output(self, cleanup: ExitStack, flow: Flow, end: str) -> IO[bytes]:
        return cleanup.enter_context((self.folder / "iperf" / f"{flow.name}.{end}.txt").open("wb"))

    def _start_server(self, network: Network, cleanup: ExitStack, flow: Flow) -> subprocess.Popen[bytes]:
        command = traffic.server_command(flow, self.ports[flow.name])
        return started(cleanup, network.start(flow.receiver, command, self._output(cleanup, flow, "server")))

    def _start_client(
        self, network: Network, cleanup: ExitStack, flow: Flow, clients: dict[str, subprocess.Popen[bytes]]
    ) -> None:
        address = network.topology.address(flow.receiver)
        command = traffic.client_command(flow, address, self.ports[flow.name])
        process = network.start(flow.sender, command, self._output(cleanup, flow, "client"))
        clients[flow.name] = started(cleanup, process)

    def _wait_for_last_transfer(self, network: Network, flow: Flow) -> None:
        """Let what is under way arrive. Raises LaboratoryError when it does not."""
        deadline = time.monotonic() + DRAIN_S
        while connected(network, flow.receiver, self.ports[flow.name]):
            if time.monotonic() > deadline:
                raise LaboratoryError(f"connections of flow {flow.name} are open {DRAIN_S:g} s after its end")
            time.sleep(REPORT_S)
        time.sleep(REPORT_S)  # iperf2 writes its last report

    def _parameters(self, flow: Flow) -> dict[str, int]:
        """Parameters of the CCA as the flow's sockets showed them, without the numbers of its state."""
        names = parameter_names(flow.cca)
        return {name: value for name, value in self.flow_cca_values.get(flow.name, {}).items() if name in names}

    # -- time line -------------------------------------------------------------------------------------

    def _at(self, t_us: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._timeline, (t_us, len(self._timeline), action))

    def _play(self) -> None:
        """Do everything on the time line at its time, then wait for the end of the last flow."""
        while self._timeline:
            t_us, _, action = heapq.heappop(self._timeline)
            self._sleep_until(t_us)
            action()
        self._sleep_until(self.spec.end_us)

    def _sleep_until(self, t_us: int) -> None:
        wait_us = t_us - self.now_us()
        if wait_us > 0:
            time.sleep(wait_us / 1e6)

    def _plan_drops(self, network: Network) -> dict[str, int]:
        """Put each deliberate drop on the time line; the result fills with the drops of each interface."""
        happened: dict[str, int] = {}

        def begin(node: str, interface: str) -> None:
            network.batch(node, "tc", [qdisc.drop_filter(interface)])

        def end(node: str, interface: str) -> None:
            drops = network.filter_drops(node, interface)
            happened[interface] = happened.get(interface, 0) + drops
            network.batch(node, "tc", [qdisc.drop_filter_removal(interface)])

        for port in (port for ports in network.ports.values() for port in ports):
            for drop in port.egress.drops:
                self._at(drop.at_us, partial(begin, port.node, port.name))
                self._watch_drop(drop.at_us, network, port.node, port.name, end)
        return happened

    def _watch_drop(
        self, at_us: int, network: Network, node: str, interface: str, end: Callable[[str, str], None]
    ) -> None:
        """End the drop filter as soon as its one drop has happened, or when its time is over."""
        step_us = qdisc.looks_us(self.spec.links)
        deadline = at_us + DROP_WINDOW_US

        def look(t_us: int) -> None:
            if t_us >= deadline or network.filter_drops(node, interface):
                end(node, interface)
            else:
                self._at(t_us + step_us, lambda: look(t_us + step_us))

        self._at(at_us + step_us, lambda: look(at_us + step_us))

    # -- probes ----------------------------------------------------------------------------------------

    def _plan_probes(self, network: Network, cleanup: ExitStack) -> None:
        probes = self.spec.probes
        if probes.socket_interval_us:
            self._plan_socket_probe(network, cleanup, probes.socket_interval_us)
        if probes.queue_interval_us:
            self._plan_queue_probe(network, cleanup, probes.queue_interval_us)
            if self.spec.marks:
                self._plan_arrival_probe(network, cleanup, probes.queue_interval_us)

    def _plan_socket_probe(self, network: Network, cleanup: ExitStack, interval_us: int) -> None:
        table = cleanup.enter_context((self.folder / "sockets.csv").open("w"))
        print(sockets.COLUMNS, file=table)
        channels: list[socket.socket] = []
        for sender in sorted({flow.sender for flow in self.sending}):
            with inside(network.pid(sender)):
                channels.append(cleanup.enter_context(sockets.open_probe()))
        names = {port: name for name, port in self.ports.items()}

        def sample() -> None:
            t_us = self.now_us()
            for channel in channels:
                found = [i for i in sockets.read_sockets(channel) if i.destination_port in names]
                for info in sorted(found, key=lambda i: (i.destination_port, self._stream(names, i))):
                    name = names[info.destination_port]
                    self.flow_ccas[name] = info.cca
                    self.flow_cca_values[name] = info.cca_values
                    if info.min_rtt:
                        self.flow_min_rtt_us[name] = min(info.min_rtt, self.flow_min_rtt_us.get(name, info.min_rtt))
                    print(sockets.row(t_us, name, self._stream(names, info), info), file=table)

        self._repeat(interval_us, sample)

    def _stream(self, names: dict[int, str], info: sockets.TcpInfo) -> int:
        """Number of the connection within its flow, in order of appearance."""
        key = (names[info.destination_port], info.source_port)
        taken = sum(flow == key[0] for flow, _ in self._streams)
        return self._streams.setdefault(key, taken)

    def _plan_queue_probe(self, network: Network, cleanup: ExitStack, interval_us: int) -> None:
        table = cleanup.enter_context((self.folder / "queues.csv").open("w"))
        print(queues.COLUMNS, file=table)
        channels: list[tuple[str, socket.socket, dict[int, str]]] = []
        for node, ports in network.ports.items():
            shaped = {port.name for port in ports if port.egress.rate_bps}
            if shaped:
                with inside(network.pid(node)):
                    indices = {index: name for index, name in socket.if_nameindex() if name in shaped}
                    channels.append((node, cleanup.enter_context(queues.open_probe()), indices))

        def sample() -> None:
            t_us = self.now_us()
            for node, channel, indices in channels:
                for state in queues.read_qdiscs(channel):
                    if state.interface_index in indices and state.handle == qdisc.QUEUE_HANDLE:
                        print(queues.row(t_us, node, indices[state.interface_index], state), file=table)

        self._repeat(interval_us, sample)

    def _plan_arrival_probe(self, network: Network, cleanup: ExitStack, interval_us: int) -> None:
        table = cleanup.enter_context((self.folder / "arrivals.csv").open("w"))
        print(arrivals.COLUMNS, file=table)
        counters: list[tuple[str, TextIO]] = []
        for receiver in sorted({flow.receiver for flow in self.receiving}):
            with inside(network.pid(receiver)):
                counters.append((receiver, cleanup.enter_context(arrivals.open_probe())))

        def sample() -> None:
            t_us = self.now_us()
            for node, counted in counters:
                print(arrivals.row(t_us, node, *arrivals.read_arrivals(counted)), file=table)

        self._repeat(interval_us, sample)

    def _tell_time(self) -> None:
        """Show the host that the run goes on: it ends a guest that shows it no longer."""
        (self.folder / "clock").write_text(str(self.now_us()))

    def _repeat(self, interval_us: int, action: Callable[[], None]) -> None:
        """``action`` every ``interval_us`` from the first interval to just before the last flow ends."""
        for t_us in range(interval_us, self.spec.end_us, interval_us):
            self._at(t_us, action)

    # -- captures --------------------------------------------------------------------------------------

    def _start_capture(self, network: Network, cleanup: ExitStack, flow: Flow) -> subprocess.Popen[bytes]:
        interface = network.ports[flow.sender][0].name
        output = cleanup.enter_context((self.scratch / f"{flow.name}.tcpdump").open("wb"))
        command = capture.tcpdump_command(interface, self.ports[flow.name], self.scratch / f"{flow.name}.pcap")
        return started(cleanup, network.start_tool(flow.sender, command, output))

    def _end_capture(self, name: str, process: subprocess.Popen[bytes]) -> dict[str, int]:
        process.send_signal(signal.SIGINT)
        finish(process, f"tcpdump of flow {name}")
        counts = capture.parse_tcpdump_counts((self.scratch / f"{name}.tcpdump").read_text())
        taken, pcap = self.scratch / f"{name}.pcap", self.folder / "captures" / f"{name}.pcap"
        loss, random = self.spec.probes.capture_loss_percent, Random(f"{self.spec.seed} {name}")
        counts["removed"] = capture.lose_packets(taken, pcap, loss, random)
        taken.unlink()
        self._tell_time()
        drawn = self.folder / "tcptrace"  # not in scratch: graphs may be larger than the memory
        try:
            graphs = capture.trace(pcap, drawn)
            self._tell_time()
            outstanding = capture.outstanding_data(graphs.outstanding, self.origin_epoch_us)
            write_points(self.folder / "outstanding" / f"{name}.csv", "outstanding_bytes", outstanding)
            throughput = capture.throughput(graphs.throughput, self.origin_epoch_us)
            write_points(self.folder / "throughput" / f"{name}.csv", "bytes_per_s", throughput)
        finally:
            shutil.rmtree(drawn, ignore_errors=True)
        return counts


def connected(network: Network, node: str, port: int) -> bool:
    """Whether a node has a connection to a port of its own that the other end has not closed."""
    with inside(network.pid(node)):
        rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(f":{port:04X}") and row[3] == ESTABLISHED for row in rows)
