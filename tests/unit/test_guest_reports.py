# SPDX-License-Identifier: Apache-2.0
"""Reports of a run from its programs' output: what arrived in time, iperf2's own, and reports of many flows."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import delay_spec
from needs import free_ports

from longfat.guest import traffic
from longfat.guest.kinds.flows import flow_results
from longfat.guest.processes import memory_words
from longfat.guest.traffic import parse_report, server_command
from longfat.spec.runspec import Flow, Probes, RunSpec


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


DATA = Path(__file__).parents[1] / "data"
ONE = (DATA / "iperf-2.1.8-one-stream.csv").read_text()
TWO = (DATA / "iperf-2.1.8-two-streams.csv").read_text()


@pytest.mark.parametrize(("cca", "named"), [("dctcp", True), ("scalable", False)])
def test_a_receiver_has_the_algorithm_only_where_its_sender_asks_for_ecn_in_the_syn(cca: str, named: bool) -> None:
    command = server_command(Flow("f1", "client1", "server", cca, 10_000_000), 5003)
    assert (f"-Z {cca}" in " ".join(command)) == named


def test_a_report_has_the_bytes_of_all_streams_and_their_rate_until_the_last_stream_ends() -> None:
    assert parse_report(ONE, 1) == (15_728_700, 41_711_354)
    both, longest_s = 259_552 + 268_500, 8 * 259_552 / 17_178_208
    assert parse_report(TWO, 2) == (both, round(8 * both / longest_s))
    assert parse_report("19700101000000,10.0.0.1,1,10.0.1.2,5001,3,0.0-0.1,0,0\n", 1) == (0, 0)


@pytest.mark.parametrize(
    ("text", "streams", "found"),
    [(ONE, 2, 1), ("", 1, 0), (TWO, 1, 2), (TWO[:-30], 2, 1), ("connect failed: Connection refused\n", 1, 0)],
)
def test_a_missing_or_surplus_report_is_an_error_with_the_output(text: str, streams: int, found: int) -> None:
    with pytest.raises(ValueError, match=f"{found} of {streams} streams: .*{text.strip()[-20:]}"):
        parse_report(text, streams)


FLOWS = [Flow(f"f{n}", "client1", "server", "reno", 300_000, None, streams=1 + n, start_us=50_000 * n) for n in (1, 2)]


def started(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *command[1:]], stdout=subprocess.PIPE, text=True)


def test_both_ends_report_every_connection_with_its_bytes_and_its_start() -> None:
    ports = free_ports(len(FLOWS))
    receiver = started(traffic.crowd_receiver(zip(FLOWS, ports, strict=True)))
    orders = [(flow, "127.0.0.1", port) for flow, port in zip(FLOWS, ports, strict=True)]
    while not listening(ports):
        assert receiver.poll() is None
    sender = started(traffic.crowd_sender(orders, time.monotonic_ns()))
    sent, received = sender.communicate(timeout=30)[0], receiver.communicate(timeout=30)[0]
    assert (sender.returncode, receiver.returncode) == (0, 0)
    for flow, port in zip(FLOWS, ports, strict=True):
        ends = [
            "".join(line + "\n" for line in text.splitlines() if line.split(",")[column] == str(port))
            for text, column in ((sent, 4), (received, 2))
        ]
        (sent_bytes, _), (received_bytes, rate) = (traffic.parse_report(text, flow.streams) for text in ends)
        assert sent_bytes == received_bytes > 0
        assert 8 * received_bytes / rate == pytest.approx(flow.duration_us / 1e6, abs=0.25)


def listening(ports: list[int]) -> bool:
    with open("/proc/self/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A"} >= set(ports)


def test_flows_share_processes_from_200_connections_on() -> None:
    flow = FLOWS[0]
    one = RunSpec((), (), (), Probes(), 1)
    flows = tuple(replace(flow, name=f"f{n}", streams=1) for n in range(200))
    few, many = replace(one, flows=flows[1:]), replace(one, flows=flows)
    assert traffic.crowd(few) == {}
    assert len(traffic.crowd(many)) == 200
    limited = replace(one, flows=(*flows, replace(flow, name="app", rate_bps=1_000_000)))
    assert "app" not in traffic.crowd(limited)
