# SPDX-License-Identifier: Apache-2.0
"""Reads a dataset back: runs by their factors, goodput of their flows, series of outstanding data.

Owns access to the Parquet tables; computes nothing. Large tables are read a run at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from longfat.dataset import columns
from longfat.dataset.build import DATASET
from longfat.errors import RigError
from longfat.runspec import Scalar


@dataclass(frozen=True)
class Run:
    """One lock entry: what it is for, its factors in base units, and what became of it."""

    run_id: str
    experiment: str
    scenario: str
    artifacts: tuple[str, ...]
    repetition: int
    stack: str
    status: str
    reason: str | None
    factors: Mapping[str, Scalar]


@dataclass(frozen=True)
class Series:
    """A time series: microseconds since the start of the measurement, ascending, and one value for each."""

    t_us: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dataset:
    """The tables under ``folder``."""

    folder: Path

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """All lock entries in lock order, whatever their status."""
        return tuple(_run(row) for row in self._read("runs").to_pylist())

    @cached_property
    def flows(self) -> Mapping[str, tuple[Mapping[str, Any], ...]]:
        """The rows of ``flows`` by run_id."""
        found: dict[str, tuple[Mapping[str, Any], ...]] = {}
        for row in self._read("flows").to_pylist():
            found[row["run_id"]] = (*found.get(row["run_id"], ()), row)
        return found

    def outstanding(self, run_id: str, flow: str | None = None) -> Series:
        """Outstanding data in bytes of a captured flow (None: of the only one); empty when there is none."""
        chosen = [("run_id", "=", run_id)] + ([("flow", "=", flow)] if flow else [])
        table = self._read("outstanding", filters=chosen)
        return Series(
            table["t_us"].to_numpy().astype(np.float64),
            table["outstanding_bytes"].to_numpy().astype(np.float64),
        )

    def _read(self, table: str, **options: Any) -> pa.Table:
        path = self.folder / f"{table}.parquet"
        try:
            return pq.read_table(path, use_threads=False, **options)
        except (OSError, pa.ArrowInvalid) as error:
            hint = "build it again with `longfat dataset STUDY`"
            raise RigError(f"the dataset cannot be read: {error}", where=str(path), hint=hint) from error


def load_dataset(results: Path) -> Dataset:
    """The dataset under ``results``. Raises RigError when it is missing or damaged."""
    dataset = Dataset(results / DATASET)
    _ = dataset.runs
    return dataset


def _run(row: Mapping[str, Any]) -> Run:
    prefix = columns.FACTOR_PREFIX
    factors = {
        key.removeprefix(prefix): value for key, value in row.items() if key.startswith(prefix) and value is not None
    }
    fixed = {key: row[key] for key in ("run_id", "experiment", "scenario", "repetition", "stack", "status")}
    return Run(**fixed, artifacts=tuple(row["artifacts"]), reason=row["reason"], factors=factors)
