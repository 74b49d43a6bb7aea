# SPDX-License-Identifier: Apache-2.0
"""Figures: their data, and their bytes."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from fabricated_results import make_results, write_study
from matplotlib.figure import Figure as Canvas

from longfat.data.opened import OpenedStudy, draw_all
from longfat.dataset.load import Series
from longfat.figures.bars import Bars
from longfat.figures.drawing import draw, image
from longfat.figures.parts import FigureData
from longfat.figures.timeseries import envelope


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenedStudy:
    folder = tmp_path_factory.mktemp("figures")
    return make_results(write_study(folder, drawn=True), folder, judged=True)


def test_bars_carry_mean_interval_and_n(opened: OpenedStudy) -> None:
    spec = opened.folder.figures.figure("fig-1")
    assert isinstance(spec, Bars)
    drawing = draw(opened.sources, spec)
    assert drawing.data.columns == (
        "window", "algorithm", "n", "mean", "sd", "interval_low", "interval_high", "values"
    )  # fmt: skip
    assert [(row[0], row[1], row[2]) for row in drawing.data.rows] == [
        (1 << 20, "standard", 2),
        (8 << 20, "standard", 2),
        (1 << 20, "highspeed", 2),
        (8 << 20, "highspeed", 2),
    ]
    axes = drawing.figure.axes[0]
    assert [patch.get_height() for patch in axes.patches] == [row[3] for row in drawing.data.rows]
    note = drawing.figure.legends[0].get_title().get_text()
    assert note == "goodput: mean, n = 2, each run a dot"
    dots = [value for line in axes.lines if line.get_marker() == "o" for value in line.get_ydata()]
    assert dots == [float(value) for row in drawing.data.rows for value in row[-1].split()]
    assert len(dots) == 8
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "8"]
    smaller, canvas = drawing.data.rows[::2], Canvas()
    spec.draw(canvas, FigureData(drawing.data.columns, smaller), opened.sources)
    assert canvas.legends[0].get_title().get_text().endswith("; without a value: 8")


def test_a_bar_over_several_points_names_the_factors_that_it_pools(opened: OpenedStudy) -> None:
    spec = opened.folder.figures.figure("fig-1")
    assert isinstance(spec, Bars)
    drawing = draw(opened.sources, spec.model_copy(update={"series": None}))
    note = drawing.figure.legends[0].get_title().get_text()
    assert note == "goodput, mean over algorithm: mean, n = 2, each repetition a dot"


def test_files_of_a_former_figure_go_and_other_files_stay(opened: OpenedStudy) -> None:
    figures = opened.results / "figures"
    opened.show("fig-1")
    for path in [*figures.glob("fig-1.*")]:
        path.rename(path.with_stem("fig-0"))
    (figures / "own.svg").touch()
    drawn = draw_all(opened.results, opened.folder)
    assert {path.stem for path in figures.iterdir()} == {*drawn, "own"}


def test_an_envelope_keeps_the_extremes_and_the_order() -> None:
    t_us = np.arange(100_000, dtype=float)
    values = np.where(t_us == 54_321, 1e6, np.sin(t_us))
    thin = envelope(Series(t_us, values), 100)
    assert len(thin.t_us) <= 400
    assert thin.values.max() == 1e6
    assert (np.diff(thin.t_us) > 0).all()
    assert (thin.t_us[0], thin.t_us[-1]) == (0, 99_999)


@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_a_figure_has_the_same_bytes_under_any_matplotlibrc(opened: OpenedStudy, kind: str) -> None:
    own = {"font.family": ["serif"], "savefig.bbox": "tight", "axes.facecolor": "red", "svg.fonttype": "path"}
    plain = image(opened.show("fig-1").figure, kind)
    with matplotlib.rc_context({**own, "text.usetex": True, "savefig.transparent": True, "lines.linewidth": 9}):
        assert image(opened.show("fig-1").figure, kind) == plain
