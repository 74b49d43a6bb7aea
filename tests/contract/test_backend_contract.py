# SPDX-License-Identifier: Apache-2.0
"""The suite that each backend passes: the files of a run folder (docs/data.md), refusals, and nothing left behind."""

from __future__ import annotations

import csv
import dataclasses
import json
import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import cable_spec, delay_spec
from machine import descendants, network_state
from needs import comes_true
from scarce_backends import realtime, simulator

from longfat.backends.protocol import FEATURES, Backend, Feature, Traits, needed
from longfat.backends.registry import backend_names, lacking, open_backend, traits_of
from longfat.spec.network import ports
from longfat.spec.runspec import (
    Card,
    Change,
    DeliberateDrop,
    Egress,
    Impairment,
    Interface,
    Link,
    Pause,
    Ping,
    Policer,
    Program,
    Queue,
    Requests,
    RunSpec,
    Scalar,
    Udp,
    Web,
)
from longfat.study.catalog.kernels import DEFAULT_KERNEL

SOCKET_COLUMNS = (
    "t_us,flow,stream,state,ca_state,cwnd_segments,ssthresh_segments,inflight_segments,srtt_us,min_rtt_us,"
    "retrans_total,lost_segments,bytes_acked,delivered_segments,dwnd_segments"
)
OF_KERNELS = (
    ",pacing_bps,delivery_bps,app_limited,busy_us,rwnd_limited_us,sndbuf_limited_us,notsent_bytes,snd_wnd_bytes,"
    "retrans_bytes,delivered_ce_segments,reordering_total"
)
QUEUE_COLUMNS = (
    "t_us,node,interface,qdisc,backlog_packets,backlog_bytes,drops_total,sent_packets,sent_bytes,marked_total"
)
RED: dict[str, Scalar] = {
    "min": 20_000,
    "max": 60_000,
    "probability": 0.02,
    "avpkt": 1500,
    "burst": 20,
    "bandwidth": "100mbit",
}


def marks(name: str) -> list[pytest.MarkDecorator]:
    """What the tests of a backend need: guests have a kernel to be built, real time has the userland's image."""
    traits = traits_of(name)
    found = [pytest.mark.virtual] if traits.guests or traits.clock == "real" else []
    found += [pytest.mark.alone, pytest.mark.root] if traits.clock == "real" else []
    return found + ([pytest.mark.docker] if name == "containernet" else [])


@pytest.fixture(scope="module", params=[pytest.param(name, marks=marks(name)) for name in (*backend_names(), "fake")])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if traits_of(request.param).clock == "real":
        with realtime(request.param) as (opened, _):
            yield opened
    elif traits_of(request.param).kernel == "none":
        yield simulator(request.param)
    else:
        yield open_backend(request.param, {})


@pytest.fixture(scope="module")
def traits(backend: Backend) -> Traits:
    return traits_of(backend.name)


@pytest.fixture(scope="module")
def spec(backend: Backend, traits: Traits) -> RunSpec:
    """A run that the backend can do: a path with a delay, in real time a cable, as kernels lack netem.

    It has a drop and a capture where the backend has these, in real time UDP traffic, and web users if possible.
    """
    spec = cable_spec() if traits.clock == "real" else delay_spec()
    if traits.clock == "real":
        spec = dataclasses.replace(spec, udp=(Udp("steady", "client1", "server", 2_000_000, 1_000_000),))
        if Web.what in traits.can:
            users = Web("surf", "client1", "server", 20, "reno", 1_000_000, off_ppm=10_000)
            spec = dataclasses.replace(spec, web=(users,))
    if Feature.DROPS not in traits.can:
        ends = ((link.a, link.b) for link in spec.links)
        links = (Link(*map(without_drops, pair), link.mtu_bytes) for pair, link in zip(ends, spec.links, strict=True))
        spec = dataclasses.replace(spec, links=tuple(links))
    if Feature.CAPTURE not in traits.can:
        spec = dataclasses.replace(spec, probes=dataclasses.replace(spec.probes, capture=()))
    return dataclasses.replace(spec, pins=backend.pins())


def without_drops(end: Interface) -> Interface:
    return dataclasses.replace(end, egress=dataclasses.replace(end.egress, drops=()))


def asking_for(feature: str, spec: RunSpec) -> RunSpec:
    """The run with the feature in it."""
    link, flow, probes = spec.links[0], spec.flows[0], spec.probes
    own = link.a.egress

    def sending(egress: Egress) -> RunSpec:
        changed = dataclasses.replace(link, a=dataclasses.replace(link.a, egress=egress))
        return dataclasses.replace(spec, links=(changed, *spec.links[1:]))

    def queued(kind: str, **parameters: Scalar) -> RunSpec:
        return sending(dataclasses.replace(own, rate_bps=10**8, queue=Queue(kind, None, 100_000, parameters)))

    def sender(**changes: str) -> RunSpec:
        return dataclasses.replace(spec, nodes=(dataclasses.replace(spec.nodes[0], **changes), *spec.nodes[1:]))

    asked = {
        Web.what: dataclasses.replace(spec, web=(Web("surf", "client1", "server", 1, "reno", 1_000_000),)),
        Udp.what: dataclasses.replace(spec, udp=(Udp("u", "client1", "server", 10**6, 1_000_000),)),
        Requests.what: dataclasses.replace(
            spec, requests=(Requests("ask", "client1", "server", 1, "reno", 1_000_000, 1000),)
        ),
        Program.what: dataclasses.replace(
            spec, programs=(Program("p", "client1", "server", ("true",), ("true",), 1_000_000),)
        ),
        Ping.what: dataclasses.replace(spec, probes=dataclasses.replace(probes, ping_interval_us=100_000)),
        Feature.TRANSFERS: dataclasses.replace(spec, flows=(dataclasses.replace(flow, transfer_bytes=1 << 20),)),
        Feature.RATES: dataclasses.replace(spec, flows=(dataclasses.replace(flow, rate_bps=10**6),)),
        Feature.CAPTURE: dataclasses.replace(spec, probes=dataclasses.replace(probes, capture=(flow.name,))),
        Feature.DROPS: sending(dataclasses.replace(own, drops=(DeliberateDrop(500_000),))),
        Feature.CHANGES: sending(dataclasses.replace(own, changes=(Change(500_000, rate_bps=10**7),))),
        Feature.POLICERS: sending(dataclasses.replace(own, policer=Policer(10**7, 30_000))),
        Feature.PAUSES: sending(dataclasses.replace(own, pause=Pause(20, 10))),
        Feature.IMPAIRMENTS: sending(Egress(delay_us=1000, impairment=Impairment(loss_ppm=1000))),
        Feature.RED: queued("red", **RED),
        Feature.QUEUES: queued("bfifo"),
        Feature.GENTLE: queued("red", **RED, gentle=True),
        Feature.PLAIN_RENO: sender(recovery="reno"),
        Feature.IMAGES: sender(image="web:1"),
        Feature.CLOCKS: sending(dataclasses.replace(own, clock_ppb=20_000)),
        Feature.PROCESSING: sending(dataclasses.replace(own, processing_ns=12_000)),
        Feature.CARDS: sending(dataclasses.replace(own, card=Card(moderation_us=100))),
        Feature.KERNELS: dataclasses.replace(spec, pins={**spec.pins, "kernel": DEFAULT_KERNEL}),
    }
    return asked[feature]


@pytest.fixture(scope="module")
def folder(backend: Backend, traits: Traits, spec: RunSpec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run of ``spec``, which left the machine as it was. No test writes to it."""
    path, before = tmp_path_factory.mktemp("run"), network_state()
    backend.run(spec, path)
    if traits.clock == "real":  # no other test runs meanwhile
        assert network_state() == before
        assert comes_true(lambda: not programs_of_runs()), programs_of_runs()
    return path


def programs_of_runs() -> list[str]:
    """Return command lines of programs that only a run in real time starts."""
    names = ("iperf", "mnexec", "tcpdump", "container_init.py", "bash --norc", "longfat.backends.testbed.agent")
    return [line for line in descendants().values() if any(name in line for name in names)]


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_backend_works_here_and_names_all_that_takes_part(backend: Backend) -> None:
    pins = backend.pins()
    assert set(pins) == {"backend", "kernel", "image", "code"}
    assert pins["backend"] == backend.name
    assert pins == backend.pins()
    assert backend.capabilities().reasons == ()


def test_a_possible_run_is_accepted_and_an_unknown_algorithm_refused(backend: Backend, spec: RunSpec) -> None:
    assert backend.refuses(spec) == ()
    flow = dataclasses.replace(spec.flows[0], cca="renno")
    (reason,) = backend.refuses(dataclasses.replace(spec, flows=(flow,)))
    assert "'renno'" in reason and "'reno'" in reason


def test_a_feature_that_the_backend_lacks_is_refused_with_those_that_have_it(
    backend: Backend, traits: Traits, spec: RunSpec
) -> None:
    for feature in sorted(FEATURES):
        asked = asking_for(feature, spec)
        assert feature in needed(asked)
        reason = lacking(backend.name, feature, needed(asked)[feature])
        assert (reason in backend.refuses(asked)) is (feature not in traits.can), feature
        others = [name for name in backend_names() if feature in traits_of(name).can]
        assert others and all(name in reason for name in others), feature


def test_a_run_is_ok_ends_after_the_last_flow_and_names_its_kernel(folder: Path, spec: RunSpec) -> None:
    assert not {"run.json", "spec.json", "SHA256SUMS"} & {path.name for path in folder.iterdir()}
    outcome, environment = (read_json(folder / f"{name}.json") for name in ("outcome", "environment"))
    assert (outcome["status"], outcome["reason"]) == ("ok", None)
    assert outcome["end_us"] >= spec.end_us
    assert set(environment) == {"kernel_release", "ccas"}
    assert "reno" in environment["ccas"]


def test_declared_settings_are_read_back(folder: Path, spec: RunSpec, traits: Traits) -> None:
    achieved = read_json(folder / "achieved.json")
    assert achieved["nodes"]["client1"] == {"sysctls": {"net.ipv4.tcp_sack": "1"}, "offloads_on": []}
    found = {entry["interface"]: entry for entry in achieved["interfaces"]}
    declared = {port.name: port for port in ports(spec)}
    assert set(found) == set(declared)
    for name, port in declared.items():
        assert (found[name]["node"], found[name]["mtu_bytes"]) == (port.node, port.mtu_bytes)
        assert found[name]["rate_bps"] == port.egress.rate_bps
        assert found[name]["delay_us"] == port.egress.delay_us
        assert found[name]["deliberate_drops"] == len(port.egress.drops)
        if port.egress.rate_bps:
            assert (found[name]["queue_kind"], found[name]["limit_packets"]) == ("pfifo", 100)
    delay_us = sum(port.egress.delay_us for port in declared.values())
    assert delay_us <= achieved["flows"][0]["base_rtt_us"] <= delay_us + 1000
    assert (achieved["flows"][0]["cca"], achieved["flows"][0]["cca_parameters"]) == ("reno", {})
    assert achieved["memory_pressure"] == 0
    assert (achieved["cpu_pressure_us"] is not None) is (traits.clock == "real")


def test_a_flow_reports_a_goodput_that_its_path_allows(folder: Path, spec: RunSpec) -> None:
    (flow,) = read_json(folder / "flows.json")
    assert (flow["flow"], flow["sender"], flow["receiver"]) == ("stream1", "client1", "server")
    assert flow["bytes_received"] > 0
    (rate,) = {port.egress.rate_bps for port in ports(spec)} - {None}
    assert rate is not None
    assert 0 < flow["goodput_bps"] < rate


def test_sockets_and_queues_are_sampled_from_start_to_end(folder: Path, backend: Backend, traits: Traits) -> None:
    rows = read_csv(folder / "sockets.csv")
    simulated = traits.kernel == "none" or backend.name == "fake"
    assert ",".join(rows[0]) == SOCKET_COLUMNS + ("" if simulated else OF_KERNELS)
    assert len(rows) >= 9
    assert {row["flow"] for row in rows} == {"stream1"}
    assert all(int(row["cwnd_segments"]) >= 1 for row in rows)
    rows = read_csv(folder / "queues.csv")
    assert ",".join(rows[0]) == QUEUE_COLUMNS
    shaped = [row for row in rows if row["interface"] == "client1-eth0"]
    assert {row["qdisc"] for row in shaped} == {"pfifo"}
    assert int(shaped[-1]["sent_bytes"]) > int(shaped[0]["sent_bytes"])


def test_a_captured_flow_has_its_whole_capture_and_the_series_from_it(
    folder: Path, spec: RunSpec, traits: Traits
) -> None:
    if Feature.CAPTURE not in traits.can:
        assert not list(folder.glob("captures/*"))
        return
    delayed = any(port.egress.delay_us for port in ports(spec))
    segments = 10 if delayed else 1  # a cable holds few: what waits in the sender's queue is not captured yet
    assert (folder / "captures" / "stream1.pcap").stat().st_size >= 24
    rows = read_csv(folder / "outstanding" / "stream1.csv")
    assert list(rows[0]) == ["t_us", "outstanding_bytes"]
    assert max(int(row["outstanding_bytes"]) for row in rows) > segments * 1448
    throughput = folder / "throughput" / "stream1.csv"
    assert throughput.read_text(encoding="utf-8").startswith("t_us,bytes_per_s\n")
    assert all(0 < int(row["bytes_per_s"]) < 1e9 / 8 for row in read_csv(throughput))
    count = read_json(folder / "achieved.json")["capture"]["stream1"]
    assert count["removed"] == 0 and (count["dropped"] == 0 or traits.clock == "real")  # a gate refuses such runs


def test_udp_traffic_has_what_its_sender_sent_and_what_arrived(folder: Path, spec: RunSpec, traits: Traits) -> None:
    reports = read_json(folder / "udp.json") if spec.udp else []
    assert [report["udp"] for report in reports] == [one.name for one in spec.udp]
    for report in reports:
        assert report["due_packets"] == 167  # 2 Mbit/s for a second, in packets of 1500 bytes
        least = 1 if traits.clock == "real" else 165  # on a busy machine some are not sent; a gate refuses such runs
        assert least <= report["sent_packets"] <= 169
        assert 0 < report["received_packets"] <= report["arrived_packets"] <= report["sent_packets"]
        rows = read_csv(folder / "datagrams.csv")
        assert list(rows[0]) == ["t_us", "udp", "received_packets", "received_bytes"]
        assert int(rows[-1]["received_packets"]) <= report["arrived_packets"]


def test_web_users_get_replies_from_a_server_with_the_declared_algorithm(folder: Path, spec: RunSpec) -> None:
    reports = read_json(folder / "web.json") if spec.web else []
    assert [report["web"] for report in reports] == [one.name for one in spec.web]
    for report in reports:
        assert report["replies"] > 0 and report["bytes_received"] > 0
        assert report["errors"] == {}
    if spec.web:
        seen = read_json(folder / "achieved.json")["web"]
        assert seen == [{"web": one.name, "ccas": [one.cca]} for one in spec.web]


def test_counters_and_iperf_texts_are_kept_where_there_are_hosts(folder: Path, spec: RunSpec, traits: Traits) -> None:
    counters = read_json(folder / "counters.json")
    assert set(counters) <= {node.name for node in spec.nodes}
    if traits.kernel == "none":
        assert not any(counters.values())
        assert not (folder / "iperf").exists()
        return
    assert counters["client1"]["Tcp.OutSegs"] > 100
    assert all((folder / f"iperf/stream1.{end}.txt").stat().st_size for end in ("client", "server"))


def test_the_same_run_gives_the_same_bytes(backend: Backend, spec: RunSpec, folder: Path, tmp_path: Path) -> None:
    if traits_of(backend.name).clock == "real":
        pytest.skip("two runs in real time differ")
    backend.run(spec, tmp_path)
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    differing = [name for name in names if (folder / name).read_bytes() != (tmp_path / name).read_bytes()]
    assert differing == []


def test_a_worker_that_is_killed_takes_its_run_with_it(
    backend: Backend, traits: Traits, spec: RunSpec, tmp_path: Path
) -> None:
    if traits.clock != "real":
        pytest.skip("of guests by tests/virtual/test_endings.py")
    before = network_state()
    worker = multiprocessing.get_context("fork").Process(target=backend.run, args=(spec, tmp_path))
    worker.start()
    assert comes_true(lambda: any("iperf" in line for line in programs_of_runs())), "the run never started"
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(20)
    assert comes_true(lambda: not programs_of_runs()), programs_of_runs()
    assert comes_true(lambda: network_state() == before)
    assert not (tmp_path / "outcome.json").exists()
