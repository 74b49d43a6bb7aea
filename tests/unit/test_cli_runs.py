# SPDX-License-Identifier: Apache-2.0
"""The commands for one run: names of a run, its settings and values, its repetition, and comparisons of results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tiny_study import STUDY as STUDY_OF_TWO
from tiny_study import call, write_tiny

from longfat.cli.find_run import find_run
from longfat.execute.record.bundle import SUMS, checksums

STUDY = STUDY_OF_TWO.replace("repetitions: 2", "repetitions: 6").replace(
    "experiments:", "defaults: {flow: {start_jitter: 10 ms}}\nexperiments:"
)

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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the study ``tiny`` and results of it."""
    place = tmp_path_factory.mktemp("made")
    write_tiny(place, STUDY)
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
    shown = call("show", short).output
    assert facts["run"] in shown
    assert f"{rates[0][0] / 1e6:.7g} Mbit/s" in shown


def test_again_is_byte_identical_or_each_file_that_differs_is_named(root: Path) -> None:
    folder = records(root)[0]
    result = call("again", folder.name, "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["same"]
    assert {"flows.json", "sockets.csv"} <= {*data["files"]}
    assert Path(data["again"]).parent == root / "results/again/raw"
    (folder / "sockets.csv").write_text("changed")
    assert call("again", folder.name).exit_code == 3, "a damaged record"
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
    data = json.loads(call("compare", one, other, "--json").stdout)
    verdicts = {row["claim"]: row["verdicts"] for row in data["claims"]}
    assert verdicts["wider-carries-more"] == ["reproduced", "not reproduced"]
    assert verdicts["wider-carries-less"] == ["not reproduced", "not there"]
    assert "3 claims: 0 have the same verdict, 3 differ" in call("compare", one, other).output
    assert "2 have the same verdict, 0 differ" in call("compare", one, one).output


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
    assert [verdict["verdict"] for verdict in data["verdicts"]] == ["reproduced", "not reproduced"]
    assert (data["valid"], Path(data["report"]).exists()) == (True, True)
    assert Path(json.loads(call("report", "--json").stdout)["front"]) == root / "results" / "index.html"
    joined = json.loads(call("merge", str(tmp_path / "joined"), results, "--json").stdout)
    assert (joined["copied"], joined["kept"], joined["damaged"]) == (12, 0, [])
    folder = records(root)[0]
    for name in ("made-on.json", f"raw/{folder.name}/flows.json"):
        (Path(results) / name).write_text('{"commit": 1, "machine": []}')
    done = call("report", "tiny", "--results", results)
    assert done.exit_code == 4 and f"damaged record set aside as {results}/raw/.damaged/{folder.name}" in done.output
