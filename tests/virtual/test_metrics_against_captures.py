# SPDX-License-Identifier: Apache-2.0
"""Each metric that a capture can tell, against an independent reader of the capture."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capture_reader import Connection, read_connections
from packets import read_packets

from longfat.dataset.build import build_dataset
from longfat.dataset.load import Series, load_dataset
from longfat.metrics import METRICS
from longfat.metrics.data import Array, RunData
from longfat.metrics.registry import load_own_metrics

pytestmark = pytest.mark.virtual

RATE_BPS, FRAME_BYTES, ON_WIRE_BYTES, MSS = 20e6, 1514, 1538, 1448
STUDY = """\
format: 2
study: captured
title: Runs whose captures are read twice
algorithms: {reno: {cca: reno}}
paths:
  line: {kind: dumbbell, rate: 20 Mbit/s, host_rate: 100 Mbit/s, rtt: 40 ms, senders: 2, bottleneck_queue: {limit: 50}}
defaults: {clock_tolerance: 0 ppm, phases: fixed, flow: {to: server}}
experiments:
  - id: pair
    path: line
    flows:
      - {name: old, from: client1, algorithm: reno, duration: 7 s}
      - {name: new, from: client2, algorithm: reno, start: 3 s, duration: 4 s}
    probes: {capture: [old, new]}
  - id: apart
    path: line
    flows:
      - {name: first, from: client1, algorithm: reno, duration: 1 s}
      - {name: second, from: client2, algorithm: reno, start: 3 s, duration: 2 s}
    probes: {capture: [first, second]}
  - id: cable
    topology: {kind: direct, rate: 20 Mbit/s}
    flows: [{name: flow, from: client1, algorithm: reno, duration: "${long}"}]
    probes: {capture: [flow]}
    sweep: {product: {long: [0.5 s, 2 s]}}
  - id: transfers
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, loss: 2 %}
    flows: [{name: flow, from: client1, algorithm: reno, transfer: 30 kB, streams: 2, duration: 5 s}]
    probes: {capture: [flow], sockets: 1 s}
  - id: drop
    path: line
    topology: {bottleneck_queue: {limit: 150}, senders: 1}
    flows: [{name: flow, from: client1, algorithm: reno, duration: 8 s}]
    probes: {capture: [flow]}
    drops: [{at: 3 s}]
"""
BACK_OF_RTT = 0.5
for _study in ("kelly-2003", "sandia-2003", "slac-2003", "vista-2006"):
    load_own_metrics(Path(__file__).parents[2] / "experiments" / _study)


@dataclass
class Captured:
    """A run and what its captures say of each flow; the way there and the way back each take half of the base RTT."""

    data: RunData
    rtt_us: float
    folder: Path
    flows: dict[str, list[Connection]] = field(default_factory=dict)

    def of(self, metric: str, flow: str | None = None, **parameters: float) -> float:
        return METRICS[metric].of(self.data, flow, parameters)

    def row(self, flow: str) -> Any:
        return next(row for row in self.data.flows if row["flow"] == flow)

    def times_us(self, flow: str) -> tuple[float, float]:
        """When the receiver's end is established, and when it has all bytes but those of the last acknowledgment."""
        own = self.flows[flow]
        way_us = BACK_OF_RTT * self.rtt_us
        return min(one.first_acked_us for one in own) - way_us, max(one.prompt[0] for one in own) - way_us

    def payload(self, flow: str) -> int:
        return sum(one.payload for one in self.flows[flow])

    def goodput(self, flow: str) -> float:
        first, last = self.times_us(flow)
        return 8 * sum(one.prompt[1] for one in self.flows[flow]) / (last - first)

    def rates(self, edges: Array, flows: list[str] | None = None) -> Array:
        """Mb/s of each flow (columns) between edges (rows)."""
        names = flows or list(self.flows)
        acked = [[sum(one.acked_by(t_us) for one in self.flows[name]) for name in names] for t_us in edges]
        rates: Array = 8 * np.diff(np.array(acked, dtype=np.float64), axis=0) / np.diff(edges)[:, None]
        return rates

    def span(self) -> tuple[float, float]:
        """From the first byte of the last flow to the end of the first."""
        return max(self.times_us(flow)[0] for flow in self.flows), min(row["end_us"] for row in self.data.flows)

    def together(self, interval_us: float | None = None) -> Array:
        start, end = self.span()
        count = 1 if interval_us is None else int((end - start) // interval_us)
        return self.rates(start + (interval_us or end - start) * np.arange(count + 1, dtype=np.float64))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Captured]:
    folder, results = tmp_path_factory.mktemp("captured"), tmp_path_factory.mktemp("results")
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    command = [sys.executable, "-m", "longfat", "run", str(folder), "--results", str(results), "--jobs", "1"]
    subprocess.run(command, check=True, capture_output=True)
    assert build_dataset(results).valid
    dataset, runs = load_dataset(results), {}
    for run in dataset.runs:
        (folder,) = (results / "raw").glob(f"{run.scenario}.*")
        found = Captured(RunData(dataset, run), 40_000 if run.experiment != "cable" else 0, folder / "captures")
        paths = {row["flow"]: found.folder / f"{row['flow']}.pcap" for row in found.data.flows}
        # The first SYN leaves at the start of its flow; the clock of a capture is that of the guest.
        begins = [read_packets(paths[row["flow"]])[0].time_us - row["start_us"] for row in found.data.flows]
        for row in found.data.flows:
            port = 5001 + (row["flow"] in ("new", "second"))
            found.flows[row["flow"]] = read_connections(paths[row["flow"]], port, min(begins))
        runs[run.experiment + (f" {run.factors['long']}" if run.factors else "")] = found
    return runs


GOODPUT: dict[str, Callable[[Captured], tuple[float, float]]] = {
    "each": lambda run: (run.of("each"), float(np.mean([run.goodput(name) for name in run.flows]))),
    "share": lambda run: (run.of("share", "new"), 100 * run.goodput("new") / (run.goodput("old") + run.goodput("new"))),
    "fairness": lambda run: (run.of("fairness", "new"), run.goodput("new") / run.goodput("old")),
    "jain": lambda run: (run.of("jain"), jain([run.goodput(name) for name in run.flows])),
    "lasts": lambda run: (run.of("lasts"), max(run.times_us(name)[1] for name in run.flows) / 1e6),
    "carried": lambda run: (run.of("carried"), sum(run.payload(name) for name in run.flows) / 1e9),
}


def union_goodput(run: Captured) -> float:
    spans = sorted(run.times_us(name) for name in run.flows)
    (first, end), rest = spans[0], spans[1:]
    length = end - first
    for start, last in rest:
        length, end = length + max(0.0, last - max(start, end)), max(end, last)
    return 8 * sum(one.prompt[1] for own in run.flows.values() for one in own) / length


def jain(rates: list[float]) -> float:
    return sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates))


@pytest.mark.parametrize("metric", GOODPUT)
def test_goodput_and_shares_are_those_of_the_capture(runs: dict[str, Captured], metric: str) -> None:
    found, told = GOODPUT[metric](runs["pair"])
    assert found == pytest.approx(told, rel=1e-3)


@pytest.mark.parametrize("run", ["pair", "apart", "cable 500000", "cable 2000000"])
def test_goodput_of_all_is_that_of_the_capture_and_never_above_the_wire(runs: dict[str, Captured], run: str) -> None:
    found = runs[run].of("goodput")
    assert found == pytest.approx(union_goodput(runs[run]), rel=1e-3)
    assert 0 < found <= RATE_BPS / 1e6 * MSS / ON_WIRE_BYTES * (1 + 1e-4)


@pytest.mark.parametrize("run", ["cable 500000", "cable 2000000"])
def test_a_lone_flow_on_a_cable_has_one_rate_whatever_it_is_read_from(runs: dict[str, Captured], run: str) -> None:
    assert runs[run].of("together") / runs[run].of("goodput") == pytest.approx(1, abs=0.005)
    assert runs[run].of("sustained", interval=100_000) == 100
    assert runs[run].of("dip", interval=100_000) > 97


SECOND = 1_000_000.0
TOGETHER: dict[str, Callable[[Captured], tuple[float, float]]] = {
    "together": lambda run: (run.of("together"), run.together().sum()),
    "sigma_fairness": lambda run: (run.of("sigma_fairness"), run.together()[0].std() / run.together()[0].mean()),
    "peak": lambda run: (run.of("peak", interval=SECOND), run.together(SECOND).sum(axis=1).max()),
    "sustained": lambda run: (run.of("sustained", interval=SECOND), sustained(run.together(SECOND).sum(axis=1))),
    "dip": lambda run: (run.of("dip", interval=SECOND), dip(run.together(SECOND).sum(axis=1))),
    "least_share": lambda run: (run.of("least_share"), 100 * run.together()[0].min() / run.together()[0].mean()),
    "utilisation": lambda run: (run.of("utilisation", since=SECOND, until=6 * SECOND), utilisation(run)),
}


def sustained(rates: Array) -> float:
    return float(100 * np.mean(rates >= 0.9 * rates.max()))


def dip(rates: Array) -> float:
    after = list(itertools.dropwhile(lambda rate: rate < 0.9 * rates.max(), rates))
    return float(100 * min(after) / rates.max())


def utilisation(run: Captured) -> float:
    """By whole frames of what was acknowledged half a round trip after it left the bottleneck."""
    edges = SECOND * np.arange(1, 7, dtype=np.float64) + BACK_OF_RTT * run.rtt_us
    return float(100 * run.rates(edges).sum(axis=1).mean() * ON_WIRE_BYTES / MSS * 1e6 / RATE_BPS)


@pytest.mark.parametrize("metric", TOGETHER)
def test_rates_over_time_are_those_of_the_capture(runs: dict[str, Captured], metric: str) -> None:
    found, told = TOGETHER[metric](runs["pair"])
    assert found == pytest.approx(told, rel=0.02, abs=0.005)


@pytest.mark.parametrize("run", ["pair", "apart", "transfers", "drop"])
def test_retransmissions_are_those_of_the_capture_to_the_segment(runs: dict[str, Captured], run: str) -> None:
    of_flows = {name: sum(one.retransmissions for one in own) for name, own in runs[run].flows.items()}
    assert {name: runs[run].of("retransmissions", name) for name in of_flows} == of_flows
    assert runs[run].of("retransmissions") == sum(of_flows.values()) > 0


def test_transfers_and_their_bytes_are_those_of_the_capture(runs: dict[str, Captured]) -> None:
    run = runs["transfers"]
    end_us = run.row("flow")["end_us"] + BACK_OF_RTT * run.rtt_us
    received = [one.acked_by(end_us) for one in run.flows["flow"]]
    assert run.of("transfers") == sum(amount >= 30_000 for amount in received) > 20
    # Of what is under way at the end the capture tells to the segment, and a segment more or less for each stream.
    assert run.of("carried") * 1e9 == pytest.approx(sum(received), abs=4 * MSS)
    assert run.of("goodput") == pytest.approx(8 * sum(received) / 5e6, abs=8 * 4 * MSS / 5e6)


DROP: dict[str, float] = {"at": 3e6}
GROWTH: dict[str, float] = {"since": 3.5e6, "until": 6e6}
OUTSTANDING: dict[str, dict[str, float]] = {
    "plateau": {"since": 1e6, "until": 2.9e6},
    "before_drop": DROP,
    "after_drop": DROP,
    "drop_ratio": DROP,
    "slow_start_growth": {},
    "regrowth": DROP,
    "bend_level": GROWTH,
}


@pytest.mark.parametrize("metric", OUTSTANDING)
def test_outstanding_data_is_that_of_the_capture(runs: dict[str, Captured], metric: str) -> None:
    run = runs["drop"]
    (connection,) = run.flows["flow"]
    series = Series(*np.array(connection.outstanding, dtype=np.float64).T)

    class Own(RunData):
        def outstanding(self, flow: str | None = None) -> Series:
            return series

    told = METRICS[metric].of(Own(run.data.dataset, run.data.run), None, OUTSTANDING[metric])
    assert METRICS[metric].of(run.data, None, OUTSTANDING[metric]) == pytest.approx(told, rel=0.01)
