# SPDX-License-Identifier: Apache-2.0
"""Flows limited by their application in a guest: constant, on and off, and faster than the path."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies import done, planned

from longfat.guest.cca_state import MODES
from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

STUDY = """\
format: 2
study: limited
title: An application that has so much to send
algorithms: {cubic: {cca: cubic}, bbr: {cca: bbr}}
paths:
  line: {kind: dumbbell, rate: 20 Mbit/s, host_rate: 1 Gbit/s, rtt: 40 ms, senders: 1}
defaults: {path: line, flow: {from: client1, to: server, duration: 3 s}}
experiments:
  - {id: constant, flows: [{name: call, algorithm: cubic, rate: 5 Mbit/s, streams: 2}]}
  - id: turns
    flows: [{name: call, algorithm: bbr, rate: 8 Mbit/s, on_time: 500 ms, off_time: 1 s}]
  - {id: faster, flows: [{name: call, algorithm: cubic, rate: 60 Mbit/s}]}
"""


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunSpec]:
    return planned(tmp_path_factory.mktemp("limited") / "study.yaml", STUDY)


def test_a_constant_rate_is_given_and_arrives(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    parsed = done(specs["constant"], tmp_path / "run")
    (report,) = parsed.reports
    assert report["bytes_sent"] == report["bytes_due"] == 5_000_000 * 3 // 8
    assert report["goodput_bps"] == pytest.approx(5e6, rel=1e-3)
    last = [row for row in parsed.tables["sockets"].to_pylist() if row["t_us"] == 2_900_000]
    assert [row["app_limited"] for row in last] == [1, 1]


def test_in_off_time_the_application_is_the_limit_and_nothing_is_acknowledged(
    specs: dict[str, RunSpec], tmp_path: Path
) -> None:
    parsed = done(specs["turns"], tmp_path / "run")
    rows = {row["t_us"]: row for row in parsed.tables["sockets"].to_pylist()}
    off = (700_000, 1_400_000)
    assert rows[off[0]]["bytes_acked"] == rows[off[1]]["bytes_acked"] > 490_000
    assert rows[off[1]]["app_limited_us"] - rows[off[0]]["app_limited_us"] == pytest.approx(700_000, abs=20_000)
    assert rows[1_900_000]["bytes_acked"] > rows[off[1]]["bytes_acked"]
    # A limited application keeps BBR in its startup until the end.
    modes = {row["t_us"]: row["value"] for row in parsed.tables["cca_state"].to_pylist() if row["name"] == "mode"}
    assert list(modes) == parsed.tables["sockets"]["t_us"].to_pylist()
    assert set(modes.values()) == {MODES.index("startup")}


def test_an_application_faster_than_the_path_is_held_back_and_the_run_is_valid(
    specs: dict[str, RunSpec], tmp_path: Path
) -> None:
    parsed = done(specs["faster"], tmp_path / "run")
    (report,) = parsed.reports
    assert report["bytes_sent"] < report["bytes_due"]
    assert 17e6 < report["goodput_bps"] < 19.2e6
