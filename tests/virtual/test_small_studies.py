# SPDX-License-Identifier: Apache-2.0
"""Small studies in a guest: pings alone, settings of hosts, windows, limited applications, odd and narrow paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies import done, samples, specs_of

from longfat.guest.cca_state import MODES
from longfat.guest.sockets import TCP_CLOSE
from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

STUDY = """\
algorithms: {reno: {cca: reno}, cubic: {cca: cubic}, bbr: {cca: bbr}}
paths:
  line: {kind: dumbbell, rate: 20 Mbit/s, host_rate: 1 Gbit/s, rtt: 40 ms, senders: 2}
defaults: {flow: {from: client1, to: server, algorithm: reno, duration: 2 s}}
experiments:
  - id: pings
    topology: {kind: delay, rate: 10 Mbit/s, rtt: 40 ms}
    duration: 2 s
    probes: {ping: 100 ms}
  - id: two
    path: line
    hosts:
      sysctls: {net.ipv4.tcp_ecn: 0}
      per_host:
        server: {sysctls: {net.ipv4.tcp_ecn: 2}}
        client2: {sysctls: {net.ipv4.tcp_ecn: 1}, offloads: [gro], packet_time: 2 us}
    flows: [{name: plain}, {name: marked, from: client2}]
  - id: many
    topology: {kind: dumbbell, rate: 100 Mbit/s, rtt: 20 ms, senders: 70, receivers: 3}
    flows: [{name: last, from: client70, to: server3, window: 64 KiB, duration: 400 ms}]
    probes: {sockets: 1 ms, queues: null}
  - id: windows
    topology: {kind: delay, rate: 200 Mbit/s, rtt: 80 ms}
    flows:
      - {name: a, window: 1500 kB, streams: 3}
      - {name: b, window: 1500 kB, transfer: 30 kB}
      - {name: c, window: 1500 kB, send_window: 600 kB}
  - {id: constant, path: line, flows: [{name: call, algorithm: cubic, rate: 5 Mbit/s, streams: 2, duration: 3 s}]}
  - id: turns
    path: line
    flows: [{name: call, algorithm: bbr, rate: 8 Mbit/s, on_time: 500 ms, off_time: 1 s, duration: 3 s}]
  - {id: faster, path: line, flows: [{name: call, algorithm: cubic, rate: 60 Mbit/s, duration: 3 s}]}
  - id: lot
    topology: {kind: parking_lot, bottlenecks: 3, rate: 10 Mbit/s, rtt: 30 ms, bottleneck_queue: {limit: 50}}
    flows:
      - {name: long, duration: 8 s}
      - {name: cross, count: 3, from: cross1, to: sink1, start: 500 ms, duration: 8 s}
  - id: cable
    topology: {kind: direct, rate: "${rate}", rtt: 100 us}
    hosts: {mtu: "${mtu}", txqueuelen: 20000}
    flows: [{name: flow, window: 8 MiB, duration: 60 ms}]
    probes: {sockets: 1 ms, queues: 1 ms}
    sweep: {zip: {rate: [2.4 Gbit/s, 40 Gbit/s], mtu: [1500 B, 9000 B]}}
  - id: space
    topology: {kind: direct, rate: 10 kbit/s, rtt: 20 min}
    hosts: {sysctls: {net.ipv4.tcp_syn_retries: 30, net.ipv4.tcp_synack_retries: 30}}
    flows: [{name: probe, window: 20 kB, duration: 1260 s}]
    probes: {sockets: 10 s, queues: 10 s}
"""
specs = specs_of(STUDY)
HEADERS_BYTES = 20 + 20 + 12  # IPv4, TCP, time stamps
FRAME_BYTES = 14 + 24  # Ethernet's header; preamble, check sequence and gap


def test_pings_alone_last_for_the_declared_duration(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    parsed = done(specs["pings"], tmp_path / "run")
    assert parsed.end_us == pytest.approx(2_000_000, abs=10_000)
    assert max(parsed.tables["pings"]["t_us"].to_pylist()) == pytest.approx(1_900_000, abs=100_000)


def test_hosts_of_one_run_have_their_own_settings(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    nodes = done(specs["two"], tmp_path / "run").achieved["nodes"]
    read = {name: (node["sysctls"].get("net.ipv4.tcp_ecn"), node["offloads_on"]) for name, node in nodes.items()}
    assert (read["client1"], read["client2"], read["server"]) == (("0", []), ("1", ["gro"]), ("2", []))
    assert "card2" in nodes and "card1" not in nodes


def test_the_first_packet_of_the_last_of_many_hosts_gets_through(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    rows = done(specs["many"], tmp_path / "run").tables["sockets"].to_pylist()
    connected = [row["t_us"] for row in rows if row["state"] == "1"]
    assert connected[0] < 25_000  # one round trip after its program has started


def test_the_buffers_are_those_of_the_window(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    achieved = done(specs["windows"], tmp_path / "run").achieved
    sending = {flow["flow"]: flow["send_buffer_bytes"] for flow in achieved["flows"]}
    assert sending == {"a": 1_500_000, "b": 1_500_000, "c": 600_000}
    assert achieved["receive_buffers"] == dict.fromkeys("abc", 1_500_000)


def test_a_constant_rate_is_given_and_arrives(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    parsed = done(specs["constant"], tmp_path / "run")
    (report,) = parsed.reports
    assert report["bytes_sent"] == report["bytes_due"] == 5_000_000 * 3 // 8
    assert report["goodput_bps"] == pytest.approx(5e6, rel=1e-3)
    last = [row for row in parsed.tables["sockets"].to_pylist() if row["t_us"] == 2_900_000]
    assert [row["app_limited"] for row in last] == [1, 1]


def test_in_off_time_the_application_is_the_limit_and_nothing_is_acknowledged(
    specs: dict[str, RunSpec], tmp_path: Path
) -> None:
    parsed = done(specs["turns"], tmp_path / "run")
    rows = {row["t_us"]: row for row in parsed.tables["sockets"].to_pylist()}
    off = (700_000, 1_400_000)
    assert rows[off[0]]["bytes_acked"] == rows[off[1]]["bytes_acked"] > 490_000
    assert rows[off[1]]["app_limited_us"] - rows[off[0]]["app_limited_us"] == pytest.approx(700_000, abs=20_000)
    assert rows[1_900_000]["bytes_acked"] > rows[off[1]]["bytes_acked"]
    # A limited application keeps BBR in its startup until the end.
    modes = {row["t_us"]: row["value"] for row in parsed.tables["cca_state"].to_pylist() if row["name"] == "mode"}
    assert list(modes) == parsed.tables["sockets"]["t_us"].to_pylist()
    assert set(modes.values()) == {MODES.index("startup")}


def test_an_application_faster_than_the_path_is_held_back_and_the_run_is_valid(
    specs: dict[str, RunSpec], tmp_path: Path
) -> None:
    (report,) = done(specs["faster"], tmp_path / "run").reports
    assert report["bytes_sent"] < report["bytes_due"]
    assert 17e6 < report["goodput_bps"] < 19.2e6


def test_in_a_parking_lot_the_long_flow_has_less_than_each_that_it_meets(
    specs: dict[str, RunSpec], tmp_path: Path
) -> None:
    parsed = done(specs["lot"], tmp_path / "run")
    goodput = {report["flow"]: report["goodput_bps"] for report in parsed.reports}
    long = goodput.pop("long")
    assert all(2 * long < cross for cross in goodput.values())
    for switch in ("switch1", "switch2", "switch3"):
        rows = [row for row in samples(parsed, specs["lot"], switch) if 2_000_000 <= row["t_us"] <= 7_000_000]
        assert (rows[-1]["sent_bytes"] - rows[0]["sent_bytes"]) * 8 / 5 > 0.95 * 10e6


def test_a_round_trip_may_take_twenty_minutes_and_a_link_ten_kilobits(
    specs: dict[str, RunSpec], tmp_path: Path
) -> None:
    parsed = done(specs["space"], tmp_path / "run")
    (report,) = parsed.reports
    (flow,) = parsed.achieved["flows"]
    assert report["bytes_received"] == report["bytes_sent"] > 10_000
    assert 1200e6 <= flow["base_rtt_us"] < 1.05 * 1200e6


@pytest.mark.parametrize(("rate_bps", "mtu_bytes"), [(2_400_000_000, 1500), (40_000_000_000, 9000)])
def test_a_flow_has_all_that_a_fast_link_can_carry(
    specs: dict[str, RunSpec], tmp_path: Path, rate_bps: int, mtu_bytes: int
) -> None:
    rows = done(specs[f"cable {rate_bps} {mtu_bytes}"], tmp_path / "run").tables["sockets"].to_pylist()
    sampled = [row for row in rows if row["state"] != str(TCP_CLOSE)]  # that one is to a tick
    first, last = sampled[20], sampled[-1]
    acked = last["bytes_acked"] - first["bytes_acked"]
    payload = (mtu_bytes - HEADERS_BYTES) / (mtu_bytes + FRAME_BYTES)
    # Acknowledgements tell of two segments at a time, and samples fall between them.
    slack = 0.001 + 4 * mtu_bytes / acked
    assert 8e6 * acked / (last["t_us"] - first["t_us"]) == pytest.approx(rate_bps * payload, rel=slack)


NARROW = """\
stack: linux-2.4
algorithms:
  reno: {cca: reno}
  fast: {cca: fast, alpha: 20}
  compound: {cca: compound}
hosts: {mtu: 1500 B, txqueuelen: 100}
experiments:
  - id: narrow
    topology:
      kind: dumbbell
      rate: 10 Mbit/s
      host_rate: 1 Gbit/s
      rtt: 10 ms
      senders: 1
      bottleneck_queue: {limit: 2}
    flows:
      - {name: stream, from: client1, to: server, algorithm: "${algorithm}", window: 125 kB, duration: 5 s}
    sweep: {product: {algorithm: [reno, fast, compound]}}
"""
narrow = specs_of(NARROW)


@pytest.mark.parametrize("algorithm", ["reno", "fast", "compound"])
def test_a_flow_gets_out_of_a_window_of_one_segment_and_only_compound_has_a_delay_window(
    narrow: dict[str, RunSpec], tmp_path: Path, algorithm: str
) -> None:
    # Rate halving goes below half of the window, down to a segment. Each acknowledgment of it leaves nothing in flight:
    # for an algorithm that takes this for a pause no round trip is ever complete, and 0.4 Mb/s are left.
    parsed = done(narrow[f"narrow {algorithm}"], tmp_path / "run")
    assert parsed.reports[0]["goodput_bps"] > 2_000_000  # five times as much
    sampled = [row for row in parsed.tables["sockets"].to_pylist() if row["state"] != str(TCP_CLOSE)]
    assert len(sampled) > 40
    assert {row["dwnd_segments"] is not None for row in sampled} == {algorithm == "compound"}
