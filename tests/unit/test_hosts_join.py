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
SPEC = dataclasses.replace(
    cable_spec(),
    udp=(Udp("steady", "client1", "server", 2_000_000, 1_000_000),),
    web=(Web("surf", "client1", "server", 20, "cubic", 1_000_000),),
)
SENT, ARRIVED = {"sent_packets": 9}, {"received_packets": 7, "arrived_packets": 8}
FOUND = {"bytes_received": 5000, "replies": 3, "unfinished": 1, "mean_reply_us": 700, "errors": {"timeout": 2}}


def part(folder: Path, node: str, end: str, *, pressure: int | None, rows: list[str]) -> Path:
    """Write the part of a run that one of two hosts of a cable returns."""
    for name in ("iperf", "captures", "outstanding", "throughput", "web"):
        (folder / name).mkdir(parents=True)
    (folder / "iperf" / f"stream1.{end}.txt").write_text(REPORT.read_text())
    (folder / "sockets.csv").write_text("".join(f"{line}\n" for line in ["t_us,flow", *rows]))
    flow = {"flow": "stream1", "cca": "reno"}
    achieved: dict[str, object] = {
        "nodes": {node: {"sysctls": {}}},
        "interfaces": [{"node": node, "interface": f"{node}-eth0"}],
        "flows": [flow] if end == "client" else [],
        "web": [{"web": "surf", "ccas": ["cubic"]}] if end == "client" else [],
        "capture": {},
        "cpu_pressure_us": pressure,
        "memory_pressure": 1,
    }
    files = {
        "achieved": achieved,
        "counters": {node: {"Tcp.OutSegs": 7}},
        "environment": {"kernel_release": "6", "ccas": ["reno"]},
        "outcome": {"status": "ok", "reason": None, "end_us": len(node)},
        "udp": [SENT if end == "client" else ARRIVED],
        **({} if end == "client" else {"web/surf.users": FOUND}),
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


@pytest.mark.parametrize("found", [FOUND, FOUND | {"mean_reply_us": None, "errors": {}}])
def test_the_parts_of_all_hosts_become_one_run(
    parts: dict[str, Path], tmp_path: Path, found: dict[str, object]
) -> None:
    (parts["sender"] / "pings.csv").write_text("t_us,rtt_us\n0,10.072\n100,\n")
    (parts["receiver"] / "web/surf.users.json").write_text(json.dumps(found))
    join_parts(SPEC, parts, tmp_path, {})
    achieved = json.loads((tmp_path / "achieved.json").read_text())
    assert set(achieved["nodes"]) == {"client1", "server"}
    assert [entry["interface"] for entry in achieved["interfaces"]] == ["server-eth0", "client1-eth0"]
    assert [flow["flow"] for flow in achieved["flows"]] == ["stream1"]
    assert (achieved["cpu_pressure_us"], achieved["memory_pressure"]) == (9, 2)
    assert set(json.loads((tmp_path / "counters.json").read_text())) == {"client1", "server"}
    assert (tmp_path / "sockets.csv").read_text().split() == ["t_us,flow", "100,a", "200,b", "300,c", "1000,d"]
    assert (tmp_path / "pings.csv").read_text().split() == ["t_us,rtt_us", "0,10.072", "100,"]
    (flow,) = json.loads((tmp_path / "flows.json").read_text())
    assert flow["bytes_sent"] == flow["bytes_received"] > 0
    assert json.loads((tmp_path / "outcome.json").read_text()) == {"status": "ok", "reason": None, "end_us": 7}
    (udp,) = json.loads((tmp_path / "udp.json").read_text())
    assert udp.items() >= (SENT | ARRIVED | {"udp": "steady", "packet_bytes": 1500, "due_packets": 167}).items()
    (web,) = json.loads((tmp_path / "web.json").read_text())
    assert web.items() >= (found | {"web": "surf", "cca": "cubic"}).items()
    assert achieved["web"] == [{"web": "surf", "ccas": ["cubic"]}]


@pytest.mark.parametrize(
    ("host", "file", "data", "reason"),
    [
        ("sender", "udp", [{}], "sent_packets of steady is None"),
        ("receiver", "udp", [{"received_packets": 7}], "arrived_packets of steady is None"),
        ("sender", "udp", [SENT | {"arrived_packets": 8}], "two hosts report arrived_packets"),
        ("sender", "udp", [{"sent_packets": "9"}], "sent_packets of steady is '9'"),
        ("sender", "udp", [{"sent_packets": -1}], "sent_packets of steady is -1"),
        ("receiver", "web/surf.users", FOUND | {"replies": "3"}, "replies of surf is '3'"),
        ("receiver", "web/surf.users", FOUND | {"unfinished": True}, "unfinished of surf is True"),
        ("receiver", "web/surf.users", FOUND | {"bytes_received": -1}, "bytes_received of surf is -1"),
        ("receiver", "web/surf.users", FOUND | {"mean_reply_us": 0.5}, "mean_reply_us of surf is 0.5"),
        ("receiver", "web/surf.users", FOUND | {"errors": {"timeout": None}}, "timeout of surf is None"),
        ("receiver", "web/surf.users", FOUND | {"errors": 2}, "AttributeError"),
        ("receiver", "web/surf.users", {"replies": 3}, "KeyError"),
    ],
)
def test_each_number_is_a_count_of_one_host(
    host: str, file: str, data: object, reason: str, parts: dict[str, Path], tmp_path: Path
) -> None:
    (parts[host] / f"{file}.json").write_text(json.dumps(data))
    with pytest.raises(RigError, match=reason):
        join_parts(SPEC, parts, tmp_path, {})


@pytest.mark.parametrize("servers", [[], ["surf", "surf"]])
def test_web_traffic_has_the_algorithms_of_one_server(
    parts: dict[str, Path], tmp_path: Path, servers: list[str]
) -> None:
    achieved = json.loads((parts["sender"] / "achieved.json").read_text())
    achieved["web"] = [{"web": name, "ccas": ["cubic"]} for name in servers]
    (parts["sender"] / "achieved.json").write_text(json.dumps(achieved))
    with pytest.raises(RigError, match=f"the servers whose algorithms were read are {', '.join(servers) or 'none'}"):
        join_parts(SPEC, parts, tmp_path, {})
