# SPDX-License-Identifier: Apache-2.0
"""Times one run of a case in wall and CPU seconds. Called in a worker process: CPU time is read from its children."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import tempfile
import time
from pathlib import Path

from longfat.backends.protocol import Backend
from longfat.bench.cases import Case, Timing
from longfat.errors import RigError
from longfat.manifest.load import load_study
from longfat.plan import build_plan
from longfat.runspec import RunSpec

RTT_US = 30_000
WINDOW_BDPS = 3  # socket buffers of three BDPs: the flow is limited by its path
SMALLEST_WINDOW_BYTES = 1 << 20
QUEUE_PACKETS = 20_000
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
BUSY_FIELDS = (1, 2, 3, 6, 7)  # user, nice, system, irq and softirq of /proc/stat (proc(5))


def time_case(backend: Backend, case: Case) -> Timing:
    """Execute the case once. Raises RigError if the backend refuses the run or the run fails."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    spec = spec_of(case, dict(backend.pins()))
    if refused := backend.refuses(spec):
        raise RigError("; ".join(refused), where=case.name)
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
        raise RigError(outcome["reason"], where=case.name)
    segments = sum(node.get("Tcp.OutSegs", 0) for node in counters.values())
    return Timing(wall_s, cpu_s, segments, sum(flow["goodput_bps"] for flow in flows))


def spec_of(case: Case, pins: dict[str, str]) -> RunSpec:
    """Plan one flow over a path of 30 ms, with a queue that a window of three BDPs cannot fill."""
    own_kernel = case.own_kernel
    window_bytes = max(WINDOW_BDPS * case.rate_bps // 8 * RTT_US // 1_000_000 // 2, SMALLEST_WINDOW_BYTES)
    limits = {} if own_kernel else {f"net.core.{name}": 2 * window_bytes for name in ("rmem_max", "wmem_max")}
    flow = {
        "name": "flow1",
        "from": "client1",
        "to": "server",
        "algorithm": "standard",
        "duration": f"{case.seconds * 1000:g} ms",
        **({} if own_kernel else {"window": f"{2 * window_bytes} B"}),
    }
    experiment = {
        "id": "bench",
        "topology": {"kind": "delay", "rate": f"{case.rate_bps} bit/s", "rtt": f"{0 if own_kernel else RTT_US} us"},
        "flows": [flow],
        "probes": dict.fromkeys(("sockets", "queues"), f"{case.sample_us} us"),
    }
    study = {
        "format": 2,
        "study": "bench",
        "title": "The speed of runs",
        "algorithms": {"standard": {"cca": "reno"}},
        "hosts": {"mtu": f"{case.mtu_bytes} B", "txqueuelen": QUEUE_PACKETS, "sysctls": limits},
        "experiments": [experiment],
    }
    with tempfile.TemporaryDirectory(prefix="longfat-bench-") as scratch:
        path = Path(scratch) / "study.yaml"
        path.write_text(json.dumps(study))  # YAML has all of JSON
        (run,) = build_plan(load_study(path), profile="paper", pins=pins).runs
    return run.spec


def children_seconds() -> float:
    """Return user and system time of all processes below this one that have ended.

    Programs of a guest are processes of its kernel, which waits for them, so they count. Orphans are children of this
    process, a subreaper, and are waited for here.
    """
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def machine_seconds() -> float:
    """Return the busy time of all CPUs: packets also move in interrupts, outside processes."""
    fields = Path("/proc/stat").read_text().split()
    return sum(int(fields[number]) for number in BUSY_FIELDS) / os.sysconf("SC_CLK_TCK")
