# SPDX-License-Identifier: Apache-2.0
"""The command ``bench``: times runs in virtual time, and the same flows on peers.

Runs are executed one after the other; nothing else should use the machine meanwhile. Measures, never judges.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.backends.registry import DEFAULT_BACKEND, open_backend
from longfat.bench.cases import CASES, PEER_CASES, PEER_SECONDS, PEERS, SIDE_BY_SIDE, Case, Timing, best, chosen
from longfat.bench.report import PeerRow, Results, Row, show
from longfat.bench.timing import time_case
from longfat.errors import RigError

ROOT_COMMAND = "as root: ./just bench --peers host"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """Choices of the command line: ``cases`` and ``peers`` by their ids in ``cases``, all if empty."""

    cases: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    repeats: int = 3


def run_bench(wanted: Wanted, console: Console, *, as_text: bool = True) -> None:
    """Time the wanted cases and print the result, as JSON unless ``as_text``.

    Progress is reported on standard error. Raises StudyError if the command line names an unknown case or peer,
    RigError if a run fails.
    """
    cases = chosen("--cases", wanted.cases, tuple(CASES))
    peers = chosen("--peers", wanted.peers, tuple(PEERS))
    progress = Console(stderr=True)

    def say(line: str) -> None:
        progress.print(line, soft_wrap=True, markup=False, highlight=False)

    rows, side_by_side = measure(open_backend(DEFAULT_BACKEND, {}, say=say), cases, wanted.repeats, say)
    peer_rows, notes = measure_peers(peers, [name for name in cases if name in PEER_CASES], say)
    results = Results(wanted.repeats, rows, peer_rows, side_by_side, notes)
    if as_text:
        show(results, console)
    else:
        console.print_json(data=dataclasses.asdict(results))


def measure(backend: Backend, cases: Sequence[str], repeats: int, say: Say) -> tuple[list[Row], float | None]:
    """Execute each case ``repeats`` times on the backend. Raises RigError if a run fails.

    Returns the rows, and the rate of two runs at a time as a multiple of one at a time.
    """
    if not cases:
        return [], None
    if reasons := backend.capabilities().reasons:
        raise RigError("; ".join(reasons), where=backend.name)
    rows: list[Row] = []
    with _workers(2) as workers:
        for name in cases:
            say(CASES[name].name)
            timings = [_timed(workers, backend, CASES[name])[0] for _ in range(repeats)]
            rows.append(Row(CASES[name].name, best(timings), CASES[name].seconds))
        rate = _side_by_side(workers, backend, repeats) if SIDE_BY_SIDE in cases else None
    return rows, rate


def measure_peers(peers: Sequence[str], cases: Sequence[str], say: Say) -> tuple[list[PeerRow], list[str]]:
    """Execute each case once on each peer; also return a note for each peer that does not work here."""
    rows: list[PeerRow] = []
    notes: list[str] = []
    for peer in peers if cases else []:
        try:
            backend = open_backend(PEERS[peer], {}, say=say)
            if reasons := backend.capabilities().reasons:
                notes.append(f"{peer}: {'; '.join(reasons)}" + (f"; {ROOT_COMMAND}" if peer == "host" else ""))
                continue
            with _workers(1) as workers:
                for name in cases:
                    case = peer_case(peer, CASES[name])
                    say(f"{peer}: {case.name}")
                    rows.append(PeerRow(peer, case.flow, case.seconds, _timed(workers, backend, case)[0]))
        except RigError as error:
            notes.append(f"{peer}: {error}")
    return rows, notes


def peer_case(peer: str, case: Case) -> Case:
    """Return the case as the peer executes it."""
    seconds = PEER_SECONDS.get(peer, case.seconds)
    return dataclasses.replace(case, seconds=seconds, own_kernel=peer == "host")


def _workers(count: int) -> ProcessPoolExecutor:
    """Return worker processes: a run's CPU time is the time of all children of its process."""
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))


def _timed(workers: ProcessPoolExecutor, backend: Backend, case: Case, at_once: int = 1) -> list[Timing]:
    """Execute the case in ``at_once`` workers at the same time. Raises RigError if a run fails."""
    started = [workers.submit(time_case, backend, case) for _ in range(at_once)]
    try:
        return [future.result() for future in started]
    except BrokenProcessPool as error:
        raise RigError("the process that executed the run ended", where=case.name) from error


def _side_by_side(workers: ProcessPoolExecutor, backend: Backend, repeats: int) -> float:
    """Return the rate of two runs at a time as a multiple of one at a time."""
    walls = []
    for at_once in (1, 2):
        start = time.perf_counter()
        for _ in range(repeats):
            _timed(workers, backend, CASES[SIDE_BY_SIDE], at_once)
        walls.append(time.perf_counter() - start)
    return 2 * walls[0] / walls[1]
