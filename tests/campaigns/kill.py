# SPDX-License-Identifier: Apache-2.0
"""Kills processes of a command at any moment, then gives the same command again: nothing is lost, nothing differs.

A round starts `longfat reproduce` of a small study, strikes one of its processes or all, waits until nothing of it
runs, and starts it again, to be struck again up to six times in all, and then left alone. What comes out must be what
an undisturbed start makes, to the byte; a record that was there after one start must be there after the next, the same
file; nothing may be left of what was in flight. A part of a guest that is left stopped ends with the next start.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from campaigns.commands import Answer, answered, environment, start
from campaigns.processes import Process, await_end, below, marked
from campaigns.rounds import Campaign, Failed, Round

STUDY = """\
format: 2
study: struck
title: Four runs
algorithms: {reno: {cca: reno}, cubic: {cca: cubic}}
hosts: {mtu: 1500 B}
experiments:
  - id: delay
    topology: {kind: delay, rate: 10 Mbit/s, rtt: 20 ms}
    flows: [{name: f, from: client1, to: server, algorithm: "${algorithm}", window: 64 KiB, duration: 1 s}]
    probes: {capture: [f]}
    sweep: {product: {algorithm: [reno, cubic]}}
    repetitions: 2
"""
CLAIMS = """\
format: 2
study: struck
claims:
  - id: fills
    artifact: fig-1
    statement: A window above what the path holds fills it.
    paper: {value: 9 Mbit/s, where: rate over frames}
    relation: goodput[delay] > 9 for algorithm
"""
FIGURES = """\
format: 2
study: struck
figures:
  - {bars: fig-1, title: goodput, of: "goodput[delay]", x: algorithm, hypothesis: the rate}
"""
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
KILLS = 6  # of a round at most, or fewer where a start ends well all the same
FRESH = 0.25  # of the commands begin with an interpreter; the others have read their modules already
ENDS_S = 120.0  # so long a command may take after a signal
GONE_S = 60.0  # and its processes to go after it


@dataclass(frozen=True)
class Undisturbed:
    """What an undisturbed start makes, the number of its events, and how long it took."""

    made: Mapping[str, bytes]
    events: int
    seconds: float
    left: frozenset[str]


class Kills(Campaign):
    """The campaign in the folder ``work``, with these backends."""

    def __init__(
        self, work: Path, backends: tuple[str, ...] = ("fake", "fake", "fake", "virtual"), fresh: float = FRESH
    ) -> None:
        super().__init__(work)
        self.backends, self.fresh = backends, fresh
        self.study = work / "struck"
        self.study.mkdir()
        for name, text in (("study", STUDY), ("claims", CLAIMS), ("figures", FIGURES)):
            (self.study / f"{name}.yaml").write_text(text, encoding="utf-8")
        self.undisturbed: dict[str, Undisturbed] = {}
        self.waiting: list[Process] = []
        for one in {*SIGNALS} - {signal.SIGKILL}:
            if signal.getsignal(one) is signal.SIG_IGN:  # as nohup(1) has it, and what is started would inherit
                signal.signal(one, signal.SIG_DFL)

    def play(self, chance: random.Random) -> Round:
        """One round."""
        backend = chance.choice(self.backends)
        kills: list[str] = []
        self.waiting = []
        folder = self.work / "round"
        folder.mkdir()
        try:
            if backend not in self.undisturbed:
                self.undisturbed[backend] = self._without(backend, self.work / "undisturbed", chance)
            status = None
            for _ in range(chance.randint(1, KILLS)):
                before = records(folder)
                status = self._strike(backend, folder, chance, kills)
                require_kept(before, folder)
                if not status:
                    break
            self._again(backend, folder, chance)
            return Round(f"{backend}, kills: {len(kills)}", "continued" if status else "the last one ended by itself")
        except Failed as error:
            return Round(f"{backend}, kills: {len(kills)}", error.outcome, f"{'; '.join(kills)}: {error}")
        finally:
            shutil.rmtree(folder)

    def _start(self, backend: str, folder: Path, chance: random.Random) -> BaseProcess:
        (folder / "tmp").mkdir(exist_ok=True)
        command = ("reproduce", str(self.study), "--backend", backend, "--jobs", "2")
        own = environment(TMPDIR=str(folder / "tmp"), LONGFAT_ROOT=str(folder))
        return start(
            (*command, "--results", str(folder / "results")), folder / "output", own, fresh=chance.random() < self.fresh
        )

    def _ended(self, process: BaseProcess, folder: Path) -> Answer:
        number = process.pid or 0
        if not await_end(lambda: process.exitcode is not None, lambda: below(number), ENDS_S):
            for one in below(number):
                one.strike(signal.SIGKILL)
            process.join()
            raise Failed("wrong", f"the command did not end within {ENDS_S:.0f} s")
        return answered(process.exitcode, (folder / "output").read_text(encoding="utf-8", errors="replace"))

    def _without(self, backend: str, folder: Path, chance: random.Random) -> Undisturbed:
        """Start the command once and leave it alone."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        began = time.monotonic()
        answer = self._ended(self._start(backend, folder, chance), folder)
        if answer.status:
            raise Failed("wrong", f"undisturbed it ends with {answer.status}: {answer.output[-500:]}")
        left = frozenset(path.name for path in (folder / "tmp").iterdir())
        return Undisturbed(made(folder / "results"), events(folder), time.monotonic() - began, left)

    def _strike(self, backend: str, folder: Path, chance: random.Random, kills: list[str]) -> int:
        """Start the command and strike, which is added to ``kills``; the exit status."""
        process = self._start(backend, folder, chance)
        await_moment(process, folder, chance, self.undisturbed[backend])
        by, tree = chance.choice(SIGNALS), below(process.pid or 0)
        aim = chance.choice(["command", "one below", "all"])
        one_below = chance.sample(tree[1:] or tree, min(1, len(tree)))
        targets = {"command": tree[:1], "one below": one_below, "all": tree}[aim]
        if sum(one.strike(by) for one in targets):
            kills.append(f"{aim} by {by.name}")
        status = self._ended(process, folder).status
        self.waiting += await_gone([*tree, *marked("TMPDIR", str(folder / "tmp"))])
        return status

    def _again(self, backend: str, folder: Path, chance: random.Random) -> None:
        """Start the command again and compare."""
        undisturbed, before = self.undisturbed[backend], records(folder)
        answer = self._ended(self._start(backend, folder, chance), folder)
        if answer.status:
            raise Failed("lost", f"the same command ends with {answer.status}: {answer.output[-1000:]}")
        if any(one.lives for one in self.waiting):
            raise Failed("wrong", f"the next start left {', '.join(one.line for one in self.waiting if one.lives)}")
        require_kept(before, folder)
        now = made(folder / "results")
        if now != undisturbed.made:
            names = sorted(name for name in {*now, *undisturbed.made} if now.get(name) != undisturbed.made.get(name))
            raise Failed("wrong", f"not as undisturbed: {', '.join(names)}")
        left = {path.name for path in (folder / "tmp").iterdir()} - undisturbed.left
        left |= {
            path.name for path in (folder / "results").glob("**/.*") if path.name not in (".in-use", ".superseded")
        }
        if left:
            raise Failed("wrong", f"left over: {', '.join(sorted(left))}")


def await_moment(process: BaseProcess, folder: Path, chance: random.Random, undisturbed: Undisturbed) -> None:
    """Wait for a moment of the command: after so many of its events, and then any."""
    wanted, mean_s = chance.randrange(undisturbed.events), undisturbed.seconds / undisturbed.events
    former = events(folder)
    while process.is_alive() and events(folder) - former < wanted:
        time.sleep(0.01)
    time.sleep(chance.uniform(0, undisturbed.seconds / 3 if wanted == 0 else 2 * mean_s))


def await_gone(processes: list[Process]) -> list[Process]:
    """Wait until all have ended but those that wait for the next start, and give these.

    Raises Failed, and ends them, where others do not end.
    """

    def left() -> list[Process]:
        return [one for one in processes if one.lives and not one.waits_for_a_start]

    if not await_end(lambda: not left(), left, GONE_S):
        line = ", ".join(one.line for one in left() if one.strike(signal.SIGKILL))
        raise Failed("wrong", f"still running {GONE_S:.0f} s after the command: {line}")
    return [one for one in processes if one.lives]


def events(folder: Path) -> int:
    """How many events the command has told so far."""
    try:
        return (folder / "results/events.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def records(folder: Path) -> dict[str, int]:
    """The committed records of runs that are ok, by name, with what tells one file from another of the same name."""
    found = {}
    for path in (folder / "results/raw").glob("[!.]*/run.json"):
        if json.loads(path.read_text(encoding="utf-8"))["status"] == "ok":
            found[path.parent.name] = path.stat().st_ino
    return found


def require_kept(before: Mapping[str, int], folder: Path) -> None:
    """Raise Failed unless the records that were there still are, the same files."""
    if lost := before.items() - records(folder).items():
        raise Failed("lost", f"records that were there are not, or were made again: {sorted(lost)}")


def made(results: Path) -> dict[str, bytes]:
    """What equal runs have equal: tables, figures, the report but for its date, and the verdicts themselves."""
    files = [*results.glob("dataset/*"), *results.glob("figures/*"), results / "report.html", results / "lock.json"]
    found = {str(path.relative_to(results)): path.read_bytes() for path in files if path.is_file()}
    verdicts = json.loads((results / "verdicts.json").read_text(encoding="ascii"))["verdicts"]
    if "report.html" in found:
        found["report.html"] = re.sub(rb"claims kept [0-9T:+-]+", b"", found["report.html"])
    return {**found, "verdicts.json": json.dumps(verdicts, sort_keys=True).encode()}
