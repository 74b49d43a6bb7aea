# SPDX-License-Identifier: Apache-2.0
"""The timed cases: one Reno flow each, and the timing of one run of it in wall and CPU seconds."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from longfat.backends.protocol import Backend
from longfat.plan import build_plan
from longfat.spec.runspec import RunSpec
from longfat.study.load import load_study
from longfat.system.errors import RigError

RTT_US = 30_000
WINDOW_BDPS = 3  # socket buffers of three BDPs: the path limits the flow
SMALLEST_WINDOW_BYTES = 1 << 20
QUEUE_PACKETS = 20_000
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
BUSY_FIELDS = (1, 2, 3, 6, 7)  # user, nice, system, irq and softirq of /proc/stat (proc(5))


@dataclass(frozen=True)
class Case:
    """One Reno flow to time, in virtual time or on the machine's ``own_kernel``.

    On the machine's own kernel the path has no delay and the flow has no stated window.
    """

    rate_bps: int
    mtu_bytes: int
    seconds: float
    sample_us: int = 100_000
    own_kernel: bool = False

    @property
    def flow(self) -> str:
        """The flow in words."""
        return f"{self.seconds:g} s of {self.rate_bps / 1e9:g} Gb/s, MTU {self.mtu_bytes}"


CASES: Mapping[str, Case] = {
    # The shortest run that is allowed: a round trip and a sample.
    "fixed": Case(1_000_000_000, 9000, 0.04, sample_us=10_000),
    "1g-9000": Case(1_000_000_000, 9000, 10),
    "1g-1500": Case(1_000_000_000, 1500, 10),
    "100m-1500": Case(100_000_000, 1500, 30, sample_us=10_000),
    "2.4g-1500": Case(2_400_000_000, 1500, 10),
    "10g-9000": Case(10_000_000_000, 9000, 10),
}


@dataclass(frozen=True)
class Timing:
    """Wall and CPU seconds of a run, the TCP segments it sent in both directions, and its goodput in bit/s."""

    wall_s: float
    cpu_s: float
    segments: int
    goodput_bps: int


def time_case(backend: Backend, case: Case) -> Timing:
    """Execute a case once. Raises RigError if the backend refuses the run or the run fails."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    spec = spec_of(case, dict(backend.pins()))
    if refused := backend.refuses(spec):
        raise RigError("; ".join(refused), where=case.flow)
    cpu_seconds = machine_seconds if case.own_kernel else children_seconds
    with tempfile.TemporaryDirectory(prefix="longfat-bench-") as scratch:
        folder = Path(scratch)
        cpu_s, start = cpu_seconds(), time.perf_counter()
        backend.run(spec, folder)
        wall_s = time.perf_counter() - start
        cpu_s = cpu_seconds() - cpu_s
        outcome, flows, counters = (
            json.loads((folder / f"{name}.json").read_text()) for name in ("outcome", "flows", "counters")
        )
    if outcome["status"] != "ok":
        raise RigError(outcome["reason"], where=case.flow)
    segments = sum(node.get("Tcp.OutSegs", 0) for node in counters.values())
    return Timing(wall_s, cpu_s, segments, sum(flow["goodput_bps"] for flow in flows))


def spec_of(case: Case, pins: dict[str, str]) -> RunSpec:
    """Plan one flow over a path of 30 ms, with a queue that a window of three BDPs cannot fill."""
    window_bytes = max(WINDOW_BDPS * case.rate_bps // 8 * RTT_US // 1_000_000, 2 * SMALLEST_WINDOW_BYTES)
    own_kernel = case.own_kernel
    limits = {} if own_kernel else {f"net.core.{name}": window_bytes for name in ("rmem_max", "wmem_max")}
    flow = {"name": "flow1", "from": "client1", "to": "server", "algorithm": "reno"}
    window = {} if own_kernel else {"window": f"{window_bytes} B"}
    study = {
        "format": 2,
        "study": "bench",
        "title": "The speed of runs",
        "algorithms": {"reno": {"cca": "reno"}},
        "hosts": {"mtu": f"{case.mtu_bytes} B", "txqueuelen": QUEUE_PACKETS, "sysctls": limits},
        "experiments": [
            {
                "id": "bench",
                "topology": {
                    "kind": "delay",
                    "rate": f"{case.rate_bps} bit/s",
                    "rtt": f"{0 if own_kernel else RTT_US} us",
                },
                "flows": [{**flow, "duration": f"{case.seconds * 1000:g} ms", **window}],
                "probes": dict.fromkeys(("sockets", "queues"), f"{case.sample_us} us"),
            }
        ],
    }
    with tempfile.TemporaryDirectory(prefix="longfat-bench-") as scratch:
        path = Path(scratch) / "study.yaml"
        path.write_text(json.dumps(study))  # valid YAML
        (run,) = build_plan(load_study(path), profile="paper", pins=pins).runs
    return run.spec


def children_seconds() -> float:
    """Return user and system time of all processes below this one that have ended.

    A guest's programs count as processes of its kernel, which waits for them. Orphans become children of this
    process, a subreaper, which waits for them here.
    """
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def machine_seconds() -> float:
    """Return the busy time of all CPUs, which includes the interrupts that move packets outside of processes."""
    fields = Path("/proc/stat").read_text().split()
    return sum(int(fields[number]) for number in BUSY_FIELDS) / os.sysconf("SC_CLK_TCK")
