# SPDX-License-Identifier: Apache-2.0
"""``bench``: the speed of runs on this machine, compared with simulators and the machine's own kernel.

Runs are sequential; nothing else should use the machine meanwhile.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from longfat.backends.protocol import Backend
from longfat.backends.registry import DEFAULT_BACKEND, open_backend
from longfat.cli.console import Output, Screen, say
from longfat.cli.study import ids
from longfat.plan import build_plan
from longfat.spec.runspec import RunSpec
from longfat.study.load import load_study
from longfat.study.schema.names import require
from longfat.system.errors import RigError, all_of
from longfat.system.text import sentence

NONE = "none"
PEERS: Mapping[str, str] = {"host": "mininet", "ns2": "ns2", "ns3": "ns3"}  # with the backends that execute them
PEER_CASES = ("1g-9000", "1g-1500")
PEER_SECONDS = {"ns3": 1.0}  # simulated seconds: ns-3 takes minutes for ten
HOST = "host: the machine's own kernel in three namespaces, in real time, without delay; rates by tbf"
RTT_US = 30_000
LEAST_WINDOW_BYTES = 2 << 20
BUSY_FIELDS = (1, 2, 3, 6, 7)  # user, nice, system, irq and softirq of /proc/stat (proc(5))
STUDY = """\
format: 2
study: bench
title: The speed of runs
algorithms: {{reno: {{cca: reno}}}}
hosts: {{mtu: {mtu} B, txqueuelen: 20000, sysctls: {{{limits}}}}}
experiments:
  - id: bench
    topology: {{kind: delay, rate: {rate} bit/s, rtt: {rtt} us}}
    flows: [{{name: flow1, from: client1, to: server, algorithm: reno, duration: {duration:g} ms{window}}}]
    probes: {{sockets: {sample} us, queues: {sample} us}}
"""


@dataclass(frozen=True)
class Case:
    """A timed Reno flow; on the machine's ``own_kernel`` without delay and with auto-tuned windows."""

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
    # The shortest allowed run: one round trip and one sample.
    "fixed": Case(1_000_000_000, 9000, 0.04, sample_us=10_000),
    "1g-9000": Case(1_000_000_000, 9000, 10),
    "1g-1500": Case(1_000_000_000, 1500, 10),
    "100m-1500": Case(100_000_000, 1500, 30, sample_us=10_000),
    "2.4g-1500": Case(2_400_000_000, 1500, 10),
    "10g-9000": Case(10_000_000_000, 9000, 10),
}


@dataclass(frozen=True)
class Timing:
    """The best times of a case: wall seconds, CPU seconds of the machine, TCP segments in both directions, goodput."""

    where: str
    flow: str
    seconds: float
    wall_s: float
    cpu_s: float
    segments: int
    goodput_bps: int


def bench(
    out: Output,
    cases: Annotated[str, typer.Option(help=f"some of {','.join(CASES)}, or none (default: all)")] = "",
    peers: Annotated[str, typer.Option(help=f"some of {','.join(PEERS)}, or none (default: all)")] = "",
    repeats: Annotated[int, typer.Option(min=1, help="executions of each run; the fastest one counts")] = 3,
) -> None:
    """Measure the speed of runs on this machine, compared with simulators."""
    named, others = all_of(lambda: _chosen("--cases", ids(cases), CASES), lambda: _chosen("--peers", ids(peers), PEERS))
    progress = Screen(stderr=True)
    rows: list[Timing] = []
    notes = [HOST] if "host" in others else []
    if named:
        backend = open_backend(DEFAULT_BACKEND, {}, say=progress.print)
        rows += measure(backend, DEFAULT_BACKEND, named, repeats, progress)
    for peer in others:
        try:
            backend = open_backend(PEERS[peer], {}, say=progress.print)
            rows += measure(backend, peer, [name for name in named if name in PEER_CASES], 1, progress)
        except RigError as error:
            notes.append(f"{peer}: {error}")
    out.print(_table(rows, repeats))
    for note in notes:
        say(out, note)
    out.result(repeats=repeats, rows=[dataclasses.asdict(row) for row in rows], notes=notes)


def measure(backend: Backend, where: str, cases: Sequence[str], repeats: int, progress: Console) -> Iterator[Timing]:
    """Execute each case ``repeats`` times on a backend. Raises RigError if the backend is unusable or a run fails."""
    if reasons := backend.capabilities().reasons:
        raise RigError("; ".join(reasons), where=backend.name)
    for name in cases:
        case = case_on(where, CASES[name])
        say(progress, f"{where}: {case.flow}")
        found = [time_case(backend, where, case) for _ in range(repeats)]
        # Other load can only increase both times.
        wall_s, cpu_s = min(one.wall_s for one in found), min(one.cpu_s for one in found)
        yield dataclasses.replace(found[0], wall_s=wall_s, cpu_s=cpu_s)


def case_on(where: str, case: Case) -> Case:
    """Return the case in the variant for this backend."""
    return dataclasses.replace(case, seconds=PEER_SECONDS.get(where, case.seconds), own_kernel=where == "host")


def time_case(backend: Backend, where: str, case: Case) -> Timing:
    """Execute a case once. Raises RigError if the backend refuses the run or the run fails."""
    spec = spec_of(case, dict(backend.pins()))
    if refused := backend.refuses(spec):
        raise RigError("; ".join(refused), where=case.flow)
    with tempfile.TemporaryDirectory(prefix="longfat-bench-") as scratch:
        folder = Path(scratch)
        cpu_s, start = busy_seconds(), time.perf_counter()
        backend.run(spec, folder)
        wall_s, cpu_s = time.perf_counter() - start, busy_seconds() - cpu_s
        outcome, flows, counters = (
            json.loads((folder / f"{name}.json").read_text()) for name in ("outcome", "flows", "counters")
        )
    if outcome["status"] != "ok":
        raise RigError(sentence(outcome["reason"]), where=case.flow)
    segments = sum(node.get("Tcp.OutSegs", 0) for node in counters.values())
    goodput = sum(flow["goodput_bps"] for flow in flows)
    return Timing(where, case.flow, case.seconds, wall_s, cpu_s, segments, goodput)


def spec_of(case: Case, pins: dict[str, str]) -> RunSpec:
    """Return the spec of a flow over a path of 30 ms, with a window of three BDPs and a queue that it cannot fill."""
    window_bytes = max(3 * case.rate_bps // 8 * RTT_US // 1_000_000, LEAST_WINDOW_BYTES)
    text = STUDY.format(
        mtu=case.mtu_bytes,
        limits="" if case.own_kernel else f"net.core.rmem_max: {window_bytes}, net.core.wmem_max: {window_bytes}",
        rate=case.rate_bps,
        rtt=0 if case.own_kernel else RTT_US,
        duration=case.seconds * 1000,
        window="" if case.own_kernel else f", window: {window_bytes} B",
        sample=case.sample_us,
    )
    with tempfile.TemporaryDirectory(prefix="longfat-bench-") as scratch:
        path = Path(scratch) / "study.yaml"
        path.write_text(text, encoding="utf-8")
        (run,) = build_plan(load_study(path), profile="paper", pins=pins).runs
    return run.spec


def busy_seconds() -> float:
    """Return the busy time of all CPUs, including interrupts, which move packets outside of processes."""
    fields = Path("/proc/stat").read_text().split()
    return sum(int(fields[number]) for number in BUSY_FIELDS) / os.sysconf("SC_CLK_TCK")


def _chosen(option: str, given: Sequence[str], known: Mapping[str, object]) -> list[str]:
    """Return the ids that an option names: all by default, none for ``none``. Raises StudyError for an unknown id."""
    if tuple(given) == (NONE,):
        return []
    all_of(*(partial(require, "id", name, (*known, NONE), option) for name in given))
    return [name for name in known if not given or name in given]


def _table(rows: Sequence[Timing], repeats: int) -> Table:
    headings = ("where", "flow", "wall s", "CPU s", "CPU s per simulated s", "wall us per segment", "goodput Mb/s")
    table = Table(*headings, title=f"best of {repeats}; one run each on peers")
    for row in rows:
        each = (row.cpu_s / row.seconds, 1e6 * row.wall_s / row.segments if row.segments else 0.0)
        numbers = [f"{number:.2f}" for number in (row.wall_s, row.cpu_s, *each)]
        table.add_row(row.where, row.flow, *numbers, f"{row.goodput_bps / 1e6:.0f}")
    return table
