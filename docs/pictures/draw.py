# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of README and gallery from the committed evidence: python docs/pictures/draw.py [FOLDER]."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from longfat.evidence.epochs import FOLDER as EPOCHS
from longfat.evidence.epochs import read_epochs
from longfat.evidence.judged import evidence_of
from longfat.figures import style
from longfat.figures.base import Sources
from longfat.figures.drawing import draw
from longfat.plan import build_plan
from longfat.studies import StudyFolder

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
THRESHOLD = "sandia-2003-txqueuelen"
PICTURES = {
    f"{THRESHOLD}.svg": ("sandia-2003", "txqueuelen"),
    "sandia-2003-fig-11.svg": ("sandia-2003", "delay-9000"),
    "trinh-2004-fig-4.svg": ("trinh-2004", "ideal"),
}
"""The pictures, each with its study and the experiment whose evidence it shows."""

PAPER = {
    "standard": (828, "Standard TCP", (60, 585)),
    "scalable": (897, "Scalable TCP", (6, 940)),
    "highspeed": (948, "HighSpeed TCP", (36, 790)),
}
"""What the paper states for a txqueuelen of 100 in Mb/s, the algorithm's name, and the place of this label."""


def rows(study: str, experiment: str) -> list[Any]:
    """The runs of an experiment in the study's newest evidence, in the order of their scenarios."""
    newest = max((ROOT / "experiments" / study / "evidence").iterdir())
    (path,) = newest.rglob(f"{experiment}.jsonl")
    found = {line: json.loads(line) for line in path.read_text(encoding="ascii").splitlines()[1:]}
    return sorted(found.values(), key=lambda row: (row["scenario"], row["repetition"], row["spec"]))


def digest(study: str, experiment: str) -> str:
    """What a picture is drawn from: the values of each run, whatever order their lines have."""
    values = [(row["scenario"], row["repetition"], row["values"]) for row in rows(study, experiment)]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def goodputs() -> Mapping[str, Mapping[int, list[float]]]:
    """Goodput in Mb/s of each run of the experiment `txqueuelen`, by algorithm and txqueuelen."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows(*PICTURES[f"{THRESHOLD}.svg"]):
        _, algorithm, queue = row["scenario"].split(".")
        value = next(value for key, value in row["values"].items() if key.startswith("goodput@"))
        found[algorithm.removeprefix("algorithm-")][int(queue.removeprefix("txqueuelen-"))].append(value)
    return found


def threshold() -> Figure:
    """Goodput over the length of the sender's own queue: where it stops to matter, and the paper's numbers."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.subplots()
    runs = goodputs()
    for name, (stated, label, place) in PAPER.items():
        colour, marker = style.look(name)
        lengths = sorted(runs[name])
        axes.plot(lengths, [sum(runs[name][one]) / len(runs[name][one]) for one in lengths], color=colour, linewidth=1)
        points = [(length, value) for length in lengths for value in runs[name][length]]
        axes.plot(*zip(*points, strict=True), marker, color=colour, markersize=4)
        axes.text(*place, label, color=colour)
        axes.plot([100], [stated], marker, color=colour, markersize=9, fillstyle="none")
    axes.plot([230], [966], "o", color=style.INK, markersize=9, fillstyle="none")
    axes.axvline(203, color=style.SOFT, linewidth=0.8, linestyle=":")
    axes.annotate(
        "203: what window, path and\nthe card's ring leave to this queue",
        (203, 560), (196, 560), ha="right", va="center", color=style.SOFT,
    )  # fmt: skip
    axes.set(xlabel="txqueuelen (frames)", ylabel="goodput (Mb/s)", ylim=(380, 1010))
    axes.text(108, 790, "open marks: stated by the paper", color=style.INK, fontsize=8)
    return figure


def svg(figure: Figure, study: str, experiment: str) -> str:
    """The picture as text, with what it is drawn from."""
    stream = io.StringIO()
    source = f"evidence of {study}, {experiment}: {digest(study, experiment)}"
    with matplotlib.rc_context({**style.SETTINGS, "svg.fonttype": "none", "svg.hashsalt": "longfat"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": source})
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def drawn(study: str, artifact: str) -> Figure:
    """A figure of a study, of evidence alone."""
    folder = StudyFolder(ROOT / "experiments" / study)
    known = evidence_of(folder, read_epochs(ROOT / EPOCHS))
    assert known is not None, f"{study} has no evidence"
    plan = build_plan(folder.study, profile="quick", pins={"backend": known.backend})
    return draw(Sources(known.grounds[0].grounds, plan), folder.figures.figure(artifact)).figure


def main(target: Path) -> None:
    """Write all pictures."""
    for name, (study, experiment) in PICTURES.items():
        with matplotlib.rc_context(style.SETTINGS):
            artifact = name.removeprefix(f"{study}-").removesuffix(".svg")
            figure = threshold() if name == f"{THRESHOLD}.svg" else drawn(study, artifact)
        (target / name).write_text(svg(figure, study, experiment), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
