# SPDX-License-Identifier: Apache-2.0
"""The output of the bench: tables for people, one JSON text for programs. Measures nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from longfat.bench.cases import CASES, Timing

FIXED = CASES["fixed"].name
HOST = (
    "host: the machine's own kernel over three namespaces in real time, rates by tbf, no delay, windows tuned by the "
    "kernel; CPU time is that of the whole machine"
)


@dataclass(frozen=True)
class Row:
    """One case: its best timing, and its length in virtual seconds."""

    name: str
    best: Timing
    seconds: float


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
    peers: Sequence[PeerRow]
    side_by_side: float | None
    notes: Sequence[str]


def show(results: Results, console: Console) -> None:
    """Print the tables, then a line for each peer that could not be measured."""
    if results.rows:
        console.print(_times(results.rows, results.repeats))
    if results.side_by_side is not None:
        console.print(f"two runs side by side: {results.side_by_side:.2f} times the rate of one", highlight=False)
    if results.peers:
        console.print(_peers(results.peers))
    caveats = [HOST] if any(peer.peer == "host" for peer in results.peers) else []
    for note in [*caveats, *results.notes]:
        console.print(note, soft_wrap=True, markup=False, highlight=False)


def _times(rows: Sequence[Row], repeats: int) -> Table:
    table = Table(
        *("work", "wall s", "CPU s", "virtual s per wall s", "wall us per segment"), title=f"best of {repeats}"
    )
    fixed = next((row.best.wall_s for row in rows if row.name == FIXED), None)
    for row in rows:
        own = row.best
        speed = f"{row.seconds / own.wall_s:.1f}" if row.name != FIXED else ""
        each = f"{1e6 * (own.wall_s - fixed) / own.segments:.2f}" if speed and fixed is not None else ""
        table.add_row(row.name, f"{own.wall_s:.2f}", f"{own.cpu_s:.2f}", speed, each)
    return table


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
