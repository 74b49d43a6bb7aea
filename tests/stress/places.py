# SPDX-License-Identifier: Apache-2.0
"""Odd places: a study is reproduced under drawn variables, paths, limits, signals, outputs and namespaces.

A round draws one to three oddities. Good are results with the same bytes as in a plain place, or, for an oddity that
allows it, a refusal in a sentence. Bad are other bytes, a traceback, a program of the current folder that ran, and a
file left in a folder of somebody else.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stress.commands import SOURCE, Answer

STUDY = """\
format: 2
study: places
title: A flow that loses a packet
seed: 1
algorithms: {reno: {cca: reno}}
experiments:
  - id: one
    topology: {kind: delay, rate: 10 Mbit/s, rtt: 20 ms}
    drops: [{at: 300 ms}]
    flows: [{name: flow, from: client1, to: server, algorithm: reno, duration: 500 ms, start_jitter: 1 ms}]
"""
FIGURES = """\
format: 2
study: places
figures:
  - {timeseries: window, title: 'Window and $slow start$ of "reno"', runs: one, what: cwnd}
"""
VARIES = ("run.json", "SHA256SUMS")  # have times of day
NAMES = ("r[1]", "a b", "r*?", "$(id)", "été 中", "-x", "it's", '"q"', "%s", "a" * 120, "x:y", "a,b", "#x", "~", "{a}")
ROOT_ONLY = os.geteuid() == 0
REFUSED, NO_OUTPUT, BROKEN_PIPE = 3, 3, 141


@dataclass
class Place:
    """Where a command is started: its environment, folders, and what is done in the process before."""

    work: Path
    environment: dict[str, str]
    folder: Path
    results: str
    before: list[Callable[[], object]] = field(default_factory=list)
    prefix: list[str] = field(default_factory=list)
    output: str = "file"
    allowed: set[int] = field(default_factory=set)


def variables(chance: random.Random, place: Place) -> None:
    """Set variables of other tools, of Python, of matplotlib and of the language."""
    rc = place.work / "matplotlibrc"
    rc.write_text(chance.choice(["text.usetex: True\n", "font.family: serif\n", "axes.grid: False\nsavefig.dpi: 9\n"]))
    other = str(place.work / "elsewhere")
    every: Mapping[str, str] = {
        "MATPLOTLIBRC": str(rc), "MPLBACKEND": "agg", "GIT_DIR": other, "GIT_WORK_TREE": other, "TF_WORKSPACE": "other",
        "ANSIBLE_CONFIG": other, "PYTHONOPTIMIZE": "2", "PYTHONWARNINGS": "error", "PYTHONHASHSEED": "7",
        "TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8", "LANG": "C", "PYTHONUTF8": "0", "SOURCE_DATE_EPOCH": "1",
        "OPENBLAS_CORETYPE": "Prescott", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "TERM": "dumb", "CDPATH": "/",
        "NO_COLOR": "1", "COLUMNS": "1", "PYTHONSTARTUP": other, "PAGER": other, "SHELL": other, "IFS": "/",
        "XDG_CONFIG_HOME": other, "POSIXLY_CORRECT": "1", "GREP_OPTIONS": "-v", "FORCE_COLOR": "1",
        "LONGFAT_LABS": f"{place.work}/a b",
    }  # fmt: skip
    place.environment |= dict(chance.sample(sorted(every.items()), chance.randint(1, 8)))


def current_folder(chance: random.Random, place: Place) -> None:
    """Start in a folder with modules and programs of everyday names, in an empty one, or in one that is gone."""
    place.folder = place.work / chance.choice(NAMES) / "here"
    place.folder.mkdir(parents=True)
    mark = place.work / "ran"
    for name in chance.sample(["random", "json", "typing", "yaml", "numpy", "longfat", "sitecustomize", "site"], 5):
        (place.folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n", encoding="utf-8")
    for name in ("git", "ip", "sh", "taskset"):
        (place.folder / name).write_text(f"#!/bin/sh\ntouch '{mark}'\n", encoding="utf-8")
        (place.folder / name).chmod(0o755)
    if chance.random() < 0.3:
        place.before.append(lambda: shutil.rmtree(place.folder))


def results(chance: random.Random, place: Place) -> None:
    """Give the results folder a name with blanks, letters of a pattern or of a shell, or a long one."""
    place.results = str(place.work / "out" / chance.choice(NAMES) / chance.choice(NAMES))


def temporary(chance: random.Random, place: Place) -> None:
    """Give temporary files a long, missing, relative, odd or read-only folder, or a file."""
    long, odd, plain = place.work / ("t" * chance.randint(60, 180)), place.work / f"t{chance.choice(NAMES)}", place.work
    long.mkdir()
    odd.mkdir()
    (plain / "file").touch()
    place.environment["TMPDIR"] = chance.choice(
        [str(long), str(odd), str(odd), "/nowhere", "here", f"{plain}/file", "/"]
    )


def limits(chance: random.Random, place: Place) -> None:
    """Lower a limit of the process."""
    name, value = chance.choice([
        (resource.RLIMIT_NOFILE, chance.randint(16, 80)), (resource.RLIMIT_STACK, 256 << 10), (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, 3 << 30), (resource.RLIMIT_FSIZE, 1 << 30), (resource.RLIMIT_MEMLOCK, 0),
    ])  # fmt: skip
    place.before.append(lambda: resource.setrlimit(name, (value, value)))
    if name == resource.RLIMIT_NOFILE and value < 64:
        place.allowed.add(REFUSED)


def signals(chance: random.Random, place: Place) -> None:
    """Ignore or block signals, as some daemons do for their children."""
    some = chance.sample(
        [signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGHUP], 3
    )
    if chance.random() < 0.5:
        place.before += [lambda one=one: signal.signal(one, signal.SIG_IGN) for one in some]  # type: ignore[misc]
    else:
        place.before.append(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()))


def mask(chance: random.Random, place: Place) -> None:
    """Set the mask of new files, and the priority."""
    value, priority = chance.choice([0, 0o022, 0o027, 0o077, 0o177 if ROOT_ONLY else 0o022]), chance.randint(0, 19)
    place.before += [lambda: os.umask(value), lambda: os.nice(priority)]


def outputs(chance: random.Random, place: Place) -> None:
    """Close standard streams, or let them end in a full disk or a pipe that nobody reads."""
    place.output = chance.choice(["full", "pipe", "closed"])
    place.allowed |= {"full": {NO_OUTPUT}, "pipe": {BROKEN_PIPE}, "closed": set[int]()}[place.output]
    if place.output == "closed":
        number = chance.choice([0, 1, 2])
        place.before.append(lambda: os.close(number))


def namespace(chance: random.Random, place: Place) -> None:
    """Take the network, or the view of other processes, away."""
    if ROOT_ONLY:
        place.prefix = ["unshare", *chance.choice([["-n"], ["-n", "-u", "-i"], ["-n", "-p", "-f", "--mount-proc"]])]


Oddity = Callable[[random.Random, Place], None]
ODDITIES: Sequence[Oddity] = (variables, current_folder, results, temporary, limits, signals, mask, outputs, namespace)


def prepare(work: Path, patch: pytest.MonkeyPatch) -> Callable[[random.Random], str]:
    """Reproduce the study in a plain place; return the round."""
    study = work / "places"
    study.mkdir()
    (study / "study.yaml").write_text(STUDY, encoding="utf-8")
    (study / "figures.yaml").write_text(FIGURES, encoding="utf-8")
    plain = _place(work, study)
    answer = _reproduce(plain, study)
    assert answer.status == 0, answer.output
    right = contents(Path(plain.results))

    def play(chance: random.Random) -> str:
        place = _place(work, study)
        oddities = chance.sample(ODDITIES, min(len(ODDITIES), chance.choice([1, 2, 2, 3])))
        names = "+".join(sorted(oddity.__name__ for oddity in oddities))
        try:
            for oddity in oddities:
                oddity(chance, place)
            answer = _reproduce(place, study)
            told = f"{names}: status {answer.status}: {answer.output[-1500:]}\n{place}"
            assert not (place.work / "ran").exists(), f"a program of the current folder ran: {told}"
            if answer.status:
                assert answer.status in place.allowed, told
                return "refused in a sentence"
            found = contents(Path(place.results))
            wrong = [name for name in sorted({*right, *found}) if right.get(name) != found.get(name)]
            assert not wrong, f"other bytes: {wrong}: {told}"
            return "the same bytes"
        finally:
            shutil.rmtree(place.work)

    return play


def _place(work: Path, study: Path) -> Place:
    new = Path(tempfile.mkdtemp(prefix="place-", dir=work))
    own = {"LONGFAT_ROOT": str(work / "root"), "PYTHONPATH": str(SOURCE), "TMPDIR": str(new)}
    return Place(new, {**os.environ, **own}, new, str(new / "results"))


def _reproduce(place: Place, study: Path) -> Answer:
    """Reproduce the study in a place."""
    words = [sys.executable, "-P", "-m", "longfat", "reproduce", str(study), "--jobs=1", f"--results={place.results}"]
    text = place.work / "output"
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe, Path("/dev/full").open("wb") as full, text.open("wb") as file:
        done = subprocess.run(
            [*place.prefix, *words],
            env=place.environment,
            cwd=place.folder,
            stdin=subprocess.DEVNULL,
            stdout={"full": full, "pipe": pipe}.get(place.output, file),
            stderr=file,
            preexec_fn=lambda: [step() for step in place.before],
            timeout=180,
            check=False,
        )
    return Answer(done.returncode, text.read_text(encoding="utf-8", errors="replace"))


def contents(results: Path) -> dict[str, bytes]:
    """Return measurements, dataset and figures of a results folder: everything that is the same each time."""
    return {
        str(path.relative_to(results)): path.read_bytes()
        for top in ("raw", "dataset", "figures")
        for path in sorted((results / top).rglob("*"))
        if path.is_file() and path.name not in VARIES
    }
