# SPDX-License-Identifier: Apache-2.0
"""The command ``bench``: times the laboratory and its peers, compared with another commit if requested.

Runs are executed one after the other, with the builds alternating; nothing else should use the machine meanwhile.
Measures, never judges.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from operator import methodcaller

from rich.console import Console

from longfat.bench.builds import Build, Driven, build_at, this_build
from longfat.bench.cases import (
    CASES,
    PEER_CASES,
    PEER_SECONDS,
    PEERS,
    SIDE_BY_SIDE,
    Case,
    Timing,
    best,
    chosen,
    order,
    sample,
    total,
)
from longfat.bench.report import PeerRow, Results, Row, Sampled, as_json, show
from longfat.errors import RigError

PROFILE = "quick"
ROOT_COMMAND = "as root: ./just bench --peers host"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """The choices of the command line: ``cases`` and ``peers`` by their ids in ``cases``, all when there are none."""

    against: str | None = None
    cases: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    study: str | None = None
    sample: int = 20
    seed: int = 1
    repeats: int = 3


def run_bench(wanted: Wanted, console: Console, *, as_text: bool = True) -> None:
    """Time the wanted cases and print the result, as JSON unless ``as_text``.

    Progress is reported on standard error. Raises StudyError when the command line names something unknown, RigError
    when a build or a run fails.
    """
    cases = chosen("--cases", wanted.cases, tuple(CASES))
    peers = chosen("--peers", wanted.peers, tuple(PEERS))
    builds = [this_build(), *([build_at(wanted.against)] if wanted.against else [])]
    told = Console(stderr=True)

    def say(line: str) -> None:
        told.print(line, soft_wrap=True, markup=False, highlight=False)

    results = measure(wanted, builds, cases, peers, say)
    if as_text:
        show(results, console)
    else:
        console.print_json(data=as_json(results))


def measure(
    wanted: Wanted,
    builds: Sequence[Build],
    cases: Sequence[str],
    peers: Sequence[str],
    say: Say,
    where: str = "virtual",
) -> Results:
    """Do all runs on the backend ``where``, this build's first in ``builds``. Raises RigError when one fails."""
    rows: list[Row] = []
    sampled, side_by_side = None, None
    with ExitStack() as stack:
        driven = [stack.enter_context(Driven(build, where)) for build in builds]
        for build in driven if cases or wanted.study else []:
            say(f"making {build.build.name} ready")
            if reasons := build.reasons():
                raise RigError("; ".join(reasons), where=build.build.name)
        for name in cases:
            case = CASES[name]
            say(case.name)
            timings = _in_turns(driven, methodcaller("time_case", case), wanted.repeats)
            rows.append(Row(case.name, timings, case.seconds))
        if wanted.study:
            sampled = _sample(wanted, wanted.study, driven, say)
        if SIDE_BY_SIDE in cases and len(builds) == 1:
            side_by_side = _side_by_side(builds[0], where, wanted.repeats)
    rivals, notes = _beside(peers, [name for name in cases if name in PEER_CASES], say)
    return Results(wanted.repeats, rows, sampled, rivals, side_by_side, notes)


def _in_turns(driven: Sequence[Driven], once: Callable[[Driven], Timing], repeats: int) -> dict[str, Timing]:
    """The best timing of each build, by its name."""
    timings: list[list[Timing]] = [[] for _ in driven]
    for turn in range(repeats):
        for number in order(len(driven), turn):
            timings[number].append(once(driven[number]))
    return {one.build.name: best(own) for one, own in zip(driven, timings, strict=True)}


def _sample(wanted: Wanted, study: str, driven: Sequence[Driven], say: Say) -> Sampled:
    plans = {one.build.name: one.plan(study, PROFILE) for one in driven}
    shared = set.intersection(*map(set, plans.values()))
    names = sample(list(shared), wanted.sample, wanted.seed)
    if not names:
        raise RigError(f"builds have no run of profile {PROFILE} in common", where=study)
    found = []
    for name in names:
        say(name)
        found.append(_in_turns(driven, methodcaller("time_planned", name), wanted.repeats))
    sums = {build: total([timings[build] for timings in found]) for build in plans}
    row = Row(f"{study}, profile {PROFILE}: {len(names)} runs", sums)
    return Sampled(study, PROFILE, {build: len(plan) for build, plan in plans.items()}, len(shared), len(names), row)


def _side_by_side(build: Build, where: str, repeats: int) -> float:
    """Runs in a unit of time, two at a time, as a multiple of one at a time."""
    with Driven(build, where) as one, Driven(build, where) as other:
        for driven in (one, other):
            driven.reasons()
        walls = []
        for rows in ([one], [one, other]):
            start = time.perf_counter()
            with ThreadPoolExecutor(len(rows)) as pool:
                list(pool.map(lambda driven: [driven.time_case(CASES[SIDE_BY_SIDE]) for _ in range(repeats)], rows))
            walls.append(time.perf_counter() - start)
    return 2 * walls[0] / walls[1]


def _beside(peers: Sequence[str], cases: Sequence[str], say: Say) -> tuple[list[PeerRow], list[str]]:
    """Each case once on each peer, and a line for each thing that cannot be done here."""
    rows: list[PeerRow] = []
    notes: list[str] = []
    for peer in peers if cases else []:
        try:
            with Driven(this_build(), PEERS[peer]) as driven:
                if reasons := driven.reasons():
                    notes.append(f"{peer}: {'; '.join(reasons)}" + (f"; {ROOT_COMMAND}" if peer == "host" else ""))
                    continue
                for name in cases:
                    case = peer_case(peer, CASES[name])
                    say(f"{peer}: {case.name}")
                    rows.append(PeerRow(peer, case.flow, case.seconds, driven.time_case(case)))
        except RigError as error:
            notes.append(f"{peer}: {error}")
    return rows, notes


def peer_case(peer: str, case: Case) -> Case:
    """The case as the peer does it."""
    seconds = PEER_SECONDS.get(peer, case.seconds)
    return dataclasses.replace(case, seconds=seconds, own_kernel=peer == "host")
