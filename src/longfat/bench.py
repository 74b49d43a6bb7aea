# SPDX-License-Identifier: Apache-2.0
"""How fast the laboratory is on this machine: each figure a ratio or a time taken in one go.

Runs guests one after the other; nothing else should use the machine meanwhile. Measures, never judges.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from longfat.backends.registry import open_backend
from longfat.backends.virtual import VirtualBackend
from longfat.errors import RigError
from longfat.runspec import Egress, Flow, Interface, Link, Node, Probes, Queue, RunSpec

RTT_US = 30_000
REPEATS = 3  # the median of three: the first also pays for a cold page cache
NS3_MODULES = ("ns3-applications", "ns3-core", "ns3-internet", "ns3-point-to-point")
NS3_SOURCE = Path(__file__).resolve().parents[2] / "analysis" / "ns3" / "flow.cc"
NS3_SECONDS = 1.0  # of simulated time: ns-3 takes minutes for ten
WINDOW_BDPS = 3  # socket buffers of three BDPs: the flow is limited by its path


@dataclass(frozen=True)
class Case:
    """One flow to time: rate in bit/s, MTU in bytes, length in seconds."""

    name: str
    rate_bps: int
    mtu_bytes: int
    seconds: float


CASES = (
    Case("1 Gb/s, MTU 9000", 1_000_000_000, 9000, 10),
    Case("1 Gb/s, MTU 1500", 1_000_000_000, 1500, 10),
    Case("2.4 Gb/s, MTU 1500", 2_400_000_000, 1500, 10),
    Case("10 Gb/s, MTU 9000", 10_000_000_000, 9000, 10),
)
NS3_CASES = CASES[:2]  # at higher rates ns-3 takes longer still
FIXED = Case("fixed cost of a run", 1_000_000_000, 9000, 0.001)


@dataclass(frozen=True)
class Timing:
    """Wall seconds of a run and the TCP segments it sent in both directions."""

    wall_s: float
    segments: int


def run_bench(console: Console) -> None:
    """Time all cases and print them. Raises RigError when a run fails."""
    backend = open_backend("virtual", {}, say=console.print)
    assert isinstance(backend, VirtualBackend)
    fixed = _median(backend, FIXED)
    table = Table("flow", "simulated s", "wall s", "simulated s per wall s", "wall us per segment", title="one run")
    table.add_row(FIXED.name, "0", f"{fixed.wall_s:.2f}", "", "")
    for case in CASES:
        timing = _median(backend, case)
        each = 1e6 * (timing.wall_s - fixed.wall_s) / timing.segments
        table.add_row(
            *(case.name, f"{case.seconds:g}", f"{timing.wall_s:.2f}", f"{case.seconds / timing.wall_s:.1f}"),
            f"{each:.2f}",
        )
    console.print(table)
    _beside_ns3(console)
    one, two = _parallel(backend, CASES[0])
    console.print(f"two runs in parallel: {2 * one / two:.2f} times the rate of one ({one:.2f} s and {two:.2f} s)")


def _median(backend: VirtualBackend, case: Case) -> Timing:
    timings = sorted((_time(backend, case) for _ in range(REPEATS)), key=lambda timing: timing.wall_s)
    return timings[REPEATS // 2]


def _time(backend: VirtualBackend, case: Case) -> Timing:
    with tempfile.TemporaryDirectory(prefix="longfat-bench-") as name:
        folder = Path(name)
        start = time.perf_counter()
        backend.run(spec_of(case, backend.pins()), folder)
        wall_s = time.perf_counter() - start
        outcome = json.loads((folder / "outcome.json").read_text())
        if outcome["status"] != "ok":
            raise RigError(f"{case.name}: {outcome['reason']}")
        counters = json.loads((folder / "counters.json").read_text())
        return Timing(wall_s, sum(node.get("Tcp.OutSegs", 0) for node in counters.values()))


def _parallel(backend: VirtualBackend, case: Case) -> tuple[float, float]:
    """Wall seconds of ``REPEATS`` runs one after the other, and of two such rows side by side."""

    def row(_: int) -> None:
        for _repeat in range(REPEATS):
            _time(backend, case)

    walls = []
    for rows in (1, 2):
        start = time.perf_counter()
        with ThreadPoolExecutor(rows) as pool:
            list(pool.map(row, range(rows)))
        walls.append(time.perf_counter() - start)
    return walls[0], walls[1]


def _beside_ns3(console: Console) -> None:
    """Time the flows in ns-3, if its libraries and a compiler are installed; say so if they are not."""
    if not shutil.which("pkg-config") or subprocess.run(["pkg-config", "--exists", *NS3_MODULES]).returncode:
        console.print("ns-3: not installed (Debian: libns3-dev libgsl-dev libxml2-dev libsqlite3-dev pkg-config)")
        return
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", *NS3_MODULES], check=True, capture_output=True, text=True
    )
    table = Table("flow", "simulated s", "wall s", "goodput Mb/s", title="the same in ns-3")
    with tempfile.TemporaryDirectory(prefix="longfat-ns3-") as name:
        program = f"{name}/flow"
        command = ["g++", "-O2", "-std=c++17", "-o", program, str(NS3_SOURCE), *flags.stdout.split()]
        compiled = subprocess.run(command, capture_output=True, text=True)
        if compiled.returncode:
            raise RigError(f"the ns-3 flow cannot be compiled\n{compiled.stderr[-1000:]}", where=str(NS3_SOURCE))
        for case in NS3_CASES:
            argv = [program, str(case.rate_bps), str(case.mtu_bytes), f"{NS3_SECONDS:g}", str(RTT_US / 1e6)]
            start = time.perf_counter()
            goodput = float(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
            wall_s = time.perf_counter() - start
            table.add_row(case.name, f"{NS3_SECONDS:g}", f"{wall_s:.2f}", f"{goodput / 1e6:.0f}")
    console.print(table)


def spec_of(case: Case, pins: dict[str, str]) -> RunSpec:
    """A sender, a delay element of 30 ms and a receiver, with a queue that a window of three BDPs cannot fill."""
    window_bytes = max(WINDOW_BDPS * case.rate_bps // 8 * RTT_US // 1_000_000 // 2, 1 << 20)
    limits = {f"net.core.{name}": str(2 * window_bytes) for name in ("rmem_max", "wmem_max")}
    host = Egress(rate_bps=case.rate_bps, queue=Queue(limit_packets=20_000))
    delay = Egress(delay_us=RTT_US // 2)
    nodes: Sequence[Node] = (
        Node("client1", "sender", limits),
        Node("delay", "router", {"net.ipv4.ip_forward": "1"}),
        Node("server", "receiver", {**limits, "net.ipv4.tcp_recv_fill": "1"}),
    )
    return RunSpec(
        nodes=tuple(nodes),
        links=(
            Link(Interface("client1", host), Interface("delay", delay), case.mtu_bytes),
            Link(Interface("delay", delay), Interface("server", host), case.mtu_bytes),
        ),
        flows=(Flow("flow1", "client1", "server", "reno", int(case.seconds * 1e6), window_bytes),),
        probes=Probes(),
        seed=1,
        pins=pins,
    )
