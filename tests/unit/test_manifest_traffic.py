# SPDX-License-Identifier: Apache-2.0
"""UDP traffic, web users, pings and captures in a manifest, also without a TCP flow, and in the run specs from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabricated_results import make_results
from manifests import HEAD, keys_of, plan_of, problems_of, spec_of, study_of

from longfat.metrics.data import RunData
from longfat.plan import estimate

MANIFEST = """\
format: 2
study: traffic
title: Traffic of every kind
algorithms: {standard: {cca: reno}, scalable: {cca: scalable, a: 0.02}}
experiments:
  - id: all
    topology: {kind: dumbbell, rate: 1 Gbit/s, rtt: 70 ms, senders: 3, receivers: 2}
    flows: [{name: bulk, from: client1, to: server1, algorithm: standard, duration: 30 s, count: 2}]
    udp: [{name: wave, from: client2, to: server2, rate: 12 Mbit/s, duration: 60 s}]
    web: [{name: surf, from: client3, to: server1, users: 1400, algorithm: standard, duration: 60 s}]
    requests: [{name: read, from: client1, to: server1, algorithm: standard, users: 3, response: 64 kB, duration: 9 s}]
    probes: {ping: 100 ms, capture: [bulk2, wave, read], capture_at: [receiver, bottleneck]}
"""
SURF = "{name: surf, from: client3, to: server1, users: 1400, algorithm: standard, duration: 60 s}"
SWIM = SURF.replace("surf", "swim").replace("standard", "{cca: cubic}")


def test_model_start_and_off_times_of_web_users_and_their_algorithm_can_be_chosen(tmp_path: Path) -> None:
    more = ("users: 1400", "users: 1400, model: surge_files, off_times: 12.5 %, start: 5 s")
    spec = spec_of(tmp_path, MANIFEST, more, ("5 s, algorithm: standard", "5 s, algorithm: scalable"))
    (web,) = spec.web
    assert (web.model, web.off_ppm, web.start_us) == ("surge_files", 125_000, 5_000_000)
    (server,) = (node for node in spec.nodes if node.name == "client3")
    assert server.sysctls["net.ipv4.tcp_scalable.a_ppm"] == "20000"


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("rate: 12 Mbit/s", "mean: 40 Mbit/s, swing: 50 Mbit/s, period: 1 s", "udp[0].swing"),
        ("rate: 12 Mbit/s", "rate: 1 Mbit/s, mean: 1 Mbit/s", "udp[0].rate"),
        ("rate: 12 Mbit/s", "rate: 1 Mbit/s, swing: 1 Mbit/s, period: 1 s", "udp[0].rate"),
        ("rate: 12 Mbit/s", "mean: 1 Mbit/s, swing: 1 Mbit/s", "udp[0].rate"),
        ("rate: 12 Mbit/s, ", "", "udp[0].rate"),
        ("receivers: 2}", "receivers: 2, further_delays: [100 ms]}", "topology.further_delays"),
        (
            "receivers: 2}",
            "receivers: 2, reverse_queue: {limit: 9}, further_delays: [0 s, 1 s]}",
            "topology.further_delays",
        ),
        ("users: 1400", "users: 1400, model: surg", "web[0].model"),
        ("from: client3", "from: client4", "web[0].from"),
        ("from: client3, to: server1", "from: server1, to: server1", "web[0].to"),
        ("users: 1400", "users: 0", "web[0].users"),
        ("name: surf", "name: bulk1", "web[0].name"),
        (f"[{SURF}]", f"[{SURF}, {SWIM}]", "web[1].algorithm"),
        ("users: 1400", "user: 1400", "web[0].user"),
        ("[bulk2, wave,", "[bulk2, wafe,", "probes.capture[1]"),
        ("[receiver, bottleneck]", "[reciever]", "probes.capture_at[0]"),
        ("[receiver, bottleneck]", "[]", "probes.capture_at"),
        (MANIFEST[MANIFEST.index("    flows:") :], "", "flows"),
    ],
)
def test_a_fault_of_traffic_is_named_with_its_key(tmp_path: Path, old: str, new: str, key: str) -> None:
    assert f"experiments[0].{key}" in keys_of(tmp_path, MANIFEST, (old, new))


def test_the_estimate_counts_the_users_requests_and_bytes(tmp_path: Path) -> None:
    users = ("users: 1", "users: 1400", "users: 1400, off_times: 50 %")
    plans = [plan_of(tmp_path, MANIFEST, ("users: 1400", text)) for text in users]
    few, many, more = (estimate(plan, jobs=1).wall_seconds for plan in plans)
    assert few < many < more


ALONE = HEAD + "  - id: only\n    topology: {kind: delay, rate: 10 Mbit/s, rtt: 40 ms}\n"
UDP = "    udp: [{name: camera, from: client1, to: server, rate: 2 Mbit/s, start: 1 s, duration: 5 s}]\n"
FLOW = "    flows: [{name: bulk, from: client1, to: server, algorithm: {cca: reno}, duration: 5 s}]\n"


@pytest.mark.parametrize(("traffic", "end"), [(UDP, "6 s"), (FLOW, "5 s")])
def test_no_run_ends_before_its_traffic(tmp_path: Path, traffic: str, end: str) -> None:
    (found,) = problems_of(tmp_path, ALONE + traffic + "    duration: 4 s\n")
    assert f"4 s is over before {'camera' if traffic == UDP else 'bulk'!r} ends at {end}" in found.message
    plan = plan_of(tmp_path, ALONE + traffic + "    duration: 9 s\n", backend="fake")
    assert estimate(plan, jobs=1).wall_seconds > 0
    assert plan.runs[0].spec.end_us == 9_000_000


def test_the_bottleneck_of_a_run_without_a_flow_is_that_of_its_routers(tmp_path: Path) -> None:
    """A port of a host, slower or not, is none: a host has one interface."""
    dumbbell = "{kind: dumbbell, rate: 10 Mbit/s, rtt: 40 ms, senders: 2}"
    (tmp_path / "small").mkdir()
    changes = (("{kind: delay, rate: 10 Mbit/s, rtt: 40 ms}", dumbbell), ("study: example", "study: small"))
    study_of(tmp_path / "small", ALONE + UDP, *changes)
    dataset = make_results(tmp_path / "small", tmp_path).dataset
    assert [run.status for run in dataset.runs] == ["ok"]
    assert RunData(dataset, dataset.runs[0]).bottleneck().node == "switch"
