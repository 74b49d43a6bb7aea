# SPDX-License-Identifier: Apache-2.0
"""The runs of a study as data inside its report: their settings, how to run them again, and their samples.

Owns the shape of the data, which ``explorer.js`` reads. A series of samples is a list of small whole numbers: the first
number, then the difference of each number from the one before, which deflate makes small. Samples are rounded by the
factors of ``TABLES``, and thinned in large datasets.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from longfat.data.frames import scan
from longfat.dataset.load import Dataset, Row
from longfat.execute.record.bundle import run_folder_name
from longfat.figures import style
from longfat.figures.parts import EXPLORED_DIGITS
from longfat.metrics.data import NoValue, RunData
from longfat.metrics.registry import METRICS
from longfat.plan.model import Plan
from longfat.report.numbers import shown
from longfat.report.settings import drawn_lines, host_lines, network_lines, settings_text, traffic_text
from longfat.spec.network import route
from longfat.spec.runspec import RunSpec, Scalar

Numbers = npt.NDArray[np.float64]
Mark = tuple[float, str]  # a number of the paper, and its label
Labels = Mapping[str, Mapping[Scalar, str]]  # the values of each factor as in the manifest, by value in base units

TABLES: Mapping[str, tuple[tuple[str, ...], Mapping[str, float]]] = {
    "sockets": (
        ("flow", "stream"),
        {
            "cwnd_segments": 1.0,
            "ssthresh_segments": 1.0,
            "inflight_segments": 1.0,
            "srtt_us": 0.01,  # to tenths of a millisecond
            "retrans_total": 1.0,
            "dwnd_segments": 1.0,
            "bytes_acked": 1.0,
            "pacing_bps": 1e-4,  # to hundredths of a Mbit/s
            "delivery_bps": 1e-4,
            "app_limited_us": 1e-3,
            "rwnd_limited_us": 1e-3,
            "sndbuf_limited_us": 1e-3,
        },
    ),
    "queues": (("interface",), {"backlog_packets": 1.0}),
    "cca_state": (("flow", "stream", "name"), {"value": 1.0}),
}
"""The columns that distinguish series, by table, and the factor by which each value is multiplied before rounding."""

MEAN_US = 200_000  # the acknowledged rate is a mean over this time
MOST = 400_000  # most samples; beyond this number each series keeps every k-th
UNSET = 2**31 - 1  # ssthresh before the first cut (TCP_INFINITE_SSTHRESH, linux/tcp.h)
_STATE_DIGITS = 5  # digits of the largest value of a series of cca_state


def explorer_data(
    plan: Plan,
    dataset: Dataset,
    drawn_in: Mapping[str, Sequence[str]],
    marks: Mapping[str, Sequence[Mark]],
    judged: Mapping[str, int],
    labels: Mapping[str, Labels],
) -> str:
    """Return the runs and their samples as JSON, deflated, in base64.

    ``drawn_in`` has the experiments of each figure, ``marks`` numbers of the paper in Mb/s by experiment,
    ``judged`` the number of claims that read each experiment, ``labels`` its factors in the manifest's order.
    """
    ids = list(dict.fromkeys(run.run_id for run in plan.runs))
    series, every = series_of(dataset, ids)
    texts: dict[str, int] = {}
    data = {
        "study": plan.study,
        "profile": plan.profile,
        "stack": plan.stack,
        "every": every,
        "colours": _colours(dataset),
        "figures": {artifact: list(experiments) for artifact, experiments in drawn_in.items()},
        "marks": marks,
        "judged": judged,
        "labels": {name: _labels(own) for name, own in labels.items()},
        "specs": _specs(plan, dataset, texts),
        "runs": _entries(plan, dataset, ids),
        "texts": list(texts),
        "series": series,
    }
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def _labels(factors: Labels) -> list[tuple[str, list[tuple[Scalar, str]]]]:
    """Return the factors in their order, each with the values that the manifest writes in another way."""
    return [(name, [one for one in values.items() if one[1] != str(one[0])]) for name, values in factors.items()]


def _specs(plan: Plan, dataset: Dataset, texts: dict[str, int]) -> list[dict[str, Any]]:
    """Return settings and read-back of each distinct run, as indices into ``texts``."""
    found = {}
    goodput = dict(_goodputs(dataset))
    for run in plan.runs:
        if run.run_id in found:
            continue
        declared = [*network_lines(run.spec), *drawn_lines([run.spec]), *host_lines(run.spec)]
        achieved = [
            f"{row['interface']}: {settings_text([row])}; {traffic_text([row])}"
            for row in dataset.achieved.get(run.run_id, ())
        ]
        flows = dataset.flows.get(run.run_id, ())
        found[run.run_id] = {
            "id": run.run_id[:EXPLORED_DIGITS],
            "set": [texts.setdefault(line, len(texts)) for line in declared],
            "got": [texts.setdefault(line, len(texts)) for line in achieved],
            "goodput": goodput.get(run.run_id, 0.0),
            "capacity": _capacity_mbps(run.spec),
            "flows": [[row["flow"], row["cca"], _flow(row)] for row in flows],
        }
    return list(found.values())


def _goodputs(dataset: Dataset) -> Iterator[tuple[str, float]]:
    """Yield the goodput of each run with flows, by run_id, in Mb/s."""
    for run in dataset.runs:
        with suppress(NoValue):
            yield run.run_id, round(float(METRICS["goodput"].of(RunData(dataset, run), None, {})), 3)


def _entries(plan: Plan, dataset: Dataset, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return the entries of the lock, each with the index of its run; two entries may share a run."""
    outcome = {(run.scenario, run.repetition): run for run in dataset.runs}
    place = {run_id: number for number, run_id in enumerate(ids)}
    return [
        {
            "run": place[run.run_id],
            "experiment": run.experiment,
            "factors": run.factors,
            "repetition": run.repetition,
            "status": known.status if (known := outcome.get((run.scenario, run.repetition))) else "missing",
            "reason": (known.reason if known else None) or "",
            "folder": run_folder_name(run.scenario, run.repetition, run.run_id),
        }
        for run in sorted(plan.runs, key=lambda one: (one.experiment, one.scenario, one.repetition))
    ]


def _colours(dataset: Dataset) -> dict[str, str]:
    """Return the colour of each congestion control in the figures."""
    names = sorted({row["cca"] for rows in dataset.flows.values() for row in rows}, key=style.order)
    return {name: style.look(name, place)[0] for place, name in enumerate(names)}


def _capacity_mbps(spec: RunSpec) -> float | None:
    """Return the rate of the slowest port on the way of the data, in Mb/s; None if it changes during the run."""
    along = {port.name: port.egress for one in spec.sent for port in route(spec, one.sender, one.receiver)}
    ports = [egress for egress in along.values() if egress.rate_bps]
    if not ports or any(one.changes or one.trace for one in ports):
        return None
    return round(min(one.rate_bps or 0 for one in ports) / 1e6, 3)


def _flow(row: Row) -> str:
    rtt, again = row.get("min_rtt_us"), row.get("retrans_segments")
    return (
        shown(row["goodput_bps"] / 1e6, "Mb/s")
        + (f", {again} retransmitted" if again is not None else "")
        + (f", smallest RTT {shown(rtt / 1e3, 'ms')}" if rtt else "")
    )  # fmt: skip


def series_of(dataset: Dataset, runs: Sequence[str]) -> tuple[list[dict[str, Any]], int]:
    """Return the series of the given runs, and k: they contain every k-th sample.

    A series has its table, the place of its run in the list, the values of the columns that distinguish it, ``t``
    in milliseconds and ``values`` by column. Queues that were always empty are left out.
    """
    frames = {}
    for table, (keys, columns) in TABLES.items():
        chosen = scan(dataset.folder, table).select("run_id", *keys, "t_us", *columns)
        frames[table] = chosen.filter(pl.col("run_id").is_in(list(runs))).collect()
    every = max(1, -(-sum(frame.height for frame in frames.values()) // MOST))
    place = {run: number for number, run in enumerate(runs)}
    found = [one for table, frame in frames.items() for one in _series(table, frame, every)]
    for one in found:
        one["run"] = place[one.pop("run_id")]
    return found, every


def _series(table: str, frame: pl.DataFrame, every: int) -> Iterator[dict[str, Any]]:
    keys, columns = TABLES[table]
    for _, rows in frame.group_by("run_id", *keys, maintain_order=True):
        rows = rows.sort("t_us", maintain_order=True).gather_every(every)
        values = {name: rows[name].fill_null(0).to_numpy().astype(np.float64) for name in columns}
        named = {"table": table, **rows.select("run_id", *keys).row(0, named=True)}
        if table == "queues" and not values["backlog_packets"].any():
            continue
        if table == "sockets":
            values["acked_mbps"] = 100 * _acked_mbps(
                rows["t_us"].to_numpy().astype(np.float64), values.pop("bytes_acked")
            )
            values["ssthresh_segments"][values["ssthresh_segments"] >= UNSET] = 0
        if table == "cca_state":
            largest = np.abs(values["value"]).max()
            named["power"] = math.floor(math.log10(largest or 1)) + 1 - _STATE_DIGITS
            values["value"] /= 10.0 ** named["power"]
        whole = {name: steps(numbers * columns.get(name, 1.0)) for name, numbers in values.items()}
        yield {**named, "t": steps(rows["t_us"].to_numpy() * 1e-3), "values": whole}


def steps(values: Numbers) -> list[int]:
    """Return the first number of a series, rounded, and the difference of each number from the one before."""
    found: list[int] = np.diff(np.rint(values).astype(np.int64), prepend=0).tolist()
    return found


def _acked_mbps(t_us: Numbers, acked_bytes: Numbers) -> Numbers:
    """Return the acknowledged rate over ``MEAN_US`` before each sample, or since the first sample."""
    places = np.arange(len(t_us))
    before = np.minimum(np.searchsorted(t_us, t_us - MEAN_US), np.maximum(places - 1, 0))
    spans = t_us - t_us[before]
    return np.divide(8 * (acked_bytes - acked_bytes[before]), spans, out=np.zeros(len(t_us)), where=spans > 0)
