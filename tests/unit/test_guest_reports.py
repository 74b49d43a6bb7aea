# SPDX-License-Identifier: Apache-2.0
"""Reports of a run from its programs' output: bytes and transfers that arrived in time, and nothing else."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from conftest import delay_spec

from longfat.guest.kinds.flows import flow_results
from longfat.guest.processes import memory_words
from longfat.spec.runspec import RunSpec


def line(port: int, amount: int) -> str:
    return f"19700101000000,10.0.1.2,5001,10.0.0.1,{port},1,0.0-1.0,{amount},{8 * amount}\n"


def transfers(size: int) -> RunSpec:
    spec = delay_spec()
    return dataclasses.replace(spec, flows=(dataclasses.replace(spec.flows[0], transfer_bytes=size),))


def output_of(folder: Path, ended: dict[int, int], under_way: dict[int, int]) -> Path:
    (folder / "iperf").mkdir()
    text = "".join(line(port, amount) for port, amount in ended.items())
    for end in ("client", "server"):
        (folder / "iperf" / f"stream1.{end}.txt").write_text(text)
    (folder / "iperf" / "stream1.end.json").write_text(json.dumps(under_way))
    return folder


def test_what_arrives_after_a_flow_is_neither_goodput_nor_a_transfer(tmp_path: Path) -> None:
    # Two that ended in time, one whose rest came later, and one that was complete only later.
    folder = output_of(tmp_path, {40000: 1500, 40001: 1500, 40002: 900, 40003: 1500}, {40002: 400, 40003: 1499})
    (found,) = flow_results(transfers(1500), folder)
    assert found["bytes_received"] == 1500 + 1500 + 400 + 1499
    assert found["goodput_bps"] == 8 * found["bytes_received"]  # the flow lasts a second
    assert found["transfers"] == 2
    assert found["bytes_sent"] == 5400


@pytest.mark.parametrize(("text", "killed"), [("nr_free 3\noom_kill 2\n", True), ("oom_kill 0\n", False), ("", False)])
def test_programs_that_the_kernel_ended_for_memory_are_named(tmp_path: Path, text: str, killed: bool) -> None:
    file = tmp_path / "vmstat"
    file.write_text(text)
    assert ("out of memory" in memory_words(file)) == killed
