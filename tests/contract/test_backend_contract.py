# SPDX-License-Identifier: Apache-2.0
"""The one suite that each backend has to pass: what docs/formats.md promises of a run folder."""

from __future__ import annotations

import csv
import dataclasses
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import cable_spec, delay_spec
from realtime_backends import realtime

from longfat.backends.protocol import Backend
from longfat.backends.registry import open_backend
from longfat.dataset.route import ports
from longfat.runspec import RunSpec

SOCKET_COLUMNS = (
    "t_us,flow,stream,state,ca_state,cwnd_segments,ssthresh_segments,inflight_segments,srtt_us,min_rtt_us,"
    "retrans_total,lost_segments,bytes_acked,delivered_segments,dwnd_segments"
)
QUEUE_COLUMNS = (
    "t_us,node,interface,qdisc,backlog_packets,backlog_bytes,drops_total,sent_packets,sent_bytes,marked_total"
)


REAL_TIME = ("mininet", "containernet", "hosts")
BACKENDS = (
    pytest.param("fake"),
    pytest.param("virtual", marks=pytest.mark.virtual),
    pytest.param("mininet", marks=[pytest.mark.virtual, pytest.mark.root]),
    pytest.param("containernet", marks=[pytest.mark.virtual, pytest.mark.root, pytest.mark.docker]),
    pytest.param("hosts", marks=[pytest.mark.virtual, pytest.mark.root]),
)


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param in REAL_TIME:
        with realtime(request.param) as (opened, _):
            yield opened
    else:
        yield open_backend(request.param, {})


@pytest.fixture(scope="module")
def spec(backend: Backend) -> RunSpec:
    """A run that the backend can do: a path with a delay and a drop, in real time a cable, as kernels lack netem."""
    spec = cable_spec() if backend.name in REAL_TIME else delay_spec()
    return dataclasses.replace(spec, pins=backend.pins())


@pytest.fixture(scope="module")
def folder(backend: Backend, spec: RunSpec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run of ``spec``, which no test writes to."""
    path = tmp_path_factory.mktemp("run")
    backend.run(spec, path)
    return path


def read_json(path: Path) -> object:
    return json.loads(path.read_text(encoding="utf-8"))


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_pins_name_the_backend_and_all_that_takes_part(backend: Backend) -> None:
    pins = backend.pins()
    assert set(pins) == {"backend", "kernel", "image", "lab"}
    assert pins["backend"] == backend.name
    assert pins == backend.pins()


def test_a_backend_survives_the_way_to_a_worker(backend: Backend) -> None:
    copy = pickle.loads(pickle.dumps(backend))
    assert copy.pins() == backend.pins()


def test_a_backend_can_work_here_and_knows_reno(backend: Backend) -> None:
    assert backend.capabilities().reasons == ()
    assert "reno" in backend.capabilities().ccas


def test_a_possible_run_is_not_refused(backend: Backend, spec: RunSpec) -> None:
    assert backend.refuses(spec) == ()


def test_an_unknown_algorithm_is_refused_with_the_nearest_name(backend: Backend, spec: RunSpec) -> None:
    flow = dataclasses.replace(spec.flows[0], cca="renno")
    (reason,) = backend.refuses(dataclasses.replace(spec, flows=(flow,)))
    assert "no congestion control 'renno'" in reason
    assert "did you mean 'reno'?" in reason


def test_a_run_leaves_the_files_of_execute_alone(folder: Path) -> None:
    assert not {"run.json", "spec.json", "SHA256SUMS"} & {path.name for path in folder.iterdir()}


def test_the_outcome_is_ok_and_ends_after_the_last_flow(folder: Path, spec: RunSpec) -> None:
    outcome = read_json(folder / "outcome.json")
    assert isinstance(outcome, dict)
    assert (outcome["status"], outcome["reason"]) == ("ok", None)
    assert outcome["end_us"] >= spec.end_us


def test_the_environment_names_kernel_and_algorithms(folder: Path) -> None:
    environment = read_json(folder / "environment.json")
    assert isinstance(environment, dict)
    assert set(environment) == {"kernel_release", "ccas"}
    assert "reno" in environment["ccas"]


def test_what_was_declared_is_read_back(folder: Path, spec: RunSpec) -> None:
    achieved = read_json(folder / "achieved.json")
    assert isinstance(achieved, dict)
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
    assert achieved["flows"][0]["cca"] == "reno"
    assert achieved["flows"][0]["cca_parameters"] == {}
    assert achieved["memory_pressure"] == 0


def test_time_that_tasks_waited_for_a_cpu_is_told_where_time_is_real(backend: Backend, folder: Path) -> None:
    achieved = read_json(folder / "achieved.json")
    assert isinstance(achieved, dict)
    if backend.name in REAL_TIME:
        assert achieved["cpu_pressure_us"] >= 0
    else:
        assert achieved["cpu_pressure_us"] is None


def test_a_flow_reports_a_goodput_that_its_path_allows(folder: Path, spec: RunSpec) -> None:
    flows = read_json(folder / "flows.json")
    assert isinstance(flows, list)
    (flow,) = flows
    assert (flow["flow"], flow["sender"], flow["receiver"]) == ("stream1", "client1", "server")
    assert flow["bytes_received"] > 0
    (rate,) = {port.egress.rate_bps for port in ports(spec)} - {None}
    assert rate is not None
    assert 0 < flow["goodput_bps"] < rate


def test_sockets_are_sampled_from_start_to_end(folder: Path) -> None:
    rows = read_csv(folder / "sockets.csv")
    assert ",".join(rows[0]) == SOCKET_COLUMNS
    assert len(rows) >= 9
    assert {row["flow"] for row in rows} == {"stream1"}
    assert all(int(row["cwnd_segments"]) >= 1 for row in rows)


def test_queues_are_sampled_for_each_interface(folder: Path) -> None:
    rows = read_csv(folder / "queues.csv")
    assert ",".join(rows[0]) == QUEUE_COLUMNS
    shaped = [row for row in rows if row["interface"] == "client1-eth0"]
    assert {row["qdisc"] for row in shaped} == {"pfifo"}
    assert int(shaped[-1]["sent_bytes"]) > int(shaped[0]["sent_bytes"])


def test_a_captured_flow_has_its_capture_and_outstanding_data(folder: Path) -> None:
    assert (folder / "captures" / "stream1.pcap").stat().st_size >= 24
    rows = read_csv(folder / "outstanding" / "stream1.csv")
    assert list(rows[0]) == ["t_us", "outstanding_bytes"]
    assert max(int(row["outstanding_bytes"]) for row in rows) > 10 * 1448


def test_a_captured_flow_has_its_throughput_over_time(folder: Path) -> None:
    path = folder / "throughput" / "stream1.csv"
    assert path.read_text(encoding="utf-8").startswith("t_us,bytes_per_s\n")
    rows = read_csv(path)  # none, when the flow has fewer packets than are averaged
    times = [int(row["t_us"]) for row in rows]
    assert times == sorted(times)
    assert all(0 < int(row["bytes_per_s"]) < 1e9 / 8 for row in rows)


def test_a_capture_without_declared_loss_is_whole(folder: Path) -> None:
    achieved = read_json(folder / "achieved.json")
    assert isinstance(achieved, dict)
    assert set(achieved["capture"]["stream1"]) == {"captured", "dropped", "removed"}
    assert achieved["capture"]["stream1"]["dropped"] == 0
    assert achieved["capture"]["stream1"]["removed"] == 0


def test_counters_and_iperf_texts_are_kept(folder: Path, spec: RunSpec) -> None:
    counters = read_json(folder / "counters.json")
    assert isinstance(counters, dict)
    assert set(counters) <= {node.name for node in spec.nodes}
    assert counters["client1"]["Tcp.OutSegs"] > 100
    assert (folder / "iperf" / "stream1.client.txt").read_text(encoding="utf-8")
    assert (folder / "iperf" / "stream1.server.txt").read_text(encoding="utf-8")


def test_the_same_run_gives_the_same_bytes(backend: Backend, spec: RunSpec, folder: Path, tmp_path: Path) -> None:
    if backend.name in REAL_TIME:
        pytest.skip("no two runs in real time are alike")
    backend.run(spec, tmp_path)
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    differing = [name for name in names if (folder / name).read_bytes() != (tmp_path / name).read_bytes()]
    assert differing == []
