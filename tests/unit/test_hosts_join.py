# SPDX-License-Identifier: Apache-2.0
"""Parts of a run from several hosts, joined into one run."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from conftest import cable_spec

from longfat.backends.testbed.connect.join import join_parts
from longfat.spec.runspec import Udp, Web
from longfat.system.errors import RigError

REPORT = Path(__file__).parents[1] / "data" / "iperf-2.1.8-one-stream.csv"


def part(folder: Path, node: str, end: str, *, pressure: int | None, rows: list[str]) -> Path:
    """Write the part of a run that one of two hosts of a cable returns."""
    for name in ("iperf", "captures", "outstanding", "throughput"):
        (folder / name).mkdir(parents=True)
    (folder / "iperf" / f"stream1.{end}.txt").write_text(REPORT.read_text())
    (folder / "sockets.csv").write_text("".join(f"{line}\n" for line in ["t_us,flow", *rows]))
    flow = {"flow": "stream1", "cca": "reno"}
    achieved: dict[str, object] = {
        "nodes": {node: {"sysctls": {}}},
        "interfaces": [{"node": node, "interface": f"{node}-eth0"}],
        "flows": [flow] if end == "client" else [],
        "capture": {},
        "cpu_pressure_us": pressure,
        "memory_pressure": 1,
    }
    files = {
        "achieved": achieved,
        "counters": {node: {"Tcp.OutSegs": 7}},
        "environment": {"kernel_release": "6", "ccas": ["reno"]},
        "outcome": {"status": "ok", "reason": None, "end_us": len(node)},
    }
    for name, data in files.items():
        (folder / f"{name}.json").write_text(json.dumps(data))
    return folder


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, Path]:
    return {
        "receiver": part(tmp_path / "r", "server", "server", pressure=None, rows=["200,b", "1000,d"]),
        "sender": part(tmp_path / "s", "client1", "client", pressure=9, rows=["100,a", "300,c"]),
    }


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def test_the_parts_of_all_hosts_become_one_run(parts: dict[str, Path], run_folder: Path) -> None:
    (parts["sender"] / "pings.csv").write_text("t_us,rtt_us\n0,10.072\n100,\n")
    join_parts(cable_spec(), parts, run_folder, {})
    achieved = json.loads((run_folder / "achieved.json").read_text())
    assert set(achieved["nodes"]) == {"client1", "server"}
    assert [entry["interface"] for entry in achieved["interfaces"]] == ["server-eth0", "client1-eth0"]
    assert [flow["flow"] for flow in achieved["flows"]] == ["stream1"]
    assert (achieved["cpu_pressure_us"], achieved["memory_pressure"]) == (9, 2)
    assert set(json.loads((run_folder / "counters.json").read_text())) == {"client1", "server"}
    assert (run_folder / "sockets.csv").read_text().split() == ["t_us,flow", "100,a", "200,b", "300,c", "1000,d"]
    assert (run_folder / "pings.csv").read_text().split() == ["t_us,rtt_us", "0,10.072", "100,"]
    (flow,) = json.loads((run_folder / "flows.json").read_text())
    assert flow["bytes_sent"] == flow["bytes_received"] > 0
    assert json.loads((run_folder / "outcome.json").read_text()) == {"status": "ok", "reason": None, "end_us": 7}


SENT, ARRIVED = {"sent_packets": 9}, {"received_packets": 7, "arrived_packets": 8}


@pytest.mark.parametrize(
    ("sender", "receiver", "reason"),
    [
        (SENT, ARRIVED, None),
        ({}, ARRIVED, "sent_packets of steady is None"),
        (SENT, {"received_packets": 7}, "arrived_packets of steady is None"),
        (SENT | {"arrived_packets": 8}, ARRIVED, "two hosts report arrived_packets"),
        ({"sent_packets": "9"}, ARRIVED, "sent_packets of steady is '9'"),
        ({"sent_packets": -1}, ARRIVED, "sent_packets of steady is -1"),
    ],
)
def test_both_ends_of_udp_traffic_count_packets_and_each_number_is_of_one_host(
    sender: dict[str, object], receiver: dict[str, object], reason: str | None, parts: dict[str, Path], run_folder: Path
) -> None:
    spec = dataclasses.replace(cable_spec(), udp=(Udp("steady", "client1", "server", 2_000_000, 1_000_000),))
    for host, counted in {"sender": sender, "receiver": receiver}.items():
        (parts[host] / "udp.json").write_text(json.dumps([counted]))
    if reason:
        with pytest.raises(RigError, match=reason):
            join_parts(spec, parts, run_folder, {})
        return
    join_parts(spec, parts, run_folder, {})
    (report,) = json.loads((run_folder / "udp.json").read_text())
    assert report.items() >= (SENT | ARRIVED | {"udp": "steady", "packet_bytes": 1500, "due_packets": 167}).items()


SURF = Web("surf", "client1", "server", 20, "cubic", 1_000_000)
FOUND = {"bytes_received": 5000, "replies": 3, "unfinished": 1, "mean_reply_us": 700, "errors": {"timeout": 2}}


@pytest.mark.parametrize(
    ("servers", "found", "reason"),
    [
        (["surf"], FOUND, None),
        (["surf"], FOUND | {"mean_reply_us": None, "errors": {}}, None),
        ([], FOUND, "the servers whose algorithms were read are none"),
        (["surf", "surf"], FOUND, "the servers whose algorithms were read are surf, surf"),
        (["surf"], FOUND | {"replies": "3"}, "replies of surf is '3'"),
        (["surf"], FOUND | {"unfinished": True}, "unfinished of surf is True"),
        (["surf"], FOUND | {"bytes_received": -1}, "bytes_received of surf is -1"),
        (["surf"], FOUND | {"mean_reply_us": 0.5}, "mean_reply_us of surf is 0.5"),
        (["surf"], FOUND | {"errors": {"timeout": None}}, "timeout of surf is None"),
        (["surf"], FOUND | {"errors": 2}, "AttributeError"),
        (["surf"], {"replies": 3}, "KeyError"),
    ],
)
def test_web_traffic_has_the_algorithms_of_one_server_and_the_counts_of_its_users(
    servers: list[str], found: dict[str, object], reason: str | None, parts: dict[str, Path], run_folder: Path
) -> None:
    spec = dataclasses.replace(cable_spec(), web=(SURF,))
    for folder in parts.values():
        (folder / "web").mkdir()
    (parts["receiver"] / "web/surf.users.json").write_text(json.dumps(found))
    achieved = json.loads((parts["sender"] / "achieved.json").read_text())
    achieved["web"] = [{"web": name, "ccas": ["cubic"]} for name in servers]
    (parts["sender"] / "achieved.json").write_text(json.dumps(achieved))
    if reason:
        with pytest.raises(RigError, match=reason):
            join_parts(spec, parts, run_folder, {})
        return
    join_parts(spec, parts, run_folder, {})
    (report,) = json.loads((run_folder / "web.json").read_text())
    assert report.items() >= (found | {"web": "surf", "cca": "cubic"}).items()
    assert json.loads((run_folder / "achieved.json").read_text())["web"] == [{"web": "surf", "ccas": ["cubic"]}]
