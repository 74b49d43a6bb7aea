# SPDX-License-Identifier: Apache-2.0
"""The bench: what it is asked for, how it counts, what it shows, and that a commit is timed by its own code."""

from __future__ import annotations

import dataclasses
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from longfat.bench.builds import Build, Driven, build_at, this_build
from longfat.bench.cases import CASES, PEER_CASES, Case, Ratio, Timing, best, chosen, order, ratio, sample, total
from longfat.bench.driver import spec_of
from longfat.bench.report import PeerRow, Results, Row, Sampled, as_json, show
from longfat.bench.run import Wanted, measure, peer_case
from longfat.cli import app
from longfat.errors import RigError, StudyError
from longfat.runspec import RunSpec

SLOW, FAST = Timing(4.0, 3.0, 1000, 900_000_000), Timing(2.0, 0.75, 1000, 900_000_000)
STUDY = """
format: 2
study: tiny
title: Two flows
stack: modern
seed: 1
algorithms:
  reno: {cca: reno}
hosts: {mtu: 1500 B, txqueuelen: 100}
experiments:
  - id: delay
    topology: {kind: delay, rate: 100 Mbit/s, rtt: 20 ms}
    flows:
      - {name: flow1, from: client1, to: server, algorithm: reno, window: "${window}", duration: 1 s}
    sweep:
      product: {window: [64 KiB, 1 MiB]}
    repetitions: 3
"""
ENVIRONMENT = {"PYTHONPATH": str(this_build().tree / "src")}
# A child starts a program that computes for 0.2 s, and ends at once.
ORPHAN = """
import ctypes, subprocess, sys
from longfat.bench.driver import PR_SET_CHILD_SUBREAPER, children_seconds
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
before = children_seconds()
busy = "import time\\nwhile time.process_time() < 0.2: pass"
subprocess.run(["sh", "-c", '"$0" -c "$1" &', sys.executable, busy], check=True)
print(children_seconds() - before)
"""


def spec(case: Case) -> RunSpec:
    return spec_of(dataclasses.asdict(case), {"backend": "mininet" if case.own_kernel else "virtual"})


def shown(results: Results) -> str:
    text = io.StringIO()
    show(results, Console(file=text, width=200))
    return text.getvalue()


def results(rows: Sequence[Row] = (), sampled: Sampled | None = None, peers: Sequence[PeerRow] = ()) -> Results:
    return Results(3, rows, sampled, peers, None, ["ns2: not installed"])


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit, tagged ``old``, and a file changed since; the cache folder is beside it."""
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path / "cache"))
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_text("old")
    author = ("-c", "user.name=nobody", "-c", "user.email=nobody@invalid")
    for command in (["init", "-q"], ["add", "file"], [*author, "commit", "-q", "-m", "one"], ["tag", "old"]):
        subprocess.run(["git", *command], cwd=tree, check=True)
    (tree / "file").write_text("new")
    return tree


@pytest.mark.parametrize(
    ("given", "found"),
    [((), ("a", "b", "c")), (("c", "a"), ("a", "c")), (("none",), ())],
)
def test_an_option_names_some_or_none_and_else_means_all(given: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert chosen("--cases", given, ("a", "b", "c")) == found


def test_every_unknown_case_is_named_with_the_nearest_known() -> None:
    with pytest.raises(StudyError) as raised:
        chosen("--cases", ("1g-900", "fixed", "none"), tuple(CASES))
    assert [(problem.key, problem.hint) for problem in raised.value.problems] == [
        ("1g-900", "did you mean '1g-9000'?"),
        ("none", None),
    ]


def test_the_command_refuses_unknown_cases_and_peers_before_anything_starts() -> None:
    for arguments in (["--cases", "2g"], ["--peers", "ns4"], ["--repeats", "0"]):
        result = CliRunner().invoke(app, ["bench", *arguments])
        assert result.exit_code == 2
        assert arguments[0] in result.output


def test_the_best_of_several_takes_wall_and_cpu_time_each_by_itself() -> None:
    timings = [Timing(2.0, 1.0, 7, 5), Timing(1.5, 1.2, 7, 5), Timing(1.9, 0.9, 7, 5)]
    assert best(timings) == Timing(1.5, 0.9, 7, 5)


def test_a_ratio_is_the_new_time_as_a_part_of_the_old() -> None:
    assert ratio(FAST, SLOW) == Ratio(0.5, 0.25)
    assert ratio(total([FAST, SLOW]), total([SLOW, SLOW])) == Ratio(0.75, 0.625)


def test_builds_take_turns_in_going_first() -> None:
    assert [order(2, turn) for turn in range(3)] == [[0, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize(("runs", "size"), [(422, 20), (7, 3), (3, 3), (3, 20), (1, 1)])
def test_a_sample_has_one_run_of_each_equal_part_of_the_plan(runs: int, size: int) -> None:
    names = [f"{number:03}" for number in range(runs)]
    taken = sample(names[::-1], size, seed=1)
    size = min(size, runs)
    assert len(taken) == size
    assert all(runs * part // size <= int(name) < runs * (part + 1) // size for part, name in enumerate(taken))


def test_a_sample_is_the_seeds_and_not_the_orders() -> None:
    names = [str(number) for number in range(100)]
    assert sample(names, 10, seed=1) == sample(names[::-1], 10, seed=1) != sample(names, 10, seed=2)
    assert sample([], 10, seed=1) == []


def test_builds_are_compared_by_ratios_first() -> None:
    text = shown(results([Row("work", {"here": FAST, "abc": SLOW}, 10)]))
    (line,) = (line for line in text.splitlines() if "work" in line and "0.50" in line)
    assert [cell.strip() for cell in line.split("│")[1:-1]] == ["work", "0.50", "0.25", "4.00", "2.00", "3.00", "0.75"]
    assert "here as parts of abc" in text
    assert "ns2: not installed" in text


def test_one_build_alone_shows_what_a_segment_costs_beyond_a_run() -> None:
    fixed = Row(CASES["fixed"].name, {"here": Timing(1.0, 0.9, 10, 0)}, 0.001)
    text = shown(results([fixed, Row("work", {"here": Timing(3.0, 2.5, 1_000_000, 0)}, 12)]))
    (line,) = (line for line in text.splitlines() if "work" in line and "3.00" in line)
    assert [cell.strip() for cell in line.split("│")[1:-1]] == ["work", "3.00", "2.50", "4.0", "2.00"]


def test_a_sample_stands_for_all_runs_that_builds_share() -> None:
    row = Row("tiny", {"here": FAST, "abc": SLOW})
    text = shown(results(sampled=Sampled("tiny", "quick", {"here": 420, "abc": 402}, 400, 2, row)))
    assert "here 420, abc 402; in all builds 400, of which 2 were executed" in text
    assert "estimated CPU minutes of the 400: here 2.5, abc 10.0" in text


def test_json_holds_every_figure() -> None:
    row = Row("tiny", {"here": FAST, "abc": SLOW})
    sampled = Sampled("tiny", "quick", {"here": 4, "abc": 4}, 4, 2, row)
    peers = [PeerRow("host", "1 Gb/s", 10, SLOW)]
    found = json.loads(json.dumps(as_json(results([row], sampled, peers))))
    assert [entry["ratio"] for entry in found["rows"]] == 2 * [{"wall": 0.5, "cpu": 0.25}]
    assert found["rows"][0]["best"]["abc"]["cpu_s"] == 3.0
    assert found["sampled"]["estimated_cpu_s"] == {"here": 1.5, "abc": 6.0}
    assert found["peers"][0]["timing"]["goodput_bps"] == 900_000_000
    assert found["notes"] == ["ns2: not installed"]


def test_a_peers_cost_is_shown_for_each_second_that_it_simulates() -> None:
    text = shown(results(peers=[PeerRow("ns3", "1 Gb/s", 2, SLOW)]))
    (line,) = (line for line in text.splitlines() if "ns3" in line)
    assert [cell.strip() for cell in line.split("│")[1:-1]] == ["ns3", "1 Gb/s", "2", "4.00", "3.00", "1.50", "900"]
    assert "no delay" not in text


def test_it_is_said_what_the_machines_own_kernel_does_not_do() -> None:
    text = shown(results(peers=[PeerRow("host", "1 Gb/s", 10, SLOW)]))
    assert "no delay" in text
    assert "CPU time is that of the whole machine" in text


def test_the_machines_own_kernel_is_asked_for_nothing_that_only_the_projects_has() -> None:
    own = spec(peer_case("host", CASES["1g-1500"]))
    assert {key for node in own.nodes for key in node.sysctls} == {"net.ipv4.ip_forward"}
    assert {end.egress.delay_us for link in own.links for end in (link.a, link.b)} == {0}
    assert own.flows[0].window_bytes is None
    assert own.end_us == 10_000_000


def test_a_guest_delays_by_30_ms_and_its_window_holds_three_bdps() -> None:
    for name in PEER_CASES:
        found = spec(CASES[name])
        assert sum(end.egress.delay_us for link in found.links for end in (link.a, link.b)) == 30_000
        assert 2 * int(found.flows[0].window_bytes or 0) == 3 * 1_000_000_000 // 8 * 3 // 100
    assert spec(CASES["100m-1500"]).probes.queue_interval_us == 10_000
    assert spec(peer_case("ns3", CASES["1g-1500"])).end_us == 1_000_000


def test_a_commit_is_unpacked_as_git_has_it_with_a_cache_of_its_own(repository: Path) -> None:
    build = build_at("old", repository)
    assert (build.tree / "file").read_text() == "old"
    assert build.cache.parent == build.tree.parent
    assert build_at("HEAD", repository) == build
    name = build.tree.parent.name
    assert sorted(path.name for path in build.tree.parents[1].iterdir()) == [name, f"{name}.lock"]


def test_what_is_no_commit_and_no_repository_is_refused(repository: Path, tmp_path: Path) -> None:
    for name in ("new", "--help", "old:file"):
        with pytest.raises(StudyError, match="no commit"):
            build_at(name, repository)
    with pytest.raises(RigError, match="clone"):
        build_at("old", tmp_path)


def test_cpu_time_is_that_of_children_and_of_what_they_left_behind() -> None:
    done = subprocess.run([sys.executable, "-c", ORPHAN], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert float(done.stdout) >= 0.2


def test_two_builds_do_the_same_cases_and_runs_by_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "experiments" / "tiny").mkdir(parents=True)
    (tmp_path / "experiments" / "tiny" / "study.yaml").write_text(STUDY)
    (tmp_path / "src").symlink_to(this_build().tree / "src")
    builds = [Build(name, tmp_path, tmp_path / "cache") for name in ("here", "there")]
    said: list[str] = []
    wanted = Wanted(study="tiny", sample=2, repeats=2)
    found = measure(wanted, builds, ["fixed"], [], said.append, where="fake")
    assert [list(row.best) for row in found.rows] == [["here", "there"]]
    assert all(timing.wall_s > 0 for timing in found.rows[0].best.values())
    assert found.sampled is not None
    assert (found.sampled.runs, found.sampled.shared, found.sampled.done) == ({"here": 6, "there": 6}, 6, 2)
    assert found.side_by_side is None
    assert [line for line in said if line.startswith("delay.")] == said[-2:]


def test_what_a_build_refuses_is_told_with_its_name(tmp_path: Path) -> None:
    with Driven(Build("here", this_build().tree, tmp_path), "fake") as driven, pytest.raises(RigError) as raised:
        driven.plan("nosuch", "quick")
    assert raised.value.where == "here"
    assert "no study 'nosuch'" in raised.value.message


def test_a_build_is_timed_by_the_code_of_its_own_tree(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "src" / "longfat").mkdir(parents=True)
    (tmp_path / "src" / "longfat" / "__init__.py").write_text("raise ImportError('code of that tree')")
    with Driven(Build("there", tmp_path, tmp_path), "fake") as driven, pytest.raises(RigError) as raised:
        driven.reasons()
    assert (raised.value.where, "ended" in raised.value.message) == ("there", True)
    assert "code of that tree" in capfd.readouterr().err
