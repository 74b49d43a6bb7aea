# SPDX-License-Identifier: Apache-2.0
"""Times runs by the code of whichever commit PYTHONPATH names: a separate program, started by ``builds``.

Reads a request a line from standard input and answers each with a line, both JSON. May import nothing of ``longfat``
that commit 5445cde does not have, nor anything of this package.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from longfat.backends.protocol import Backend
from longfat.backends.registry import open_backend
from longfat.errors import LongfatError
from longfat.manifest.load import load_study
from longfat.manifest.models import Header
from longfat.plan import build_plan
from longfat.runspec import RunSpec
from longfat.verbs.study import Choices, find_study, kernel_settings, resolve

RTT_US = 30_000
WINDOW_BDPS = 3  # socket buffers of three BDPs: the flow is limited by its path
SMALLEST_WINDOW_BYTES = 1 << 20
QUEUE_PACKETS = 20_000
OWN_KERNEL = "mininet"  # the backend whose packets the machine's kernel moves
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
BUSY_FIELDS = (1, 2, 3, 6, 7)  # user, nice, system, irq and softirq of /proc/stat (proc(5))


class Driver:
    """One backend of this commit, and the requests to it so far."""

    def __init__(self, name: str) -> None:
        self.backend = open_backend(name, {}, say=_say)
        self.cpu_seconds: Callable[[], float] = machine_seconds if name == OWN_KERNEL else children_seconds
        self.planned: dict[str, tuple[Backend, RunSpec]] = {}

    def reasons(self) -> list[str]:
        """Why the backend cannot work here."""
        return list(self.backend.capabilities().reasons)

    def plan(self, study: str, profile: str) -> list[str]:
        """Names of a study's distinct runs that the backend can do."""
        found: dict[str, tuple[str, RunSpec]] = {}
        folder, name = find_study(study), self.backend.name
        backend = open_backend(name, kernel_settings(name, folder.header.stack), say=_say)
        for run in resolve(folder, Choices(profile), backend.pins()).runs:
            if not backend.refuses(run.spec):
                name = f"{run.scenario}.r{run.repetition:02}"
                found[run.run_id] = min(found.get(run.run_id, (name, run.spec)), (name, run.spec), key=lambda it: it[0])
        self.planned = {name: (backend, spec) for name, spec in found.values()}
        return sorted(self.planned)

    def time_case(self, case: dict[str, Any]) -> dict[str, float]:
        """Time one flow, given as the fields of a Case."""
        return self._time(self.backend, case["name"], spec_of(case, self.backend.pins()))

    def time_planned(self, name: str) -> dict[str, float]:
        """Time a run of the plan."""
        backend, spec = self.planned[name]
        return self._time(backend, name, spec)

    def _time(self, backend: Backend, name: str, spec: RunSpec) -> dict[str, float]:
        """The fields of a Timing. Raises LongfatError when the run is refused or fails."""
        if refused := backend.refuses(spec):
            raise LongfatError(f"{name}: {'; '.join(refused)}")
        with tempfile.TemporaryDirectory(prefix="longfat-bench-") as scratch:
            folder = Path(scratch)
            cpu_s, start = self.cpu_seconds(), time.perf_counter()
            backend.run(spec, folder)
            wall_s = time.perf_counter() - start
            cpu_s = self.cpu_seconds() - cpu_s
            outcome, flows, counters = (
                json.loads((folder / f"{what}.json").read_text()) for what in ("outcome", "flows", "counters")
            )
        if outcome["status"] != "ok":
            raise LongfatError(f"{name}: {outcome['reason']}")
        return {
            "wall_s": wall_s,
            "cpu_s": cpu_s,
            "segments": sum(node.get("Tcp.OutSegs", 0) for node in counters.values()),
            "goodput_bps": sum(flow["goodput_bps"] for flow in flows),
        }


def spec_of(case: dict[str, Any], pins: dict[str, str]) -> RunSpec:
    """One flow over a path of 30 ms, with a queue that a window of three BDPs cannot fill, as this commit plans it.

    All commits read manifests; how a path is built, and with which switches, is each commit's own.
    """
    rate_bps, own_kernel = case["rate_bps"], case["own_kernel"]
    window_bytes = max(WINDOW_BDPS * rate_bps // 8 * RTT_US // 1_000_000 // 2, SMALLEST_WINDOW_BYTES)
    limits = {} if own_kernel else {f"net.core.{name}": 2 * window_bytes for name in ("rmem_max", "wmem_max")}
    flow = {
        "name": "flow1",
        "from": "client1",
        "to": "server",
        "algorithm": "standard",
        "duration": f"{case['seconds'] * 1000:g} ms",
        **({} if own_kernel else {"window": f"{2 * window_bytes} B"}),
    }
    experiment = {
        "id": "bench",
        "topology": {"kind": "delay", "rate": f"{rate_bps} bit/s", "rtt": f"{0 if own_kernel else RTT_US} us"},
        "flows": [flow],
        "probes": dict.fromkeys(("sockets", "queues"), f"{case['sample_us']} us"),
    }
    study = {
        "format": get_args(Header.model_fields["format"].annotation)[0],  # whichever this commit reads
        "study": "bench",
        "title": "The speed of runs",
        "algorithms": {"standard": {"cca": "reno"}},
        "hosts": {"mtu": f"{case['mtu_bytes']} B", "txqueuelen": QUEUE_PACKETS, "sysctls": limits},
        "experiments": [experiment],
    }
    with tempfile.TemporaryDirectory(prefix="longfat-bench-") as scratch:
        path = Path(scratch) / "study.yaml"
        path.write_text(json.dumps(study))  # YAML has all of JSON
        (run,) = build_plan(load_study(path), profile="paper", pins=pins).runs
    return run.spec


def children_seconds() -> float:
    """User and system time of all processes that have ended below this one.

    A guest's programs are processes of its kernel, which waits for them, so they count. Processes that it left behind
    have become children of this process, and are waited for here.
    """
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def machine_seconds() -> float:
    """Time that the machine's CPUs were busy: packets also move in interrupts, which belong to no process."""
    fields = Path("/proc/stat").read_text().split()
    return sum(int(fields[number]) for number in BUSY_FIELDS) / os.sysconf("SC_CLK_TCK")


def main(name: str) -> None:
    """Answer requests of the form ``{"do": METHOD, ARGUMENT: ...}`` by ``{"done": ...}`` or ``{"error": TEXT}``."""
    # A build's output must not be mistaken for an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    driver: Driver | None = None
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any]
        try:
            driver = driver or Driver(name)
            answer = {"done": getattr(driver, request.pop("do"))(**request)}
        except LongfatError as error:
            answer = {"error": str(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    # A run that is stopped leaves neither a guest nor files.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        main(sys.argv[1])
