# SPDX-License-Identifier: Apache-2.0
"""The report of conformance: a table of the laws with their verdicts, and a figure with the kernel's points on them.

Owns the three files of the report. Equal findings give equal bytes; nothing of the machine is in them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes as Panel
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from longfat.conformance.law import TOLERANCE, Axes, Finding
from longfat.errors import RigError
from longfat.figures.style import SETTINGS, look

COLUMNS = 4
PANEL_INCHES = (3.1, 2.3)
DPI = 80
TICK: dict[str, Any] = {"marker": "_", "markersize": 11, "markeredgewidth": 1.2, "linewidth": 1.2}
LAW_LINE: dict[str, Any] = TICK | {"color": "#8a1538"}
SOURCE_LINE: dict[str, Any] = TICK | {"color": "#777777", "linestyle": (0, (2, 2))}
DECADE = 10  # an axis with less than that between its ends is not logarithmic

INTRODUCTION = """\
# Conformance

What the kernel's congestion controls do in real flows in virtual time, held against the published laws.
This page is made by `./just conformance --reference`, and is not edited by hand.

A law is met when every point is within {tolerance:.0f} % of it. Where the source is known to do something else, the
kernel is held to what follows from the source, within the same {tolerance:.0f} %, and the reason is given below.
The paths have a constant RTT and lose a packet only when asked to; the receiver acknowledges every second segment.

{verdict}

![The laws as lines, the kernel as points](laws.png)

Red: the law; grey, dotted: what follows from the source, where it deviates; points: the kernel.
"""


def write_report(findings: Sequence[Finding], kernel: str, folder: Path) -> None:
    """Write README.md, laws.png and points.csv into ``folder``; ``kernel`` names what was tested. Raises RigError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "README.md").write_text(page(findings, kernel))
        (folder / "points.csv").write_text(points_csv(findings))
        (folder / "laws.png").write_bytes(figure(findings))
    except OSError as error:
        raise RigError(f"cannot write the report: {error}", where=str(folder)) from error


def page(findings: Sequence[Finding], kernel: str) -> str:
    """The page in Markdown."""
    met = sum(not finding.problems and finding.law.deviation is None for finding in findings)
    deviating = sum(not finding.problems and finding.law.deviation is not None for finding in findings)
    failed = len(findings) - met - deviating
    verdict = f"Of {len(findings)} laws, {kernel} meets {met}, deviates from {deviating} as its source says"
    verdict += " and no other." if not failed else f", and does **not** follow {failed}."
    lines = [INTRODUCTION.format(tolerance=100 * TOLERANCE, verdict=verdict)]
    lines += ["| algorithm | law | points | farthest from the law | verdict | reference |", "|---|---|---|---|---|---|"]
    lines += [_row(finding) for finding in findings]
    for title, texts in (
        ("Deviations", [(finding.law.name, finding.law.deviation) for finding in findings]),
        ("Notes", [(finding.law.name, finding.law.note) for finding in findings]),
        ("Not followed", [(finding.law.name, "; ".join(finding.problems)) for finding in findings]),
    ):
        listed = [f"- {name}: {text}." for name, text in texts if text]
        lines += ["", f"## {title}", *listed] if listed else []
    return "\n".join(lines) + "\n"


def _row(finding: Finding) -> str:
    law = finding.law
    if finding.problems:
        verdict = "**not followed**"
    elif law.deviation is None:
        verdict = "met"
    else:
        verdict = f"deviates; {100 * finding.worst_from_expected:.1f} % from its source"
    worst = f"{100 * finding.worst_from_law:.1f} %" if finding.points else ""
    return f"| {law.cca} | {law.claim} | {len(finding.points)} | {worst} | {verdict} | {law.reference} |"


def points_csv(findings: Sequence[Finding]) -> str:
    """Every point: the data of the figure."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("algorithm", "law", "x", "law_low", "law_high", "source", "kernel"))
    for finding in findings:
        for point in finding.points:
            numbers = (point.x, *point.law_ends, point.source, point.kernel)
            shown = ["" if number is None else f"{number:.6g}" for number in numbers]
            writer.writerow((finding.law.cca, finding.law.claim, *shown))
    return text.getvalue()


def figure(findings: Sequence[Finding]) -> bytes:
    """The figure as PNG: a panel for each algorithm and kind of law."""
    panels: dict[tuple[str, Axes], list[Finding]] = {}
    for finding in findings:
        panels.setdefault((finding.law.cca, finding.law.axes), []).append(finding)
    rows = -(-len(panels) // COLUMNS)
    with matplotlib.rc_context(SETTINGS | {"font.size": 6.5, "axes.titlesize": 8}):
        drawing = Figure(layout="constrained", figsize=(COLUMNS * PANEL_INCHES[0], rows * PANEL_INCHES[1]), dpi=DPI)
        FigureCanvasAgg(drawing)
        places = drawing.subplots(rows, COLUMNS, squeeze=False).flatten()
        for place, ((cca, axes), own) in zip(places, panels.items(), strict=False):
            _draw(place, cca, axes, own)
        for place in places[len(panels) :]:
            place.set_axis_off()
        stream = io.BytesIO()
        drawing.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def _draw(panel: Panel, cca: str, axes: Axes, findings: Sequence[Finding]) -> None:
    colour, marker = look(cca)
    for finding in findings:
        points = sorted(finding.points, key=lambda point: point.x)
        xs = [point.x for point in points]
        ends = [point.law_ends for point in points]
        panel.plot(xs, [low for low, _ in ends], **LAW_LINE)
        panel.plot(xs, [high for _, high in ends], **LAW_LINE)
        if finding.law.deviation is not None:
            panel.plot(xs, [point.source or 0 for point in points], **SOURCE_LINE)
        panel.plot(xs, [point.kernel for point in points], marker, color=colour, markersize=3.5, zorder=3)
    panel.set_title(cca)
    panel.set_xlabel(axes.x)
    panel.set_ylabel(axes.y)
    shown = [point for finding in findings for point in finding.points]
    if axes.log_x and _is_wide([point.x for point in shown]):
        panel.set_xscale("log")
    if axes.log_y and _is_wide([point.kernel for point in shown]):
        panel.set_yscale("log")
    else:
        panel.set_ylim(0, 1.1 * max((max(point.kernel, *point.law_ends) for point in shown), default=1))


def _is_wide(values: Sequence[float]) -> bool:
    return len(values) > 0 and min(values) > 0 and max(values) >= DECADE * min(values)
