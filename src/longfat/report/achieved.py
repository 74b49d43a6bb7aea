# SPDX-License-Identifier: Apache-2.0
"""The settings that the valid runs of each experiment achieved: the read-back of the kernel, and the measurements.

Owns the summary, from the smallest to the largest value of all runs. The gates judge whether these are as declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longfat.dataset.load import Dataset

_Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Achieved:
    """A shaped interface of an experiment, or its flows of one algorithm."""

    experiment: str
    where: str
    read_back: str
    measured: str


def achieved(dataset: Dataset) -> list[Achieved]:
    """Summarise the valid runs of each experiment, in the order of the experiments' names."""
    runs: dict[str, list[str]] = {}
    for run in dataset.runs:
        if run.status == "ok":
            runs.setdefault(run.experiment, []).append(run.run_id)
    found = []
    for experiment, ids in sorted(runs.items()):
        interfaces = [row for one in ids for row in dataset.achieved.get(one, ()) if row["rate_bps"] or row["delay_us"]]
        for name, rows in _by(interfaces, "interface").items():
            found.append(Achieved(experiment, name, settings_text(rows), traffic_text(rows)))
        flows = [row for one in ids for row in dataset.flows.get(one, ())]
        for cca, rows in _by(flows, "cca").items():
            sent = _joined(
                _span(rows, "goodput_bps", 1e-6, "Mbit/s of goodput"),
                _span(rows, "min_rtt_us", 1e-3, "ms smallest RTT"),
            )
            found.append(Achieved(experiment, _texts(row["flow"] for row in rows), cca, sent))
    return found


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
    """Return the distinct texts; the first and the last of more than three."""
    texts = sorted(set(given), key=lambda text: (len(text), text))
    return ", ".join(texts) if len(texts) <= 3 else f"{texts[0]} to {texts[-1]} ({len(texts)})"


def _span(rows: _Rows, key: str, factor: float, unit: str) -> str:
    """Return the smallest and the largest value; "" without values."""
    values = [row[key] * factor for row in rows if row[key] is not None]
    if not values:
        return ""
    least, most = (f"{value:,.6g}" for value in (min(values), max(values)))
    return f"{least if least == most else f'{least} to {most}'} {unit}"
