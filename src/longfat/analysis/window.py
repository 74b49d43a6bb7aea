# SPDX-License-Identifier: Apache-2.0
"""Metrics of one connection's windows and of the queue that it sees, from the samples of its socket.

Owns their definitions. ``since`` leaves a start out. A window of a CCA with a delay part is the sum of both parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from longfat.analysis.link import Parameters, RunMetric, bottleneck_of
from longfat.analysis.metrics import NoValue, Samples, cut_places, cut_times_us
from longfat.dataset.load import Dataset, Run

Columns = Mapping[str, npt.NDArray[Any]]


def backlog_segments(samples: Columns) -> float:
    """Median of cwnd (1 - min RTT / RTT): segments that the connection itself has in queues, as Vegas reckons it."""
    known = (samples["srtt_us"] > 0) & (samples["min_rtt_us"] > 0)
    if not known.any():
        raise NoValue("no RTT was sampled in the window")
    window, rtt, least = (
        samples[name][known].astype(np.float64) for name in ("cwnd_segments", "srtt_us", "min_rtt_us")
    )
    return float(np.median(window * np.maximum(1 - least / rtt, 0)))


def reverted_percent(samples: Columns) -> float:
    """Percent of the samples in which the delay part of the window is 0, so that the loss part alone is left."""
    delay_part = samples["dwnd_segments"]
    if not len(delay_part) or np.isnan(delay_part).any():
        raise NoValue("the congestion control tells of no delay part of its window")
    return float(100 * (delay_part == 0).mean())


def threshold_ratio(samples: Samples, since_us: float | None = None) -> float:
    """ssthresh in the sample that shows a cut first over the window before the cut, median over the cuts.

    The window before is the larger of that sample's and the one before: a cut takes a round trip to come down.
    """
    places = _cuts_since(samples, since_us)
    if not len(places):
        raise NoValue("the congestion window was never cut")
    return float(np.median(samples.ssthresh[places] / np.maximum(samples.cwnd[places], samples.cwnd[places - 1])))


def least_threshold_segments(samples: Samples, since_us: float | None = None) -> float:
    """Smallest ssthresh that a cut left, in segments."""
    places = _cuts_since(samples, since_us)
    if not len(places):
        raise NoValue("the congestion window was never cut")
    return float(samples.ssthresh[places].min())


def repeated_cuts(samples: Samples, within_us: float, since_us: float | None = None) -> float:
    """Cuts of the congestion window that follow another within the time."""
    return float((np.diff(cut_times_us(samples, since_us, None)) <= within_us).sum())


def derived_queue_packets(samples: Columns, rate_bps: float, packet_bytes: float) -> float:
    """Packets whose sending takes as long as the RTT varies: highest less smallest, at the bottleneck's rate."""
    known = samples["srtt_us"] > 0
    if not known.any():
        raise NoValue("no RTT was sampled in the window")
    delay_us = float(samples["srtt_us"][known].max() - samples["min_rtt_us"][known].min())
    return delay_us * rate_bps / 8e6 / packet_bytes


def columns_of(dataset: Dataset, run: Run, flow: str | None, since_us: float | None = None) -> Columns:
    """The samples of one flow's only connection. Raises NoValue where there are none or of several."""
    table = dataset.sockets(run.run_id, flow)
    found = set(zip(table["flow"].tolist(), table["stream"].tolist(), strict=True))
    if len(found) != 1:
        raise NoValue(f"sockets of {len(found)} connections were sampled, and a window is that of one")
    inside = table["t_us"] >= (-np.inf if since_us is None else since_us)
    return {name: values[inside] for name, values in table.items()}


def samples_of(dataset: Dataset, run: Run, flow: str | None) -> Samples:
    """The same as the metrics of cuts take it."""
    columns = columns_of(dataset, run, flow)
    names = ("t_us", "ca_state", "cwnd_segments", "ssthresh_segments", "bytes_acked")
    return Samples(*(columns[name].astype(np.float64) for name in names))


def _cuts_since(samples: Samples, since_us: float | None) -> npt.NDArray[np.intp]:
    places = cut_places(samples)
    return places[samples.t_us[places] >= (-np.inf if since_us is None else since_us)]


def _of_columns(unit: str, meaning: str, measure: Callable[[Columns], float]) -> RunMetric:
    def compute(dataset: Dataset, run: Run, flow: str | None, p: Parameters) -> float:
        return measure(columns_of(dataset, run, flow, p.get("since")))

    return RunMetric(unit, meaning, compute, optional=("since",), flow=True, least=1)


def _of_cuts(unit: str, meaning: str, measure: Callable[[Samples, float | None], float]) -> RunMetric:
    def compute(dataset: Dataset, run: Run, flow: str | None, p: Parameters) -> float:
        return measure(samples_of(dataset, run, flow), p.get("since"))

    return RunMetric(unit, meaning, compute, optional=("since",), flow=True, least=1)


def _derived_queue(dataset: Dataset, run: Run, flow: str | None, p: Parameters) -> float:
    port = bottleneck_of(dataset, run)
    return derived_queue_packets(columns_of(dataset, run, flow), port.rate_bps, p["segment"])


def _repeated(dataset: Dataset, run: Run, flow: str | None, p: Parameters) -> float:
    return repeated_cuts(samples_of(dataset, run, flow), p["within"], p.get("since"))


WINDOW_METRICS: dict[str, RunMetric] = {
    "backlog": _of_columns("segments", "segments that the connection has in queues", backlog_segments),
    "reverted": _of_columns("%", "time without a delay part of the window", reverted_percent),
    "threshold_ratio": _of_cuts("", "ssthresh after a cut over the window before it", threshold_ratio),
    "least_threshold": _of_cuts("segments", "smallest ssthresh after a cut", least_threshold_segments),
    "repeated_cuts": RunMetric(
        *("cuts", "cuts that follow another", _repeated),
        required=("within",),
        optional=("since",),
        flow=True,
        least=1,
    ),
    "derived_queue": RunMetric(
        "packets", "queue that the RTT tells of", _derived_queue, required=("segment",), flow=True, least=1
    ),
}
