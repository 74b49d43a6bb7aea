# SPDX-License-Identifier: Apache-2.0
"""Conversion of figures: each kind names what it draws as a metric over runs, labels that follow are left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from converting import study

from longfat.convert import converted_figures
from longfat.errors import StudyError

HEAD = "format: 1\nstudy: small\nfigures:\n"
NEW_HEAD = "format: 2\nstudy: small\nfigures:\n"


def converted(folder: Path, text: str) -> str:
    path = folder / "figures.yaml"
    path.write_text(text, encoding="utf-8")
    return converted_figures(path, study())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            """\
  - artifact: fig-1
    kind: bars
    part_of: whole
    title: goodput by window
    of: {metric: goodput, experiment: single, where: {window: "> 64 KiB"}}
    x: window
    x_unit: MiB
    series: algorithm
    names: {highspeed: HighSpeed TCP}
    labels: {x: window (MiB), y: goodput (Mb/s)}
    paper: {text: About 940 Mb/s., marks: [{value: 940, label: 940 Mb/s}]}
""",
            """\
  - bars: fig-1
    part_of: whole
    title: goodput by window
    of: goodput[single, window > 64 KiB]
    x: window in MiB
    series: algorithm
    names: {highspeed: HighSpeed TCP}
    paper: About 940 Mb/s.
    marks: [{value: 940, label: 940 Mb/s}]
""",
        ),
        (
            """\
  - artifact: fig-1
    kind: bars
    title: goodput by window
    of: {metric: goodput, experiment: single}
    x: window
    labels: {x: buffer, y: goodput (Mb/s)}
    paper: {text: No number stated.}
""",
            """\
  - bars: fig-1
    title: goodput by window
    of: goodput[single]
    x: window
    labels: {x: buffer, y: goodput (Mb/s)}
    paper: No number stated.
""",
        ),
        (
            """\
  - artifact: fig-2
    kind: timeseries
    title: outstanding data
    experiment: single
    where: {algorithm: [standard, highspeed], window: 1 MiB}
    flow: stream
    series: algorithm
    until: 5 s
    labels: {x: time (s), y: outstanding data (bytes)}
    paper: {text: "Two curves: one is higher."}
""",
            """\
  - timeseries: fig-2
    title: outstanding data
    runs: single, algorithm=standard | highspeed, window=1 MiB, flow=stream
    series: algorithm
    until: 5 s
    paper: "Two curves: one is higher."
""",
        ),
        (
            """\
  - artifact: tab-1
    kind: ranking
    title: the best
    of: {metric: goodput, experiment: pairs}
    then: {metric: goodput, experiment: pairs, flow: one}
    by: first
    expected: [highspeed, standard]
    paper: {text: HighSpeed TCP.}
""",
            """\
  - ranking: tab-1
    title: the best
    of: goodput[pairs]
    then: goodput[pairs, flow=one]
    by: first
    expected: [highspeed, standard]
    paper: HighSpeed TCP.
""",
        ),
        (
            """\
  - artifact: fig-3
    kind: topology
    title: the path
    experiment: single
    paper: {text: One bottleneck.}
""",
            """\
  - topology: fig-3
    title: the path
    experiment: single
    paper: One bottleneck.
""",
        ),
        (
            """\
  - artifact: tab-2
    kind: table
    title: the rule and what was measured
    columns: [what, rule, measured, with both of the streams]
    rows:
      - - 1 Gb/s
        - {formula: bandwidth_delay_product, arguments: {rate: 1 Gbit/s, rtt: 30 ms}, digits: 3}
        - {metric: goodput, experiment: single, where: {algorithm: highspeed}}
        - {metric: goodput, experiment: pairs, digits: 0}
    paper: {text: 3.75 MB.}
""",
            """\
  - table: tab-2
    title: the rule and what was measured
    columns: [what, rule, measured, with both of the streams]
    rows:
      - [
        1 Gb/s, {of: "bandwidth_delay_product(rate=1 Gbit/s, rtt=30 ms)", digits: 3},
        {of: "goodput[single, highspeed]"}, {of: "goodput[pairs]", digits: 0}
      ]
    paper: 3.75 MB.
""",
        ),
        (
            """\
  - artifact: fig-4
    kind: curves
    title: rules
    x: window
    between: [38, 83000]
    curves:
      - {formula: highspeed_decrease, label: HighSpeed TCP, algorithm: highspeed}
      - {formula: standard_increase, label: Standard TCP}
    labels: {x: window (segments), y: share}
    paper: {text: Two curves.}
""",
            """\
  - curves: fig-4
    title: rules
    x: window
    between: [38, 83000]
    of:
      - {of: highspeed_decrease(), label: HighSpeed TCP, algorithm: highspeed}
      - {of: standard_increase(), label: Standard TCP}
    labels: {x: window (segments), y: share}
    paper: Two curves.
""",
        ),
    ],
)
def test_each_kind_of_figure_has_its_new_form(tmp_path: Path, old: str, new: str) -> None:
    assert converted(tmp_path, HEAD + old) == NEW_HEAD + new


TOPOLOGY = "{{artifact: {}, kind: topology, title: t, experiment: {}, paper: {{text: p}}}}"


def test_comments_and_the_size_of_the_catalogue_stay(tmp_path: Path) -> None:
    one, two = TOPOLOGY.format("fig-1", "single"), TOPOLOGY.format("fig-2", "pairs")
    text = f"# All.\nformat: 1\nstudy: small\npaper: {{artifacts: 2, claims: 0}}\nfigures:\n  # First.\n  - {one}\n"
    new = converted(tmp_path, text.replace("claims: 0", "claims: 1") + f"\n  # Second.\n  - {two}\n")
    lines = [line for line in new.splitlines() if "#" in line or "fig-" in line or line.startswith("paper")]
    assert lines == [
        "# All.",
        "paper: {artifacts: 2, claims: 1}",
        "  # First.",
        "  - topology: fig-1",
        "  # Second.",
        "  - topology: fig-2",
    ]


def test_all_that_is_wrong_is_said_at_once_and_names_the_figure(tmp_path: Path) -> None:
    bars = (
        "{artifact: fig-2, kind: bars, title: t, x: streams, colour: red, paper: {text: p}, "
        "of: {metric: goodput, experiment: single}}"
    )
    gone = bars.replace("fig-2", "fig-3").replace("single", "single, where: {streams: 16}")
    old = bars.replace("fig-2", "fig-4").replace(", colour: red", "")
    listed = [TOPOLOGY.format("fig-1", "none"), bars, gone, old]
    with pytest.raises(StudyError) as caught:
        converted(tmp_path, HEAD + "".join(f"  - {one}\n" for one in listed))
    problems = [str(problem) for problem in caught.value.problems]
    expected = [
        "figures[0].experiment: figure 'fig-1': unknown experiment 'none'",
        "figures[1].colour: figure 'fig-2': unknown key 'colour'",
        "figures[2].of.where.streams: figure 'fig-3': 'streams' is no factor of 'single' in the converted study",
        "figures[3].x: figure 'fig-4': unknown factor 'streams'; allowed: algorithm, window",
    ]
    for problem, text in zip(problems, expected, strict=True):
        assert text in problem
