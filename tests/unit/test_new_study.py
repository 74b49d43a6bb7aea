# SPDX-License-Identifier: Apache-2.0
"""The skeleton of a new study: it is sound, runs as it is, and never written over another."""

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from longfat.cli import app
from longfat.data.study_folder import StudyFolder
from longfat.study.load import load_study
from longfat.study.schema.source import read_source
from longfat.study.study_schema import json_schema

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def test_a_new_study_is_sound_without_a_warning(root: Path) -> None:
    status, output = call("new", "mine")
    assert status == 0
    assert "then `longfat reproduce mine`" in output
    path = root / "experiments" / "mine" / "study.yaml"
    study = load_study(path)
    assert (study.name, [swept.id for swept in study.experiments]) == ("mine", ["alone"])
    assert StudyFolder(path.parent).warnings == ()
    assert Draft202012Validator(json_schema()).is_valid(read_source(path).data)
    assert call("check", "mine") == (0, "mine: 1 experiment, 1 hypothesis, 1 figure, no problems\n")


def test_a_new_study_is_reproduced_as_it_is(root: Path) -> None:
    call("new", "mine")
    status, output = call("reproduce", "mine", "--backend", "fake")
    assert status == 0
    assert "6 runs valid, 0 invalid, 0 failed, 0 missing" in output
    assert "1 hypothesis:" in output
    report = (root / "results" / "mine" / "report.html").read_text(encoding="utf-8")
    assert "Below this line the path is not full." in report
    assert len(re.findall(r'<div class="drawn">\s*<svg', report)) == 1


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_a_new_study_can_be_planned_at_once(profile: str) -> None:
    call("new", "mine")
    status, output = call("plan", "mine", "--profile", profile)
    assert status == 0
    assert "algorithm: reno, cubic" in output


def test_a_study_that_is_there_is_not_written_over(root: Path) -> None:
    call("new", "mine")
    path = root / "experiments" / "mine" / "study.yaml"
    path.write_text("mine", encoding="utf-8")
    status, output = call("new", "mine")
    assert status == 2
    assert "there is a study 'mine'" in output
    assert path.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["Mine", "../mine", "", "a b"])
def test_a_name_that_is_none_makes_nothing(root: Path, name: str) -> None:
    status, output = call("new", name)
    assert status == 2
    assert "is not a valid name of a study" in output
    assert list(root.iterdir()) == []


def followed_tutorial(root: Path) -> tuple[list[str], str]:
    """Do what the tutorial says; the files that it adds to, and what `check` prints at the end."""
    page = (DOCS / "own-study.md").read_text(encoding="utf-8")
    call("new", "buffers")
    folder = root / "experiments" / "buffers"
    added, printed = [], ""
    for block in re.findall(r"(?s)```yaml\n(.*?)```", page):
        place = re.match(r"# (\S+), at the end\n", block)
        if place is None:
            assert block in (folder / "study.yaml").read_text(encoding="utf-8"), "what is shown is not the skeleton"
            continue
        with (folder / place[1]).open("a", encoding="utf-8") as file:
            file.write(block)
        status, printed = call("check", "buffers")
        assert status == 0, printed
        added.append(place[1])
    assert printed in page
    return added, printed


def test_the_tutorial_shows_the_skeleton_and_its_additions_are_sound(root: Path) -> None:
    added, printed = followed_tutorial(root)
    assert added == ["study.yaml", "claims.yaml", "figures.yaml"]
    assert printed == "buffers: 2 experiments, 2 hypotheses, 3 figures, no problems\n"


def test_the_tutorial_names_the_packets_of_each_depth_and_ends_with_all_its_figures(root: Path) -> None:
    followed_tutorial(root)
    *_, depths = load_study(root / "experiments" / "buffers" / "study.yaml").experiments
    limits = [point.experiment.topology.model_dump()["bottleneck_queue"]["limit"] for point in depths.points]
    assert limits == [42, 104, 208, 417] * 2
    status, output = call("reproduce", "buffers", "--backend", "fake")
    assert status == 0
    assert "30 runs valid, 0 invalid, 0 failed, 0 missing" in output
    drawn = {path.stem for path in (root / "results" / "buffers" / "figures").glob("*.png")}
    assert drawn == {"window", "filled", "windows"}
