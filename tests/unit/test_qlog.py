# SPDX-License-Identifier: Apache-2.0
"""The qlog files of programs: their forms, their times, and faults, which a program may make on purpose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longfat.dataset.parse import _observed
from longfat.execute.record.bundle import is_measured
from longfat.spec.runspec import Probes, Program, RunSpec
from longfat.study.traffic.qlog import COLUMNS, TABLE, is_qlog, read_qlogs
from longfat.system.errors import RecordError

START_US = 1_000_000
METRICS = {
    "congestion_window": 12000,
    "bytes_in_flight": 2400,
    "smoothed_rtt": 40.5,
    "min_rtt": 40,
    "pacing_rate": 10_000_000,
}
EVENTS: list[dict[str, Any]] = [
    {"time": 0.5, "name": "recovery:congestion_state_updated", "data": {"new": "startup"}},
    {"time": 0.5, "name": "transport:packet_sent", "data": {"raw": {"length": 1200}}},
    {"time": 20.25, "name": "recovery:metrics_updated", "data": METRICS},
    {"time": 20.25, "name": "recovery:packet_lost", "data": {}},
    {"time": 30, "name": "quic:recovery_metrics_updated", "data": {"congestion_window": 6000, "pacing_gain": 0.35}},
    {"time": 30.001, "name": "quic:congestion_state_updated", "data": {"old": "startup", "new": "drain"}},
]
HEADER = {"qlog_format": "JSON-SEQ", "trace": {"common_fields": {"time_format": "relative"}}}


def spec(name: str = "send.qlog") -> RunSpec:
    one = Program("own", "client1", "server", ("send",), ("receive",), 2_000_000, start_us=START_US, keep=(name,))
    return RunSpec((), (), (), Probes(), seed=1, programs=(one,))


def rows(folder: Path, content: bytes | str, name: str = "send.qlog") -> list[dict[str, Any]]:
    path = folder / "programs/own" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_qlogs(folder, spec(name)))


def sequence(*items: object) -> str:
    return "".join(f"\x1e{json.dumps(one)}\n" for one in (HEADER, *items))


def contained(**common: str) -> str:
    return json.dumps({"qlog_version": "0.4", "traces": [{"common_fields": common, "events": EVENTS}]}, indent=1)


@pytest.mark.parametrize(
    "content",
    [
        sequence(*EVENTS),
        sequence(*EVENTS).replace("\x1e", ""),
        sequence(*EVENTS) + '\x1e{"time": 31, "na',
        contained(),
        json.dumps(json.loads(contained())),
    ],
    ids=["sequence", "lines", "interrupted", "object", "one line"],
)
def test_events_of_congestion_control_become_rows_with_the_last_known_values(tmp_path: Path, content: str) -> None:
    found = rows(tmp_path, content)
    assert [row["t_us"] - START_US for row in found] == [500, 20_250, 30_000, 30_001]
    assert {frozenset(row) for row in found} == {frozenset(COLUMNS)}
    assert [row["state"] for row in found] == ["startup", "startup", "startup", "drain"]
    assert [row["cwnd_bytes"] for row in found] == [None, 12_000, 6000, 6000]
    assert [row["lost_packets"] for row in found] == [0, 1, 1, 1]
    expected = {"srtt_us": 40_500, "min_rtt_us": 40_000, "pacing_bps": 10_000_000, "pacing_gain": 0.35}
    assert {name: found[-1][name] for name in (*expected, "bandwidth_bps")} == {**expected, "bandwidth_bps": None}


@pytest.mark.parametrize(
    ("form", "times"),
    [
        ("relative", [500, 20_250, 30_000, 30_001]),
        ("relative_to_epoch", [500, 20_250, 30_000, 30_001]),
        ("absolute", [0, 19_750, 29_500, 29_501]),
        ("delta", [500, 21_250, 41_500, 71_500, 101_501]),
    ],
)
def test_times_count_from_the_programs_start_in_each_format(tmp_path: Path, form: str, times: list[int]) -> None:
    found = rows(tmp_path, contained(time_format=form))
    assert [row["t_us"] - START_US for row in found] == times


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Expecting value"),
        (b'{"\xff": 1}', "decode"),
        ("[1, 2]", "not an object"),
        ('{"traces": 5}\n', "traces"),
        ('{"traces": [{"events": 5}]}\n', "list of events"),
        ('{"a":' * 100_000, "recursion"),
        (sequence([1]), "not an object"),
        (sequence({**EVENTS[2], "data": 5}), "not an object"),
        (sequence({**EVENTS[2], "time": "0"}), "time"),
        (sequence({**EVENTS[2], "time": True}), "time"),
        (sequence({**EVENTS[2], "time": -1}), "time"),
        (sequence({**EVENTS[2], "time": 2001}), "allowed 1 to 3 s"),
        (sequence(EVENTS[4], EVENTS[2]), "follows"),
        (sequence({**EVENTS[2], "data": {"min_rtt": float("nan")}}), "NaN"),
        (sequence({**EVENTS[2], "data": {"congestion_window": 1e300}}), "congestion_window"),
        (sequence({**EVENTS[0], "data": {"new": "x" * 100}}), "at most 40"),
        (sequence({**EVENTS[0], "data": {"new": "a\nb"}}), "at most 40"),
        (sequence({**EVENTS[0], "data": {"new": None}}), "at most 40"),
        (contained(time_format="sidereal"), "time_format"),
    ],
)
def test_a_faulty_file_is_refused_with_its_name_and_fault(tmp_path: Path, content: bytes | str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        rows(tmp_path, content)
    assert str(caught.value).startswith("own/send.qlog: ")
    with pytest.raises(RecordError, match=message):
        _observed(TABLE, tmp_path, {}, "id", spec())


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="more than 16 MiB"):
        rows(tmp_path, b" " * (Program.most_kept_bytes + 1))


def test_a_missing_file_leaves_the_verdict_to_the_gate(tmp_path: Path) -> None:
    assert list(read_qlogs(tmp_path, spec())) == []
    assert TABLE.written(spec()) and not TABLE.written(spec("other.csv"))


def test_a_qlog_is_a_measurement_by_its_name() -> None:
    assert [is_qlog(name) for name in ("a.qlog", "a.sqlog", "a.qlog.csv")] == [True, True, False]
    assert is_measured("programs/own/send.qlog") and not is_measured("programs/own/notes.txt")
