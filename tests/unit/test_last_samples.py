# SPDX-License-Identifier: Apache-2.0
"""The last report of a connection: its time and number, the receiving time that follows, and metrics of its end."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from conftest import delay_spec
from tables_in_memory import TablesInMemory, flow_row, run

from longfat.dataset.columns import SCHEMAS
from longfat.dataset.parse import receiving_time
from longfat.guest import netlink, sockets
from longfat.guest.probes import SeenSockets
from longfat.metrics import METRICS
from longfat.metrics.data import CLOSED, NoValue, RunData

DIAG = (Path(__file__).parents[1] / "data" / "linux-6.12-inet-diag-two-sockets.bin").read_bytes()
OPEN = next(netlink.bodies(DIAG))


def report(*, closed: bool = False, source_port: int = 40_000, last_ack_ms: int = 0) -> bytes:
    """A message about one socket of the flow that is received at port 5001."""
    info = next(sockets.parse([OPEN]))
    found = bytearray(OPEN.replace(struct.pack("!HH", info.source_port, 5001), struct.pack("!HH", source_port, 5001)))
    place = sockets.MESSAGE_BYTES
    while struct.unpack_from("=HH", found, place)[1] != sockets.INET_DIAG_INFO:
        place += (struct.unpack_from("=HH", found, place)[0] + 3) & ~3
    found[place + 4] = sockets.TCP_CLOSE if closed else sockets.TCP_ESTABLISHED
    struct.pack_into("=I", found, place + 4 + 8 + 4 * 12, last_ack_ms)
    return bytes(found)


def rows(seen: SeenSockets, t_us: int, *messages: bytes) -> list[tuple[str, str, str]]:
    """Time, stream and state of each row."""
    fields = [row.split(",") for row in seen.rows(t_us, 0, messages)]
    return [(row[0], row[2], row[3]) for row in fields]


@pytest.mark.parametrize(("last_ack_ms", "t_us"), [(20, "170000"), (5000, "100000")])
def test_the_last_sample_is_of_the_last_acknowledgment_and_never_before_the_one_that_was_taken(
    last_ack_ms: int, t_us: str
) -> None:
    seen = SeenSockets({5001: "f"})
    assert rows(seen, 100_000, report()) == [("100000", "0", "1")]
    assert rows(seen, 190_000, report(closed=True, last_ack_ms=last_ack_ms)) == [(t_us, "0", "7")]
    assert seen.ccas == {"f": "reno"}
    assert rows(SeenSockets({5001: "f"}), 130_000, report(closed=True)) == [("130000", "0", "7")]


def test_a_connection_that_takes_the_port_of_an_ended_one_has_a_number_of_its_own() -> None:
    seen = SeenSockets({5001: "f"})
    rows(seen, 100_000, report(), report(source_port=40_001))
    rows(seen, 150_000, report(closed=True))
    assert rows(seen, 200_000, report(), report(source_port=40_001)) == [("200000", "1", "1"), ("200000", "2", "1")]


def closed_at(*times_us: int) -> pa.Table:
    empty: dict[str, Any] = dict.fromkeys(SCHEMAS["sockets"].names, None)
    return pa.Table.from_pylist(
        [{**empty, "flow": "stream1", "state": "7", "t_us": t} for t in times_us], schema=SCHEMAS["sockets"]
    )


ROW = {"start_us": 2_000_000, "bytes_received": 5_000_000, "goodput_bps": 20e6, "end_us": 3_000_000}
SPEC = delay_spec()  # 15 ms each way


@pytest.mark.parametrize(
    ("closed_us", "first_us"),
    [
        (4_034_000, 2_045_000),  # established after a round trip, to a tick
        (4_038_000, 2_045_000),
        (5_030_000, 3_015_000 + 30_000),  # its first SYN was lost
    ],
)
def test_a_receiver_begins_half_a_round_trip_after_the_sender(closed_us: int, first_us: int) -> None:
    found = receiving_time({"sending_us": 2_000_000}, ROW, SPEC, SPEC.flows[0], closed_at(closed_us))
    assert found == {"first_byte_us": first_us, "last_byte_us": first_us + 2_000_000}


def test_transfers_and_flows_without_a_last_sample_have_the_time_from_their_start() -> None:
    flow = SPEC.flows[0]
    of_transfers = dataclasses.replace(flow, transfer_bytes=1000)
    for one, table in ((of_transfers, closed_at(4_060_000)), (flow, closed_at())):
        found = receiving_time({"sending_us": 2_000_000}, ROW, SPEC, one, table)
        assert found == {"first_byte_us": 2_000_000, "last_byte_us": 4_000_000}


STATE_OPEN, UNSET = 0, 0x7FFFFFFF
SAMPLES = ((100_000, "f", 0, STATE_OPEN, 40, UNSET, 100_000), (200_000, "f", 0, STATE_OPEN, 40, UNSET, 200_000))
END = (500_000, "f", 0, STATE_OPEN, 10, 10, 800_000)  # the window was halved twice since the last sample


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
