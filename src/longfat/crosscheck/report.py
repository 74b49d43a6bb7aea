# SPDX-License-Identifier: Apache-2.0
"""The report of a cross-check: a table of numbers by backend, and the windows and queues of one run of each.

Owns the three files of the report. Must not decide what agrees: ``measure`` does.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from longfat.backends.registry import traits_of
from longfat.crosscheck.measure import Compared, Trace, queue, window
from longfat.dataset.load import Dataset, Run
from longfat.errors import RigError
from longfat.figures.style import SETTINGS

PANEL_INCHES = (4.2, 2.3)
COLUMNS = 2

INTRODUCTION = """\
# Cross-check

The same scenarios on {backends}. Means over the repetitions; in real time these differ by chance, in virtual time by
their seeds. A backend agrees with the first where the means differ by no more than the allowed part of the larger one.

{verdict}

![windows](window.png)

![queues](queue.png)

"""


def write_report(
    compared: Sequence[Compared], datasets: Mapping[str, Dataset], notes: Sequence[str], folder: Path
) -> None:
    """Write README.md, window.png and queue.png into ``folder``. Raises RigError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "README.md").write_text(page(compared, list(datasets), notes))
        (folder / "window.png").write_bytes(figure(datasets, window, "window of flow 1 (segments)"))
        (folder / "queue.png").write_bytes(figure(datasets, queue, "queue (packets)"))
    except OSError as error:
        raise RigError(f"cannot write the report: {error}", where=str(folder)) from error


def page(compared: Sequence[Compared], backends: Sequence[str], notes: Sequence[str]) -> str:
    """The page in Markdown."""
    held = {name: [item for item in compared if name in item.differences] for name in backends[1:]}
    agreeing = {name: sum(name not in item.differing for item in own) for name, own in held.items()}
    counts = [f"{name} agrees on {agreeing[name]} of {len(held[name])} numbers" for name in held]
    verdict = f"With {backends[0]} {', '.join(counts)}."
    lines = [INTRODUCTION.format(backends=" and ".join(backends), verdict=verdict)]
    lines += [f"| scenario | quantity | {' | '.join(backends)} | difference | allowed | differ |"]
    lines += ["|---" * (5 + len(backends)) + "|"]
    lines += [_row(item, backends) for item in compared]
    lines += ["", *(f"- {note}" for note in notes)]
    return "\n".join(lines) + "\n"


def _row(item: Compared, backends: Sequence[str]) -> str:
    shown = [_cell(item, backend) for backend in backends]
    verdict = f"**{', '.join(item.differing)}**" if item.differing else ""
    parts = ", ".join(f"{name} {100 * part:.1f} %" for name, part in item.differences.items())
    limits = f"{parts} | {100 * item.quantity.allowed:.0f} %"
    quantity = f"{item.quantity.name} ({item.quantity.unit})"
    return f"| {item.scenario} | {quantity} | {' | '.join(shown)} | {limits} | {verdict} |"


def _cell(item: Compared, backend: str) -> str:
    values = item.values.get(backend)
    if not values:
        return ""
    return f"{item.means[backend]:.1f} ({min(values):.1f} to {max(values):.1f})"


def figure(datasets: Mapping[str, Dataset], of: Callable[[Dataset, Run], Trace], label: str) -> bytes:
    """The first repetition of every scenario, a panel each, a line for each backend, as PNG."""
    panels: dict[str, dict[str, Run]] = {}
    for backend, dataset in datasets.items():
        for run in dataset.runs:
            if run.status == "ok":
                panels.setdefault(run.scenario, {}).setdefault(backend, run)
    rows = -(-len(panels) // COLUMNS)
    with matplotlib.rc_context(SETTINGS | {"font.size": 7, "axes.titlesize": 8}):
        drawing = Figure(layout="constrained", figsize=(COLUMNS * PANEL_INCHES[0], max(rows, 1) * PANEL_INCHES[1]))
        FigureCanvasAgg(drawing)
        places = drawing.subplots(max(rows, 1), COLUMNS, squeeze=False).flatten()
        for place, (scenario, runs) in zip(places, sorted(panels.items()), strict=False):
            for backend, run in runs.items():
                trace = of(datasets[backend], run)
                place.plot(trace.seconds, trace.values, color=traits_of(backend).colour, linewidth=0.9, label=backend)
            place.set_title(scenario)
            place.set_xlabel("time (s)")
            place.set_ylabel(label)
            place.set_ylim(bottom=0)
            place.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3)
        for place in places[len(panels) :]:
            place.set_axis_off()
        stream = io.BytesIO()
        drawing.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()
