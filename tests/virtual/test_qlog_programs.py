# SPDX-License-Identifier: Apache-2.0
"""A program with a qlog in a guest: the draft's checks read the phases that it names and the numbers that it writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from guests import RECEIVE, run, virtual

from longfat.backends import own_files
from longfat.cli.run import files_of
from longfat.data.study_folder import StudyFolder
from longfat.dataset.load import Run
from longfat.dataset.parse import parse_run
from longfat.metrics.data import NoValue, RunData
from longfat.metrics.registry import METRICS
from longfat.plan import build_plan
from longfat.report.card.card import candidate
from longfat.spec.gates import Evidence
from longfat.study.traffic import misses

pytestmark = pytest.mark.virtual

DRAFT = Path(__file__).parents[2] / "experiments" / "bbr-draft"

SEND = """#!/usr/bin/env python3
import json, socket, sys, time
address, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
RATE, RTT = 8_000_000, 0.1
PHASES = [  # end, state, pacing gain, cwnd gain
    (1.0, "startup", 2.77, 2), (1.3, "drain", 0.5, 2), (2.0, "probe_bw_cruise", 1, 2), (2.2, "probe_bw_up", 1.25, 2),
    (2.4, "probe_bw_down", 0.9, 2), (3.0, "probe_bw_cruise", 1, 2), (3.25, "probe_rtt", 1, 0.5),
    (9.9, "probe_bw_refill", 1, 2),
]
log = open("send.qlog", "w")
def write(item):
    log.write(chr(30) + json.dumps(item) + chr(10))
write({"qlog_format": "JSON-SEQ", "trace": {"common_fields": {"time_format": "relative"}}})
start = time.monotonic()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    sent, before = 0, None
    while (now := time.monotonic() - start) < seconds - 0.2:
        state, pacing, window = next(phase[1:] for phase in PHASES if now < phase[0])
        if state != before:
            write({"time": 1000 * now, "name": "recovery:congestion_state_updated", "data": {"new": state}})
            before = state
        if sent % 5 == 0:
            write({"time": 1000 * now, "name": "recovery:metrics_updated", "data": {
                "congestion_window": round(window * RATE * RTT / 8), "bytes_in_flight": round(RATE * RTT / 8),
                "min_rtt": 1000 * RTT, "smoothed_rtt": 1000 * RTT, "pacing_rate": round(pacing * RATE),
                "bandwidth": RATE, "pacing_gain": pacing, "cwnd_gain": window}})
        sender.sendto(bytes(1000), (address, port))
        sent += 1
        time.sleep(max(0, start + sent / 1000 - time.monotonic()))
log.close()
"""
WIRE_MBPS = 8 * (1000 + 28 + 38) / 1000


@dataclass
class Tables:
    """The tables of one run, as a dataset gives them."""

    tables: dict[str, pa.Table]

    def __post_init__(self) -> None:
        self.computed: dict[object, object] = {}

    def columns_of(self, table: str, run_id: str) -> dict[str, np.ndarray]:
        return {name: self.tables[table][name].to_numpy() for name in self.tables[table].column_names}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """Run the program on the path of case 3, from a candidate's folder to the tables."""
    folder = tmp_path_factory.mktemp("qlog")
    own = folder / "own"
    own.mkdir()
    (own / "send").write_text(SEND)
    (own / "receive").write_text(RECEIVE)
    _, study = candidate(StudyFolder(DRAFT), str(own), folder / "home")
    plan = build_plan(study.study, profile="smoke", pins=virtual().pins())
    spec = next(run.spec for run in plan.runs if run.experiment == "drain-inflight")
    own_files.keep(files_of(study), virtual().jail)
    parsed = parse_run(run(spec, folder / "run"), "id", spec)
    assert misses(Evidence(spec, parsed.achieved, parsed.reports, parsed.told, parsed.end_us)) == ()
    return dict(parsed.tables)


def data_of(tables: dict[str, pa.Table]) -> RunData:
    return RunData(Tables(tables), Run("id", "drain-inflight", "", 1, "modern", "ok", None, {}))


@pytest.fixture(scope="module")
def data(tables: dict[str, pa.Table]) -> RunData:
    return data_of(tables)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("startup_bandwidth", WIRE_MBPS),
        ("gain_after_startup", 0.5),
        ("drain_gain", 0.5),
        ("drain_inflight", 1),
        ("gain_after_drain", 2),
        ("gain_after_up", 0.9),
        ("down_gain", 0.9),
        ("gain_after_down", 1),
        ("probe_rtt_gain", 0.5),
        ("gain_after_probe_rtt", 1),
        ("startup_cwnd", 2),
    ],
)
def test_a_check_reads_what_the_program_wrote(data: RunData, metric: str, value: float) -> None:
    assert METRICS[metric].of(data, None, {}) == pytest.approx(value, rel=0.005)


@pytest.mark.parametrize(("metric", "value"), [("drain_rounds", 3), ("up_rounds", 2), ("probe_rtt_lasts", 0.25)])
def test_lengths_of_phases_come_from_times_and_from_what_arrived(data: RunData, metric: str, value: float) -> None:
    assert METRICS[metric].of(data, None, {}) == pytest.approx(value, rel=0.05)


def test_a_delivered_rate_is_counted_at_the_receiver(data: RunData) -> None:
    assert METRICS["delivers"].of(data, None, {"since": 1e6}) == pytest.approx(WIRE_MBPS, rel=0.01)


def test_a_qlog_without_a_bandwidth_has_phases_and_no_value_that_needs_one(tables: dict[str, pa.Table]) -> None:
    qlog = tables["qlog"]
    for name in ("bandwidth_bps", "pacing_gain", "cwnd_gain"):
        absent = pa.nulls(len(qlog), qlog.schema.field(name).type)
        qlog = qlog.set_column(qlog.column_names.index(name), qlog.schema.field(name), absent)
    data = data_of({**tables, "qlog": qlog})
    assert METRICS["probe_rtt_lasts"].of(data, None, {}) == pytest.approx(0.25, rel=0.05)
    for metric in ("startup_bandwidth", "drain_gain", "drain_inflight"):
        with pytest.raises(NoValue, match="qlog"):
            METRICS[metric].of(data, None, {})
