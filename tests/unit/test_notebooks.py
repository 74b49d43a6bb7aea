# SPDX-License-Identifier: Apache-2.0
"""The notebooks of the studies: what their cells ask of the data is there, with runs and without."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fake_backend import FakeBackend
from matplotlib import pyplot

from longfat.data.opened import RESULTS_VARIABLE, STUDY_VARIABLE
from longfat.dataset.build import build_dataset
from longfat.plan import build_plan, write_lock
from longfat.relations.judge import judge
from longfat.studies import StudyFolder

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "analysis/notebooks").glob("[!_]*.ipynb"))
DRAWN = re.compile(r"study\.(show|show_others|verdicts)\([^)]*\)")


def cells(notebook: Path, kind: str) -> list[str]:
    document = json.loads(notebook.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == kind]


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
    for cell in cells(notebook, "code"):
        if not DRAWN.fullmatch(cell):
            exec(cell, names)
    pyplot.close("all")
    assert names["study"].frame("runs")["status"].unique().to_list() == ["missing"]
    assert names["verdicts"].height == len(folder.claims)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_asks_shows_and_finds(notebook: Path) -> None:
    text = cells(notebook, "markdown")
    assert text[0].splitlines()[0].endswith("?")
    assert sum(one.startswith("**Finding.**") for one in text) >= 2
    assert sum(bool(DRAWN.fullmatch(one)) for one in cells(notebook, "code")) >= 5
