# SPDX-License-Identifier: Apache-2.0
"""The worker processes: nobody else reaches them, they outlive nothing, and the death of one costs one call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import plan_of
from fake_backend import FakeBackend
from slow_study import start_study, workers_of

from longfat.errors import RigError
from longfat.execute import workers as workers_module
from longfat.execute.results import open_results
from longfat.execute.study import Summary, execute
from longfat.execute.workers import WorkerDied, open_workers

# Tries to reach processes and sockets, as a program of another user could; prints what it could reach.
INTRUDER = """
import os, socket, sys
reached = []
for pid in sys.argv[1].split():
    for name in ("fd", "mem", "environ"):
        try:
            path = f"/proc/{pid}/{name}"
            os.listdir(path) if name == "fd" else open(path, "rb").close()
            reached.append(path)
        except OSError:
            pass
for port in sys.argv[2].split():
    try:
        socket.create_connection(("127.0.0.1", int(port)), 5).close()
        reached.append(f"port {port}")
    except OSError:
        pass
print(os.getuid(), *reached)
"""
NOBODY = 65534


@pytest.fixture
def study(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A study that goes on, with its results folder."""
    process, results = start_study(tmp_path)
    yield process, results
    process.kill()
    process.wait()


def sockets_of(pids: list[str]) -> set[str]:
    """The inodes of all sockets that the processes have open."""
    links = [os.readlink(handle) for pid in pids for handle in Path("/proc", pid, "fd").iterdir()]
    return {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:[")}


def listening_ports(inodes: set[str]) -> list[int]:
    """The TCP ports at which one of these sockets listens."""
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return [int(row[1].rpartition(":")[2], 16) for row in rows if row[9] in inodes and row[3] == "0A"]


def named_sockets(inodes: set[str]) -> list[str]:
    """The names of those that are Unix sockets with a name."""
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return [row[7] for row in rows if row[6] in inodes and len(row) > 7]


def ended(pid: str) -> bool:
    """Whether a process is gone, or only waits for its parent to ask how it ended."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def gone(pids: list[str]) -> bool:
    """Whether the processes end within some seconds."""
    deadline = time.monotonic() + 20
    while not all(map(ended, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_study_listens_nowhere(study: tuple[subprocess.Popen[bytes], Path]) -> None:
    pids = [str(study[0].pid), *workers_of(study[0].pid)]
    inodes = sockets_of(pids)
    assert len(pids) == 3 and inodes, "workers are reached through sockets"
    assert listening_ports(inodes) == []
    assert named_sockets(inodes) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_another_user_reaches_neither_a_study_nor_its_workers(study: tuple[subprocess.Popen[bytes], Path]) -> None:
    pids = [str(study[0].pid), *workers_of(study[0].pid)]
    ports = listening_ports(sockets_of(pids))
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    python = os.path.realpath(sys.executable)  # another user may have no access to the virtual environment
    arguments = [" ".join(pids), " ".join(map(str, ports))]
    tried = subprocess.run(
        [*user, python, "-I", "-c", INTRUDER, *arguments], capture_output=True, text=True, cwd="/", check=True
    )
    assert tried.stdout.split() == [f"{NOBODY}"]


def test_workers_end_with_a_killed_command_and_take_their_partial_folders_with_them(
    study: tuple[subprocess.Popen[bytes], Path],
) -> None:
    process, results = study
    workers = workers_of(process.pid)
    process.kill()
    process.wait()
    assert gone(workers)
    assert not list((results / "raw").glob(".partial-*"))


def test_an_interrupt_leaves_no_temporary_file(study: tuple[subprocess.Popen[bytes], Path], tmp_path: Path) -> None:
    process, _ = study
    process.send_signal(signal.SIGINT)
    process.wait()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "study.py"]


def test_a_terminals_interrupt_is_left_to_the_command(study: tuple[subprocess.Popen[bytes], Path]) -> None:
    process, _ = study
    sessions = {os.getsid(int(pid)) for pid in workers_of(process.pid)}
    assert os.getsid(process.pid) not in sessions


def test_calls_go_to_as_many_processes_as_there_are_slots() -> None:
    with open_workers(2, None) as workers:
        for number in (4, 9):
            workers.start(number, pow, number, 2)
        assert (workers.slots, len(workers)) == (2, 2)
        found = dict(workers.wait() for _ in range(2))
        assert {tag: result() for tag, result in found.items()} == {4: 16, 9: 81}
        assert len(workers) == 0


def test_an_error_of_a_call_comes_back_with_the_place_where_it_happened() -> None:
    with open_workers(1, None) as workers:
        workers.start("it", int, "no number")
        _, result = workers.wait()
        with pytest.raises(ValueError, match="invalid literal") as caught:
            result()
        assert "_answer" in caught.value.__notes__[0]
        workers.start("again", int, "7")
        assert workers.wait()[1]() == 7


def test_the_death_of_a_worker_costs_its_own_call_only() -> None:
    with open_workers(2, None) as workers:
        workers.start("dies", signal.raise_signal, signal.SIGKILL)
        workers.start("lives", pow, 2, 5)
        ended = dict(workers.wait() for _ in range(2))
        assert ended["lives"]() == 32
        with pytest.raises(WorkerDied):
            ended["dies"]()
        workers.start("next", pow, 2, 6)
        assert workers.wait()[1]() == 64


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_that_is_stopped_while_it_starts_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], number: int
) -> None:
    struck = f"import os; os.kill(os.getpid(), {number:d}); {workers_module.START}"
    with monkeypatch.context() as patched, open_workers(1, None) as workers:
        patched.setattr(workers_module, "START", struck)
        workers.start("struck", os.getpid)
        with pytest.raises(WorkerDied):
            workers.wait()[1]()
    assert capfd.readouterr() == ("", "")


def test_a_worker_that_is_killed_while_idle_costs_nothing() -> None:
    with open_workers(1, None) as workers:
        workers.start("first", os.getpid)
        first = workers.wait()[1]()
        os.kill(first, signal.SIGKILL)
        assert gone([str(first)])
        workers.start("second", os.getpid)
        assert workers.wait()[1]() not in (first, os.getpid())


def test_a_call_that_goes_on_is_ended_with_its_worker() -> None:
    with open_workers(1, None) as workers:
        workers.start("pid", os.getpid)
        pid = workers.wait()[1]()
        workers.start("long", time.sleep, 3600)
    assert gone([str(pid)])


def test_a_worker_that_does_not_let_go_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "STOP_S", 0.1)
    with open_workers(1, None) as workers:
        workers.start("deaf", signal.signal, signal.SIGTERM, signal.SIG_IGN)
        workers.wait()
        workers.start("pid", os.getpid)
        pid = workers.wait()[1]()
        workers.start("long", time.sleep, 3600)
    assert gone([str(pid)])


def test_a_python_that_cannot_be_started_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with (
        open_workers(1, None) as workers,
        pytest.raises(RigError, match="a worker process cannot be started: No such file"),
    ):
        workers.start("it", os.getpid)


def test_an_existing_scheduler_does_the_runs(tmp_path: Path) -> None:
    from distributed import LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", host="127.0.0.1",
            dashboard_address=None, scheduler_kwargs={"dashboard": False}, memory_limit=0,
        ) as cluster,
        open_results(tmp_path / "results") as results,
    ):  # fmt: skip
        summary = execute(plan_of(2), FakeBackend(), results, jobs=1, scheduler=cluster.scheduler_address)
    assert summary == Summary(reused=0, executed=2, failed=0)


FORGETFUL = """
import os, signal, time, weakref
from longfat.execute import worker
from longfat.interrupts import lose_none

def stop(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)  # in which the interrupt comes

class Deleted:
    pass

lose_none(signal.SIGTERM, worker.listen)
worker.listen()
one = Deleted()
{watched}
try:
    del one
    time.sleep(20)
    print("lost")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("watched", ["Deleted.__del__ = stop", "other = weakref.ref(one, stop)"])
def test_an_interrupt_that_comes_while_an_object_is_deleted_is_neither_lost_nor_reported(watched: str) -> None:
    code = FORGETFUL.format(watched=watched)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
