# SPDX-License-Identifier: Apache-2.0
"""The kinds of figures: data, runs and drawings of each for competing flows, and faults of their keys."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pyarrow.parquet as pq
import pytest
from fabricated_results import change_json, make_results, write_study
from manifests import refused

from longfat.data.opened import OpenedStudy
from longfat.data.study_folder import StudyFolder
from longfat.figures import style
from longfat.figures.drawing import Drawing, draw, image
from longfat.figures.parts import Labels, Mark
from longfat.figures.timeseries import jain
from longfat.plan import PlannedRun
from longfat.system.identity import KernelSource

pytestmark = pytest.mark.slow

MANIFEST = """\
format: 2
study: small
title: Competing flows
paper: {authors: [A. Author], year: 2003, identifier: TR-1}
algorithms:
  standard: {cca: reno}
  highspeed: {cca: highspeed}
  scalable: {cca: scalable}
hosts: {mtu: 9000 B, txqueuelen: 100}
experiments:
  - id: pairs
    topology: {kind: dumbbell, rate: 1 Gbit/s, rtt: 30 ms, senders: 2, bottleneck_queue: {limit: 100}}
    flows:
      - {name: stream1, from: client1, to: server, algorithm: "${first}", window: "${window}", duration: 1 s}
      - {name: stream2, from: client2, to: server, algorithm: standard, window: "${window}", duration: 1 s}
    sweep: {product: {first: [standard, highspeed, scalable], window: [1 MiB, 4 MiB, 8 MiB]}}
    repetitions: 3
    probes: {capture: [stream1, stream2]}
  - id: queues
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 30 ms}
    hosts: {txqueuelen: "${txqueuelen}"}
    flows: [{name: stream1, from: client1, to: server, algorithm: standard, window: 8 MiB, duration: 1 s}]
    sweep: {product: {txqueuelen: [5, 100, 250]}}
    repetitions: 2
  - id: direct
    topology: {kind: direct, rate: 1 Gbit/s}
    flows: [{name: stream1, from: client1, to: server, algorithm: "${algorithm}", window: 8 MiB, duration: 1 s}]
    sweep: {product: {algorithm: [standard, highspeed]}}
    probes: {capture: [stream1]}
"""

FIGURES = """\
format: 2
study: small
figures:
  - {bars: stacked, title: two flows and a sum, of: "goodput[pairs, first=highspeed]", x: window in MiB, series: flow,
     names: {stream1: HighSpeed, stream2: Standard}, stacked: true, labels: {x: window (MiB), y: goodput (Mb/s)},
     paper: no number stated, marks: [{value: 945, label: 945 Mb/s}]}
  - bars: gain
    title: gain over Standard TCP
    of: goodput[pairs, flow=stream1]
    x: window in MiB
    series: first
    over: standard
    names: {highspeed: HighSpeed TCP}
    paper: no number stated
  - bars: crowd
    title: goodput at many lengths of the local queue
    of: goodput[queues]
    x: txqueuelen
    highlight: 100
    paper: no number stated
  - bars: sources
    title: goodput, with two sources and a law
    of: goodput[pairs, flow=stream1]
    x: window in MiB
    series: first
    style: lines
    published:
      - {label: first source, file: printed.csv, x: mib, y: value, series: cell}
      - {label: second source, file: printed.csv, x: mib, y: other, of: highspeed, where: {claim: b}}
    laws: [{label: its law, of: "bandwidth_delay_product(rate=${window}, rtt=8 s)"}]
    paper: no number stated
  - timeseries: panels
    title: throughput of one flow
    runs: pairs, first=standard | scalable, flow=stream1
    what: throughput
    series: first
    panels: window
    labels: {x: time (s), y: throughput (bytes/s)}
    paper: no number stated
    marks: [{value: 120000000, label: 960 Mb/s}, {value: 0.5, label: half time, axis: x}]
  - topology: network
    title: two senders and a receiver
    experiment: pairs
    paper: a drawing
  - {topology: cable, title: a cable, experiment: direct, paper: a drawing}
  - box: boxes
    title: a box for each window and algorithm
    of: goodput[pairs, flow=stream1]
    x: window in MiB
    series: first
    paper: no number stated
  - {cdf: steps, title: the distribution of the runs, of: "jain[pairs]", series: first, paper: no number stated}
  - {plane: against, title: one flow against the other, of: "goodput[pairs, flow=stream1]", series: first,
     against: "goodput[pairs, flow=stream2]", paper: no number stated, marks: [{value: 400, label: 400 Mb/s}]}
  - heat: cells
    title: the sum for each pair
    of: goodput[pairs]
    x: window in MiB
    y: first
    paper: no number stated
  - {heat: harms, title: the harm of a second flow, of: "goodput[pairs, flow=stream1]", x: window in MiB, y: first,
     alone: "goodput[direct, algorithm=standard]", paper: no number stated}
  - {heat: delays, like: harms, title: the same for a metric of which less is better, better: less,
     alone: "goodput[direct, standard]", paper: no number stated}
  - {timeseries: smoothed, title: smoothed RTT, runs: "direct, standard", what: srtt, paper: no number stated}
  - {timeseries: shares, title: fairness of two flows, runs: "pairs, first=standard, window=4 MiB", what: fairness,
     interval: 250 ms, paper: no number stated}
  - {curves: theory, title: a law on logarithmic axes, x: loss_rate, between: [0.0000001, 0.1],
     of: [{of: "sawtooth_window(increase=1, decrease=0.5)", label: standard}],
     labels: {x: loss rate, y: window (segments)}, paper: no number stated}
  - {box: lengths, title: boxes on a logarithmic axis, of: "goodput[queues]", x: txqueuelen, paper: no number stated}
"""

TABLES = """\
  - table: measured
    title: what one flow carries
    columns: [window, highspeed, gain (%)]
    rows:
      - [one, {of: "goodput[pairs, first=highspeed, window=1 MiB, flow=stream1]"}, "-"]
      - [best, {of: "max(goodput[pairs, window=8 MiB, first=f] for f in [standard, highspeed, scalable])"}, "-"]
      - ["-", "-", none]
    paper: no number stated
  - {cells: printed, title: next to the paper, file: printed.csv, paper: its table,
     of: "goodput[pairs, first=${cell}, window=${setting}]"}
"""

PRINTED = """\
claim,setting,cell,value,mib,other
a,1 MiB,standard,940,1,100
b,1 MiB,scalable,941,2,200
"""

KERNEL = KernelSource("6.12.117", True, {"tcp_mine.c": "ab" * 32}, {"0001-a.patch": "cd" * 32})


def write(folder: Path, figures: str = FIGURES) -> Path:
    study = write_study(folder, "format: 2\nstudy: small\nclaims: []\n", figures)
    (study / "study.yaml").write_text(MANIFEST, encoding="utf-8")
    (study / "printed.csv").write_text(PRINTED)
    return study


def scatter(run: PlannedRun, record: Path) -> None:
    """Let the goodput of every flow miss the truth by a part that its run decides."""

    def change(flows: list[dict[str, float]]) -> None:
        for number, flow in enumerate(flows):
            part = hashlib.sha256(f"{run.scenario} {run.repetition} {number}".encode()).digest()[0] / 255
            flow["goodput_bps"] *= 1 - 0.12 * part
            flow["bytes_received"] = round(flow["bytes_received"] * (1 - 0.12 * part))

    change_json(record / "flows.json", change)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenedStudy:
    folder = tmp_path_factory.mktemp("kinds")
    return make_results(write(folder), folder, scatter, kernel=KERNEL)


def figure_of(opened: OpenedStudy, artifact: str) -> Drawing:
    """Draw a figure without writing its files."""
    return draw(opened.sources, opened.folder.figures.figure(artifact))


def labels(drawing: Drawing) -> list[str]:
    return [text.get_text() for text in drawing.figure.legends[0].get_texts()]


def test_a_gain_is_in_percent_of_the_series_that_it_is_over(opened: OpenedStudy) -> None:
    gain = figure_of(opened, "gain")
    gains = {(row[0], row[1]): row for row in gain.data.rows}
    assert {series for _, series in gains} == {"highspeed", "scalable"}
    over = FIGURES.replace("    over: standard\n", "")
    plain = StudyFolder(write(opened.results / "plain", over)).figures.figure("gain")
    means = {(row[0], row[1]): row[3] for row in draw(opened.sources, plain).data.rows}
    for (window, series), row in gains.items():
        assert row[3] == pytest.approx(100 * (means[window, series] / means[window, "standard"] - 1))
        assert row[5] < row[3] < row[6]
    assert labels(gain) == ["HighSpeed TCP", "scalable"]


def test_the_sum_on_stacked_bars_is_that_of_the_flows_in_each_run(opened: OpenedStudy) -> None:
    rows = {(row[0], row[1]): row for row in figure_of(opened, "stacked").data.rows}
    for window in {window for window, _ in rows}:
        flows = [rows[window, name] for name in ("stream1", "stream2")]
        runs = zip(*([float(value) for value in row[-1].split()] for row in flows), strict=True)
        added = rows[window, "sum"]
        assert added[3] == pytest.approx(sum(row[3] for row in flows), rel=1e-8)
        assert [float(value) for value in added[-1].split()] == pytest.approx([sum(run) for run in runs], rel=1e-8)
        assert added[4] > 0 and added[5] < added[3] < added[6]


def behind(drawing: Drawing, opened: OpenedStudy) -> list[set[tuple[str, int]]]:
    """Scenario and repetition of the runs that each line of a figure names."""
    runs = {run.run_id[:16]: (run.scenario, run.repetition) for run in opened.dataset.runs}
    heading, *lines = drawing.data.lines
    assert heading[-1] == "run_ids"
    return [{runs[one] for one in line[-1].split()} for line in lines]


def test_each_line_of_a_figure_names_the_runs_behind_it_and_the_dataset_knows_their_kernel(opened: OpenedStudy) -> None:
    crowd = figure_of(opened, "crowd")
    column = crowd.data.columns.index("n")
    assert [len(runs) for runs in behind(crowd, opened)] == [row[column] for row in crowd.data.rows]
    tables = StudyFolder(write(opened.results / "tables", FIGURES + TABLES)).figures
    measured, printed = (draw(opened.sources, tables.figure(name)) for name in ("measured", "printed"))
    few, many, none = behind(measured, opened)
    assert few == {("pairs.first-highspeed.window-1mib", number) for number in (1, 2, 3)}
    assert {scenario.split(".")[1] for scenario, _ in many} == {"first-standard", "first-highspeed", "first-scalable"}
    assert none == set()
    assert [len(runs) for runs in behind(printed, opened)] == [6]
    runs = pq.read_table(opened.results / "dataset" / "runs.parquet").to_pylist()
    assert {(run["kernel_version"], run["kernel_patches"]) for run in runs} == {("6.12.117", "0001-a.patch tcp_mine.c")}


def test_points_of_each_source_and_each_law_are_drawn_where_their_series_is_measured(opened: OpenedStudy) -> None:
    drawing = figure_of(opened, "sources")
    axes = drawing.figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "4", "8"]
    measured = {one.get_label(): one[0].get_color() for one in axes.containers}
    hollow = [one for one in axes.lines if one.get_markerfacecolor() == "none" and len(one.get_xdata())]
    drawn = [(one.get_color(), list(one.get_xdata()), list(one.get_ydata())) for one in hollow]
    assert drawn == [
        (measured["standard"], [0], [940.0]),
        (measured["scalable"], [1], [941.0]),
        (measured["highspeed"], [1], [200.0]),
    ]
    laws = [list(one.get_ydata()) for one in axes.lines if one.get_linestyle() == "--" and len(one.get_xdata())]
    assert laws == [[mib * 2**20 / 1e6 for mib in (1, 2, 4, 8)]] * 3
    assert labels(drawing)[:3] == ["its law", "first source", "second source"]


def test_series_named_after_one_algorithm_have_its_colour_and_a_dash_each(opened: OpenedStudy) -> None:
    names = {"standard": "CUBIC, 1 Gb/s", "scalable": "CUBIC: 40 Mb/s", "highspeed": "another"}
    figure = opened.folder.figures.figure("sources").model_copy(update={"names": names, "published": ()})
    axes = draw(opened.sources, figure).figure.axes[0]
    looks = {one.get_label(): (one[0].get_color(), one[0].get_linestyle()) for one in axes.containers}
    (near, near_dash), (far, far_dash), (other, _) = (looks[name] for name in names.values())
    assert near == far == style.look("cubic")[0] != other
    assert near_dash != far_dash


def test_a_network_is_drawn_from_the_plan_with_every_interface_in_its_data(opened: OpenedStudy) -> None:
    drawing = figure_of(opened, "network")
    nodes = [(row[0], row[1], row[3]) for row in drawing.data.rows]
    assert nodes == [
        ("client1", "sender", "switch"),
        ("switch", "router", "client1"),
        ("client2", "sender", "switch"),
        ("switch", "router", "client2"),
        ("switch", "router", "server"),
        ("server", "receiver", "switch"),
    ]
    assert drawing.data.rows[4][4:9] == (1_000_000_000, 15_000, "pfifo", 100, 9000)
    texts = [text.get_text() for text in drawing.figure.axes[0].texts]
    assert {"client1", "switch", "server", "MTU 9000"} <= set(texts)
    assert "stream2: client2 to server, standard" in texts


def test_no_text_of_a_network_lies_on_another(opened: OpenedStudy) -> None:
    for artifact in ("network", "cable"):
        figure = figure_of(opened, artifact).figure
        figure.canvas.draw()
        boxes = [text.get_window_extent() for text in figure.axes[0].texts]
        assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])


def test_without_a_valid_run_every_kind_but_a_network_and_a_law_says_so(tmp_path: Path) -> None:
    opened = make_results(write(tmp_path), tmp_path, omit=lambda run: True)
    for figure in opened.folder.figures.figures:
        drawing = figure_of(opened, figure.artifact)
        empty = figure.kind not in ("topology", "curves")
        assert (drawing.data.rows == ()) is empty
        assert ("no run with this value" in [text.get_text() for text in drawing.figure.axes[0].texts]) is empty


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("study: small", "study: large", "study"),
        ("over: standard", "over: cubic", "figures[1].over"),
        ("names: {highspeed:", "names: {hihgspeed:", "figures[1].names.hihgspeed"),
        ("of: goodput[queues]", "of: linearity[queues]", "figures[2].of"),
        ("highlight: 100", "highlight: 101", "figures[2].highlight"),
        ("x: txqueuelen\n", "x: txqueuelen\n    names: {a: b}\n", "figures[2].names"),
        ("    style: lines\n", "", "figures[3].style"),
        ("y: value", "y: values", "figures[3].published[0].file"),
        ("y: other", "y: setting", "figures[3].published[1].file"),
        ("series: cell}", "series: cell, of: standard}", "figures[3].published[0].of"),
        ("rate=${window}", "rat=${window}", "figures[3].laws[0].of"),
        (", flow=stream1\n    what", "\n    what", "figures[4].runs"),
        ("runs: pairs, first=standard |", "runs: pair, first=standard |", "figures[4].runs"),
        ("    paper: a drawing\n", "", "figures[5].topology"),
        ("paper: a drawing", "hypothesis: high\n    paper: a drawing", "figures[5].hypothesis"),
        ("receiver\n    experiment: pairs", "receiver\n    experiment: pair", "figures[5].experiment"),
        ("window in MiB\n    series: first\n    paper", "windw\n    series: first\n    paper", "figures[7].x"),
        ("window in MiB\n    series: first\n    paper", "window in ms\n    series: first\n    paper", "figures[7].x"),
        ("goodput[pairs, flow=stream2]", "goodput[queues]", "figures[9].against"),
        ("    y: first\n    paper", "    y: frist\n    paper", "figures[10].y"),
        ("    of: goodput[pairs]\n", "    of: goodput[pairs]\n    series: first\n", "figures[10].series"),
        ("    y: first\n    paper", "    y: first\n    better: less\n    paper", "figures[10].better"),
        ("goodput[direct, algorithm=standard]", "goodput[direct, window=1 MiB]", "figures[11].alone"),
        ("goodput[direct, standard]", "jain[direct]", "figures[12].alone"),
        ("what: srtt", "what: fairness", "figures[13].what"),
        ("stream2: Standard}", "stream2: HighSpeed}", "figures[0].names.stream2"),
        ("label: standard}]", "label: s}, {of: 'sawtooth_window(increase=2)', label: s}]", "figures[15].of[1].label"),
    ],
)
def test_a_figure_of_any_kind_must_agree_with_the_study(tmp_path: Path, old: str, new: str, key: str) -> None:
    assert old in FIGURES
    problems = refused(lambda: StudyFolder(write(tmp_path, FIGURES.replace(old, new, 1))).figures)
    assert key in {problem.key for problem in problems}
    assert all(problem.line for problem in problems)


@pytest.mark.parametrize("artifact", ["boxes", "steps", "against", "cells"])
def test_figures_of_runs_have_a_row_for_each_valid_run(opened: OpenedStudy, artifact: str) -> None:
    data = figure_of(opened, artifact).data
    assert len(data.rows) == 3 * 3 * 3  # algorithms, windows, repetitions
    assert len({row[2] for row in data.rows}) == len(data.rows)


@pytest.mark.parametrize(
    ("artifact", "harm"),
    [("harms", lambda value, alone: (alone - value) / alone), ("delays", lambda value, alone: (value - alone) / value)],
)
def test_harm_is_relative_to_the_larger_metric(
    opened: OpenedStudy, artifact: str, harm: Callable[[float, float], float]
) -> None:
    data = figure_of(opened, artifact).data
    assert len(data.rows) == 3 * 3 * 3 and data.columns[-3:] == ("goodput", "alone", "harm")
    assert all(row[-1] == pytest.approx(harm(*row[-3:-1])) for row in data.rows)


def test_each_cell_of_a_heat_map_opens_its_runs(opened: OpenedStudy) -> None:
    drawing = figure_of(opened, "cells")
    svg = image(drawing.figure, "svg").decode()
    for first, window in itertools.product(("standard", "highspeed", "scalable"), (1, 4, 8)):
        held = {"window": window << 20, "first": first}
        own = [row[2][:12] for row in drawing.data.rows if row[3:5] == tuple(held.values())]
        address = urlencode({"explore": "pairs", **held, "runs": ",".join(own)}, safe=",")
        assert svg.count(address.replace("&", "&amp;")) == 1


def test_boxes_stand_at_the_values_of_a_numeric_factor(opened: OpenedStudy) -> None:
    (axes,) = figure_of(opened, "boxes").figure.axes
    middles = sorted({round(float(line.get_xdata().mean()), 3) for line in axes.lines if len(line.get_xdata()) == 2})
    near = [min((1.0, 4.0, 8.0), key=lambda mib: abs(mib - middle)) for middle in middles]
    assert sorted(set(near)) == [1.0, 4.0, 8.0] and max(map(abs, np.subtract(near, middles))) < 1.5


def test_an_ellipse_needs_three_runs_and_has_the_colour_of_its_series(opened: OpenedStudy) -> None:
    drawing = figure_of(opened, "against")
    (axes,) = drawing.figure.axes
    assert len(axes.patches) == 3
    assert labels(drawing)[:3] == ["standard", "highspeed", "scalable"]


def test_a_figure_for_a_paper_is_a_column_wide_and_embeds_its_letters(opened: OpenedStudy) -> None:
    drawing = draw(opened.sources, opened.folder.figures.figure("steps"), paper=True)
    assert drawing.figure.get_size_inches()[0] == pytest.approx(3.3)
    assert {label.get_fontsize() for label in drawing.figure.axes[0].get_xticklabels()} == {8.0}
    assert b"/FontFile2" in image(drawing.figure, "pdf")


@pytest.mark.parametrize("paper", [False, True])
def test_every_text_of_a_figure_is_on_its_canvas_however_long(opened: OpenedStudy, paper: bool) -> None:
    words = "a text with more words than any part of the figure has room for in one line"
    for figure in opened.folder.figures.figures:
        long = {
            "title": words,
            "labels": Labels(x=words, y=words),
            "names": dict.fromkeys(("standard", "highspeed", "scalable", "stream1", "stream2"), words),
            "marks": [Mark(value=1, label=words), Mark(value=1, label=words, axis="x")],
        }
        keys = type(figure).model_fields.keys() & long.keys()
        canvas = draw(opened.sources, figure.model_copy(update={key: long[key] for key in keys}), paper=paper).figure
        canvas.canvas.draw()
        left, bottom, right, top = canvas.get_tightbbox().extents
        width, height = canvas.get_size_inches()
        assert min(left, bottom, width - right, height - top) > -0.02, figure.artifact


@pytest.mark.parametrize(("artifact", "power"), [("theory", "10⁻⁴"), ("lengths", "10²")])
def test_powers_of_ten_at_an_axis_are_plain_letters(opened: OpenedStudy, artifact: str, power: str) -> None:
    drawn = image(figure_of(opened, artifact).figure, "svg").decode()
    assert f">{power}</text>" in drawn
    assert "math" not in drawn


def test_fairness_over_time_is_jains_index_of_the_rates_in_each_interval(opened: OpenedStudy) -> None:
    data = figure_of(opened, "shares").data
    assert data.columns == ("scenario", "repetition", "run_id", "t_s", "jain")
    times, values = zip(*(row[-2:] for row in data.rows if row[1] == 1), strict=True)
    assert np.allclose(np.diff(times), 0.25)
    assert all(0.5 <= value <= 1 for value in values)
    assert jain(np.array([[3.0, 1.0], [2.0, 2.0], [5.0, 0.0]])).tolist() == [0.8, 1, 0.5]
