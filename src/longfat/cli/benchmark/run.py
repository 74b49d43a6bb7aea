# SPDX-License-Identifier: Apache-2.0
"""The command ``bench``: the time that runs take in virtual time, and the same flows on peers.

Runs are executed one after the other; nothing else should use the machine meanwhile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from longfat.backends.protocol import Backend
from longfat.backends.registry import DEFAULT_BACKEND, open_backend
from longfat.cli.benchmark.case import CASES, Case, Timing, time_case
from longfat.study.schema.names import unknown
from longfat.system.errors import RigError, StudyError

NONE = "none"
HERE = "virtual"
PEERS: Mapping[str, str] = {"host": "mininet", "ns2": "ns2", "ns3": "ns3"}  # with the backends that execute them
PEER_CASES = ("1g-9000", "1g-1500")
PEER_SECONDS = {"ns3": 1.0}  # simulated seconds: ns-3 takes minutes for ten
HOST = (
    "host: the machine's own kernel over three namespaces in real time, rates by tbf, no delay, windows tuned by the "
    "kernel; CPU time of the whole machine"
)


@dataclass(frozen=True)
class Wanted:
    """Choices of the command line; without any all ``cases`` and ``peers``."""

    cases: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    repeats: int = 3


@dataclass(frozen=True)
class Row:
    """A case and its best timing, here or on a peer. ``seconds`` are simulated, or real on the machine's own kernel."""

    where: str
    flow: str
    seconds: float
    timing: Timing


def run_bench(wanted: Wanted, console: Console, *, as_text: bool = True) -> None:
    """Time the wanted cases and print the result, as JSON unless ``as_text``; report progress on standard error.

    Raises StudyError for an unknown case or peer, RigError if a run fails.
    """
    cases = chosen("--cases", wanted.cases, tuple(CASES))
    peers = chosen("--peers", wanted.peers, tuple(PEERS))
    progress = Console(stderr=True)

    def say(line: str) -> None:
        progress.print(line, soft_wrap=True, markup=False, highlight=False)

    rows = list(measure(open_backend(DEFAULT_BACKEND, {}, say=say), HERE, cases, wanted.repeats, say)) if cases else []
    notes = [HOST] if "host" in peers else []
    for peer in peers:
        try:
            backend = open_backend(PEERS[peer], {}, say=say)
            rows += measure(backend, peer, [name for name in cases if name in PEER_CASES], 1, say)
        except RigError as error:
            notes.append(f"{peer}: {error}")
    if as_text:
        console.print(_table(rows, wanted.repeats))
        for note in notes:
            console.print(note, soft_wrap=True, markup=False, highlight=False)
    else:
        data = [dataclasses.asdict(row) for row in rows]
        console.print_json(data={"repeats": wanted.repeats, "rows": data, "notes": notes})


def measure(
    backend: Backend, where: str, cases: Sequence[str], repeats: int, say: Callable[[str], None]
) -> Iterator[Row]:
    """Execute each case ``repeats`` times on a backend. Raises RigError if the backend is unusable or a run fails."""
    if reasons := backend.capabilities().reasons:
        raise RigError("; ".join(reasons), where=backend.name)
    for name in cases:
        case = case_on(where, CASES[name])
        say(f"{where}: {case.flow}")
        yield Row(where, case.flow, case.seconds, best([time_case(backend, case) for _ in range(repeats)]))


def case_on(where: str, case: Case) -> Case:
    """Return the case as it is executed here or on a peer."""
    return dataclasses.replace(case, seconds=PEER_SECONDS.get(where, case.seconds), own_kernel=where == "host")


def best(timings: Sequence[Timing]) -> Timing:
    """Return the least wall and the least CPU time, each by itself: other work of the machine only adds to them."""
    wall_s, cpu_s = min(timing.wall_s for timing in timings), min(timing.cpu_s for timing in timings)
    return dataclasses.replace(timings[0], wall_s=wall_s, cpu_s=cpu_s)


def chosen(option: str, given: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the ids that an option names: all by default, none for ``none``. Raises StudyError for an unknown id."""
    if tuple(given) == (NONE,):
        return ()
    for name in given:
        if name not in known:
            message, hint = unknown("id", name, (*known, NONE))
            raise StudyError(f"{option}: {message}", hint=hint)
    return tuple(name for name in known if not given or name in given)


def _table(rows: Sequence[Row], repeats: int) -> Table:
    headings = ("where", "flow", "wall s", "CPU s", "CPU s per simulated s", "wall us per segment", "goodput Mb/s")
    table = Table(*headings, title=f"best of {repeats}; on peers one run each")
    for row in rows:
        own = row.timing
        each = (own.cpu_s / row.seconds, 1e6 * own.wall_s / own.segments if own.segments else 0.0)
        numbers = [f"{number:.2f}" for number in (own.wall_s, own.cpu_s, *each)]
        table.add_row(row.where, row.flow, *numbers, f"{own.goodput_bps / 1e6:.0f}")
    return table
