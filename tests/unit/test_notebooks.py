# SPDX-License-Identifier: Apache-2.0
"""The notebooks of the studies work before the first run, and are committed without outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fake_backend import FakeBackend
from matplotlib import pyplot

from longfat.data.opened import RESULTS_VARIABLE, STUDY_VARIABLE
from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import build_dataset
from longfat.plan import build_plan, write_lock
from longfat.relations.judge import judge

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "analysis/notebooks").glob("[!_]*.ipynb"))
DRAWN = re.compile(r"study\.(show|show_others|verdicts)\([^)]*\)")


def code(notebook: Path) -> list[Any]:
    document = json.loads(notebook.read_text(encoding="utf-8"))
    return [cell for cell in document["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", sorted(ROOT.glob("analysis/notebooks/*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code(path))


@pytest.mark.filterwarnings("ignore:No artists with labels")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_explorations_of_a_study_work_before_its_first_run(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = StudyFolder(ROOT / "experiments" / notebook.stem)
    write_lock(build_plan(folder.study, profile="smoke", pins=FakeBackend().pins()), tmp_path / "lock.json")
    build_dataset(tmp_path)
    judge(tmp_path, folder.study, folder.claims, folder.judged_by)
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path))
    monkeypatch.setenv(STUDY_VARIABLE, str(folder.path))
    names: dict[str, Any] = {}
    for cell in code(notebook):
        if not DRAWN.fullmatch(text := "".join(cell["source"])):
            exec(text, names)
    pyplot.close("all")
    assert names["study"].frame("runs")["status"].unique().to_list() == ["missing"]
    assert names["verdicts"].height == len(folder.claims)
