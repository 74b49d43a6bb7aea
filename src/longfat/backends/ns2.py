# SPDX-License-Identifier: Apache-2.0
"""Runs in ns-2, the simulator of studies around 2004, with its TCP and RED.

Owns the translation of a RunSpec into an OTcl script, and of the output of ns-2 into raw files. Settings without a
counterpart in ns-2 are refused, except sysctls other than SACK and ECN, which are recorded as declared.
"""

from __future__ import annotations

import bisect
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from longfat.backends import simulated
from longfat.backends.protocol import BEYOND_KERNELS, Capabilities, Feature, Traits
from longfat.backends.registry import Say, refused_features
from longfat.guest.ccas import refused_ccas
from longfat.spec.network import IP_AND_TCP_HEADER_BYTES, TIMESTAMP_OPTION_BYTES, Port, lay_out, smallest_mtu_bytes
from longfat.spec.runspec import Egress, Flow, Node, Queue, RunSpec
from longfat.system.errors import RigError
from longfat.system.scratch import scratch_in

TRAITS = {"ns2": Traits(kernel="none", can=frozenset({Feature.RED, Feature.CLOCKS}) | BEYOND_KERNELS)}
FOLDER = Path(__file__).parent
MODEL = FOLDER / "ns2_model.tcl"
CCAS = frozenset({"reno", "highspeed"})
AGENTS = {
    "sack": ("TCP/Sack1", "TCPSink/Sack1"),
    "newreno": ("TCP/Newreno", "TCPSink"),
    "reno": ("TCP/Reno", "TCPSink"),
}
HEADER_BYTES = IP_AND_TCP_HEADER_BYTES + TIMESTAMP_OPTION_BYTES  # the kernel's segments have the same payload
UNSHAPED_MBPS = 100_000
UNSHAPED_PACKETS = 1_000_000
UNLIMITED_SEGMENTS = 1_000_000
TICK_S = 0.001  # granularity of RTTs and timers in ns-2
ALWAYS_MARK = 2.0  # above every probability: RED marks the chosen packets instead of dropping them
INFINITE_SSTHRESH = 2147483647  # TCP_INFINITE_SSTHRESH of the Linux kernel
SEED_MODULUS = 2**31 - 2  # the range of ns-2's generator: 1 to 2^31 - 2
ESTABLISHED, OPEN, CWR = 1, 0, 2  # values of the Linux kernel in tcp_info
# Parameters of HighSpeed TCP by the last part of their sysctls: name and unit in ns-2.
HIGHSPEED = {
    "low_window": ("low_window_", 1.0),
    "high_window_milli": ("high_window_", 1e-3),
    "high_p_ppb": ("high_p_", 1e-9),
    "high_decrease_ppm": ("high_decrease_", 1e-6),
}
# Parameters with a fixed value in ns-2, which halves the window at a loss that ends slow start.
FIXED = {"current_window": "0", "a_ppm": "1000000", "b_ppm": "500000"}

ARRIVAL_COLUMNS = "t_us,node,packets,marked_packets\n"


@dataclass(frozen=True)
class Ns2Backend:
    """Runs in ns-2. ``program`` is the simulator, or None for ``reasons``."""

    program: str | None
    version: str
    reasons: tuple[str, ...]

    name = "ns2"

    def pins(self) -> dict[str, str]:
        """Return the version of ns-2 and the digest of model and translation."""
        return simulated.pins(self.name, self.version, MODEL, Path(__file__))

    def capabilities(self) -> Capabilities:
        """Return the algorithms with a counterpart in ns-2."""
        return Capabilities(CCAS, self.reasons)

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """Return features, algorithms and parameters of a run that ns-2 lacks."""
        reasons = [*refused_ccas(spec, CCAS), *refused_features(self.name, spec)]
        for flow in spec.flows:
            for name, value in spec.cca_parameters(flow).items():
                if value != FIXED.get(name, value):
                    reasons.append(f"ns-2 has {name} = {FIXED[name]} only, and {flow.name} has {value}")
        return tuple(dict.fromkeys(reasons))

    def run(self, spec: RunSpec, folder: Path) -> None:
        """Simulate one run and write its raw files. Raises RigError if ns-2 fails."""
        if self.program is None:
            raise RigError("; ".join(self.reasons))
        text = script(spec)
        with scratch_in(Path(tempfile.gettempdir()), "longfat-ns2-") as scratch:
            (scratch / "run.tcl").write_text(MODEL.read_text() + text)
            command = [self.program, "run.tcl"]
            done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
            if done.returncode or done.stderr.strip():
                raise RigError(f"ns-2 ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
            marks = (scratch / "marks").read_text().splitlines() if (scratch / "marks").exists() else []
        write_raw(spec, done.stdout.splitlines(), marks, folder, self.version)
        (folder / "console.log").write_text(text)


def script(spec: RunSpec) -> str:
    """Return the run as a script of the procedures in ns2_model.tcl."""
    numbers = {node.name: number for number, node in enumerate(spec.nodes)}
    lines = [f"ns-random {spec.seed % SEED_MODULUS + 1}"]
    lines += [f"set nodes({number}) [$ns node]" for number in numbers.values()]
    shaped = _shaped(spec)
    for port in lay_out(spec).all_ports():
        number = str(shaped.index(port)) if port in shaped else "-"
        lines.append(f"port {number} {numbers[port.node]} {numbers[port.peer]} {_port(port)}")
    for node, port in _last_hops(spec).items():
        lines.append(f"receiver {node} {numbers[port.node]} {numbers[node]} {int(spec.marks)}")
    for place, flow in enumerate(spec.flows):
        ends = f"{numbers[flow.sender]} {numbers[flow.receiver]}"
        sender = next(node for node in spec.nodes if node.name == flow.sender)
        agents = " ".join(AGENTS[_recovery(sender)])
        settings = " ".join(_settings(spec, flow, sender))
        times = f"{flow.start_us} {flow.start_us + flow.duration_us}"
        lines += [f"connection {place} {k} {ends} {agents} {times} {{{settings}}}" for k in range(flow.streams)]
    for what, every_us in (("sockets", spec.probes.socket_interval_us), ("queues", spec.probes.queue_interval_us)):
        if every_us:
            lines.append(f'$ns at {every_us / 1e6} "sample_{what} {every_us} {spec.end_us}"')
    # Other actions at the end of the run come first.
    lines += [f'$ns at {spec.end_us / 1e6 + 1e-6} "finish"', "$ns run"]
    return "\n".join(lines) + "\n"


def _shaped(spec: RunSpec) -> list[Port]:
    """Return the ports with sampled queues."""
    return [port for port in lay_out(spec).all_ports() if port.egress.rate_bps is not None]


def _last_hops(spec: RunSpec) -> dict[str, Port]:
    """Return the last port on the way to each receiver."""
    receivers = {flow.receiver for flow in spec.flows}
    return {port.peer: port for port in lay_out(spec).all_ports() if port.peer in receivers}


def _port(port: Port) -> str:
    """Return rate in Mb/s, delay, queue, limit and parameters of RED. A full packet takes as long as on Ethernet."""
    egress = port.egress
    delay_us = f"{egress.wire_delay_ns / 1000:.12g}"
    if egress.wire_bps is None:
        return f"{UNSHAPED_MBPS} {delay_us} DropTail {UNSHAPED_PACKETS} {{}}"
    mbps = egress.wire_bps * port.mtu_bytes / port.frame_bytes / 1e6
    if egress.queue.kind == "pfifo":
        return f"{mbps:.9g} {delay_us} DropTail {egress.queue.limit_packets} {{}}"
    limit = _packets(egress.queue, egress.queue.limit_bytes or 0)
    return f"{mbps:.9g} {delay_us} RED {limit} {{{' '.join(_red(egress, port.mtu_bytes))}}}"


def _red(egress: Egress, mtu_bytes: int) -> Iterator[str]:
    """Yield the parameters of RED. With ``gentle_ 0`` it chooses every packet above ``max``, like the kernel."""
    queue = egress.queue
    yield f"thresh_ {_packets(queue, int(queue.parameters['min']))}"
    yield f"maxthresh_ {_packets(queue, int(queue.parameters['max']))}"
    yield f"linterm_ {1 / float(queue.parameters['probability']):.9g}"
    yield f"q_weight_ {0.5**queue.red_weight_log:.9g}"
    yield f"mean_pktsize_ {mtu_bytes} bytes_ 0 queue_in_bytes_ 0 adaptive_ 0"
    yield f"setbit_ {int(queue.marks)} gentle_ {int('gentle' in queue.parameters)}"
    yield f"use_mark_p_ 1 mark_p_ {ALWAYS_MARK}"


def _packets(queue: Queue, size: int) -> int:
    return size // int(queue.parameters["avpkt"])


def _recovery(sender: Node) -> str:
    """Return the sender's loss recovery: as declared, or else by the sysctl of SACK, which is on by default."""
    return sender.recovery or ("newreno" if sender.sysctls.get("net.ipv4.tcp_sack") == "0" else "sack")


def _settings(spec: RunSpec, flow: Flow, sender: Node) -> Iterator[str]:
    """Yield the variables of the sending agent with their values."""
    yield f"packetSize_ {_payload(spec)} tcpip_base_hdr_size_ {HEADER_BYTES} tcpTick_ {TICK_S}"
    asked = [size for size in (flow.send_window_bytes, flow.window_bytes) if size]
    # Linux doubles the requested size (socket(7)).
    yield f"window_ {2 * min(asked) // _payload(spec) if asked else UNLIMITED_SEGMENTS}"
    # 1 requests ECN; the kernel's default of 2 only accepts it (ip-sysctl).
    yield f"ecn_ {int(sender.sysctls.get('net.ipv4.tcp_ecn') == '1')}"
    if sender.initial_cwnd_segments:
        yield f"windowInit_ {sender.initial_cwnd_segments}"
    if flow.cca == "highspeed":
        yield "windowOption_ 8"
        for name, value in spec.cca_parameters(flow).items():
            if name in HIGHSPEED:
                variable, unit = HIGHSPEED[name]
                yield f"{variable} {int(value) * unit:.9g}"


def _payload(spec: RunSpec) -> int:
    return smallest_mtu_bytes(spec) - HEADER_BYTES


def write_raw(spec: RunSpec, lines: Sequence[str], marks: Sequence[str], folder: Path, version: str) -> None:
    """Write the raw files from the output of ns-2 and its trace of marks. Raises RigError on an unknown line."""
    shaped, payload = _shaped(spec), _payload(spec)
    marked = _marked_us(spec, marks)
    sockets, queues, arrivals = [], [], []
    received = {flow.name: (0, 0) for flow in spec.flows}
    cuts: dict[tuple[int, int], int] = {}
    for line in lines:
        kind, *fields = line.split()
        if kind == "socket":
            sockets.append(_socket_row(spec, fields, payload, cuts))
        elif kind == "queue":
            queues.append(_queue_row(shaped[int(fields[1])], fields, marked))
        elif kind == "arrived":
            t_us, node, packets = fields
            arrivals.append(f"{t_us},{node},{packets},{bisect.bisect_right(marked[node], int(t_us))}\n")
        elif kind == "received":
            flow = spec.flows[int(fields[0])]
            received[flow.name] = (received[flow.name][0] + int(fields[1]) * payload, int(fields[2]))
        else:
            raise RigError(f"ns-2 printed an unknown line: {line!r}")
    environment = {"kernel_release": f"ns-{version}", "ccas": sorted(CCAS)}
    simulated.write_raw(spec, folder, environment, received, sockets, queues)
    if spec.marks and spec.probes.queue_interval_us:
        (folder / "arrivals.csv").write_text(ARRIVAL_COLUMNS + "".join(arrivals), encoding="utf-8")


def _marked_us(spec: RunSpec, marks: Sequence[str]) -> dict[str, list[int]]:
    """Return the arrival times of marked packets at each receiver.

    A line is ``r TIME FROM TO tcp SIZE FLAGS ...`` with E among the flags.
    """
    names = [node.name for node in spec.nodes]
    found: dict[str, list[int]] = {flow.receiver: [] for flow in spec.flows}
    for line in marks:
        event, time_s, _from, to, *_ = line.split()
        if event == "r":
            found[names[int(to)]].append(round(float(time_s) * 1e6))
    return found


def _socket_row(spec: RunSpec, fields: Sequence[str], payload: int, cuts: dict[tuple[int, int], int]) -> str:
    """Return the row of a sample; its state is CWR if the window was cut since the previous sample."""
    t_us, flow, stream = (int(field) for field in fields[:3])
    cwnd, ssthresh, sent, acked, rtt, again, cut = (float(field) for field in fields[3:])
    before = cuts.get((flow, stream), 0)
    cuts[flow, stream] = int(cut)
    delivered = int(acked) + 1
    rtt_us = round(rtt * TICK_S * 1e6)
    state = CWR if cut > before else OPEN
    threshold = int(ssthresh) if cut else INFINITE_SSTHRESH
    segments = (int(cwnd), threshold, max(0, int(sent) - delivered))
    counts = (rtt_us, rtt_us, int(again), 0, delivered * payload, delivered, "")
    row = (t_us, spec.flows[flow].name, stream, ESTABLISHED, state, *segments, *counts)
    return ",".join(str(field) for field in row) + "\n"


def _queue_row(port: Port, fields: Sequence[str], marked: dict[str, list[int]]) -> str:
    """Return the row of a sample; all packets count as full ones."""
    t_us, packets, drops, sent = (int(float(field)) for field in (fields[0], *fields[2:]))
    frame = port.frame_bytes
    # Marks are counted at the receiver, so packets in flight behind the only marking queue are missing.
    marks = sum(bisect.bisect_right(times, t_us) for times in marked.values()) if port.egress.queue.marks else 0
    counted = (packets, packets * frame, drops, sent, sent * frame, marks)
    return f"{t_us},{port.node},{port.name},{port.egress.queue.kind},{','.join(map(str, counted))}\n"


def open_backend(name: str, say: Say) -> Ns2Backend:
    """Return the backend; without ns-2, a backend with the reason."""
    program = shutil.which("ns")
    if program is None:
        return Ns2Backend(
            None, "none", ("ns-2 is not installed; as root: apt-get install --no-install-recommends ns2",)
        )
    asked = subprocess.run([program], input="puts [ns-version]\n", capture_output=True, text=True, check=False)
    return Ns2Backend(program, asked.stdout.strip(), ())
