# SPDX-License-Identifier: Apache-2.0
"""A dataset without files: runs with chosen goodput and socket samples, for the tests of quantities and ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longfat.dataset.load import Dataset, Run
from longfat.spec.runspec import Scalar

SOCKET_COLUMNS = ("t_us", "flow", "stream", "ca_state", "cwnd_segments", "ssthresh_segments", "bytes_acked")


@dataclass(frozen=True)
class TablesInMemory(Dataset):
    """``samples`` has the rows of ``sockets`` by run_id, in the order of SOCKET_COLUMNS."""

    samples: Mapping[str, Sequence[tuple[Any, ...]]] = field(default_factory=dict)

    def sockets(self, run_id: str, flow: str | None = None) -> Mapping[str, npt.NDArray[Any]]:
        rows = [row for row in self.samples.get(run_id, ()) if flow in (None, row[1])]
        kinds = {name: object if name == "flow" else np.int64 for name in SOCKET_COLUMNS}
        found = {
            name: np.array([row[place] for row in rows], dtype=kinds[name]) for place, name in enumerate(SOCKET_COLUMNS)
        }
        unknown = ("state", "srtt_us", "min_rtt_us", "dwnd_segments", "delivered_segments")
        return {**found, **{name: np.zeros(len(rows)) for name in unknown}}


def flow_row(flow: str, mbps: float, since_s: float = 0.0, until_s: float = 10.0) -> dict[str, Any]:
    """A row of ``flows`` with its goodput and its receiving time."""
    times = {"start_us": 1e6 * since_s, "first_byte_us": 1e6 * since_s, "end_us": 1e6 * until_s}
    amount = round(mbps * (until_s - since_s) * 1e6 / 8) if np.isfinite(mbps) else None
    return {"flow": flow, "goodput_bps": mbps * 1e6, "bytes_received": amount, "last_byte_us": 1e6 * until_s} | times


def run(run_id: str, repetition: int = 1, status: str = "ok", **factors: Scalar) -> Run:
    """A run of experiment ``two``; a scenario for each combination of factors."""
    return Run(run_id, "two", str(sorted(factors.items())), repetition, "linux-2.4", status, None, factors)


def tables(
    runs: Sequence[Run],
    goodput_mbps: Mapping[str, Mapping[str, float]] | None = None,
    samples: Mapping[str, Sequence[tuple[Any, ...]]] | None = None,
) -> TablesInMemory:
    """The dataset of these runs, with goodput by run_id and flow in Mb/s."""
    dataset = TablesInMemory(Path(), samples or {})
    flows = {
        run_id: tuple(flow_row(flow, value) for flow, value in of_run.items())
        for run_id, of_run in (goodput_mbps or {}).items()
    }
    # What the dataset would read from its files once.
    vars(dataset).update(runs=tuple(runs), flows=flows)
    return dataset
