# SPDX-License-Identifier: Apache-2.0
"""The settings of runs in words, as declared and as achieved: the interfaces of the path, the traffic, the hosts.

Owns these words, and the summaries of an experiment: declared settings that all of its runs share, then those that
differ; and achieved settings, read back from the kernel, from the smallest to the largest value of its valid runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longfat.dataset.load import Dataset
from longfat.plan.holders import card_words
from longfat.plan.model import Plan, PlannedRun
from longfat.spec.network import Port, ports
from longfat.spec.runspec import RunSpec, Scalar
from longfat.study.traffic import section_of

_Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Setting:
    """The settings of an experiment: lines that all of its runs share, and lines of some of its runs."""

    experiment: str
    artifacts: str
    runs: int
    factors: str
    shared: tuple[str, ...]
    varying: tuple[str, ...]


def settings_of(
    plan: Plan, drawn_in: Mapping[str, Sequence[str]], labels: Mapping[str, Mapping[str, Mapping[Scalar, str]]]
) -> tuple[list[str], list[Setting]]:
    """Return the lines that all hosts of all runs of a lock share, and the settings of each experiment.

    ``drawn_in`` has the experiments of each figure, ``labels`` the values of factors as in the manifest by experiment.
    """
    groups: dict[str, list[PlannedRun]] = {}
    for run in plan.runs:
        groups.setdefault(run.experiment, []).append(run)
    tuned = [set(node.sysctls.items()) for run in plan.runs for node in run.spec.nodes]
    common = set.intersection(*tuned) if tuned else set()
    found = [_setting(name, runs, drawn_in, common, labels.get(name, {})) for name, runs in sorted(groups.items())]
    return [f"{key} = {value}" for key, value in sorted(common)], found


def network_lines(spec: RunSpec) -> tuple[str, ...]:
    """Return a line for each interface of a run, then for its traffic."""
    flows = (
        f"{one.name}: {one.sender} to {one.receiver}, {one.duration_us / 1e6:g} s, {section_of(one).words(one)}"
        for one in spec.sent
    )
    return (*(_port_text(port) for port in ports(spec)), *flows)


def host_lines(spec: RunSpec, common: Iterable[tuple[str, str]] = ()) -> tuple[str, ...]:
    """Return a line for each host of a run, without the settings in ``common``."""
    hosts, hidden = [], set(common)
    for node in spec.nodes:
        shown = [f"{key} = {value}" for key, value in sorted(node.sysctls.items()) if (key, value) not in hidden]
        initial = node.initial_cwnd_segments
        shown += [f"initial window {initial} segments"] if initial is not None else []
        shown += [f"offloads {', '.join(node.offloads) or 'none'}"]
        hosts.append(f"{node.name} ({node.role}): {'; '.join(shown)}")
    return tuple(hosts)


def _setting(
    name: str,
    runs: list[PlannedRun],
    drawn_in: Mapping[str, Sequence[str]],
    common: set[tuple[str, str]],
    labels: Mapping[str, Mapping[Scalar, str]],
) -> Setting:
    each = [(*network_lines(run.spec), *host_lines(run.spec, common)) for run in runs]
    shared = [line for line in each[0] if all(line in lines for lines in each)]
    shared += drawn_lines(run.spec for run in runs)
    varying = dict.fromkeys(line for lines in each for line in lines if line not in shared)
    factors = {key: sorted({run.factors[key] for run in runs}, key=_order) for key in runs[0].factors}
    return Setting(
        experiment=name,
        artifacts=", ".join(artifact for artifact, experiments in drawn_in.items() if name in experiments),
        runs=len(runs),
        factors="; ".join(
            f"{key}: {', '.join(labels.get(key, {}).get(one, str(one)) for one in values)}"
            for key, values in factors.items()
        ),
        shared=tuple(shared),
        varying=tuple(sorted(varying)),
    )


def drawn_lines(specs: Iterable[RunSpec]) -> Iterator[str]:
    """Yield the ranges of the clock deviations, distances and processing times that the seeds of runs drew."""
    every = [port.egress for spec in specs for port in ports(spec)]
    clocks = [egress.clock_ppb / 1000 for egress in every if egress.clock_ppb]
    distances = [egress.distance_ns / 1000 for egress in every if egress.distance_ns]
    if clocks:
        yield f"clocks drawn: {min(clocks):+.3g} to {max(clocks):+.3g} ppm"
    if distances:
        yield f"distances of hosts drawn: {min(distances):.3g} to {max(distances):.3g} us"
    if longest := max((egress.processing_ns for egress in every), default=0):
        yield f"processing times of packets at their sender drawn: up to {longest / 1000:.4g} us"


def _port_text(port: Port) -> str:
    egress = port.egress
    parts = [f"{port.name} to {port.peer}: MTU {port.mtu_bytes} B"]
    if egress.rate_bps is not None:
        queue = egress.queue
        size = f"{queue.limit_bytes} B" if queue.limit_bytes else "memory"
        limit = f"{queue.limit_packets} packets" if queue.limit_packets else size
        own = "".join(f", {key} {value}" for key, value in sorted(queue.parameters.items()))
        parts.append(f"{egress.rate_bps / 1e6:g} Mbit/s, {queue.kind} of {limit}{own}")
    if egress.delay_us:
        parts.append(f"delay {egress.delay_us / 1000:g} ms")
    if egress.impairment:
        parts.append(egress.impairment.words)
    if egress.card:
        parts.append(card_words(port))
    if egress.policer:
        parts.append(f"policed to {egress.policer.rate_bps / 1e6:g} Mbit/s, {egress.policer.burst_bytes} B")
    if egress.pause:
        parts.append(f"pauses its senders above {egress.pause.above} packets, until {egress.pause.below}")
    if egress.trace:
        parts.append(f"rate of the trace {egress.trace.sha256[:12]}")
    if egress.changes:
        times = [f"{change.at_us / 1e6:g} s" for change in egress.changes]
        parts.append(f"changes at {', '.join(times[:10])}{f' and {len(times) - 10} later times' * (len(times) > 10)}")
    if egress.drops:
        dropped = (f"packet {drop.packet} after {drop.at_us / 1e6:g} s" for drop in egress.drops)
        parts.append(f"dropped: {', '.join(dropped)}")
    return ", ".join(parts)


def _order(value: Scalar) -> tuple[str, Scalar]:
    return str(type(value)), value


def achieved(dataset: Dataset) -> Iterator[tuple[str, str, str, str]]:
    """Yield experiment, interface or flows, settings read back, and measurements, in the order of experiments.

    A row has a shaped interface, or all flows of one algorithm, in the valid runs of the experiment.
    """
    runs: dict[str, list[str]] = {}
    for run in dataset.runs:
        if run.status == "ok":
            runs.setdefault(run.experiment, []).append(run.run_id)
    for experiment, ids in sorted(runs.items()):
        interfaces = [row for one in ids for row in dataset.achieved.get(one, ()) if row["rate_bps"] or row["delay_us"]]
        for name, rows in _by(interfaces, "interface").items():
            yield experiment, name, settings_text(rows), traffic_text(rows)
        flows = [row for one in ids for row in dataset.flows.get(one, ())]
        for cca, rows in _by(flows, "cca").items():
            sent = _joined(
                _span(rows, "goodput_bps", 1e-6, "Mbit/s of goodput"),
                _span(rows, "min_rtt_us", 1e-3, "ms smallest RTT"),
            )
            yield experiment, _texts(row["flow"] for row in rows), cca, sent


def _by(rows: Iterable[Mapping[str, Any]], key: str) -> dict[str, _Rows]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(str(row[key]), []).append(row)
    return dict(sorted(groups.items()))


def settings_text(rows: _Rows) -> str:
    """Format rate, queue, delay and MTU of an interface, as read back from the kernel."""
    return _joined(
        _span(rows, "rate_bps", 1e-6, "Mbit/s"),
        _texts(row["queue_kind"] for row in rows if row["queue_kind"]),
        _span(rows, "limit_packets", 1, "packets"),
        _span(rows, "limit_bytes", 1, "B"),
        _span([row for row in rows if row["delay_us"]], "delay_us", 1e-3, "ms of delay"),
        _span(rows, "mtu_bytes", 1, "B of MTU"),
    )


def traffic_text(rows: _Rows) -> str:
    """Format the rate of an interface while it was busy, and its drops."""
    busy = [{"bps": 8e9 * row["sent_bytes"] / row["busy_ns"]} for row in rows if row["busy_ns"]]
    deliberate = (
        _span(rows, "deliberate_drops", 1, "deliberate") if any(row["deliberate_drops"] for row in rows) else ""
    )
    return _joined(_span(busy, "bps", 1e-6, "Mbit/s while busy"), _span(rows, "drops", 1, "drops"), deliberate)


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _texts(given: Iterable[str]) -> str:
    """Return the distinct texts; if there are more than three, the first and the last."""
    texts = sorted(set(given), key=lambda text: (len(text), text))
    return ", ".join(texts) if len(texts) <= 3 else f"{texts[0]} to {texts[-1]} ({len(texts)})"


def _span(rows: _Rows, key: str, factor: float, unit: str) -> str:
    """Return the smallest and the largest value; "" without values."""
    values = [row[key] * factor for row in rows if row[key] is not None]
    if not values:
        return ""
    least, most = (f"{value:,.6g}" for value in (min(values), max(values)))
    return f"{least if least == most else f'{least} to {most}'} {unit}"
