# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of README and documentation from the committed evidence: python docs/pictures/draw.py [FOLDER].

A figure of a study shows the runs of an experiment. A picture with a study's name shows its claims, with the paper's
numbers next to the measured ones.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from longfat.data.study_folder import StudyFolder
from longfat.evidence.baselines import FOLDER as BASELINES
from longfat.evidence.baselines import read_baselines
from longfat.evidence.judged import Evidenced, evidence_of
from longfat.figures import style
from longfat.figures.base import Sources
from longfat.figures.drawing import draw
from longfat.plan import build_plan
from longfat.relations.judge import Verdict
from longfat.report.forest import Row, forest
from longfat.report.markdown import PAGE
from longfat.report.numbers import shown
from longfat.report.page import slug

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
THRESHOLD = "sandia-2003-txqueuelen"
PICTURES = {
    f"{THRESHOLD}.svg": ("sandia-2003", "txqueuelen"),
    "sandia-2003-fig-11.svg": ("sandia-2003", "delay-9000"),
    "trinh-2004-fig-4.svg": ("trinh-2004", "ideal"),
}
"""Figures, each with its study and the experiment whose evidence it shows."""

# Studies whose README shows the picture of its decided claims.
STUDIES = {
    f"{path.parent.name}.svg": path.parent.name
    for path in HERE.parents[1].glob("experiments/[a-z]*/README.md")
    if f"pictures/{path.parent.name}.svg" in path.read_text(encoding="utf-8")
}
"""Pictures of all claims of a study."""

DECIDED_BY_RUNS = ("measured", "calibrated", "law", "inconsistent")
COLUMN, LINE, TOP, CHARACTERS = 550, 15, 34, 22  # of such a picture: pixels, and what of the paper's words has room
ONE_COLUMN = 40  # lines; more are drawn in two
COLOURS = {"reproduced": "#0b6e4f", "compatible": "#2a7d8c", "not reproduced": "#a3252b", "undecided": "#b07d1a"}

PAPER = {
    "standard": (828, "Standard TCP", (22, 470)),
    "scalable": (897, "Scalable TCP", (26, 680)),
    "highspeed": (948, "HighSpeed TCP", (3, 885)),
}
"""Goodput in Mb/s that the paper states for a txqueuelen of 100, the algorithm's name, and the place of this label."""


def files(study: str, experiment: str) -> list[Path]:
    """Return the files of an experiment's newest evidence for the study's stack, one for each profile."""
    folder = StudyFolder(ROOT / "experiments" / study)
    newest = max((folder.path / "evidence").iterdir())
    return sorted((newest / folder.header.stack).rglob(f"{experiment}.jsonl"))


def rows(path: Path) -> list[Any]:
    """Return the runs of such a file, sorted by scenario."""
    found = {line: json.loads(line) for line in path.read_text(encoding="ascii").splitlines()[1:]}
    return sorted(found.values(), key=lambda row: (row["scenario"], row["repetition"], row["spec"]))


def digest_of(name: str) -> str:
    """Return the digest of a picture's source: the values of each run, or all measured claims of a study."""
    return digest(*PICTURES[name]) if name in PICTURES else digest_of_claims(STUDIES[name])


def digest_of_claims(study: str) -> str:
    """Return the digest of the table of measured claims."""
    page = ROOT / "experiments" / study / PAGE
    text = page.read_text(encoding="utf-8").partition("\n## Not measured")[0] if page.exists() else ""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def digest(study: str, experiment: str) -> str:
    """Return the digest of the values of each run, independent of the order of lines."""
    values = [
        (row["scenario"], row["repetition"], row["values"]) for path in files(study, experiment) for row in rows(path)
    ]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def goodputs() -> Mapping[str, Mapping[int, list[float]]]:
    """Return the goodput in Mb/s of each run of the experiment `txqueuelen`, by algorithm and txqueuelen."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in (row for path in files(*PICTURES[f"{THRESHOLD}.svg"]) for row in rows(path)):
        _, algorithm, queue = row["scenario"].split(".")
        value = next(value for key, value in row["values"].items() if key.startswith("goodput@"))
        found[algorithm.removeprefix("algorithm-")][int(queue.removeprefix("txqueuelen-"))].append(value)
    return found


def threshold() -> Figure:
    """Draw goodput over the length of the sender's queue, the threshold, and the paper's numbers."""
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
    axes.plot([211, 250], [966, 966], color=style.SOFT, linewidth=11, alpha=0.3, zorder=0)
    axes.axvline(203, color=style.SOFT, linewidth=0.8, linestyle=":")
    axes.annotate(
        "203: what window, path and\nthe card's ring leave to this queue",
        (203, 560), (196, 560), ha="right", va="center", color=style.SOFT,
    )  # fmt: skip
    axes.set(xlabel="txqueuelen (frames)", ylabel="goodput (Mb/s)", ylim=(380, 1010))
    marks = "open marks and bar: the paper's;\nScalable TCP and threshold calibrated"
    axes.text(108, 775, marks, color=style.INK, fontsize=8)
    return figure


def svg(figure: Figure, study: str, experiment: str) -> str:
    """Return the picture as text, with the digest of its source."""
    stream = io.StringIO()
    source = f"evidence of {study}, {experiment}: {digest(study, experiment)}"
    with matplotlib.rc_context({**style.SETTINGS, "svg.fonttype": "none", "svg.hashsalt": "longfat"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": source})
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def known_of(study: str) -> Evidenced:
    """Return the newest evidence of a study, which may be empty."""
    folder, baselines = StudyFolder(ROOT / "experiments" / study), read_baselines(ROOT / BASELINES)
    newest = baselines[-1].name
    known = evidence_of(folder, baselines) or evidence_of(folder, baselines, baseline=newest, profile="quick")
    assert known is not None
    return known


def draw_artifact(study: str, artifact: str) -> Figure:
    """Draw a figure of a study from evidence alone."""
    known = known_of(study)
    plan = build_plan(known.study, profile="quick", pins={"backend": known.backend})
    figure = known.folder.figures.figure(artifact)
    most = max(known.grounds, key=lambda ground: ground.scenarios_of({*figure.experiments(known.study)}))
    return draw(Sources(most.grounds, plan), figure).figure


def claims(study: str) -> str:
    """Return all measured claims as SVG: the allowed band, the measured interval, and both numbers."""
    known = known_of(study)
    verdicts = [by_runs(known.judge(one).verdict) for one in known.claims]
    testable = [one for one in verdicts if one.category in DECIDED_BY_RUNS and one.verdict != "not testable"]
    (part,) = forest({"": testable})
    lines_of_all = zip(testable, part.rows, strict=True)
    measured = [(one, row) for one, row in lines_of_all if row.word in COLOURS and row.dot is not None]
    columns = 1 if len(measured) <= ONE_COLUMN else 2
    lines = max(1, math.ceil(len(measured) / columns))
    width, height = COLUMN * columns, TOP + LINE * lines + 6
    size = f'width="{width}" height="{height}"'
    head = "claim; allowed and measured interval, each on its own scale (arrow: off it); paper, or allowed; here"
    summary = f"{len(measured)} of {len(testable)} claims that runs test"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size}>',
            f"<!-- claims of {study}: {digest_of_claims(study)} -->",
            f"<title>{study}: {summary}</title>",
            "<style>text{font:9px DejaVu Sans,Verdana,sans-serif;fill:#1c2630}.s{fill:#5d6b79}.b{fill:#d5e3ee}"
            + "".join(f".{slug(word)} path,.{slug(word)} circle{{stroke:{of}}}" for word, of in COLOURS.items())
            + "path{fill:none;stroke-width:1.6}circle{stroke-width:1.6;fill:#fff}"
            + "".join(f".{word} circle{{fill:{COLOURS[word]}}}" for word in ("reproduced", "compatible"))
            + "</style>",
            f'<rect {size} fill="#fff"/>',
            f'<text x="6" y="14">{summary}; dots: reproduced, crosses: not reproduced, rings: undecided</text>',
            f'<text class="s" x="6" y="27">{head}</text>',
            *(
                line
                for place, (verdict, row) in enumerate(measured)
                for line in claim(verdict, row, COLUMN * (place // lines), TOP + LINE * (place % lines))
            ),
            "</svg>\n",
        )
    )


def by_runs(verdict: Verdict) -> Verdict:
    """Return the verdict without comparisons that a formula decides, if there are others."""
    measured = tuple(one for one in verdict.evidence if one.n is not None)
    return replace(verdict, evidence=measured or verdict.evidence)


def claim(verdict: Verdict, row: Row, x: int, y: int) -> Iterator[str]:
    """Yield the line of a claim at a place."""
    one = verdict.deciding
    assert one is not None and one.mean is not None and row.dot is not None and row.band is not None
    paper = " ".join(verdict.paper.split())
    other_unit = one.unit not in paper and any(map(str.isdigit, paper))
    if len(paper) > CHARACTERS or other_unit:
        paper = f"allowed {row.allowed.partition(', ')[0].removesuffix(one.unit).rstrip()}"
    yield f'<g class="{slug(row.word)}" transform="translate({x} {y})"><text x="6" y="11">{escape(row.claim)}</text>'
    yield '<g transform="translate(186 0) scale(.5 .9)">'
    yield f'<rect class="b" x="{row.band[0]}" y="2" width="{row.band[1] - row.band[0]:.1f}" height="12"/>'
    if row.whisker:
        yield f'<path d="M{row.whisker[0]} 8H{row.whisker[1]}"/>'
    yield "</g>"
    at = f'transform="translate({186 + row.dot / 2:.1f} 7)"'
    if row.beyond:
        yield f'<path {at} d="M0-4l{4 * row.beyond} 4l{-4 * row.beyond} 4"/>'
    elif row.word == "not reproduced":
        yield f'<path {at} d="M-3-3l6 6m0-6l-6 6"/>'
    else:
        yield f'<circle {at} r="3"/>'
    yield f'<text class="s" x="314" y="11">{escape(paper)}</text>'
    yield f'<text x="436" y="11">{escape(shown(one.mean, one.unit))}</text></g>'


def main(target: Path) -> None:
    """Write all pictures."""
    for name, study in STUDIES.items():
        (target / name).write_text(claims(study), encoding="utf-8")
    for name, (study, experiment) in PICTURES.items():
        with matplotlib.rc_context(style.SETTINGS):
            artifact = name.removeprefix(f"{study}-").removesuffix(".svg")
            figure = threshold() if name == f"{THRESHOLD}.svg" else draw_artifact(study, artifact)
        (target / name).write_text(svg(figure, study, experiment), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
