# SPDX-License-Identifier: Apache-2.0
"""The report of a closed connection adds to the acknowledged bytes and is no sample of the window."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tables_in_memory import TablesInMemory, flow_row, run

from longfat.metrics import METRICS
from longfat.metrics.data import CLOSED, NoValue, RunData

OPEN, UNSET = 0, 0x7FFFFFFF
SAMPLES = ((100_000, "f", 0, OPEN, 40, UNSET, 100_000), (200_000, "f", 0, OPEN, 40, UNSET, 200_000))
END = (500_000, "f", 0, OPEN, 10, 10, 800_000)  # the window was halved twice since the last sample


class Closed(TablesInMemory):
    """Samples of which the last one is of the end."""

    def sockets(self, run_id: str, flow: str | None = None) -> Mapping[str, npt.NDArray[Any]]:
        found = super().sockets(run_id, flow)
        state = np.ones(len(found["t_us"]))
        state[-1] = CLOSED
        return {**found, "state": state}


def data(*samples: tuple[Any, ...]) -> RunData:
    dataset = Closed(Path(), {"r": samples})
    vars(dataset).update(runs=(run("r"),), flows={"r": (flow_row("f", 1.0, until_s=0.5),)})
    return RunData(dataset, run("r"))


def test_a_window_that_fell_after_the_last_sample_is_no_cut_of_it() -> None:
    found = data(*SAMPLES, END)
    assert METRICS["cuts"].of(found, None, {}) == 0
    assert found.connection().cwnd.tolist() == [40, 40]


def test_what_was_acknowledged_up_to_the_end_counts() -> None:
    samples = data(*SAMPLES, END).connection()
    assert samples.acked_by(np.array([150_000.0, 350_000.0, 900_000.0])).tolist() == [150_000, 500_000, 800_000]


def test_a_counter_at_the_end_is_that_of_the_report() -> None:
    assert data(*SAMPLES, END).at_end("bytes_acked") == 800_000


def test_a_connection_between_two_samples_carries_bytes_and_has_no_window() -> None:
    found = data(END)
    assert METRICS["together"].of(found, None, {}) == pytest.approx(8 * 800_000 / 0.5e6)
    with pytest.raises(NoValue, match="'f'"):
        found.connection()
