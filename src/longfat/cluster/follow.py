# SPDX-License-Identifier: Apache-2.0
"""Has a cluster execute the runs of a plan that have no record, however often tasks, nodes and this process end.

Owns the rounds: what is left is submitted, followed until no task is left, and looked at. The state is in the records
and in the cluster's own queue: a process that starts anew finds the tasks of the one before it. Must not know a kind of
cluster, nor execute a run itself.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from longfat.cluster.protocol import Cluster, End, Standing, Work, ends_in
from longfat.errors import RigError
from longfat.events import Event, EventSink, Kind, Level
from longfat.execute.results import Results
from longfat.plan.model import PlannedRun
from longfat.record.bundle import run_folder_name
from longfat.record.merge import merge_records
from longfat.record.verify import Record, find_records

LOOK_S = 1.0  # so often the records are counted
POLL_S = 30.0  # so often, at the most, the cluster is asked; a round begins with shorter intervals
END_S = 60.0  # a task whose runs are all recorded has ended by then
SILENCE_S = 600.0  # a cluster's controller may be away for so long
IN_ORDER = (0, 4, 75, 130)  # of a task: done, with failed runs, out of time, interrupted
LOG_LINES = 8

Submit = Callable[[Sequence[PlannedRun], frozenset[str]], Work]


@dataclass
class Follower:
    """Follows the tasks called ``name`` that fill ``results`` with the records of ``runs``.

    ``work_for`` makes the work for the runs that are left, without the nodes that are excluded.
    """

    cluster: Cluster
    name: str
    runs: Sequence[PlannedRun]
    results: Results
    events: EventSink
    work_for: Submit
    folder: Path
    excluded: set[str] = field(default_factory=set)

    def all(self) -> dict[str, Record]:
        """Return when every run has an ok record, or one that failed wherever it was tried: the records by run_id.

        Raises RigError when the cluster refuses the work or does not answer, and when tasks end without doing any.
        """
        given_up: set[str] = set()
        while True:
            records = self._records()
            left = [run for run in self._distinct() if not _ok(records, run.run_id) and run.run_id not in given_up]
            standing = self.cluster.poll(self.name)
            if not left:
                self._end(standing)
                return records
            stamps = {name: _stamp(self.results.raw / name) for name in map(_name, left)}
            if standing.ended:
                self._submit(left)
            else:
                self._say(f"following the tasks that are there already: {_words(standing)}")
            self._watch(stamps)
            given_up |= self._judge(stamps, left)

    def _end(self, standing: Standing) -> None:
        """See that no task is left: those that run end soon, those that wait have nothing to do."""
        if standing.running and not standing.waiting:
            deadline = time.monotonic() + END_S
            while not standing.ended and time.monotonic() < deadline:
                time.sleep(LOOK_S)
                standing = self.cluster.poll(self.name)
        if not standing.ended:
            self.cluster.cancel(self.name)
        while not standing.ended:
            time.sleep(LOOK_S)
            standing = self.cluster.poll(self.name)

    def _submit(self, left: Sequence[PlannedRun]) -> None:
        shutil.rmtree(self.folder / "ended", ignore_errors=True)
        for log in self.folder.glob("task-*.log"):
            log.unlink()
        work = self.work_for(left, frozenset(self.excluded))
        self.cluster.submit(work)
        size = f"{work.tasks} tasks of {work.cpus} CPUs, for {work.limit_s / 60:.0f} min at the most"
        self._say(f"{len(left)} runs left; submitted to {self.cluster.name}: {size}")

    def _watch(self, stamps: Mapping[str, int | None]) -> None:
        """Tell of each record as it appears, until no task is left or every run has a new one."""
        begun = asked = heard = time.monotonic()
        waiting, total = set(stamps), len(list(self._distinct()))
        facts = {"total": len(waiting), "reused": total - len(waiting), "jobs": 0}
        self.events(Event(Kind.RUNS_STARTED, f"{len(waiting)} of {total} runs to execute", facts=facts))
        done, said = 0, ""
        while waiting:
            raws = [*(part / "raw" for part in self.cluster.parts(self.name)), self.results.raw]
            for name in sorted(waiting):
                folder = next((raw / name for raw in raws if (raw / name).is_dir()), None)
                if folder is not None and _stamp(folder) != stamps[name]:
                    waiting.discard(name)
                    done += 1
                    self._tell(folder, done, done + len(waiting))
            now = time.monotonic()
            if now - asked >= min(POLL_S, LOOK_S + (now - begun) / 20):
                asked = now
                try:
                    standing, heard = self.cluster.poll(self.name), now
                except RigError as error:
                    if now - heard > SILENCE_S:
                        raise
                    self._say(f"asking again: {error.message}", Level.WARNING)
                    continue
                if standing.ended:
                    return
                if (words := _words(standing)) != said:
                    said = words
                    self._say(words)
            time.sleep(LOOK_S)

    def _judge(self, stamps: Mapping[str, int | None], left: Sequence[PlannedRun]) -> set[str]:
        """Doubt the nodes on which tasks broke or runs failed, if others do well; else give up the failed runs.

        Raises RigError when nothing was recorded and nothing is to be tried otherwise.
        """
        if parts := [part / "raw" for part in self.cluster.parts(self.name) if (part / "raw").is_dir()]:
            merge_records(self.results.raw, parts)
        now = self._records()
        there = [now[run.run_id] for run in left if run.run_id in now]
        new = [record for record in there if _stamp(record.folder) != stamps.get(record.folder.name)]
        failed = {record.run_id: record.node for record in new if record.status == "failed"}
        broken = [end for end in ends_in(self.folder) if end.status not in IN_ORDER]
        well = {record.node for record in new if record.status == "ok"} - set(failed.values())
        doubted = ({end.node for end in broken} | set(failed.values())) - self.excluded
        if doubted and well - doubted - self.excluded:
            self.excluded |= doubted
            why = "; ".join([*(self._of_task(end) for end in broken[:1]), *_reasons(now, failed)])
            names = ", ".join(sorted(doubted))
            self._say(f"{names} gets no more runs, while others execute theirs: {why}", Level.WARNING)
            return set()
        if not new and not all(_ok(now, run.run_id) for run in left):
            raise RigError(
                f"the tasks ended, and no run was recorded: {self._of_task(broken[0]) if broken else self._last_log()}",
                where=str(self.folder),
                hint="free or repair what they lack; the same command continues",
            )
        return set(failed)

    def _records(self) -> dict[str, Record]:
        return find_records(self.results.raw, self.events, of={run.run_id for run in self.runs})

    def _distinct(self) -> Iterable[PlannedRun]:
        return {run.run_id: run for run in reversed(self.runs)}.values()

    def _tell(self, folder: Path, done: int, total: int) -> None:
        name = folder.name
        try:
            run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
            ok, reason, seconds = run["status"] == "ok", run["reason"], float(run["wall_seconds"])
        except (OSError, ValueError, KeyError, TypeError):
            ok, reason, seconds = True, None, 0.0  # its checksums are looked at when the round is over
        kind, level = (Kind.RUN_FINISHED, Level.INFO) if ok else (Kind.RUN_FAILED, Level.ERROR)
        message = name if ok else f"{name} failed: {reason}"
        facts: dict[str, int | float | str] = {"folder": name, "wall_seconds": seconds, "done": done, "total": total}
        self.events(Event(kind, message, level, facts))

    def _of_task(self, end: End) -> str:
        return f"task {end.task} on {end.node} ended with status {end.status}\n{_tail(self.folder, end.task)}"

    def _last_log(self) -> str:
        logs = sorted(self.folder.glob("task-*.log"), key=lambda path: path.stat().st_mtime)
        return f"\n{_tail(self.folder, logs[-1].stem.removeprefix('task-'))}" if logs else "they left no log"

    def _say(self, message: str, level: Level = Level.INFO) -> None:
        self.events(Event(Kind.STAGE_STARTED, message, level))


def _name(run: PlannedRun) -> str:
    return run_folder_name(run.scenario, run.repetition, run.run_id)


def _ok(records: dict[str, Record], run_id: str) -> bool:
    return run_id in records and records[run_id].status == "ok"


def _words(standing: Standing) -> str:
    reason = f" ({standing.reason})" if standing.waiting and standing.reason not in ("", "None") else ""
    return f"{standing.waiting} tasks wait{reason}, {standing.running} run"


def _reasons(records: dict[str, Record], failed: Iterable[str]) -> list[str]:
    """Why the first of the failed runs failed."""
    first = next(iter(failed), None)
    return [f"{records[first].folder.name} failed: {records[first].reason}"] if first else []


def _stamp(folder: Path) -> int | None:
    """Tells a record from the one that stood in its place before; None without one."""
    try:
        return folder.stat().st_ino
    except FileNotFoundError:
        return None


def _tail(folder: Path, task: str) -> str:
    try:
        lines = (folder / f"task-{task}.log").read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return "it left no log"
    return "\n".join(f"  {line}" for line in lines[-LOG_LINES:])
