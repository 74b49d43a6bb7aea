# SPDX-License-Identifier: Apache-2.0
"""The package of a study's results: what is in it, that it is equal each time, and what the appendix says."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from fabricated_results import make_results, write_study

from longfat.data.study_folder import StudyFolder
from longfat.plan.lockfile import read_lock
from longfat.report.crate import command, copy_study, pack
from longfat.system.errors import RecordError, RigError, StudyError
from longfat.system.identity import KernelSource

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, StudyFolder]:
    folder = tmp_path_factory.mktemp("package")
    study = write_study(folder)
    make_results(
        study,
        folder,
        omit=lambda run: run.scenario.startswith("one-drop"),
        reported=True,
        kernel=KernelSource("6.12.117", True),
    )
    return folder, StudyFolder(study)


@pytest.fixture(scope="module")
def package(finished: tuple[Path, StudyFolder]) -> zipfile.ZipFile:
    results, folder = finished
    pack(results, folder, ROOT, results / "small.crate.zip")
    return zipfile.ZipFile(results / "small.crate.zip")


def test_the_description_of_a_package_names_every_file_and_the_run_that_made_the_results(
    package: zipfile.ZipFile,
) -> None:
    crate = {entity["@id"]: entity for entity in json.loads(package.read("ro-crate-metadata.json"))["@graph"]}
    assert {"results/lock.json", "results/verdicts.json", "study/study.yaml"} <= set(package.namelist())
    parts = [part["@id"] for part in crate["./"]["hasPart"]]
    unnamed = [name for name in package.namelist() if not any(name == part or name.startswith(part) for part in parts)]
    assert unnamed == ["ro-crate-metadata.json", "ro-crate-preview.html"]
    (run,) = [entity for entity in crate.values() if entity["@type"] == "CreateAction"]
    assert run["instrument"] == crate["./"]["mainEntity"] == {"@id": "study/study.yaml"}
    assert {"@id": "results/dataset/"} in run["result"]
    assert run["startTime"] == crate["./"]["datePublished"]


def test_a_package_is_byte_identical_each_time(
    finished: tuple[Path, StudyFolder], package: zipfile.ZipFile, tmp_path: Path
) -> None:
    results, folder = finished
    pack(results, folder, ROOT, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == Path(str(package.filename)).read_bytes()


def test_the_appendix_has_each_claim_with_its_runs_time_and_disk(package: zipfile.ZipFile) -> None:
    row = re.search(r"^\| `window-limits` .*$", package.read("ARTIFACT.md").decode(), flags=re.MULTILINE)
    assert row is not None
    assert "A larger window &lt;gives&gt; more." in row[0]
    assert row[0].endswith("| reproduced | 8 | 0.1 | 1 MB | `delay` |")


@pytest.mark.parametrize(("backend", "option"), [("virtual", ""), ("mininet+hosts", " --backend mininet,hosts")])
def test_the_command_of_a_package_names_a_backend_that_is_not_the_default(
    finished: tuple[Path, StudyFolder], backend: str, option: str
) -> None:
    plan = replace(read_lock(finished[0] / "lock.json"), pins={"backend": backend})
    assert command(plan) == f"./just reproduce small --profile paper --stack modern{option}"


def test_results_that_lack_a_step_or_were_changed_are_not_packed(
    finished: tuple[Path, StudyFolder], tmp_path: Path
) -> None:
    results, folder = finished
    report = results / "report.html"
    page = report.read_bytes()
    try:
        report.write_bytes(page + b" ")
        with pytest.raises(RecordError, match=r"report\.html \(changed\)"):
            pack(results, folder, ROOT, tmp_path / "no.zip")
        with pytest.raises(StudyError, match="ends in"):
            pack(results, folder, ROOT, results / "lock.json")
        report.unlink()
        with pytest.raises(RigError, match=r"the results lack report\.html"):
            pack(results, folder, ROOT, tmp_path / "no.zip")
    finally:
        report.write_bytes(page)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["figures/more.csv", "dataset/.kept", "figures/\udcff.png", "checksums/more/link"])
def test_of_results_a_package_takes_plain_visible_files_only(
    finished: tuple[Path, StudyFolder], tmp_path: Path, name: str
) -> None:
    results, folder = finished
    odd = results / name
    odd.parent.mkdir(exist_ok=True)
    odd.write_bytes(b"x") if name[-3:] in ("ept", "png") else odd.symlink_to("/etc/hostname")
    try:
        with pytest.raises(StudyError, match=r"a package (takes|has)"):
            pack(results, folder, ROOT, tmp_path / "no.zip")
    finally:
        odd.unlink()


def test_a_file_that_git_ignores_is_not_packed(tmp_path: Path) -> None:
    study = tmp_path / "experiments/small"
    for name in ("study.yaml", "tables/one.csv", "tables/one.csv.orig", "captures/all.pcap", "new.csv"):
        (study / name).parent.mkdir(parents=True, exist_ok=True)
        (study / name).write_text("x", encoding="ascii")
    (tmp_path / ".gitignore").write_text("*.orig\n/experiments/*/captures\n", encoding="ascii")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "add", "experiments/small/study.yaml"], check=True)
    assert copy_study(study, tmp_path / "taken", tmp_path) == ["new.csv", "study.yaml", "tables/one.csv"]
