# SPDX-License-Identifier: Apache-2.0
"""The kinds of figures: what each draws of a study with competing flows, and what it refuses."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fabricated_results import bytes_of, change_json, write_results, write_study

from longfat.data.opened import OpenedStudy, draw_all
from longfat.dataset.build import build_dataset
from longfat.errors import StudyError
from longfat.figures import style
from longfat.figures.drawing import Drawing, draw
from longfat.identity import KernelSource
from longfat.plan import PlannedRun
from longfat.studies import StudyFolder

MANIFEST = """\
format: 2
study: small
title: Competing flows
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
    flows:
      - {name: stream1, from: client1, to: server, algorithm: standard, window: 8 MiB, duration: 1 s}
    sweep:
      product: {txqueuelen: [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100, 250]}
    repetitions: 2
  - id: direct
    topology: {kind: direct, rate: 1 Gbit/s}
    flows:
      - {name: stream1, from: client1, to: server, algorithm: "${algorithm}", window: 8 MiB, duration: 1 s}
    sweep: {product: {algorithm: [standard, highspeed]}}
    probes: {capture: [stream1]}
"""

FIGURES = """\
format: 2
study: small
figures:
  - bars: stacked
    title: two flows and their sum
    of: goodput[pairs, first=highspeed]
    x: window in MiB
    series: flow
    names: {stream1: HighSpeed, stream2: Standard}
    stacked: true
    labels: {x: window (MiB), y: goodput (Mb/s)}
    paper: no number stated
    marks: [{value: 945, label: 945 Mb/s}]
  - bars: next
    title: two flows next to each other
    of: goodput[pairs, first=scalable]
    x: window in MiB
    series: flow
    labels: {x: window (MiB), y: goodput (Mb/s)}
    paper: no number stated
  - bars: gain
    title: gain over Standard TCP
    of: goodput[pairs, flow=stream1]
    x: window in MiB
    series: first
    over: standard
    names: {highspeed: HighSpeed TCP}
    labels: {x: window (MiB), y: gain over Standard (%)}
    paper: no number stated
  - bars: crowd
    title: goodput at many lengths of the local queue
    of: goodput[queues]
    x: txqueuelen
    highlight: 100
    labels: {x: txqueuelen (packets), y: goodput (Mb/s)}
    paper: no number stated
  - timeseries: curves
    title: outstanding data of both flows
    runs: pairs, first=highspeed, window=8 MiB
    flows: {stream1: HighSpeed TCP, stream2: Standard TCP}
    labels: {x: time (s), y: outstanding data (bytes)}
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
  - topology: path
    title: one sender and a receiver
    experiment: queues
    paper: a drawing
  - topology: cable
    title: a cable
    experiment: direct
    paper: a drawing
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
  - cells: printed
    title: next to the paper
    file: printed.csv
    of: goodput[pairs, first=${cell}, window=${setting}]
    paper: its table
"""

KERNEL = KernelSource("6.12.117", True, {"tcp_mine.c": "ab" * 32}, {"0001-a.patch": "cd" * 32})


def write(folder: Path, figures: str = FIGURES) -> Path:
    study = write_study(folder, "format: 2\nstudy: small\nclaims: []\n", figures)
    (study / "study.yaml").write_text(MANIFEST, encoding="utf-8")
    (study / "printed.csv").write_text("claim,setting,cell,value\na,1 MiB,standard,940\nb,1 MiB,scalable,941\n")
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
    study = write(folder)
    write_results(study, folder, scatter, kernel=KERNEL)
    build_dataset(folder)
    return OpenedStudy(folder, StudyFolder(study))


def note(drawing: Drawing) -> str:
    return drawing.figure.legends[0].get_title().get_text()


def labels(drawing: Drawing) -> list[str]:
    return [text.get_text() for text in drawing.figure.legends[0].get_texts()]


def test_flows_lie_on_each_other_and_their_sum_has_a_spread_of_its_own(opened: OpenedStudy) -> None:
    drawing = opened.show("stacked")
    assert drawing.data.columns[:4] == ("window", "flow", "n", "mean")
    rows = {(row[0] >> 20, row[1]): row for row in drawing.data.rows}
    assert sorted({flow for _, flow in rows}) == ["stream1", "stream2", "sum"]
    for window in (1, 4, 8):
        lower, upper, total = (rows[window, flow] for flow in ("stream1", "stream2", "sum"))
        assert total[3] == pytest.approx(lower[3] + upper[3])
        assert total[4] != pytest.approx(lower[4] + upper[4])
    tops = {round(patch.get_y() + patch.get_height(), 3) for patch in drawing.figure.axes[0].patches}
    assert tops >= {round(rows[window, "sum"][3], 3) for window in (1, 4, 8)}
    assert labels(drawing) == ["HighSpeed", "Standard", "stated by the paper"]
    assert note(drawing).startswith(
        "goodput: mean, n = 3, each run a dot; dots: of the flow at the bottom and of the sum"
    )


def test_a_flow_called_by_its_algorithm_has_its_colour_and_two_flows_never_the_same() -> None:
    assert style.flow_colours(["HighSpeed TCP", "Standard"]) == [style.look("highspeed")[0], style.look("standard")[0]]
    for names in (["Standard", "standard TCP"], ["stream1", "stream2"], ["stream1", "Standard"]):
        assert len(set(style.flow_colours(names))) == 2


def test_a_gain_is_in_percent_of_the_series_that_it_is_over(opened: OpenedStudy) -> None:
    gains = {(row[0], row[1]): row for row in opened.show("gain").data.rows}
    assert {series for _, series in gains} == {"highspeed", "scalable"}
    over = FIGURES.replace("    over: standard\n", "")
    plain = StudyFolder(write(opened.results / "plain", over)).figures.figure("gain")
    means = {(row[0], row[1]): row[3] for row in draw(opened.sources, plain).data.rows}
    for (window, series), row in gains.items():
        assert row[3] == pytest.approx(100 * (means[window, series] / means[window, "standard"] - 1))
        assert row[5] < row[3] < row[6]
    assert labels(opened.show("gain")) == ["HighSpeed TCP", "scalable"]
    assert note(opened.show("gain")) == "gain in goodput over standard; n = 3; whiskers: 95 % interval"


def behind(drawing: Drawing, opened: OpenedStudy) -> list[set[tuple[str, int]]]:
    """Scenario and repetition of the runs that each line of a figure names."""
    runs = {run.run_id[:16]: (run.scenario, run.repetition) for run in opened.dataset.runs}
    heading, *lines = drawing.data.lines
    assert heading[-1] == "run_ids"
    return [{runs[one] for one in line[-1].split()} for line in lines]


def test_each_line_of_a_figure_names_the_runs_behind_it_and_the_dataset_knows_their_kernel(opened: OpenedStudy) -> None:
    for artifact in ("next", "crowd"):
        drawing = opened.show(artifact)
        column = drawing.data.columns.index("n")
        assert [len(runs) for runs in behind(drawing, opened)] == [row[column] for row in drawing.data.rows]
    tables = StudyFolder(write(opened.results / "tables", FIGURES + TABLES)).figures
    measured, printed = (draw(opened.sources, tables.figure(name)) for name in ("measured", "printed"))
    few, many, none = behind(measured, opened)
    assert few == {("pairs.first-highspeed.window-1mib", number) for number in (1, 2, 3)}
    assert {scenario.split(".")[1] for scenario, _ in many} == {"first-standard", "first-highspeed", "first-scalable"}
    assert none == set()
    assert [len(runs) for runs in behind(printed, opened)] == [6]
    runs = pq.read_table(opened.results / "dataset" / "runs.parquet").to_pylist()
    assert {(run["kernel_version"], run["kernel_patches"]) for run in runs} == {("6.12.117", "0001-a.patch tcp_mine.c")}


def test_many_values_of_x_have_few_labels_and_the_highlighted_one_stands_out(opened: OpenedStudy) -> None:
    drawing = opened.show("crowd")
    assert drawing.data.columns[:2] == ("txqueuelen", "n")
    axes = drawing.figure.axes[0]
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert len(ticks) <= 20
    assert "100" in ticks
    colours = [patch.get_facecolor() for patch in axes.patches]
    assert [colours.count(colour) for colour in (colours[-2], colours[0])] == [1, 20]


def test_curves_of_two_flows_are_of_one_run_and_the_data_of_all(opened: OpenedStudy) -> None:
    drawing = opened.show("curves")
    assert drawing.data.columns == ("scenario", "repetition", "run_id", "flow", "t_s", "outstanding_bytes")
    assert {row[1] for row in drawing.data.rows} == {1, 2, 3}
    assert len(drawing.figure.axes[0].lines) == 2
    assert labels(drawing) == ["HighSpeed TCP", "Standard TCP"]
    assert note(drawing) == "each curve a single run: repetition 1, of 3 that are valid"


def test_panels_share_their_scale_and_have_a_curve_for_each_value(opened: OpenedStudy) -> None:
    drawing = opened.show("panels")
    assert drawing.data.columns[3:] == ("window", "first", "flow", "t_s", "throughput_bytes_per_s")
    panels = drawing.figure.axes
    assert [panel.get_title("left") for panel in panels] == [f"window = {size << 20}" for size in (1, 4, 8)]
    assert len({panel.get_ylim() for panel in panels}) == 1
    assert panels[0].get_ylim()[1] > 120_000_000
    assert labels(drawing) == ["standard", "scalable", "stated by the paper"]
    assert [text.get_text() for panel in panels for text in panel.texts].count("960 Mb/s") == 1


def test_a_network_is_drawn_from_the_plan_with_every_interface_in_its_data(opened: OpenedStudy) -> None:
    drawing = opened.show("network")
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


def test_a_number_that_the_sweep_varies_is_given_from_what_to_what(opened: OpenedStudy) -> None:
    drawing = opened.show("path")
    assert drawing.data.rows[0][7] == "5 to 250"
    assert any("pfifo of 5 to 250 packets" in text.get_text() for text in drawing.figure.axes[0].texts)


def test_no_text_of_a_network_lies_on_another(opened: OpenedStudy) -> None:
    for artifact in ("network", "path", "cable"):
        figure = opened.show(artifact).figure
        figure.canvas.draw()
        boxes = [text.get_window_extent() for text in figure.axes[0].texts]
        assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])


def test_equal_drawings_of_every_kind_are_equal_bytes(opened: OpenedStudy) -> None:
    draw_all(opened.results, opened.folder)
    first = bytes_of(opened.results / "figures")
    assert len(first) == 4 * len(opened.folder.figures.figures)
    draw_all(opened.results, opened.folder)
    assert bytes_of(opened.results / "figures") == first
    rows = list(csv.reader(first["crowd.csv"].decode().splitlines()))
    assert rows[0] == ["txqueuelen", "n", "mean", "sd", "interval_low", "interval_high", "values", "run_ids"]


def test_without_a_valid_run_every_kind_but_a_network_says_so(tmp_path: Path) -> None:
    study = write(tmp_path)
    write_results(study, tmp_path, omit=lambda run: True)
    build_dataset(tmp_path)
    opened = OpenedStudy(tmp_path, StudyFolder(study))
    for figure in opened.folder.figures.figures:
        drawing = opened.show(figure.artifact)
        empty = figure.kind != "topology"
        assert (drawing.data.rows == ()) is empty
        assert ("no valid run" in [text.get_text() for text in drawing.figure.axes[0].texts]) is empty


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("series: flow\n    labels", "series: flwo\n    labels", "figures[1].series"),
        ("names: {stream1: High", "names: {strem1: High", "figures[0].names.strem1"),
        ("series: first\n    over", "series: first\n    stacked: true\n    over", "figures[2].stacked"),
        ("over: standard", "over: cubic", "figures[2].over"),
        ("names: {highspeed:", "names: {hihgspeed:", "figures[2].names.hihgspeed"),
        ("highlight: 100", "highlight: 101", "figures[3].highlight"),
        ("x: txqueuelen\n", "x: txqueuelen\n    names: {a: b}\n", "figures[3].names"),
        ("window=8 MiB\n    flows", "windwo=8 MiB\n    flows", "figures[4].runs"),
        ("highspeed, window=8 MiB", "highspeed", "figures[4].runs"),
        ("flows: {stream1: H", "flows: {stream3: H", "figures[4].flows.stream3"),
        (", flow=stream1\n    what", "\n    what", "figures[5].runs"),
        ("receiver\n    experiment: pairs", "receiver\n    experiment: pair", "figures[6].experiment"),
    ],
)
def test_a_figure_of_any_kind_must_agree_with_the_study(tmp_path: Path, old: str, new: str, key: str) -> None:
    assert old in FIGURES
    with pytest.raises(StudyError) as caught:
        _ = StudyFolder(write(tmp_path, FIGURES.replace(old, new))).figures
    assert key in {problem.key for problem in caught.value.problems}
    assert all(problem.line for problem in caught.value.problems)
