# SPDX-License-Identifier: Apache-2.0
"""How fast the named kernels are beside each other: CPU and wall seconds of the same runs, kernels in turn.

`.venv/bin/python kernels/compare.py`, on a machine that does nothing else. The best of the rounds counts. The last
column is the newest kernel with its programs stopped by ptrace instead of seccomp filters.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import tempfile
import time
from pathlib import Path

from longfat.backends.virtual import VirtualBackend, open_virtual
from longfat.catalog.kernels import KERNELS
from longfat.manifest.load import load_study
from longfat.plan import build_plan
from longfat.runspec import RunSpec

ROUNDS = 5
STUDY = """\
format: 2
study: compare
title: One flow that its path limits
algorithms: {reno: {cca: reno}}
hosts: {txqueuelen: 20000, sysctls: {net.core.rmem_max: 16777216, net.core.wmem_max: 16777216}}
experiments:
  - id: one-flow
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 30 ms}
    hosts: {mtu: "${mtu}"}
    flows:
      - {name: flow, from: client1, to: server, algorithm: reno, window: 11250 kB, duration: "${duration}"}
    sweep: {zip: {duration: [200 ms, 10 s, 10 s], mtu: [9000 B, 9000 B, 1500 B]}}
"""


def specs() -> dict[str, RunSpec]:
    """The runs by what they show; which kernel does them is decided later."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "study.yaml"
        path.write_text(STUDY)
        plan = build_plan(load_study(path), profile="paper", pins={})
    named = {
        (200_000, 9000): "fixed cost of a run",
        (10_000_000, 9000): "10 s, MTU 9000",
        (10_000_000, 1500): "10 s, MTU 1500",
    }
    found = {named[int(run.factors["duration"]), int(run.factors["mtu"])]: run.spec for run in plan.runs}
    return {name: found[name] for name in named.values()}


def backends() -> dict[str, VirtualBackend]:
    """A backend for each kernel, and the newest once more with ptrace."""
    opened = {name: open_virtual(print, (name,)) for name in KERNELS}
    last = opened[KERNELS[-1]]
    traced = dataclasses.replace(last.kernel, command_line=("seccomp=off",))
    return {**opened, f"{KERNELS[-1]}, ptrace": dataclasses.replace(last, kernels={"traced": traced})}


def seconds(backend: VirtualBackend, spec: RunSpec) -> tuple[float, float]:
    """CPU and wall seconds of one run."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        backend.run(spec, Path(name))
        assert json.loads((Path(name) / "outcome.json").read_text())["status"] == "ok"
    after, wall_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall_s


def main() -> None:
    """Print a table of CPU seconds / wall seconds, and both as ratios to the first kernel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    opened = backends()
    print(f"| run | {' | '.join(opened)} |\n|{'---|' * (len(opened) + 1)}")
    for what, spec in specs().items():
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in opened}
        for _ in range(rounds):
            for name, backend in opened.items():
                taken[name].append(seconds(backend, spec))
        best = {name: tuple(map(min, zip(*pairs, strict=True))) for name, pairs in taken.items()}
        first = best[next(iter(opened))]
        cells = [
            f"{cpu:.2f} s ({cpu / first[0]:.2f}) / {wall:.2f} s ({wall / first[1]:.2f})" for cpu, wall in best.values()
        ]
        print(f"| {what} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
