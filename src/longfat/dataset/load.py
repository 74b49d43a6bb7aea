# SPDX-License-Identifier: Apache-2.0
"""Reader of a dataset: its runs, and their flows, samples and series.

Owns access to the Parquet tables; computes nothing. Large tables are read one run at a time.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from longfat.dataset import columns
from longfat.dataset.build import DATASET
from longfat.spec.runspec import Scalar
from longfat.system.checksums import verify_checksums
from longfat.system.errors import RigError

SOCKET_COLUMNS = (
    *("t_us", "flow", "stream", "state", "ca_state", "cwnd_segments", "ssthresh_segments", "inflight_segments"),
    *("srtt_us", "min_rtt_us", "retrans_total", "lost_segments", "bytes_acked", "delivered_segments"),
    "dwnd_segments",
)
_SOCKET_KINDS: Mapping[str, type] = {"flow": str, "dwnd_segments": np.float64}

PORT_COLUMNS = ("t_us", "node", "interface", "sent_bytes", "capacity_bits")
ARRIVAL_COLUMNS = ("t_us", "node", "packets", "marked_packets")


def _kind(name: str, values: npt.NDArray[Any]) -> npt.DTypeLike:
    """Return the type of a column of sockets: whole numbers, also for states, or floats if some are null."""
    return _SOCKET_KINDS.get(name, np.float64 if values.dtype == np.float64 else np.int64)


@dataclass(frozen=True)
class Run:
    """One lock entry: its experiment, its factors in base units, and its outcome.

    ``measured`` is the digest of the measurements, None without any. Runs with equal digests are one observation.
    """

    run_id: str
    experiment: str
    scenario: str
    repetition: int
    stack: str
    status: str
    reason: str | None
    factors: Mapping[str, Scalar]
    measured: str | None = None


_RUN = {name: name for name in ("run_id", "experiment", "scenario", "repetition", "stack", "status", "reason")}
_RUN["measured"] = "measured_sha256"

Row = Mapping[str, Any]  # a row of a table, by column; None where the run does not have the value
Columns = Mapping[str, npt.NDArray[np.generic]]  # of one length: a row of the table is one element of each


@dataclass(frozen=True)
class Series:
    """A time series: ascending times in microseconds since the start of the measurement, and a value for each."""

    t_us: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]


def _open(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(path.absolute())  # a relative path with a colon would be a URI


class _Table:
    """An open table with an index of its row groups by run. Raises OSError or ArrowInvalid."""

    def __init__(self, path: Path) -> None:
        self.file = _open(path)
        self.groups: dict[str, list[int]] = {}
        for group in range(self.file.num_row_groups):
            for run_id in self.file.read_row_group(group, columns=["run_id"])["run_id"].unique().to_pylist():
                self.groups.setdefault(run_id, []).append(group)

    def rows(self, chosen: Mapping[str, str], columns: Sequence[str] | None) -> pa.Table:
        """Return the rows in which columns have the chosen values, a run_id among them."""
        read = None if columns is None else [*dict.fromkeys((*columns, *chosen))]
        found = self.file.read_row_groups(self.groups.get(chosen["run_id"], []), columns=read, use_threads=False)
        for name, value in chosen.items():
            found = found.filter(pc.equal(found[name], value))
        return found if columns is None else found.select(list(columns))


@dataclass(frozen=True)
class Dataset:
    """The tables under ``folder``."""

    folder: Path

    @cached_property
    def computed(self) -> dict[Hashable, object]:
        """Cached values of metrics, or the reasons for their absence."""
        return {}

    @cached_property
    def _tables(self) -> dict[str, _Table]:
        return {}

    @cached_property
    def _samples(self) -> dict[tuple[str, str | None], Columns]:
        """The samples that were read last; metrics often read them twice."""
        return {}

    @cached_property
    def impossible(self) -> dict[str, set[str]]:
        """Reasons why values of metrics are impossible, by run_id."""
        return {}

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """All lock entries in lock order, whatever their status."""
        table = self._read("runs")
        return tuple(
            Run(**{name: row[column] for name, column in _RUN.items()}, factors=columns.factors_of(row, table.schema))
            for row in table.to_pylist()
        )

    @cached_property
    def runs_of(self) -> Mapping[str, list[Run]]:
        """The runs by experiment."""
        found: dict[str, list[Run]] = {}
        for run in self.runs:
            found.setdefault(run.experiment, []).append(run)
        return found

    @cached_property
    def flows(self) -> Mapping[str, tuple[Row, ...]]:
        """The rows of ``flows`` by run_id."""
        return self._by_run("flows")

    @cached_property
    def web(self) -> Mapping[str, tuple[Row, ...]]:
        """The rows of ``web`` by run_id."""
        return self._by_run("web")

    def columns_of(self, table: str, run_id: str) -> Columns:
        """Return the rows of a traffic kind's own table by column, in the order of recording."""
        found = self._read(table, chosen=_chosen(run_id, None))
        return {name: found[name].to_numpy() for name in found.column_names}

    def outstanding(self, run_id: str, flow: str | None = None) -> Series:
        """Return the outstanding data in bytes of a captured flow (None: the only one); may be empty."""
        return self._series("outstanding", "outstanding_bytes", run_id, flow)

    def throughput(self, run_id: str, flow: str | None = None) -> Series:
        """Return the averaged sending rate of a captured flow (None: the only one) in bytes/s; may be empty."""
        return self._series("throughput", "bytes_per_s", run_id, flow)

    def sockets(self, run_id: str, flow: str | None = None) -> Columns:
        """Return the samples of the sending sockets of a flow (None: all flows) by column, in order of time.

        SOCKET_COLUMNS are the keys. Values that the congestion control or the simulator lacks are NaN.
        """
        if (run_id, flow) not in self._samples:
            table = self._read("sockets", columns=list(SOCKET_COLUMNS), chosen=_chosen(run_id, flow))
            found = {name: table[name].to_numpy() for name in SOCKET_COLUMNS}
            self._samples.clear()
            self._samples[run_id, flow] = {name: values.astype(_kind(name, values)) for name, values in found.items()}
        return self._samples[run_id, flow]

    def queues(self, run_id: str) -> Mapping[str, Series]:
        """Return the packets in the queue of each shaped interface, by its name."""
        table = self._read("queues", columns=["interface", "t_us", "backlog_packets"], chosen=_chosen(run_id, None))
        names = table["interface"].to_numpy()
        times, packets = (table[name].to_numpy().astype(np.float64) for name in ("t_us", "backlog_packets"))
        return {str(name): Series(times[names == name], packets[names == name]) for name in dict.fromkeys(names)}

    def _by_run(self, table: str) -> Mapping[str, tuple[Row, ...]]:
        found: dict[str, tuple[Row, ...]] = {}
        for row in self._read(table).to_pylist():
            found[row["run_id"]] = (*found.get(row["run_id"], ()), row)
        return found

    def port_samples(self, run_id: str) -> Columns:
        """Return the samples of all shaped interfaces by column (PORT_COLUMNS), in order of time."""
        table = self._read("queues", columns=list(PORT_COLUMNS), chosen=_chosen(run_id, None)).drop_null()
        return {name: table[name].to_numpy() for name in PORT_COLUMNS}

    @cached_property
    def achieved(self) -> Mapping[str, tuple[Row, ...]]:
        """The rows of ``achieved``, one for each interface, by run_id."""
        return self._by_run("achieved")

    @cached_property
    def counters(self) -> Mapping[str, tuple[Row, ...]]:
        """The rows of ``counters`` by run_id."""
        return self._by_run("counters")

    def pings(self, run_id: str) -> Series:
        """Return the round-trip times of the answered pings in microseconds, by the time of the request."""
        return self._series("pings", "rtt_us", run_id, None)

    def datagrams(self, run_id: str, udp: str) -> Series:
        """Return the received bytes of one UDP traffic over time, including IPv4 headers; empty if there is none."""
        rows = self._read("datagrams", chosen={"run_id": run_id, "udp": udp})
        return Series(*(rows[name].to_numpy().astype(np.float64) for name in ("t_us", "received_bytes")))

    def arrivals(self, run_id: str) -> Columns:
        """Return the packets received by each host by column (ARRIVAL_COLUMNS); empty if no queue marks."""
        table = self._read("arrivals", columns=list(ARRIVAL_COLUMNS), chosen=_chosen(run_id, None))
        return {name: table[name].to_numpy() for name in ARRIVAL_COLUMNS}

    def _series(self, table: str, column: str, run_id: str, flow: str | None) -> Series:
        rows = self._read(table, chosen=_chosen(run_id, flow)).drop_null()
        return Series(rows["t_us"].to_numpy().astype(np.float64), rows[column].to_numpy().astype(np.float64))

    def _read(
        self, table: str, *, columns: Sequence[str] | None = None, chosen: Mapping[str, str] | None = None
    ) -> pa.Table:
        path = self.folder / f"{table}.parquet"
        if not path.exists():
            raise no_dataset(self.folder)
        try:
            if chosen is None:
                return _open(path).read(columns, use_threads=False)
            if table not in self._tables:
                self._tables[table] = _Table(path)
            return self._tables[table].rows(chosen, columns)
        except (OSError, pa.ArrowInvalid) as error:
            hint = "build it again with `./just report STUDY`"
            raise RigError(f"the dataset cannot be read: {error}", where=str(path), hint=hint) from error


def no_dataset(folder: Path) -> RigError:
    """Return the error of a missing dataset, which is in the folder of a study's results."""
    return RigError("no dataset yet", where=str(folder), hint=f"./just reproduce {folder.parent.name}")


def load_dataset(results: Path) -> Dataset:
    """Load the dataset under ``results``.

    Raises RigError if it is missing, RecordError if lock, raw records or tables changed after it was built.
    """
    dataset = Dataset(results / DATASET)
    if os.path.lexists(dataset.folder / "runs.parquet"):
        verify_checksums(results, "dataset")  # before anything is read: the library trusts what it reads
    _ = dataset.runs
    return dataset


def _chosen(run_id: str, flow: str | None) -> Mapping[str, str]:
    return {"run_id": run_id} | ({"flow": flow} if flow else {})
