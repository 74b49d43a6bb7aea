# SPDX-License-Identifier: Apache-2.0
"""Kills processes of a command at any moment, then gives the same command again: nothing is lost, nothing differs.

A round starts `longfat reproduce` of a small study, strikes one of its processes or all, waits until nothing of it
runs, and starts it again. What comes out must be what an undisturbed start makes, to the byte; a record that was there
after the first start must be there after the second, the same file; nothing may be left of what was in flight.
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
from campaigns.processes import Process, below, marked
from campaigns.rounds import Failed, Round

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
FRESH = 0.25  # of the commands begin with an interpreter; the others have read their modules already
ENDS_S = 120.0  # so long a command may take after a signal, on a machine that does much else
GONE_S = 60.0  # and its processes to go after it


@dataclass(frozen=True)
class Undisturbed:
    """What an undisturbed start makes, the number of its events, and how long it took."""

    made: Mapping[str, bytes]
    events: int
    seconds: float
    left: frozenset[str]


class Kills:
    """The campaign in the folder ``work``, with these backends."""

    def __init__(
        self, work: Path, backends: tuple[str, ...] = ("fake", "fake", "fake", "virtual"), fresh: float = FRESH
    ) -> None:
        self.work, self.backends, self.fresh = work, backends, fresh
        self.study = work / "struck"
        self.study.mkdir()
        for name, text in (("study", STUDY), ("claims", CLAIMS), ("figures", FIGURES)):
            (self.study / f"{name}.yaml").write_text(text, encoding="utf-8")
        self.undisturbed: dict[str, Undisturbed] = {}
        for one in {*SIGNALS} - {signal.SIGKILL}:
            if signal.getsignal(one) is signal.SIG_IGN:  # as nohup(1) has it, and what is started would inherit
                signal.signal(one, signal.SIG_DFL)

    def play(self, chance: random.Random) -> Round:
        """One round."""
        backend = chance.choice(self.backends)
        struck = backend
        folder = self.work / "round"
        folder.mkdir()
        try:
            if backend not in self.undisturbed:
                self.undisturbed[backend] = self._without(backend, self.work / "undisturbed", chance)
            struck, status = self._strike(backend, folder, chance)
            self._again(backend, folder, chance)
            return Round(struck, "continued" if status else "ended by itself")
        except Failed as error:
            return Round(struck, error.outcome, str(error))
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
        process.join(ENDS_S)
        if process.exitcode is None:
            for one in below(process.pid or 0):
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

    def _strike(self, backend: str, folder: Path, chance: random.Random) -> tuple[str, int]:
        """Start the command and strike; what was struck by what, and the exit status."""
        undisturbed = self.undisturbed[backend]
        process = self._start(backend, folder, chance)
        await_moment(process, folder, chance, undisturbed)
        by, tree = chance.choice(SIGNALS), below(process.pid or 0)
        aim = chance.choice(["command", "one below", "all"])
        one_below = chance.sample(tree[1:] or tree, min(1, len(tree)))
        targets = {"command": tree[:1], "one below": one_below, "all": tree}[aim]
        hit = sum(one.strike(by) for one in targets)
        status = self._ended(process, folder).status
        struck = f"{backend}: {aim} by {by.name}" if hit else f"{backend}: nothing, it had ended"
        await_gone([*tree, *marked("TMPDIR", str(folder / "tmp"))])
        return struck, status

    def _again(self, backend: str, folder: Path, chance: random.Random) -> None:
        """Start the command again and compare."""
        undisturbed, before = self.undisturbed[backend], records(folder)
        answer = self._ended(self._start(backend, folder, chance), folder)
        if answer.status:
            raise Failed("lost", f"the same command ends with {answer.status}: {answer.output[-1000:]}")
        if lost := before.items() - records(folder).items():
            raise Failed("lost", f"records that were there are not, or were made again: {sorted(lost)}")
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
    while process.is_alive() and events(folder) < wanted:
        time.sleep(0.005)
    time.sleep(chance.uniform(0, undisturbed.seconds / 3 if wanted == 0 else 2 * mean_s))


def await_gone(processes: list[Process]) -> None:
    """Wait until all have ended. Raises Failed, and ends them, where one does not."""
    end = time.monotonic() + GONE_S
    while (left := [one for one in processes if one.lives]) and time.monotonic() < end:
        time.sleep(0.05)
    for one in left:
        one.strike(signal.SIGKILL)
    if left:
        raise Failed("wrong", f"still running {GONE_S:.0f} s after the command: {left[0].line}")


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


def made(results: Path) -> dict[str, bytes]:
    """What equal runs have equal: tables, figures, the report but for its date, and the verdicts themselves."""
    files = [*results.glob("dataset/*"), *results.glob("figures/*"), results / "report.html", results / "lock.json"]
    found = {str(path.relative_to(results)): path.read_bytes() for path in files if path.is_file()}
    verdicts = json.loads((results / "verdicts.json").read_text(encoding="ascii"))["verdicts"]
    if "report.html" in found:
        found["report.html"] = re.sub(rb"claims kept [0-9T:+-]+", b"", found["report.html"])
    return {**found, "verdicts.json": json.dumps(verdicts, sort_keys=True).encode()}
