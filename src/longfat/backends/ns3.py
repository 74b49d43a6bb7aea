# SPDX-License-Identifier: Apache-2.0
"""Runs in ns-3, with its own models of TCP, for the cross-check and the benchmark.

Owns the translation of a RunSpec, the build of the model in the cache folder, and the raw files from its output.
Settings without a counterpart in ns-3 are refused, except sysctls, which are recorded as declared.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from longfat.backends import simulated
from longfat.backends.protocol import Capabilities, Feature, Traits
from longfat.backends.registry import Say, refused_features
from longfat.guest.ccas import refused_ccas
from longfat.spec.network import IP_AND_TCP_HEADER_BYTES, TIMESTAMP_OPTION_BYTES, frame_bytes, ports, smallest_mtu_bytes
from longfat.spec.runspec import Egress, Flow, RunSpec
from longfat.system.cache import cache_folder
from longfat.system.errors import RigError
from longfat.system.store import keep

TRAITS = {"ns3": Traits(kernel="none", can=frozenset({Feature.CLOCKS}))}
FOLDER = Path(__file__).parent
SOURCE = FOLDER / "ns3_model.cc"
MODELS = {
    "reno": "TcpLinuxReno",
    "cubic": "TcpCubic",
    "highspeed": "TcpHighSpeed",
    "scalable": "TcpScalable",
    "htcp": "TcpHtcp",
    "bic": "TcpBic",
}
MODULES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control")
UNSHAPED_BPS = 100_000_000_000
UNSHAPED_PACKETS = 1_000_000
AUTOTUNED_BYTES = 4 << 20  # ns-3 has no auto-tuning: the largest buffer in the studies of the cross-check
PPP_HEADER_BYTES = 2  # added to each packet by ns-3's point-to-point device
SMALLEST_BYTES = 1  # ns-3 refuses an empty buffer
SEED_MODULUS = 2**32 - 1


@dataclass(frozen=True)
class Ns3Backend:
    """Runs in ns-3. ``program`` is the built model, or None for ``reasons``."""

    program: Path | None
    version: str
    reasons: tuple[str, ...]

    name = "ns3"

    def pins(self) -> dict[str, str]:
        """Return the version of ns-3 and the digest of model and translation."""
        return simulated.pins(self.name, self.version, SOURCE, Path(__file__))

    def capabilities(self) -> Capabilities:
        """Return the algorithms with a model in ns-3."""
        return Capabilities(frozenset(MODELS), self.reasons)

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """Return features and algorithms of a run that ns-3 lacks, and nodes with several algorithms."""
        reasons = [*refused_ccas(spec, MODELS), *refused_features(self.name, spec)]
        ccas: dict[str, set[str]] = {}
        for flow in spec.flows:
            ccas.setdefault(flow.sender, set()).add(flow.cca)
        reasons += [f"{node} has flows of several algorithms" for node, own in ccas.items() if len(own) > 1]
        return tuple(dict.fromkeys(reasons))

    def run(self, spec: RunSpec, folder: Path) -> None:
        """Simulate one run and write its raw files. Raises RigError if ns-3 fails."""
        if self.program is None:
            raise RigError("; ".join(self.reasons))
        text = description(spec)
        done = subprocess.run([str(self.program)], input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RigError(f"ns-3 ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
        write_raw(spec, done.stdout.splitlines(), folder, self.version)
        (folder / "console.log").write_text(text)


def description(spec: RunSpec) -> str:
    """Return the run in the input format of the model."""
    numbers = {node.name: number for number, node in enumerate(spec.nodes)}
    mtu = smallest_mtu_bytes(spec)
    lines = [f"mtu {mtu}", f"node {len(numbers)}"]
    for link in spec.links:
        # A channel has one delay: the mean of both directions keeps the round-trip time.
        delay_ns = (link.a.egress.wire_delay_ns + link.b.egress.wire_delay_ns) // 2
        ends = " ".join(_end(end.egress, mtu) for end in (link.a, link.b))
        lines.append(f"link {numbers[link.a.node]} {numbers[link.b.node]} {delay_ns} {ends}")
    for flow in spec.flows:
        ends_of = f"{numbers[flow.sender]} {numbers[flow.receiver]} {MODELS[flow.cca]}"
        lines.append(f"flow {ends_of} {flow.start_us} {flow.duration_us} {flow.streams} {_buffers(flow)}")
    lines.append(f"sample {spec.probes.socket_interval_us or 0} {spec.probes.queue_interval_us or 0}")
    lines.append(f"end {spec.seed % SEED_MODULUS + 1} {spec.end_us}")
    return "\n".join(lines) + "\n"


def _end(egress: Egress, mtu: int) -> str:
    """Return rate and limit of one end. A full packet takes as long as on Ethernet."""
    if egress.wire_bps is None:
        return f"{UNSHAPED_BPS} {UNSHAPED_PACKETS}"
    return f"{egress.wire_bps * (mtu + PPP_HEADER_BYTES) // frame_bytes(mtu, egress)} {egress.queue.limit_packets}"


def _buffers(flow: Flow) -> str:
    """Return the bytes of the sending and the receiving buffer; Linux doubles the requested size (socket(7))."""
    asked = (flow.send_window_bytes or flow.window_bytes, flow.window_bytes)
    return " ".join(str(max(2 * size, SMALLEST_BYTES) if size else AUTOTUNED_BYTES) for size in asked)


def write_raw(spec: RunSpec, lines: list[str], folder: Path, version: str) -> None:
    """Write the raw files from the output of the model. Raises RigError on an unknown line."""
    mss = smallest_mtu_bytes(spec) - IP_AND_TCP_HEADER_BYTES - TIMESTAMP_OPTION_BYTES
    by_link = ports(spec)  # both ends of the first link, both ends of the next
    sockets, queues, received = [], [], {}
    for line in lines:
        kind, *fields = line.split()
        numbers = [int(field) for field in fields]
        if kind == "socket":
            sockets.append(_socket_row(spec, numbers, mss))
        elif kind == "queue":
            t_us, link_number, end, *backlog, _, packets, size = numbers  # its queue is not the one that drops
            port = by_link[2 * link_number + end]
            if port.egress.rate_bps is not None:
                row = (t_us, port.node, port.name, "pfifo", *backlog, "", packets, size, 0)
                queues.append(",".join(map(str, row)) + "\n")
        elif kind == "received":
            received[spec.flows[numbers[0]].name] = (numbers[1], numbers[2])
        else:
            raise RigError(f"ns-3 printed an unknown line: {line!r}")
    environment = {"kernel_release": f"ns-{version}", "ccas": sorted(MODELS)}
    simulated.write_raw(spec, folder, environment, received, sockets, queues)


def _socket_row(spec: RunSpec, numbers: list[int], mss: int) -> str:
    """Return the row of a sample, without retransmissions and losses, which the model does not count."""
    t_us, flow, stream, cwnd, ssthresh, in_flight, rtt_us, received = numbers
    segments = (cwnd // mss, min(ssthresh // mss, 2**31 - 1), in_flight // mss)
    counts = (rtt_us, rtt_us, "", "", received, received // mss, "")
    fields = (t_us, spec.flows[flow].name, stream, 1, 0, *segments, *counts)
    return ",".join(str(field) for field in fields) + "\n"


def open_backend(name: str, say: Say) -> Ns3Backend:
    """Return the backend, after building a missing model; without ns-3, a backend with the reason."""
    version = _version()
    if version is None:
        hint = "as root: apt-get install --no-install-recommends libns3-dev libgsl-dev pkgconf"
        return Ns3Backend(None, "none", (f"ns-3 is not installed; {hint}",))
    digest = hashlib.sha256(SOURCE.read_bytes() + version.encode()).hexdigest()[:16]
    program = keep(cache_folder() / "ns3" / digest, lambda new: _build(version, new), "the model for ns-3", "1 MB")
    return Ns3Backend(program, version, ())


def _version() -> str | None:
    """Return the version of the installed ns-3 by its pkg-config file, such as 3.37."""
    if shutil.which("pkg-config") is None:
        return None
    asked = subprocess.run(["pkg-config", "--modversion", "ns3-core"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or None


def _build(version: str, program: Path) -> None:
    packages = [f"ns3-{module}" for module in MODULES]
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", *packages], capture_output=True, text=True, check=False)
    if flags.returncode:
        raise RigError(f"ns-3 {version} is not complete: {flags.stderr.strip()}", hint="install libns3-dev again")
    command = ["g++", "-O2", "-std=c++17", "-o", str(program), str(SOURCE), *flags.stdout.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RigError(f"the model for ns-3 {version} does not build: {done.stderr.strip()[-800:]}")
