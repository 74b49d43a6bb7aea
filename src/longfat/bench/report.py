# SPDX-License-Identifier: Apache-2.0
"""The output of the bench: tables for people, one JSON text for programs. Measures nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from longfat.bench.cases import CASES, Ratio, Timing, ratio

FIXED = CASES["fixed"].name
HOST = (
    "host: the machine's own kernel over three namespaces in real time, rates by tbf, no delay, windows tuned by the "
    "kernel; CPU time is that of the whole machine"
)


@dataclass(frozen=True)
class Row:
    """One piece of work: its best timing by the name of the build, this one first. ``seconds`` is virtual time."""

    name: str
    best: Mapping[str, Timing]
    seconds: float | None = None

    @property
    def here(self) -> Timing:
        """This build's timing."""
        return next(iter(self.best.values()))

    @property
    def ratio(self) -> Ratio | None:
        """This build's times as parts of the other's, where there is another."""
        others = list(self.best.values())[1:]
        return ratio(self.here, others[0]) if others else None


@dataclass(frozen=True)
class Sampled:
    """How a study's profile was sampled: distinct runs by build, those that builds share, and those that were done."""

    study: str
    profile: str
    runs: Mapping[str, int]
    shared: int
    done: int
    row: Row

    def estimated_cpu_s(self, build: str) -> float:
        """CPU seconds of all shared runs, by the mean of those that were done."""
        return self.row.best[build].cpu_s * self.shared / self.done


@dataclass(frozen=True)
class PeerRow:
    """The same transfer elsewhere: simulated seconds (real ones of the machine's kernel) and its timing."""

    peer: str
    case: str
    seconds: float
    timing: Timing


@dataclass(frozen=True)
class Results:
    """All that was measured. ``side_by_side`` is the rate of two runs at a time as a multiple of one at a time."""

    repeats: int
    rows: Sequence[Row]
    sampled: Sampled | None
    peers: Sequence[PeerRow]
    side_by_side: float | None
    notes: Sequence[str]


def as_json(results: Results) -> dict[str, Any]:
    """Plain data: the fields of Results, and the ratios."""
    rows = [*results.rows, *([results.sampled.row] if results.sampled else [])]
    shown = [
        {
            "work": row.name,
            "best": {build: asdict(timing) for build, timing in row.best.items()},
            "ratio": asdict(row.ratio) if row.ratio else None,
        }
        for row in rows
    ]
    sampled = results.sampled and {
        "study": results.sampled.study,
        "profile": results.sampled.profile,
        "runs": dict(results.sampled.runs),
        "shared": results.sampled.shared,
        "done": results.sampled.done,
        "estimated_cpu_s": {build: results.sampled.estimated_cpu_s(build) for build in results.sampled.runs},
    }
    return {
        "repeats": results.repeats,
        "rows": shown,
        "sampled": sampled,
        "peers": [asdict(peer) for peer in results.peers],
        "side_by_side": results.side_by_side,
        "notes": list(results.notes),
    }


def show(results: Results, console: Console) -> None:
    """Print the tables, then a line for each thing that could not be measured."""
    rows = [*results.rows, *([results.sampled.row] if results.sampled else [])]
    if rows:
        console.print(_ratios(rows, results.repeats) if rows[0].ratio else _times(rows, results.repeats))
    lines = [*_sampling(results.sampled)] if results.sampled else []
    if results.side_by_side is not None:
        lines.append(f"two runs side by side: {results.side_by_side:.2f} times the rate of one")
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    if results.peers:
        console.print(_peers(results.peers))
    caveats = [HOST] if any(peer.peer == "host" for peer in results.peers) else []
    for note in [*caveats, *results.notes]:
        console.print(note, soft_wrap=True, markup=False, highlight=False)


def _ratios(rows: Sequence[Row], repeats: int) -> Table:
    here, there = rows[0].best
    table = Table(
        *("work", "wall ratio", "CPU ratio"),
        *(f"wall s, {there}", f"wall s, {here}", f"CPU s, {there}", f"CPU s, {here}"),
        title=f"{here} as parts of {there}: best of {repeats}, builds alternating",
    )
    for row in rows:
        own, other = row.best[here], row.best[there]
        parts = ratio(own, other)
        figures = (parts.wall, parts.cpu, other.wall_s, own.wall_s, other.cpu_s, own.cpu_s)
        table.add_row(row.name, *(f"{figure:.2f}" for figure in figures))
    return table


def _times(rows: Sequence[Row], repeats: int) -> Table:
    table = Table(
        *("work", "wall s", "CPU s", "virtual s per wall s", "wall us per segment"), title=f"best of {repeats}"
    )
    fixed = next((row.here.wall_s for row in rows if row.name == FIXED), None)
    for row in rows:
        own = row.here
        speed = f"{row.seconds / own.wall_s:.1f}" if row.seconds and row.name != FIXED else ""
        each = f"{1e6 * (own.wall_s - fixed) / own.segments:.2f}" if speed and fixed is not None else ""
        table.add_row(row.name, f"{own.wall_s:.2f}", f"{own.cpu_s:.2f}", speed, each)
    return table


def _sampling(sampled: Sampled) -> list[str]:
    counts = ", ".join(f"{build} {number}" for build, number in sampled.runs.items())
    minutes = ", ".join(f"{build} {sampled.estimated_cpu_s(build) / 60:.1f}" for build in sampled.runs)
    return [
        f"{sampled.study}, profile {sampled.profile}: runs: {counts}; in all builds {sampled.shared}, "
        f"of which {sampled.done} were executed; estimated CPU minutes of the {sampled.shared}: {minutes}"
    ]


def _peers(peers: Sequence[PeerRow]) -> Table:
    table = Table(
        *("where", "flow", "simulated s", "wall s", "CPU s", "CPU s per simulated s", "goodput Mb/s"),
        title="the same elsewhere: one run each",
    )
    for peer in peers:
        own = peer.timing
        figures = (f"{own.wall_s:.2f}", f"{own.cpu_s:.2f}", f"{own.cpu_s / peer.seconds:.2f}")
        table.add_row(peer.peer, peer.case, f"{peer.seconds:g}", *figures, f"{own.goodput_bps / 1e6:.0f}")
    return table
