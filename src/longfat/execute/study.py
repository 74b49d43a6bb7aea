# SPDX-License-Identifier: Apache-2.0
"""Execution of the runs of a plan that have no valid record yet.

Owns the order, the wait for an idle CPU, the retries and the reasons to stop. Must not look
inside a run: ``attempt`` does that.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue

from longfat.backends.protocol import Backend, Capabilities
from longfat.execute.attempt import STARVED_REPEATS, Attempt, Outcome
from longfat.execute.memory import jobs_in_memory
from longfat.execute.pool import Pool, Threads
from longfat.execute.progress import about
from longfat.execute.record.bundle import run_folder_name
from longfat.execute.record.verify import SUPERSEDED, find_records, remove_leftovers, set_aside
from longfat.execute.results import FULL_DISK_BYTES, Results, full_disk, no_room
from longfat.guest.counters import PROC, pressure_us
from longfat.plan.model import PlannedRun
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError
from longfat.system.events import Event, EventSink, Kind, Level, discard

IDLE_SHARE = 0.05  # share of an interval in which some task waited for a CPU
IDLE_LOOK_S = 2.0
IDLE_PATIENCE_S = 300.0  # after this time the run is repeated anyway


def wait_for_idle_cpu(
    machine: Path = PROC, sleep: Callable[[float], None] = time.sleep, patience_s: float = IDLE_PATIENCE_S
) -> bool:
    """Wait until hardly any task waits for a CPU; return False after the time limit.

    Returns at once if the kernel does not measure CPU pressure.
    """
    before = pressure_us(machine)
    for _ in range(int(patience_s / IDLE_LOOK_S)):
        sleep(IDLE_LOOK_S)
        now = pressure_us(machine)
        if before is None or now is None:
            return False
        if now - before < IDLE_SHARE * IDLE_LOOK_S * 1e6:
            return True
        before = now
    return False


PLAN_AGAIN = "plan again"
CANNOT_EXECUTE = "cannot execute the plan"  # most reasons in the message of a refusal
ATTEMPTS = 2  # a first crash may be the machine's fault; the second one is a finding
LOOK_S = 0.5  # longest time until an interrupt is noticed
_SHOWN_REASONS = 5


@dataclass(frozen=True)
class Summary:
    """Numbers of distinct runs: already recorded, executed successfully, and recorded as failed."""

    reused: int
    executed: int
    failed: int


def execute(
    runs: Sequence[PlannedRun],
    backend: Backend,
    results: Results,
    *,
    jobs: int,
    events: EventSink = discard,
    disk_bytes: int = 0,
    seconds: float = 0.0,
    memory_bytes: int | None = None,
    elsewhere: AbstractContextManager[Pool] | None = None,
) -> Summary:
    """Execute the missing runs in their order, ``jobs`` at a time on this machine, or all in a pool ``elsewhere``.

    A run that crashes is repeated once, unless it is certain to crash again, and then recorded as failed. A run that
    lacked CPU is repeated when the machine is idle. Failed runs of an earlier start are repeated. ``disk_bytes`` and
    ``seconds`` are estimates for all ``runs``. If runs are guests on this machine, ``memory_bytes`` limits the number
    at a time.

    Raises RigError before the first run if the backend refuses a run, or disk or memory is too small, and later if the
    results cannot be written; recorded runs stay. An interrupt ends the guests and leaves no partial folder.
    """
    repeats = require_executable(backend, {run.run_id: run.spec for run in runs}.values(), runs).repeats
    remove_leftovers(results.raw, events)
    missing, reused = _missing(runs, results, events, repeats=repeats)
    dispatch = _Dispatch(missing, results, events)
    if missing:
        total = len(missing) + reused
        _check_space(results, disk_bytes * len(missing) // total)
        if memory_bytes is not None:
            jobs, message = jobs_in_memory([attempt.spec for attempt in missing], jobs, memory_bytes)
            if message:
                events(Event(Kind.JOBS_LIMITED, message, Level.WARNING, {"jobs": jobs}))
        facts = {"total": len(missing), "reused": reused, "jobs": jobs}
        cost = f", {about(seconds * len(missing) / total)}" if seconds else ""
        events(Event(Kind.RUNS_STARTED, f"{len(missing)} of {total} runs to execute{cost}", facts=facts))
        pool = elsewhere or Threads(backend, results.raw.resolve(), min(jobs, len(missing)))
        _guarded(dispatch, pool)
    summary = Summary(reused, dispatch.done - dispatch.failed, dispatch.failed)
    message = f"{summary.executed} runs executed, {reused} kept, {summary.failed} failed"
    events(Event(Kind.RUNS_ENDED, message, facts={"executed": summary.executed, "failed": summary.failed}))
    return summary


def _guarded(dispatch: _Dispatch, opened: AbstractContextManager[Pool]) -> None:
    """Execute everything, report the reason for an early stop, and clean up."""
    try:
        with opened as pool:
            dispatch.all(pool)
    except BaseException as error:
        with suppress(OSError):  # the event log may be on a full disk, which the raised error reports
            dispatch.events(Event(Kind.RUNS_STOPPED, f"stopped: {str(error) or 'interrupted'}", Level.ERROR))
        if isinstance(error, OSError) and no_room(error):
            raise full_disk(dispatch.results.path, error) from error
        raise
    finally:
        remove_leftovers(dispatch.results.raw)


class _Dispatch:
    """Dispatcher of attempts to a pool until none is left; ``done`` counts runs, not attempts."""

    def __init__(self, missing: Sequence[Attempt], results: Results, events: EventSink) -> None:
        self.waiting = deque(missing)
        self.total = len(missing)
        self.results = results
        self.events = events
        self.done = 0
        self.failed = 0

    def all(self, pool: Pool) -> None:
        """Execute every run."""
        going: dict[Future[Outcome], Attempt] = {}
        ended: SimpleQueue[Future[Outcome]] = SimpleQueue()
        while self.waiting or going:
            while self.waiting and len(going) < pool.slots:
                attempt = self.waiting.popleft()
                future = pool.submit(attempt)
                going[future] = attempt
                future.add_done_callback(ended.put)
            try:
                future = ended.get(timeout=LOOK_S)
            except Empty:
                pool.check()
                continue
            self.settle(going.pop(future), future.result())

    def settle(self, attempt: Attempt, outcome: Outcome) -> None:
        """Decide the consequence of a finished attempt: nothing, another attempt, or a failed run."""
        facts: dict[str, int | float | str] = {
            "folder": attempt.name,
            "attempt": attempt.number,
            "wall_seconds": outcome.wall_seconds,
        }
        if outcome.reason is not None and self.results.free_bytes() < FULL_DISK_BYTES:
            raise RigError(f"the disk is full; last run: {outcome.reason}", where=str(self.results.path))
        number = attempt.number + 1
        if outcome.starved:
            count = attempt.starved + 1
            again = f"it is repeated when the machine is idle ({count} of {STARVED_REPEATS} times)"
            message = f"{attempt.name}: {outcome.reason}; {again}"
            self.events(Event(Kind.RUN_RETRIED, message, Level.WARNING, facts))
            wait_for_idle_cpu()
            self.waiting.appendleft(replace(attempt, number=number, starved=count))
            return
        if not outcome.settled:
            message = f"{attempt.name} crashed and is repeated: {outcome.reason}"
            self.events(Event(Kind.RUN_RETRIED, message, Level.WARNING, facts))
            self.waiting.appendleft(replace(attempt, number=number, last=number - attempt.starved == ATTEMPTS))
            return
        self.done += 1
        facts.update(done=self.done, total=self.total)
        if outcome.reason is None:
            self.events(Event(Kind.RUN_FINISHED, attempt.name, facts=facts))
        else:
            self.failed += 1
            message = f"{attempt.name} failed: {outcome.reason}"
            self.events(Event(Kind.RUN_FAILED, message, Level.ERROR, facts))


def require_executable(backend: Backend, specs: Collection[RunSpec], runs: Sequence[PlannedRun] = ()) -> Capabilities:
    """Return the backend's capabilities. Raises RigError with every reason why it cannot execute the runs.

    The hint names the experiments of ``runs`` that it can execute.
    """
    offered = backend.capabilities()
    if offered.reasons:
        raise RigError(f"backend {backend.name!r} cannot work here: " + "; ".join(offered.reasons))
    counts = Counter(reason for spec in specs for reason in backend.refuses(spec))
    if counts:
        lines = [f"\n  {count} runs: {reason}" for reason, count in counts.most_common(_SHOWN_REASONS)]
        more = f"\n  and {len(counts) - _SHOWN_REASONS} more reasons" if len(counts) > _SHOWN_REASONS else ""
        refusing = {run.experiment for run in runs if backend.refuses(run.spec)}
        names = sorted({run.experiment for run in runs} - refusing)
        hint = f"it can execute --only {','.join(names)}" if names else None
        raise RigError(f"backend {backend.name!r} {CANNOT_EXECUTE}:" + "".join(lines) + more, hint=hint)
    pins = backend.pins()
    possible = [{**pins, "kernel": kernel} for kernel in (pins["kernel"], *offered.kernels.values())]
    if any(spec.pins not in possible for spec in specs):
        raise RigError(
            f"the plan was made for digests that differ from the digests of backend {backend.name!r}", hint=PLAN_AGAIN
        )
    return offered


def _missing(
    runs: Sequence[PlannedRun], results: Results, events: EventSink, *, repeats: bool
) -> tuple[list[Attempt], int]:
    """Return first attempts at the distinct runs without an ok record, in the plan's order, and the number of others.

    Failed records are set aside.
    """
    records = find_records(results.raw, events)
    missing: dict[str, Attempt] = {}
    reused = set()
    for run in runs:
        record = records.get(run.run_id)
        if record is not None and record.status == "ok":
            reused.add(run.run_id)
        elif run.run_id not in missing:
            name = run_folder_name(run.scenario, run.repetition, run.run_id)
            missing[run.run_id] = Attempt(name, run.spec, 1, last=ATTEMPTS == 1, repeats=repeats)
            if record is not None:
                set_aside(record.folder, SUPERSEDED)
    return list(missing.values()), len(reused)


def _check_space(results: Results, needed_bytes: int) -> None:
    free = results.free_bytes()
    if free < needed_bytes + FULL_DISK_BYTES:
        raise RigError(
            f"the runs need about {needed_bytes / 1e6:.0f} MB of disk, but {free / 1e6:.0f} MB are free",
            where=str(results.path),
            hint="free some space, or give a folder on another disk with --results",
        )
