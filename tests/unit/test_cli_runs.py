# SPDX-License-Identifier: Apache-2.0
"""The commands about one run: what a run may be called, what is shown of it, and what its repetition tells."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from longfat.cli import app
from longfat.cli.find_run import find_run
from longfat.execute.record.bundle import SUMS, checksums
from longfat.system.errors import StudyError

STUDY = """
format: 2
study: tiny
title: One flow with two windows
stack: modern
seed: 1
algorithms:
  reno: {cca: reno}
hosts: {mtu: 1500 B, txqueuelen: 100}
defaults: {flow: {start_jitter: 10 ms}}
experiments:
  - id: delay
    topology: {kind: delay, rate: 100 Mbit/s, rtt: 20 ms}
    flows:
      - {name: flow1, from: client1, to: server, algorithm: reno, window: "${window}", duration: 1 s}
    sweep:
      product: {window: [64 KiB, 1 MiB]}
    repetitions: 4
"""

CLAIMS = """
format: 2
study: tiny
claims:
  - id: wider-carries-more
    statement: A wider window carries more.
    relation: goodput[window=1 MiB] > goodput[window=64 KiB] in delay
  - id: wider-carries-less
    statement: A wider window carries less.
    relation: goodput[window=1 MiB] < goodput[window=64 KiB] in delay
"""


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the study ``tiny`` and results of it."""
    place = tmp_path_factory.mktemp("made")
    folder = place / "experiments" / "tiny"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGFAT_ROOT", str(place))
        result = call("run", "tiny", "--backend", "fake", "--jobs", "1")
    assert result.exit_code == 0, result.output
    return place


@pytest.fixture
def root(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it."""
    place = tmp_path / "repository"
    shutil.copytree(made, place)
    monkeypatch.setenv("LONGFAT_ROOT", str(place))
    return place


def records(root: Path) -> list[Path]:
    return sorted((root / "results/tiny/raw").glob("delay.*"))


def test_a_run_is_found_by_its_id_by_the_name_of_its_folder_and_by_its_path(root: Path) -> None:
    folder = records(root)[0]
    scenario, short = folder.name.rsplit(".", 1)
    whole = json.loads((folder / "run.json").read_text())["run_id"]
    for text in (short, short[:5], whole, whole[:20], folder.name, scenario, str(folder)):
        assert find_run(text).spec.run_id == whole
    assert find_run(short).study == "tiny"
    assert find_run(short).experiment == "delay"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "no run has the name 'nothing'"),
        ("abc", "no run has the name 'abc'"),
        ("0000000000", "no run has an id that begins with '0000000000'"),
    ],
)
def test_a_run_that_is_not_there_is_told(root: Path, text: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        find_run(text)
    result = call("show", text)
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_the_beginning_of_two_ids_names_both(root: Path) -> None:
    first, second, *_ = records(root)
    shutil.copytree(first, second.with_name(f"other.r01.{first.name.rpartition('.')[2][:6]}ff"))
    with pytest.raises(StudyError, match=r"2 runs match '\w{6}': delay\.\S+, other\.r01"):
        find_run(first.name.rpartition(".")[2][:6])


def test_show_has_settings_declared_and_achieved_metrics_and_files(root: Path) -> None:
    short = records(root)[0].name.rpartition(".")[2]
    result = call("show", short, "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["study"], facts["status"], facts["repetition"]) == ("tiny", "ok", 1)
    rates = [(one["declared"], one["achieved"]) for one in facts["settings"] if one["name"] == "rate_bps"]
    assert rates and all(declared == achieved for declared, achieved in rates)
    (goodput,) = (one["achieved"] for one in facts["settings"] if one["name"] == "goodput_bps")
    assert goodput / 1e6 == pytest.approx(facts["metrics"]["goodput"])
    assert {"spec.json", "run.json", "sockets.csv"} <= {file["name"] for file in facts["files"]}
    printed = call("show", short).output
    for text in (
        facts["run"],
        "kernel none (fake)",
        "valid: every gate passed",
        "goodput",
        "sockets.csv",
        f"./just again {short}",
    ):
        assert text in printed


def test_show_says_why_a_run_does_not_count(root: Path) -> None:
    folder = records(root)[0]
    achieved = json.loads((folder / "achieved.json").read_text())
    achieved["interfaces"][0]["mtu_bytes"] = 9000
    (folder / "achieved.json").write_text(json.dumps(achieved))
    (folder / SUMS).write_text(checksums(folder))
    result = call("show", str(folder))
    assert result.exit_code == 4
    assert "invalid: " in result.output
    assert "mtu" in result.output.lower()


def test_a_damaged_record_is_told_and_stays_where_it_is(root: Path) -> None:
    folder = records(root)[0]
    (folder / "sockets.csv").write_text("changed")
    result = call("show", folder.name)
    assert (result.exit_code, "sockets.csv" in result.stderr) == (3, True)
    assert folder.is_dir()


def test_again_is_the_same_to_the_byte(root: Path) -> None:
    folder = records(root)[0]
    result = call("again", folder.name, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["same"]
    assert {"flows.json", "sockets.csv"} <= {*told["files"]}
    assert Path(told["again"]).parent == root / "results/again/raw"


def test_again_names_each_file_that_differs(root: Path) -> None:
    folder = records(root)[0]
    (folder / "sockets.csv").write_text("changed")
    (folder / SUMS).write_text(checksums(folder))
    result = call("again", folder.name)
    assert result.exit_code == 4
    assert "sockets.csv differs" in result.output


def test_again_leaves_a_capture_of_each_flow(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longfat.cli.again.shutil.which", lambda name: None)
    run = records(root)[0].name
    result = call("again", run, "--capture", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["run"] == find_run(run).spec.run_id
    spec = next((root / "results/pcap/raw").glob("*/spec.json"))
    assert json.loads(spec.read_text())["probes"]["capture"] == ["flow1"]
    result = call("again", run, "--capture", "--at", "bottleneck", "--json")
    assert [Path(path).name for path in json.loads(result.stdout)["captures"]] == ["flow1@bottleneck.pcap"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shell", "tinny"), "studies are tiny"),
        (("shell", "tiny"), "the study has several points"),
        (("shell", "tiny", "dellay"), "'dellay' is not a point of the study"),
    ],
)
def test_a_shell_is_opened_in_one_point(root: Path, arguments: tuple[str, ...], message: str) -> None:
    result = call(*arguments)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_a_plan_takes_times_from_the_reference_of_the_study(root: Path) -> None:
    def planned() -> dict[str, Any]:
        return dict(json.loads(call("plan", "tiny", "--backend", "fake", "--json", "--jobs", "1").stdout))

    assert planned()["estimated"] == "by a model"
    for folder in records(root):
        run = json.loads((folder / "run.json").read_text()) | {"wall_seconds": 6.5}
        (folder / "run.json").write_text(json.dumps(run))
        (folder / SUMS).write_text(checksums(folder))
    analysed(root, "elsewhere", CLAIMS)
    assert call("evidence", "reference", "tiny", "--results", str(root / "elsewhere")).exit_code == 0
    assert planned()["seconds"] == pytest.approx(8 * 6.5, rel=0.01)
    assert planned()["estimated"] == "by the reference of the study"


def analysed(root: Path, name: str, claims: str) -> str:
    """A copy of the results, judged by these claims."""
    shutil.copytree(root / "results/tiny", root / name)
    (root / "experiments/tiny/claims.yaml").write_text(claims, encoding="utf-8")
    result = call("report", "tiny", "--results", str(root / name))
    assert result.exit_code == 0, result.output
    return str(root / name)


def test_compare_prints_the_claims_whose_verdicts_differ(root: Path) -> None:
    one = analysed(root, "one", CLAIMS)
    swapped = CLAIMS.replace(" > ", " ? ").replace(" < ", " > ").replace(" ? ", " < ")
    other = analysed(root, "other", swapped.replace("wider-carries-less", "another"))
    told = json.loads(call("compare", one, other, "--json").stdout)
    verdicts = {row["claim"]: row["verdicts"] for row in told["claims"]}
    assert verdicts["wider-carries-more"] == ["reproduced", "not_reproduced"]
    assert verdicts["wider-carries-less"] == ["not_reproduced", "not there"]
    result = call("compare", one, other, "--exit-code")
    assert result.exit_code == 4
    assert "3 claims: 0 have the same verdict, 3 differ" in result.output
    same = call("compare", one, one, "--exit-code")
    assert (same.exit_code, "2 have the same verdict, 0 differ" in same.output) == (0, True)


@pytest.mark.parametrize(
    ("one", "message"),
    [
        ("nothing", "'nothing' is neither results nor a study"),
        ("results/tiny", "the results are not judged yet"),
        ("tiny", "no evidence of stack 'modern' is committed"),
    ],
)
def test_what_cannot_be_compared_is_told(root: Path, monkeypatch: pytest.MonkeyPatch, one: str, message: str) -> None:
    monkeypatch.chdir(root)
    result = call("compare", one, "tiny")
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize("name", ["lock.json", "dataset/flows.parquet", "verdicts.json"])
def test_compare_refuses_results_that_were_changed_since(root: Path, name: str) -> None:
    one, other = analysed(root, "one", CLAIMS), analysed(root, "other", CLAIMS)
    path = Path(other) / name
    path.write_bytes(path.read_bytes() + b"\n")
    result = call("compare", one, other)
    assert (result.exit_code, str(path) in result.stderr) == (3, True), result.output
    (Path(other) / "lock.json").write_text("{")
    result = call("compare", one, other)
    assert (result.exit_code, f"{other}/lock.json" in result.stderr) == (3, True), result.output


def test_report_prints_doubtful_verdicts_and_all_of_them_on_demand(root: Path, tmp_path: Path) -> None:
    results = analysed(root, "one", CLAIMS)
    some, every = (call("report", "tiny", "--results", results, *more).output for more in ((), ("--all",)))
    some, every = (text.partition("warning: ")[0] for text in (some, every))  # that the claims came after the runs
    assert ("wider-carries-less" in some, "wider-carries-more" in some) == (True, False)
    assert "wider-carries-more" in every
    data = json.loads(call("report", "tiny", "--results", results, "--json").stdout)
    assert [verdict["verdict"] for verdict in data["verdicts"]] == ["reproduced", "not_reproduced"]
    assert (data["valid"], Path(data["report"]).exists()) == (True, True)
    assert Path(json.loads(call("report", "--json").stdout)["front"]) == root / "results" / "index.html"
    reference = call("evidence", "reference", "tiny", "--results", results, "--json")
    assert Path(json.loads(reference.stdout)["reference"]).exists()
    joined = json.loads(call("merge", str(tmp_path / "joined"), results, "--json").stdout)
    assert (joined["copied"], joined["kept"], joined["damaged"]) == (8, 0, [])
