# SPDX-License-Identifier: Apache-2.0
"""Executes the runs of a plan that have no valid record yet, and sees that each ends in one.

Owns the order, the retry and the reasons to stop. Must not look inside a run: that is ``attempt``.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from longfat.backends.protocol import Backend, Capabilities
from longfat.errors import RigError
from longfat.events import Event, EventSink, Kind, Level, discard
from longfat.execute.attempt import STARVED_REPEATS, Attempt, Outcome, attempt_run, death
from longfat.execute.calm import wait_for_calm
from longfat.execute.deadline import Deadline, TimeIsUp
from longfat.execute.leases import Lease, Leases
from longfat.execute.memory import jobs_in_memory
from longfat.execute.results import FULL_DISK_BYTES, Results, full_disk, no_room
from longfat.execute.workers import WorkerDied, Workers, open_workers
from longfat.plan.model import PlannedRun
from longfat.record.bucket import is_failed
from longfat.record.bundle import run_folder_name
from longfat.record.outbox import Outbox
from longfat.record.verify import SUPERSEDED, find_records, remove_leftovers, remove_partials, set_aside

CANNOT_EXECUTE = "cannot execute the plan"  # of a refusal before the first run
ATTEMPTS = 2  # a crash may be the machine's fault once; the second time it is a finding
LOOK_S = 2.0  # so often a task that waits for others' runs looks for their ends
_SHOWN_REASONS = 5


@dataclass(frozen=True)
class Summary:
    """How many distinct runs had a valid record, were executed well, ended as failed, or are left for want of time."""

    reused: int
    executed: int
    failed: int
    left: int = 0


def execute(
    runs: Sequence[PlannedRun],
    backend: Backend,
    results: Results,
    *,
    jobs: int,
    events: EventSink = discard,
    scheduler: str | None = None,
    disk_bytes: int = 0,
    memory_bytes: int | None = None,
    leases: Leases | None = None,
    deadline: Deadline | None = None,
    outbox: Outbox | None = None,
) -> Summary:
    """Execute the missing runs, in their order, ``jobs`` at a time.

    Where the folder is shared, a run is executed under its lease; for runs that others hold, the command waits until
    they are recorded, or their holders dead. Until a ``deadline``, runs are started that end before it; those that do
    not are interrupted, and none is started any more. ``disk_bytes`` is the estimate for all of ``runs``. Where runs
    are guests on this machine, no more of them are executed at once than ``memory_bytes`` hold. A run that crashes is
    repeated once, unless it is certain to crash again, then recorded as failed; one that was starved of CPU is repeated
    when the machine is calm. Failed runs of an earlier start are repeated. Raises RigError, before anything starts,
    when the backend refuses a run, or disk or memory is too small, and at any time when the results cannot be written;
    recorded runs stay. With an ``outbox`` the records go to its store instead of the folder. On an interrupt the
    workers are ended and no partial folder stays.
    """
    repeats = _ask(backend, runs).repeats
    if leases is None:
        remove_leftovers(results.raw, events)
    missing, reused = _missing(runs, results, events, repeats=repeats, outbox=outbox)
    total = len(missing) + reused
    dispatch = _Dispatch(missing, backend, results, events, leases, deadline, outbox)
    if missing:
        _check_space(results, disk_bytes * len(missing) // total)
        if memory_bytes is not None:
            jobs, message = jobs_in_memory([attempt.spec for attempt in missing], jobs, memory_bytes)
            if message:
                events(Event(Kind.JOBS_LIMITED, message, Level.WARNING, {"jobs": jobs}))
        facts = {"total": len(missing), "reused": reused, "jobs": jobs}
        events(Event(Kind.RUNS_STARTED, f"{len(missing)} of {total} runs to execute", facts=facts))
        _guarded(dispatch, min(jobs, len(missing)), scheduler)
    left = len(missing) - dispatch.done
    executed, kept = dispatch.done - dispatch.failed - dispatch.kept, reused + dispatch.kept
    summary = Summary(kept, executed, dispatch.failed, left)
    message = f"{executed} runs executed, {kept} kept, {dispatch.failed} failed"
    message += f", {left} left for want of time" if left else ""
    events(Event(Kind.RUNS_ENDED, message, facts={"executed": executed, "failed": dispatch.failed, "left": left}))
    return summary


def _guarded(dispatch: _Dispatch, jobs: int, scheduler: str | None) -> None:
    """Execute everything, or what the time allows, and clean up however it ends."""
    try:
        with dispatch.deadline.enforced() if dispatch.deadline else nullcontext():
            dispatch.all(jobs, scheduler)
    except TimeIsUp as error:
        _tell_stop(dispatch.events, error)
    except BaseException as error:
        _tell_stop(dispatch.events, error)
        if isinstance(error, OSError) and no_room(error):
            raise full_disk(dispatch.results.path, error) from error
        raise
    finally:
        if dispatch.leases is None:
            remove_leftovers(dispatch.results.raw)
        else:
            for name in dispatch.leases.held:
                remove_partials(dispatch.results.raw, name)


class _Dispatch:
    """Keeps the workers busy with attempts until none is left; ``done`` counts runs, not attempts.

    Of these, ``failed`` were recorded as such, and ``kept`` recorded by somebody else meanwhile.
    """

    def __init__(
        self,
        missing: Sequence[Attempt],
        backend: Backend,
        results: Results,
        events: EventSink,
        leases: Leases | None,
        deadline: Deadline | None,
        outbox: Outbox | None,
    ) -> None:
        self.waiting = deque(missing)
        self.elsewhere: deque[Attempt] = deque()  # others are at them
        self.leases = leases
        self.deadline = deadline
        self.outbox = outbox
        self.total = len(missing)
        self.backend = backend
        self.results = results
        self.events = events
        self.done = 0
        self.failed = 0
        self.kept = 0

    def all(self, jobs: int, scheduler: str | None) -> None:
        """Execute everything that there is time for."""
        with open_workers(jobs, scheduler) as workers:
            while self.waiting or self.elsewhere or len(workers):
                while self.waiting and len(workers) < workers.slots:
                    self.begin(self.waiting.popleft(), workers)
                if len(workers):
                    self.end_one(workers)
                elif self.elsewhere:
                    time.sleep(LOOK_S)
                self.waiting += self.elsewhere
                self.elsewhere.clear()

    def begin(self, attempt: Attempt, workers: Workers) -> None:
        """Start an attempt, unless the time does not suffice, or another task has the run or has recorded it."""
        if self.deadline and not self.deadline.suffices_for(attempt.spec):
            return
        if self.leases and attempt.name not in self.leases.held:
            lease = self.leases.take(attempt.name)
            if lease is None:
                self.elsewhere.append(attempt)
                return
            if self.is_recorded(attempt):
                self.leases.give_back(attempt.name)
                self.done += 1
                self.kept += 1
                return
            if lease is Lease.TAKEN_OVER:
                remove_partials(self.results.raw, attempt.name, self.events)
        workers.start(attempt, attempt_run, self.backend, attempt, self.results.raw.resolve())

    def is_recorded(self, attempt: Attempt) -> bool:
        """Whether a run whose lease is held has a valid record by now; a failed one is set aside, to be repeated."""
        if not (self.results.raw / attempt.name).exists():
            return False
        run_id = attempt.spec.run_id
        record = find_records(self.results.raw, self.events, of={run_id}).get(run_id)
        if record is not None and record.status != "ok":
            set_aside(record.folder, SUPERSEDED)
            return False
        return record is not None

    def end_one(self, workers: Workers) -> None:
        """Wait until one attempt has ended, and settle it."""
        attempt, result = workers.wait()
        try:
            outcome = result()
        except WorkerDied:
            outcome = death(self.backend.name, attempt, self.results.raw.resolve())
        self.settle(attempt, outcome)
        if outcome.settled:
            if self.outbox:
                self.outbox.send(attempt.name, ok=outcome.reason is None)
            if self.leases:
                self.leases.give_back(attempt.name)
            if self.deadline:
                self.deadline.observe(attempt.spec, outcome.wall_seconds)

    def settle(self, attempt: Attempt, outcome: Outcome) -> None:
        """Decide the consequence of an attempt that ended: nothing, another one, or a failed run."""
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
            again = f"it is repeated when the machine is calm ({count} of {STARVED_REPEATS} times)"
            message = f"{attempt.name}: {outcome.reason}; {again}"
            self.events(Event(Kind.RUN_RETRIED, message, Level.WARNING, facts))
            wait_for_calm()
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


def _ask(backend: Backend, runs: Sequence[PlannedRun]) -> Capabilities:
    """The backend's offer. Raises RigError with every reason why it cannot execute the plan."""
    offered = backend.capabilities()
    if offered.reasons:
        raise RigError(f"backend {backend.name!r} cannot work here: " + "; ".join(offered.reasons))
    specs = {run.run_id: run.spec for run in runs}
    counts = Counter(reason for spec in specs.values() for reason in backend.refuses(spec))
    if counts:
        lines = [f"\n  {count} runs: {reason}" for reason, count in counts.most_common(_SHOWN_REASONS)]
        more = f"\n  and {len(counts) - _SHOWN_REASONS} more reasons" if len(counts) > _SHOWN_REASONS else ""
        raise RigError(f"backend {backend.name!r} {CANNOT_EXECUTE}:" + "".join(lines) + more)
    pins = backend.pins()
    possible = [{**pins, "kernel": kernel} for kernel in (pins["kernel"], *offered.kernels.values())]
    if any(spec.pins not in possible for spec in specs.values()):
        raise RigError(
            f"the plan was made for digests that differ from those of backend {backend.name!r}", hint="plan again"
        )
    return offered


def _missing(
    runs: Sequence[PlannedRun], results: Results, events: EventSink, *, repeats: bool, outbox: Outbox | None
) -> tuple[list[Attempt], int]:
    """First attempts at the distinct runs without an ok record, in the plan's order; how many have one.

    In a folder that is shared, failed records stay until the lease of their run is held. With an ``outbox``, the
    records of its store count, and not those of the folder.
    """
    of = {run.run_id for run in runs} if results.sharer else None
    records = {} if outbox else find_records(results.raw, events, of=of)
    stored = outbox.names() if outbox else {}
    folder = outbox.folder.resolve() if outbox else None
    missing: dict[str, Attempt] = {}
    reused = set()
    for run in runs:
        record = records.get(run.run_id)
        name = run_folder_name(run.scenario, run.repetition, run.run_id)
        if (name in stored and not is_failed(stored[name])) or (record is not None and record.status == "ok"):
            reused.add(run.run_id)
        elif run.run_id not in missing:
            missing[run.run_id] = Attempt(name, run.spec, 1, last=ATTEMPTS == 1, repeats=repeats, outbox=folder)
            if record is not None and results.sharer is None:
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


def _tell_stop(events: EventSink, error: BaseException) -> None:
    try:
        message = f"stopped: {str(error) or 'interrupted'}"
        events(Event(Kind.RUNS_STOPPED, message, Level.ERROR))
    except OSError:
        # The event log is on the disk that is full: the error that is being raised says so.
        return
