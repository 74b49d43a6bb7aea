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


def test_what_arrives_after_a_flow_is_neither_goodput_nor_a_transfer(tmp_path: Path) -> None:
    # Two that ended in time, one whose rest came later, and one that was complete only later.
    ended, under_way = {40000: 1500, 40001: 1500, 40002: 900, 40003: 1500}, {40002: 400, 40003: 1499}
    report = "19700101000000,10.0.1.2,5001,10.0.0.1,{},1,0.0-1.0,{},{}\n"
    text = "".join(report.format(port, amount, 8 * amount) for port, amount in ended.items())
    (tmp_path / "iperf").mkdir()
    for end in ("client", "server"):
        (tmp_path / "iperf" / f"stream1.{end}.txt").write_text(text)
    (tmp_path / "iperf" / "stream1.end.json").write_text(json.dumps(under_way))
    spec = delay_spec()
    flow = dataclasses.replace(spec.flows[0], transfer_bytes=1500)
    (found,) = flow_results(dataclasses.replace(spec, flows=(flow,)), tmp_path)
    assert found["bytes_received"] == 1500 + 1500 + 400 + 1499
    assert found["goodput_bps"] == 8 * found["bytes_received"]  # the flow lasts a second
    assert found["transfers"] == 2
    assert found["bytes_sent"] == 5400


@pytest.mark.parametrize(("text", "killed"), [("nr_free 3\noom_kill 2\n", True), ("oom_kill 0\n", False), ("", False)])
def test_programs_that_the_kernel_ended_for_memory_are_named(tmp_path: Path, text: str, killed: bool) -> None:
    file = tmp_path / "vmstat"
    file.write_text(text)
    assert ("out of memory" in memory_words(file)) == killed
