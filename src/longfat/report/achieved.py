# SPDX-License-Identifier: Apache-2.0
"""What the valid runs of each experiment achieved, for the report: what was read back, and what was measured there.

Owns how it is summed up: from the least to the most of all runs. Whether it is as declared, the gates have judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longfat.dataset.load import Dataset
from longfat.plan.model import Plan

_Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Achieved:
    """A shaped interface of an experiment, or its flows of one algorithm: what was set, as it read back, and seen."""

    experiment: str
    where: str
    read_back: str
    measured: str


def achieved(dataset: Dataset) -> list[Achieved]:
    """What the valid runs of each experiment achieved, in the order of the experiments' names."""
    runs: dict[str, list[str]] = {}
    for run in dataset.runs:
        if run.status == "ok":
            runs.setdefault(run.experiment, []).append(run.run_id)
    found = []
    for experiment, ids in sorted(runs.items()):
        interfaces = _grouped(
            (row for one in ids for row in dataset.achieved.get(one, ()) if _shaped(row)), "interface"
        )
        flows = _grouped((row for one in ids for row in dataset.flows.get(one, ())), "cca")
        found += [Achieved(experiment, name, _set(rows), _carried(rows)) for name, rows in interfaces.items()]
        found += [
            Achieved(experiment, _texts(row["flow"] for row in rows), name, _sent(rows)) for name, rows in flows.items()
        ]
    return found


def made_with(plan: Plan, experiments: Sequence[str]) -> str:
    """How many runs of a plan a figure rests on, and their kernels; "" where it rests on none."""
    runs = [run for run in plan.runs if run.experiment in experiments]
    kernels: dict[str, int] = {}
    for run in runs:
        digest, source = run.spec.pins.get("kernel", "none"), plan.source_of(run)
        name = f"kernel {digest[:12]}" + (f" ({source})" if source else "")
        kernels[name] = kernels.get(name, 0) + 1
    noun = "run" if len(runs) == 1 else "runs"
    return f"{len(runs)} {noun} of {', '.join(experiments)}; {', '.join(kernels)}" if runs else ""


def _shaped(row: Mapping[str, Any]) -> bool:
    return bool(row["rate_bps"] or row["delay_us"])


def _grouped(rows: Iterable[Mapping[str, Any]], key: str) -> dict[str, _Rows]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(str(row[key]), []).append(row)
    return dict(sorted(groups.items()))


def _set(rows: _Rows) -> str:
    """Rate, queue, delay and MTU, as the kernel showed them."""
    return ", ".join(
        part
        for part in (
            _span(rows, "rate_bps", 1e-6, "Mbit/s"),
            _texts(row["queue_kind"] for row in rows if row["queue_kind"]),
            _span(rows, "limit_packets", 1, "packets"),
            _span(rows, "limit_bytes", 1, "B"),
            _span([row for row in rows if row["delay_us"]], "delay_us", 1e-3, "ms of delay"),
            _span(rows, "mtu_bytes", 1, "B of MTU"),
        )
        if part
    )


def _carried(rows: _Rows) -> str:
    """What went through, and what was lost there."""
    busy = [{"bps": 8e9 * row["sent_bytes"] / row["busy_ns"]} for row in rows if row["busy_ns"]]
    rate = _span(busy, "bps", 1e-6, "Mbit/s while busy")
    deliberate = any(row["deliberate_drops"] for row in rows)
    parts = (rate, _span(rows, "drops", 1, "drops"), _span(rows, "deliberate_drops", 1, "deliberate") * deliberate)
    return ", ".join(part for part in parts if part)


def _sent(rows: _Rows) -> str:
    """What flows got, and the path's RTT by their own samples."""
    parts = (_span(rows, "goodput_bps", 1e-6, "Mbit/s of goodput"), _span(rows, "min_rtt_us", 1e-3, "ms smallest RTT"))
    return ", ".join(part for part in parts if part)


def _texts(given: Iterable[str]) -> str:
    """The different texts; of many the first and the last."""
    texts = sorted(set(given), key=lambda text: (len(text), text))
    return ", ".join(texts) if len(texts) <= 3 else f"{texts[0]} to {texts[-1]} ({len(texts)})"


def _span(rows: _Rows, key: str, factor: float, unit: str) -> str:
    """From the least to the most; "" where no row has a value."""
    values = [row[key] * factor for row in rows if row[key] is not None]
    if not values:
        return ""
    least, most = (f"{value:,.6g}" for value in (min(values), max(values)))
    return f"{least if least == most else f'{least} to {most}'} {unit}"
