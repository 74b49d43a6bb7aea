# SPDX-License-Identifier: Apache-2.0
"""The same run gives the same bytes, whatever else the machine does; another seed gives another run."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from guests import ask, one_flow, run
from packets import SYN, read_packets

pytestmark = pytest.mark.virtual


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def differing(one: Path, other: Path) -> list[str]:
    first, second = contents(one), contents(other)
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that the other tests repeat."""
    return run(one_flow(), tmp_path_factory.mktemp("first") / "run")


def test_the_same_run_gives_the_same_bytes_while_both_cores_are_busy(first: Path, tmp_path: Path) -> None:
    assert {"outcome.json", "captures/flow1.pcap", "iperf/flow1.client.txt", "sockets.csv"} <= contents(first).keys()
    with ExitStack() as cleanup:
        for _ in range(2):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            cleanup.callback(busy.wait)
            cleanup.callback(busy.kill)
        again = run(one_flow(), tmp_path / "again")
    assert differing(first, again) == []


def test_another_seed_changes_ports_and_sequence_numbers(first: Path, tmp_path: Path) -> None:
    other = run(one_flow(seed=2), tmp_path / "other")
    assert set(differing(first, other)) >= {"captures/flow1.pcap", "iperf/flow1.client.txt", "iperf/flow1.server.txt"}
    before, after = ([p for p in read_packets(f / "captures/flow1.pcap") if p.flags & SYN] for f in (first, other))
    assert len(before) == len(after) == 2
    assert before[0].source_port != after[0].source_port
    for one, two in zip(before, after, strict=True):
        assert one.sequence != two.sequence


def test_two_guests_have_the_same_memory_random_numbers_and_addresses() -> None:
    program = """
import os, time
answer = [open("/proc/meminfo").read(), os.urandom(16).hex(), open("/proc/self/maps").read(), time.time_ns()]
"""
    memory, random, maps, now = ask(program)
    assert [memory, random, maps, now] == ask(program)
    assert "MemTotal" in memory
    assert 1_000_000_000 * 10**9 < now < 1_000_000_001 * 10**9
