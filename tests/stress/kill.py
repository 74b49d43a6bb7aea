# SPDX-License-Identifier: Apache-2.0
"""Kills processes of ``reproduce`` at any moment and gives the command again: nothing is lost, nothing differs.

A round starts `run` or `reproduce`, strikes one of its processes or all, up to 24 times, then leaves it alone.
Results must be byte-identical to undisturbed ones, each record the same file, and nothing in flight left over.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import psutil
import pytest
from tiny_study import STUDY, write_tiny

from stress.commands import await_gone, below, ended, lives, send, start

CLAIMS = """\
format: 2
study: tiny
claims:
  - id: more
    artifact: fig-1
    statement: A larger window gives more.
    paper: {value: more, where: a rule}
    relation: goodput[window=1 MiB] > goodput[window=64 KiB] in delay
"""
FIGURES = """\
format: 2
study: tiny
figures:
  - {bars: fig-1, title: goodput, of: "goodput[delay]", x: window in KiB, hypothesis: the window}
"""
BACKENDS = ("fake", "fake", "fake", "virtual")
REPETITIONS = {"fake": 30, "virtual": 3}
RUN = 0.85  # of the starts are `run`, which costs little, and are struck after so much of an undisturbed `reproduce`:
RUN_PART = 0.15
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
KILLS = 24
ENDS_S = 300.0
LOCKS = (".in-use", ".superseded")


def prepare(work: Path, patch: pytest.MonkeyPatch) -> Callable[[random.Random], Mapping[str, int]]:
    """Write the study; return the round."""
    for backend, repetitions in REPETITIONS.items():
        again = f"repetitions: {repetitions}\n    probes: {{capture: [flow1]}}"
        study = write_tiny(work / backend, STUDY.replace("repetitions: 2", again))
        for name, text in (("claims", CLAIMS), ("figures", FIGURES)):
            (study / f"{name}.yaml").write_text(text, encoding="utf-8")
    undisturbed: dict[str, tuple[Mapping[str, bytes], set[str], float]] = {}

    def play(chance: random.Random) -> Mapping[str, int]:
        backend, folder = chance.choice(BACKENDS), work / "round"
        study = str(work / backend / "experiments/tiny")
        command = ("reproduce", study, "--backend", backend, "--jobs", "2", "--results", f"{folder}/results")
        if backend not in undisturbed:
            folder.mkdir()
            process = start(command, folder / "output", folder)
            await_event(process, folder, 0)
            began = time.monotonic()
            assert ended(process, folder / "output", ENDS_S).status == 0
            undisturbed[backend] = made(folder / "results"), left_over(folder), time.monotonic() - began
            shutil.rmtree(folder)
        folder.mkdir()
        try:
            return _round(command, folder, chance, *undisturbed[backend])
        finally:
            shutil.rmtree(folder)

    return play


def _round(
    command: tuple[str, ...],
    folder: Path,
    chance: random.Random,
    expected: Mapping[str, bytes],
    remains: set[str],
    seconds: float,
) -> Mapping[str, int]:
    kills, orphans = [], list[psutil.Process]()
    for _ in range(chance.randint(1, KILLS)):
        verb, part = ("run", RUN_PART) if chance.random() < RUN else ("reproduce", 1)
        before, former = records(folder), events(folder)
        process = start((verb, *command[1:]), folder / "output", folder)
        await_event(process, folder, former)
        time.sleep(chance.uniform(0, seconds * part))
        by, tree = chance.choice(SIGNALS), below(process.pid)
        aim = chance.choice(["command", "one", "all"])
        if send(by, {"command": tree[:1], "one": chance.sample(tree, min(1, len(tree))), "all": tree}[aim]):
            kills.append(f"{verb}, {aim} by {by.name}")
        ended(process, folder / "output", ENDS_S)
        orphans += await_gone(tree, folder)
        assert before.items() <= records(folder).items(), f"records were lost or made again: {kills}"
    before = records(folder)
    answer = ended(start(command, folder / "output", folder), folder / "output", ENDS_S)
    assert answer.status == 0, f"{kills}: the same command ends with {answer.status}: {answer.output[-1000:]}"
    assert not any(map(lives, orphans)), f"{kills}: the next start left stopped processes"
    assert before.items() <= records(folder).items(), f"records were lost or made again: {kills}"
    now = made(folder / "results")
    differing = sorted(name for name in {*now, *expected} if now.get(name) != expected.get(name))
    assert not differing, f"{kills}: not as undisturbed: {differing}"
    assert left_over(folder) <= remains, f"{kills}: left over: {left_over(folder) - remains}"
    return {f"kills of {command[3]} runs": len(kills)}


def await_event(process: ForkServerProcess, folder: Path, former: int) -> None:
    """Wait for an event or the end of the command; before, a signal would strike the start of Python."""
    while events(folder) == former and process.exitcode is None:
        time.sleep(0.01)


def events(folder: Path) -> int:
    """Return how many events the command has written."""
    path = folder / "results/events.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def left_over(folder: Path) -> set[str]:
    """Return the names of temporary files and of drafts."""
    drafts = {path.name for path in (folder / "results").glob("**/.*")} - {*LOCKS}
    return {path.name for path in (folder / "tmp").iterdir()} | drafts


def records(folder: Path) -> dict[str, int]:
    """Return the inode of each committed record of a valid run, by name."""
    found = {}
    for path in (folder / "results/raw").glob("[!.]*/run.json"):
        if json.loads(path.read_text(encoding="utf-8"))["status"] == "ok":
            found[path.parent.name] = path.stat().st_ino
    return found


def made(results: Path) -> dict[str, bytes]:
    """Return the content that equal runs have equal: tables, figures, the report without its date, and verdicts."""
    files = [*results.glob("dataset/*"), *results.glob("figures/*"), results / "report.html", results / "lock.json"]
    found = {str(path.relative_to(results)): path.read_bytes() for path in files if path.is_file()}
    verdicts = json.loads((results / "verdicts.json").read_text(encoding="ascii"))["verdicts"]
    if "report.html" in found:
        found["report.html"] = re.sub(rb"claims recorded [0-9T:+-]+", b"", found["report.html"])
    return {**found, "verdicts.json": json.dumps(verdicts, sort_keys=True).encode()}
