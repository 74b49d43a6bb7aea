# SPDX-License-Identifier: Apache-2.0
"""The skeleton of a new study: it is sound, runs as it is, and never written over another."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longfat.cli import app
from longfat.data.study_folder import StudyFolder
from longfat.study.load import load_study

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
    assert call("new", "mine")[0] == 0
    path = root / "experiments" / "mine" / "study.yaml"
    study = load_study(path)
    assert (study.name, [swept.id for swept in study.experiments]) == ("mine", ["alone"])
    assert StudyFolder(path.parent).warnings == ()
    assert call("check", "mine")[0] == 0
    before = path.read_bytes()
    assert call("new", "mine")[0] == 2
    assert path.read_bytes() == before, "a study that is there is not written over"


@pytest.mark.parametrize("name", ["Mine", "../mine", "", "a b"])
def test_an_invalid_name_makes_no_folder(root: Path, name: str) -> None:
    assert call("new", name)[0] == 2
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


def test_the_tutorial_shows_the_skeleton_and_its_additions_are_sound_and_run(root: Path) -> None:
    added, _ = followed_tutorial(root)
    assert added == ["study.yaml", "claims.yaml", "figures.yaml"]
    *_, depths = load_study(root / "experiments" / "buffers" / "study.yaml").experiments
    limits = [point.experiment.topology.model_dump()["bottleneck_queue"]["limit"] for point in depths.points]
    assert limits == [42, 104, 208, 417] * 2
    status, output = call("reproduce", "buffers", "--backend", "fake")
    assert status == 0
    assert "30 runs valid, 0 invalid, 0 failed, 0 missing" in output
