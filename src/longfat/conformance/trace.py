# SPDX-License-Identifier: Apache-2.0
"""What a run left of each connection, as arrays.

Owns the reading of a run's raw files. Measures nothing.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longfat.conformance.scenario import Scenario
from longfat.errors import RigError

OPEN_STATES = (0, 1)  # TCP_CA_Open and TCP_CA_Disorder (linux/tcp.h): no reduction is under way

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """The samples of one connection; times in microseconds, windows and counts in segments."""

    t_us: Numbers
    ca_state: Numbers
    cwnd: Numbers
    ssthresh: Numbers
    srtt_us: Numbers
    min_rtt_us: Numbers
    delivered: Numbers
    dwnd: Numbers

    def between(self, since_us: float, until_us: float) -> Trace:
        """The samples from ``since_us`` up to, but not including, ``until_us``."""
        return self.where((self.t_us >= since_us) & (self.t_us < until_us))

    def where(self, chosen: NDArray[np.bool_]) -> Trace:
        """The samples that a mask chooses."""
        return Trace(**{name: values[chosen] for name, values in vars(self).items()})

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Where no reduction of the window is under way."""
        return np.isin(self.ca_state, OPEN_STATES)


@dataclass(frozen=True)
class Run:
    """A finished scenario: its connections by (flow, stream), its flows and queues."""

    scenario: Scenario
    traces: dict[tuple[str, int], Trace]
    flows: dict[str, dict[str, Any]]
    queue_t_us: Numbers
    queue_packets: Numbers

    @property
    def trace(self) -> Trace:
        """The first connection of the first flow."""
        return self.traces["flow1", 0]

    @property
    def on_path(self) -> float:
        """Segments that fill the path and leave its queue empty: rate times RTT, of which sending one is part."""
        return self.scenario.rate_pps * self.scenario.rtt_us / 1e6


def read_run(scenario: Scenario, folder: Path) -> Run:
    """The run whose raw files are in ``folder``. Raises RigError when it failed or did not lose what it should."""
    outcome = json.loads((folder / "outcome.json").read_text())
    if outcome["status"] != "ok":
        raise RigError(f"a run failed: {outcome['reason']}")
    achieved = json.loads((folder / "achieved.json").read_text())
    dropped = sum(interface["deliberate_drops"] for interface in achieved["interfaces"])
    # A second packet of the same burst may follow the first before the filter is gone: it is the same loss to TCP.
    if dropped < len(scenario.drops_us):
        raise RigError(f"a run dropped {dropped} packets on purpose instead of {len(scenario.drops_us)}")
    flows = json.loads((folder / "flows.json").read_text())
    queue_t_us, queue_packets = _queue(folder / "queues.csv")
    return Run(
        scenario=scenario,
        traces=_traces(folder / "sockets.csv"),
        flows={flow["flow"]: flow for flow in flows},
        queue_t_us=queue_t_us,
        queue_packets=queue_packets,
    )


def _traces(path: Path) -> dict[tuple[str, int], Trace]:
    columns = {
        "t_us": "t_us",
        "ca_state": "ca_state",
        "cwnd": "cwnd_segments",
        "ssthresh": "ssthresh_segments",
        "srtt_us": "srtt_us",
        "min_rtt_us": "min_rtt_us",
        "delivered": "delivered_segments",
        "dwnd": "dwnd_segments",
    }
    rows: dict[tuple[str, int], list[dict[str, str]]] = {}
    with path.open(newline="") as table:
        for row in csv.DictReader(table):
            rows.setdefault((row["flow"], int(row["stream"])), []).append(row)
    return {
        key: Trace(**{field: np.array([float(row.get(name) or 0) for row in own]) for field, name in columns.items()})
        for key, own in rows.items()
    }


def _queue(path: Path) -> tuple[Numbers, Numbers]:
    if not path.exists():
        return np.empty(0), np.empty(0)
    with path.open(newline="") as table:
        rows = [(float(row["t_us"]), float(row["backlog_packets"])) for row in csv.DictReader(table)]
    found = np.array(rows).reshape(-1, 2)
    return found[:, 0], found[:, 1]
