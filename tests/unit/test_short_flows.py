# SPDX-License-Identifier: Apache-2.0
"""Short flows, video, incast and programs: what a manifest says of them, their laws, their gates, their metrics."""

from __future__ import annotations

import hashlib
import json
import socket
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

from longfat.backends import own_files
from longfat.cli.run import files_of
from longfat.errors import RigError, SettledError, StudyError
from longfat.gates import Evidence
from longfat.guest.kinds import incast, requests, short_flows, video
from longfat.manifest.files import StudyFile
from longfat.manifest.load import load_study
from longfat.metrics import arrivals
from longfat.metrics.data import NoValue
from longfat.network import least_time_us
from longfat.plan import build_plan
from longfat.runspec import RunSpec
from longfat.studies import StudyFolder
from longfat.traffic import misses, section_of
from longfat.traffic.short_flows import mean_of, points_of

MANIFEST = """\
format: 2
study: pieces
title: Traffic in pieces
algorithms: {{standard: {{cca: reno}}}}
experiments:
  - id: one
    topology: {{kind: dumbbell, rate: 10 Mbit/s, rtt: 40 ms, senders: 2}}
    flows: [{{name: beside, from: client2, to: server, algorithm: standard, duration: 60 s}}]
    {entry}
"""
SHORT = (
    "short_flows: [{name: mice, from: client1, to: server, algorithm: standard, every: 10 ms, size: 30 kB, "
    "duration: 60 s}]"
)
FILM = (
    "video: [{name: film, from: client1, to: server, algorithm: standard, ladder: [1 Mbit/s, 4 Mbit/s], "
    "duration: 60 s}]"
)
BURST = (
    "incast: [{name: burst, from: client2, to: server, algorithm: standard, senders: 3, block: 64 kB, duration: 60 s}]"
)
OWN = (
    'programs: [{name: own, from: client1, to: server, send: "python3 send.py {address} {port}", '
    "receive: \"./receive {port} 'a b'\", files: [send.py], duration: 60 s}]"
)
CDF = "# bytes, percent\n1000 0\n2000 50\n\n10000 100\n"


def spec(folder: Path, entry: str, *changes: tuple[str, str]) -> RunSpec:
    for old, new in changes:
        assert old in entry
        entry = entry.replace(old, new)
    (folder / "study.yaml").write_text(MANIFEST.format(entry=entry), encoding="utf-8")
    return build_plan(load_study(folder / "study.yaml"), profile="paper", pins={}).runs[0].spec


def test_an_incast_has_a_sender_at_each_host_in_turn(tmp_path: Path) -> None:
    found = spec(tmp_path, BURST).incast
    assert [(one.name, one.sender) for one in found] == [
        ("burst.1", "client2"),
        ("burst.2", "client1"),
        ("burst.3", "client2"),
    ]
    assert {name: len(group) for name, group in incast.groups(spec(tmp_path, BURST)).items()} == {"burst": 3}


def test_a_program_is_its_words_and_the_digests_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "send.py").write_text("pass")
    (one,) = spec(tmp_path, OWN).programs
    assert one.send == ("python3", "send.py", "{address}", "{port}")
    assert one.receive == ("./receive", "{port}", "a b")
    assert one.files == {"send.py": hashlib.sha256(b"pass").hexdigest()}
    before = spec(tmp_path, OWN).run_id
    (tmp_path / "send.py").write_text("pass  # otherwise")
    assert spec(tmp_path, OWN).run_id != before


def test_a_program_suffices_for_an_experiment(tmp_path: Path) -> None:
    (tmp_path / "send.py").write_text("pass")
    text = "".join(line for line in MANIFEST.splitlines(keepends=True) if "beside" not in line)
    (tmp_path / "study.yaml").write_text(text.format(entry=OWN), encoding="utf-8")
    (run,) = build_plan(load_study(tmp_path / "study.yaml"), profile="paper", pins={}).runs
    assert [one.name for one in run.spec.sent] == ["own"]


def test_a_distribution_in_a_file_becomes_part_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "sizes.cdf").write_text(CDF)
    (one,) = spec(tmp_path, SHORT, ("size: 30 kB", "cdf: sizes.cdf")).short_flows
    assert one.table == ((1000, 0), (2000, 500_000), (10_000, 1_000_000))
    assert one.size_bytes == 3750  # half of it 1500 on average, the other half 6000
    assert one.sizes == "table"


@pytest.mark.parametrize(
    ("entry", "change", "said"),
    [
        (SHORT, ("size: 30 kB, ", ""), "short_flows[0].size: give `size` or `cdf`, one of the two"),
        (SHORT, ("30 kB", "30 kB, sizes: pareto, shape: 1"), "shape: 1 is out of range; allowed: more than 1"),
        (SHORT, ("30 kB", "30 kB, shape: 2"), "short_flows[0].shape: a law 'fixed' has no shape"),
        (SHORT, ("size: 30 kB", "cdf: no.cdf"), "short_flows[0].cdf: there is no file 'no.cdf' beside study.yaml"),
        (SHORT, ("size: 30 kB", "cdf: ../no.cdf"), "short_flows[0].cdf: '../no.cdf' is not the name of a file"),
        (SHORT, ("size: 30 kB", "cdf: study.yaml"), "study.yaml, line 1: 'format: 2' is not two numbers"),
        (FILM, ("1 Mbit/s, 4", "4 Mbit/s, 1"), "video[0].ladder: 4 Mbit/s, 1 Mbit/s do not ascend"),
        (FILM, ("duration", "buffer: 7 s, duration"), "video[0].buffer: 7 s is less than two segments of 4 s"),
        (BURST, ("senders: 3", "senders: 0"), "incast[0].senders: "),
        (OWN, ("{address}", "{host}"), "programs[0].send: {host} stands for nothing; allowed: {address}, {port}"),
        (OWN, ("'a b'", "'a b"), "programs[0].receive: "),
        (OWN, ("send.py]", "send.py, send.py]"), "programs[0].files: 'send.py' is given twice"),
        (OWN, ("send.py]", "absent]"), "there is no file 'absent' beside study.yaml"),
    ],
)
def test_faults_are_named(tmp_path: Path, entry: str, change: tuple[str, str], said: str) -> None:
    (tmp_path / "send.py").write_text("pass")
    with pytest.raises(StudyError) as caught:
        spec(tmp_path, entry, change)
    found = [f"{problem.key}: {problem.message}" for problem in caught.value.problems]
    assert any(said in problem for problem in found), found


def test_a_file_of_a_study_leads_to_no_other_of_the_users(tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    (tmp_path / "key").write_text("secret")
    (study / "send.py").symlink_to("../key")
    with pytest.raises(StudyError, match=r"'send\.py' is a link that leads out of the study's folder"):
        spec(study, OWN)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1000 0\n900 100\n", "line 2: '900 100' does not ascend"),
        ("1000 120\n", "line 1: '1000 120' is out of range"),
        ("1000 50\n", "does not end with 100 percent"),
    ],
)
def test_faults_of_a_distribution_are_named_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "sizes.cdf").write_text(text)
    with pytest.raises(ValueError, match=r"sizes\.cdf") as caught:
        points_of(StudyFile(tmp_path / "sizes.cdf"))
    assert said in str(caught.value)


ORDER = {"size_bytes": 10_000, "shape": 2.5, "every_us": 20_000, "arrivals": "poisson"}
TABLE = [(1000, 0), (2000, 500_000), (10_000, 1_000_000)]


@pytest.mark.parametrize("sizes", ["fixed", "exponential", "pareto", "lognormal", "table"])
def test_every_law_of_sizes_has_the_declared_mean(sizes: str) -> None:
    random, shape = Random(1), 1.0 if sizes == "lognormal" else 2.5
    order = {**ORDER, "sizes": sizes, "shape": shape, "table": TABLE}
    drawn = [short_flows.size_bytes(order, random) for _ in range(20_000)]
    assert fmean(drawn) == pytest.approx(mean_of(TABLE) if sizes == "table" else 10_000, rel=0.05)
    assert min(drawn) >= 1


def test_a_share_of_a_distribution_lies_on_the_line_between_two_points() -> None:
    assert [short_flows.at_share(TABLE, share) for share in (0, 250_000, 500_000, 750_000, 1e6)] == [
        *(1000, 1500, 2000, 6000, 10_000)
    ]


def test_times_of_a_poisson_process_deviate_by_their_mean() -> None:
    random = Random(1)
    gaps = [short_flows.gap_s(ORDER, random) for _ in range(20_000)]
    assert fmean(gaps) == pytest.approx(0.02, rel=0.03)
    assert stdev(gaps) == pytest.approx(0.02, rel=0.03)
    assert short_flows.gap_s({**ORDER, "arrivals": "fixed"}, random) == 0.02


def test_flows_begin_whether_those_before_them_have_ended_or_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        order = {**ORDER, "seed": 1, "name": "m", "start_us": 0, "arrivals": "fixed", "sizes": "fixed"}
        order |= {"address": "127.0.0.1", "port": silent.getsockname()[1], "request_bytes": 8, "duration_us": 310_000}
        flows = short_flows.Arrivals({**order, "origin_ns": time.monotonic_ns()})
        said = flows.run()
        for request in flows._under_way.values():
            request.connection.close()
    assert said["unfinished"] > 1
    assert said["responses"] == []


LADDER = (1_000_000, 2_000_000, 4_000_000)


@pytest.mark.parametrize(
    ("level", "before", "chosen"),
    [
        (0.1, 4_000_000, 1_000_000),
        (0.95, 1_000_000, 4_000_000),
        (0.5, 2_000_000, 2_000_000),
        (0.6, 1_000_000, 2_000_000),
    ],
)
def test_a_viewer_takes_the_rate_that_its_buffer_stands_for(level: float, before: int, chosen: int) -> None:
    assert video.by_buffer(LADDER, level, before) == chosen


def test_a_viewer_takes_four_fifths_of_the_rate_it_has_seen() -> None:
    assert video.by_rate(LADDER, []) == LADDER[0]
    assert video.by_rate(LADDER, [5e6]) == 4_000_000
    assert video.by_rate(LADDER, [9e6, 5e6, 5e6, 1.5e6]) == 2_000_000  # their harmonic mean is 2.8 Mbit/s


def test_a_buffer_that_runs_empty_stops_the_picture() -> None:
    viewer = video.Viewer({"ladder_bps": LADDER, "segment_us": 4_000_000, "buffer_us": 12_000_000, "choice": "buffer"})
    viewer.pass_by(3)
    assert viewer.stalled_s == 0  # nothing plays before the first segment
    viewer.take_in(1, 1)
    viewer.pass_by(5)
    assert (viewer.buffered_s, viewer.stalled_s) == (0, 1)
    for _ in range(3):
        viewer.take_in(1, 1)
    assert viewer.wait_s() == 4


def test_a_server_that_keeps_connections_answers_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = requests.Server({"port": port, "cca": "reno", **video.ASKING})
    with socket.create_connection(("127.0.0.1", port), timeout=0.01) as user:
        for size in (5, 70_000, 1):
            user.sendall(size.to_bytes(8, "big"))
            came = 0
            deadline = time.monotonic() + 5
            while came < size and time.monotonic() < deadline:
                server.answer(0.01)
                with suppress(TimeoutError):
                    came += len(user.recv(size - came))
            assert came == size
    server.close()


EVIDENCE = {
    "nodes": {name: {"sysctls": {}, "offloads_on": []} for name in ("client1", "server")},
    "interfaces": [],
    "flows": [],
    "capture": {},
    "cpu_pressure_us": None,
    "memory_pressure": 0,
}


@pytest.mark.parametrize(
    ("seen", "told", "reason"),
    [
        (["reno"], {"completed": 5, "errors": {}}, None),
        (["cubic"], {"completed": 5, "errors": {}}, "algorithm of short flows mice is cubic, declared reno"),
        (["reno"], {"completed": 0, "errors": {}}, "nothing of short flows mice was complete"),
        (["reno"], {"completed": 5, "errors": {"econnreset": 2}}, "short flows mice failed (2 econnreset), allowed 0"),
        (["reno"], None, "short flows mice was not reported"),
    ],
)
def test_gates_name_what_was_missed(
    tmp_path: Path, seen: list[str], told: dict[str, Any] | None, reason: str | None
) -> None:
    achieved = {**EVIDENCE, "short_flows": [{"short_flows": "mice", "ccas": seen}]}
    reports = [] if told is None else [{"short_flows": "mice", **told}]
    gates = section_of(spec(tmp_path, SHORT).short_flows[0]).gates
    evidence = Evidence(spec(tmp_path, SHORT), achieved, [], {"short_flows": reports})
    found = [text for gate in gates for text in gate(evidence)]
    assert found == ([] if reason is None else [reason])


def test_reports_have_a_row_for_each_piece(tmp_path: Path) -> None:
    run = spec(tmp_path, SHORT)
    (tmp_path / "short_flows").mkdir()
    said = {"responses": [[30, 1, 1448, 90_000]], "bytes_received": 1448, "unfinished": 1, "errors": {}}
    (tmp_path / "short_flows" / "mice.ask.json").write_text(json.dumps(said))
    short_flows.report(run, tmp_path)
    header, row = (tmp_path / "completions.csv").read_text().splitlines()
    assert header == short_flows.COLUMNS
    assert row == f"30,mice,1448,90000,{least_time_us(run, run.short_flows[0], 1448)}"


COMPLETIONS = {
    "size_bytes": np.array([1000, 1000, 50_000]),
    "completion_us": np.array([100_000, 120_000, 800_000]),
    "ideal_us": np.array([100_000, 100_000, 200_000]),
}


def test_metrics_of_short_flows_are_of_all_or_of_a_range_of_sizes() -> None:
    assert arrivals.slowdown(COMPLETIONS, above_bytes=1000) == 4
    assert arrivals.slowdown(COMPLETIONS, up_to_bytes=1000) == pytest.approx(1.1)
    with pytest.raises(NoValue):
        arrivals.slowdown(COMPLETIONS, above_bytes=1e6)


def test_metrics_of_video_and_incast_are_in_their_units() -> None:
    assert arrivals.video_rate({"bitrate_bps": np.array([1_000_000, 3_000_000])}) == 2
    rounds = {"senders": np.array([4, 4]), "block_bytes": np.array([1000, 1000]), "completion_us": np.array([40, 120])}
    rounds["t_us"] = np.array([0, 500])
    assert arrivals.incast_goodput(rounds) == 400
    with pytest.raises(NoValue):
        arrivals.video_rate({"bitrate_bps": np.array([])})


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Path, RunSpec]:
    """A cache folder that has the file of a run's program, and the run."""
    (tmp_path / "send.py").write_text("pass")
    run = spec(tmp_path, OWN)
    own_files.keep(files_of(StudyFolder(tmp_path)), tmp_path / "cache")
    return tmp_path / "cache", run


def test_files_of_a_study_reach_the_folder_of_a_run(kept: tuple[Path, RunSpec], tmp_path: Path) -> None:
    cache, run = kept
    (tmp_path / "task").mkdir()
    own_files.copy(run, cache, tmp_path / "task")
    assert [path.read_text() for path in (tmp_path / "task/files").iterdir()] == ["pass"]
    assert list(own_files.missing(run, cache)) == []


def test_a_file_that_is_absent_or_damaged_is_named(kept: tuple[Path, RunSpec], tmp_path: Path) -> None:
    cache, run = kept
    (reason,) = own_files.missing(run, tmp_path / "other")
    assert "lacks the file send.py" in reason
    (digest,) = run.programs[0].files.values()
    (cache / "files" / digest).write_text("something else")
    (tmp_path / "task").mkdir()
    with pytest.raises(RigError, match="the file is damaged"):
        own_files.copy(run, cache, tmp_path / "task")


def test_a_clock_that_stands_still_is_the_program_s_fault_where_there_is_one(kept: tuple[Path, RunSpec]) -> None:
    stopped = RigError("the guest's virtual clock stood still")
    told = own_files.explain_hang(stopped, kept[1])
    assert isinstance(told, SettledError)
    assert "while every program waits: own" in told.message
    assert own_files.explain_hang(stopped, RunSpec((), (), (), kept[1].probes, 1)) is stopped


def test_gates_of_programs_name_packets_and_endings_that_were_missed(kept: tuple[Path, RunSpec]) -> None:
    achieved = {
        **EVIDENCE,
        "programs": [{"programs": "own", "role": "send", "status": 3, "asked": False, "said": "no"}],
    }
    found = misses(Evidence(kept[1], achieved, [], {"programs": [{"programs": "own", "received_packets": 0}]}))
    assert "no packet of program own arrived for port 4433" in found
    assert "what sends of program own ended with status 3; it said: no" in found
