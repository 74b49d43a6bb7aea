# SPDX-License-Identifier: Apache-2.0
"""Figures: their data, their bytes, and the notebook that draws them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from fabricated_results import FIGURES, judge_study, write_results, write_study

from longfat.data.opened import OpenedStudy
from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import build_dataset
from longfat.dataset.load import Series
from longfat.figures.bars import Bars
from longfat.figures.drawing import draw, image
from longfat.figures.timeseries import envelope
from longfat.report.notebook import run_notebook
from longfat.system.errors import StudyError


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenedStudy:
    folder = tmp_path_factory.mktemp("figures")
    study = write_study(folder)
    write_results(study, folder)
    build_dataset(folder)
    judge_study(folder, study)
    return OpenedStudy(folder, StudyFolder(study))


def test_bars_carry_mean_interval_and_n(opened: OpenedStudy) -> None:
    spec = opened.folder.figures.figure("fig-1")
    assert isinstance(spec, Bars)
    drawing = draw(opened.sources, spec)
    assert drawing.data.columns == (
        "window", "algorithm", "n", "mean", "sd", "interval_low", "interval_high", "values"
    )  # fmt: skip
    assert [row[:3] for row in drawing.data.rows] == [
        (size << 20, name, 2) for name in ("standard", "highspeed") for size in (1, 8)
    ]
    axes = drawing.figure.axes[0]
    assert [patch.get_height() for patch in axes.patches] == [row[3] for row in drawing.data.rows]
    dots = [value for line in axes.lines if line.get_marker() == "o" for value in line.get_ydata()]
    assert dots == [float(value) for row in drawing.data.rows for value in row[-1].split()]
    assert len(dots) == 8


def test_an_envelope_keeps_the_extremes_and_the_order() -> None:
    t_us = np.arange(100_000, dtype=float)
    values = np.where(t_us == 54_321, 1e6, np.sin(t_us))
    thin = envelope(Series(t_us, values), 100)
    assert len(thin.t_us) <= 400
    assert thin.values.max() == 1e6
    assert (np.diff(thin.t_us) > 0).all()
    assert (thin.t_us[0], thin.t_us[-1]) == (0, 99_999)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("timeseries: fig-2", "curve: fig-2", "figures[1]"),
        ("x: window in", "x: windwo in", "figures[0].x"),
        ("timeseries: fig-2", "timeseries: fig-1", "figures[1].timeseries"),
        ("    paper: no number stated\n", "", "figures[1].timeseries"),
        ("paper: no", "hypothesis: high\n    paper: no", "figures[1].hypothesis"),
        ("of: goodput", "of: linearity", "figures[0].of"),
    ],
)
def test_a_faulty_figure_is_refused_with_its_key(tmp_path: Path, old: str, new: str, key: str) -> None:
    assert old in FIGURES
    study = write_study(tmp_path, figures=FIGURES.replace(old, new))
    with pytest.raises(StudyError) as caught:
        _ = StudyFolder(study).figures
    assert key in {problem.key for problem in caught.value.problems}


def notebook(folder: Path, *code: str) -> Path:
    empty = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**empty, "id": f"c{n}", "source": text} for n, text in enumerate(code)]
    path = folder / "small.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_a_notebook_is_executed_on_the_results_and_kept_with_its_outputs(opened: OpenedStudy, tmp_path: Path) -> None:
    opening = 'from longfat.data import open_study\nstudy = open_study("small")'
    source = notebook(tmp_path, opening, 'study.show("fig-1")', "study.verdicts()", "study.show_others()")
    before = source.read_bytes()
    done = run_notebook(source, opened.results, opened.folder.path)
    assert done == opened.results / "notebook.ipynb"
    outputs = [cell["outputs"] for cell in json.loads(done.read_text(encoding="utf-8"))["cells"]]
    assert "image/png" in outputs[1][0]["data"]
    assert "window-limits  reproduced" in "".join(outputs[2][0]["data"]["text/plain"])
    assert 'src="figures/fig-2.png"' in "".join(outputs[3][0]["data"]["text/html"])
    assert source.read_bytes() == before
    assert (opened.results / "figures" / "fig-1.svg").exists()


@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_a_figure_has_the_same_bytes_under_any_matplotlibrc(opened: OpenedStudy, kind: str) -> None:
    own = {"font.family": ["serif"], "savefig.bbox": "tight", "axes.facecolor": "red", "svg.fonttype": "path"}
    plain = image(opened.show("fig-1").figure, kind)
    with matplotlib.rc_context({**own, "text.usetex": True, "savefig.transparent": True, "lines.linewidth": 9}):
        assert image(opened.show("fig-1").figure, kind) == plain


@pytest.mark.parametrize(
    ("number", "in_a_loop"), [(signal.SIGINT, False), (signal.SIGTERM, True)], ids=["from a command", "from asyncio"]
)
def test_a_notebook_is_interrupted_as_its_caller_is_and_leaves_no_kernel(
    opened: OpenedStudy, tmp_path: Path, number: signal.Signals, in_a_loop: bool
) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    async def drawn() -> None:
        run_notebook(endless, tmp_path / "results", opened.folder.path)

    (tmp_path / "results").mkdir()
    cell = f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
    endless = notebook(tmp_path, f"{cell}os.kill(os.getppid(), {number.value})\ntime.sleep(60)")
    former = signal.signal(number, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            if in_a_loop:
                asyncio.run(drawn())
            else:
                run_notebook(endless, tmp_path / "results", opened.folder.path)
        assert signal.getsignal(number) is interrupt
    finally:
        signal.signal(number, former)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text(encoding="ascii")), 0)
    assert list((tmp_path / "results").iterdir()) == []
