# SPDX-License-Identifier: Apache-2.0
"""The virtual backend without a guest: its command line, its watchdog, and how a root is put together."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import delay_spec

from longfat.backends import guest_process, virtual
from longfat.backends.collect import tail
from longfat.backends.guest_process import (
    GuestKernel,
    console_text,
    cpu_seconds,
    guest_command,
    one_cpu,
    scratch_folder,
    signs_of_life,
    watch,
)
from longfat.backends.landlock import landlock_version
from longfat.backends.virtual import VirtualBackend, code_digest, guest_sources, text_digest
from longfat.builds.kernel_recipe import Recipe
from longfat.spec.runspec import Program, Queue
from longfat.study.catalog.ccas import CCAS
from longfat.study.catalog.kernels import KERNELS
from longfat.study.queues import KINDS as QUEUE_KINDS
from longfat.system import identity
from longfat.system.errors import RigError

WORDS = ("seccomp=auto",)
KERNEL = GuestKernel(Path("/cache/linux"), "k", WORDS, frozenset({"reno"}))


def command(memory_bytes: int = 1 << 30, seed: int = 1, *, writable: bool = False) -> list[str]:
    return guest_command(KERNEL, memory_bytes, seed, ["/code/run.py"], writable=writable)


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that are ended by their ids after the test."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def stub_backend(tmp_path: Path, script: str) -> VirtualBackend:
    """A backend whose kernel is a shell script, started in the folder of its run."""
    kernel = tmp_path / "linux"
    kernel.write_text(f"#!/bin/sh\n{script}\n")
    kernel.chmod(0o755)
    (tmp_path / "root").mkdir()
    kernels = {"linux-6.12": dataclasses.replace(KERNEL, path=kernel, command_line=())}
    return VirtualBackend(kernels, tmp_path / "image.tar", "i", "l", tmp_path, tmp_path / "root")


def test_the_command_line_fixes_time_root_and_memory_and_names_no_folder_of_the_host() -> None:
    argv = command(memory_bytes=256 << 20)
    assert argv[:2] == ["/cache/linux", "seccomp=auto"]
    assert {"time-travel=inf-cpu", "time-travel-start=1000000000000000000", "mem=256M"} <= set(argv)
    assert {"root=/dev/root", "rootfstype=hostfs", "hostfs=/proc/self/cwd", "rootflags=/root", "ro"} <= set(argv)
    assert "rw" not in argv and {"rw"} <= set(command(writable=True)) - {"ro"}
    assert not any(" " in word or "cache" in word for word in argv[1:])
    kernel, program = argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    assert program[-1] == "/code/run.py" and "-I" in program
    assert {"init=/usr/bin/python3", "PYTHONHASHSEED=0"} <= set(kernel)


def test_the_seed_becomes_the_entropy_of_the_guest() -> None:
    words = [word for seed in range(100) for word in command(seed=seed) if word.startswith("entropy_seed=")]
    assert len(set(words)) == 100
    assert all(0 < int(word.partition("=")[2]) < 1 << 64 for word in words)


def test_seccomp_filters_are_for_the_images_own_programs_alone(tmp_path: Path) -> None:
    backend = stub_backend(tmp_path, 'cp spec.json raw/outcome.json; echo "$1" >raw/word.txt')
    (kernel,) = backend.kernels.values()
    backend = dataclasses.replace(backend, kernels={"linux-7.3": dataclasses.replace(kernel, command_line=WORDS)})
    plain = delay_spec()
    own = dataclasses.replace(
        plain, programs=(Program("own", "client1", "server", ("./send",), ("./receive",), 1_000_000),)
    )
    said = []
    for spec in (plain, own):
        backend.run(spec, tmp_path)
        said.append((tmp_path / "word.txt").read_text().strip())
    assert said == ["seccomp=auto", "seccomp=off"]


@pytest.mark.parametrize("status", [0, 7])
def test_a_guest_without_an_outcome_is_an_error_with_the_end_of_the_console(tmp_path: Path, status: int) -> None:
    backend = stub_backend(tmp_path, f"echo Kernel panic - not syncing: no init; exit {status}")
    with pytest.raises(RigError, match=r"the guest ended with.*\nKernel panic - not syncing: no init"):
        backend.run(delay_spec(), tmp_path)


def test_the_raw_files_of_a_guest_and_its_console_are_moved_into_the_run_folder(tmp_path: Path) -> None:
    script = "mkdir raw/iperf; cp spec.json raw/outcome.json; echo 5 >raw/iperf/f.txt; printf 'in %s\\r\\n' \"$PWD\""
    backend = stub_backend(tmp_path, script)
    folder = tmp_path / "folder"
    folder.mkdir()
    backend.run(delay_spec(), folder)
    assert (folder / "outcome.json").read_text() == delay_spec().to_json()
    assert (folder / "iperf/f.txt").read_text() == "5\n"
    assert (folder / "console.log").read_text() == "in TASK\n"
    assert [path.name for path in (tmp_path / "scratch").iterdir() if path.is_dir()] == []


def test_a_guest_sees_neither_the_environment_nor_the_home_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGFAT_SECRET", "token")
    backend = stub_backend(tmp_path, "touch raw/outcome.json; env >raw/env.txt")
    folder = tmp_path / "folder"
    folder.mkdir()
    backend.run(delay_spec(), folder)
    names = {line.partition("=")[0] for line in (folder / "env.txt").read_text().splitlines()}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {"HOME", "PATH"}
    assert f"HOME={os.environ['HOME']}\n" not in (folder / "env.txt").read_text()


def test_a_guest_that_computes_while_its_clock_stands_still_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_process, "STILL_CPU_S", 0.2)
    backend = stub_backend(tmp_path, "echo still alive $$; while :; do :; done")
    with pytest.raises(RigError, match=r"virtual clock stood still for \d+ s \(\d+ s of CPU\)\nstill alive") as told:
        backend.run(delay_spec(), tmp_path)
    assert not Path("/proc", str(told.value).split()[-1]).exists()


def test_a_guest_that_waits_while_its_clock_stands_still_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_process, "STILL_WALL_S", 0.5)
    backend = stub_backend(tmp_path, "sleep 60 & echo child $!; wait")
    with pytest.raises(RigError, match="virtual clock stood still") as told:
        backend.run(delay_spec(), tmp_path)
    assert gone(int(str(told.value).split()[-1]))


@pytest.mark.parametrize("end", ["kill -9 $$", "exit 1", "exit 0"])
def test_nothing_that_a_guest_has_begun_outlives_it(tmp_path: Path, end: str) -> None:
    backend = stub_backend(tmp_path, f"sleep 60 & kill -STOP $!; echo child $!; {end}")
    with pytest.raises(RigError, match="the guest ended with") as told:
        backend.run(delay_spec(), tmp_path)
    assert gone(int(str(told.value).split()[-1]))


@pytest.mark.parametrize("end", ["exit 3", "while :; do :; done", "exit 0"])
def test_a_guest_that_is_out_of_memory_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.setattr(guest_process, "STILL_CPU_S", 0.2)
    backend = stub_backend(tmp_path, f"echo 'Out of memory: Killed process 24 (iperf) total-vm:2931764kB'; {end}")
    with pytest.raises(RigError, match="the guest is out of memory, it has 1024 MiB: ") as caught:
        backend.run(delay_spec(), tmp_path)
    assert "`memory`" in str(caught.value.hint)


def test_a_guest_that_leaves_a_link_gives_nothing_of_the_host_into_the_results(tmp_path: Path) -> None:
    backend = stub_backend(tmp_path, "touch raw/outcome.json; ln -s /etc/passwd raw/stolen.txt")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(RigError, match=r"raw/stolen.txt: a run left something that is neither a file nor a folder"):
        backend.run(delay_spec(), folder)
    assert not (folder / "stolen.txt").exists()


@pytest.mark.skipif(landlock_version() < 1, reason="the kernel has no Landlock")
def test_a_guest_writes_to_the_folder_of_its_run_and_not_to_its_root(tmp_path: Path) -> None:
    backend = stub_backend(tmp_path, "echo >root/x; echo >../y; rm root/bin; echo ended >raw/outcome.json")
    (tmp_path / "root" / "bin").touch()
    folder = tmp_path / "folder"
    folder.mkdir()
    backend.run(delay_spec(), folder)
    assert (folder / "outcome.json").read_text() == "ended\n"
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["bin"]
    assert not (tmp_path / "scratch/y").exists()


def test_a_guest_whose_clock_goes_on_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setattr(guest_process, "STILL_WALL_S", 1.5)
    clock = tmp_path / "raw" / "clock"
    clock.parent.mkdir()
    guest = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3.2)"])
    processes.append(guest)
    stopped = threading.Event()

    def tick() -> None:
        while not stopped.wait(0.1):
            clock.write_text(str(time.monotonic()))

    ticking = threading.Thread(target=tick)
    ticking.start()
    watch(guest, clock.parent, tmp_path / "console.log")
    stopped.set()
    ticking.join()
    assert guest.wait() == 0


def test_a_process_that_ends_while_cpu_seconds_are_counted_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_path: Path, *_arguments: object) -> str:
        raise ProcessLookupError(3, "No such process")

    monkeypatch.setattr(Path, "read_text", gone)
    monkeypatch.setattr(Path, "exists", gone)
    assert cpu_seconds(os.getpid()) == 0.0


def test_a_folder_that_the_guest_removes_while_it_is_looked_at_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").write_text("one")
    (tmp_path / "removed").mkdir()
    scandir = os.scandir

    def gone(path: str | Path) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "removed":
            raise FileNotFoundError(2, "No such file or directory")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", gone)
    assert 3 in {size for _, size in signs_of_life(tmp_path)}


def test_cpu_seconds_count_every_process_of_a_session_and_are_zero_when_it_has_ended(
    processes: list[subprocess.Popen[bytes]],
) -> None:
    # The shell itself waits: only its child computes, as a guest's programs do beside its kernel.
    spin = f"{sys.executable} -c 'while True: pass'; true"
    process = subprocess.Popen(["/bin/sh", "-c", spin], start_new_session=True)
    processes.append(process)
    deadline = time.monotonic() + 10
    while cpu_seconds(process.pid) < 0.1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert cpu_seconds(process.pid) >= 0.1
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while cpu_seconds(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert cpu_seconds(process.pid) == 0.0


def test_the_console_loses_carriage_returns_and_the_name_of_its_folder(tmp_path: Path) -> None:
    console = tmp_path / "console.log"
    console.write_bytes(f"in {tmp_path}/raw\r\n\xff\n".encode("latin-1"))
    assert console_text(console) == "in TASK/raw\n�\n"


def test_an_error_shows_the_last_twenty_lines() -> None:
    assert tail("".join(f"{number}\n" for number in range(100))).splitlines() == [str(k) for k in range(80, 100)]


def test_in_a_cache_folder_that_cannot_be_written_to_guests_have_a_temporary_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = scratch_folder(tmp_path / "nowhere")
    assert folder == tmp_path / f"longfat-{os.geteuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert scratch_folder(tmp_path / "nowhere") == folder


def test_a_temporary_folder_that_somebody_else_has_put_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"longfat-{os.geteuid()}").symlink_to(tmp_path)
    with pytest.raises(RigError, match="you do not own this folder"):
        scratch_folder(tmp_path / "nowhere")


def test_guests_at_a_time_get_cpus_of_their_own_while_there_are_some_and_then_share_them_evenly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3, 5})
    with one_cpu(tmp_path) as first, one_cpu(tmp_path) as second:
        assert [first, second] == [3, 5]
        with one_cpu(tmp_path) as third, one_cpu(tmp_path) as fourth:
            assert [third, fourth] == [3, 5]
    with one_cpu(tmp_path) as again:
        assert again == 3


def test_the_code_of_the_guest_is_the_laboratory_with_what_it_imports() -> None:
    names = {str(path.relative_to(virtual.PACKAGE)) for path in guest_sources()}
    assert {"__init__.py", "spec/runspec.py", "guest/__init__.py", "guest/init.py", "guest/run.py"} <= names
    assert not any(name.startswith(("study", "plan", "spec/gates")) for name in names)


def test_the_code_s_identity_follows_what_any_module_does_and_its_root_every_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, text_before = code_digest(), text_digest()
    for path in guest_sources():
        copy = tmp_path / path.relative_to(virtual.PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    for module in (virtual, identity):
        monkeypatch.setattr(module, "PACKAGE", tmp_path)
    assert (code_digest(), text_digest()) == (before, text_before)
    with (tmp_path / "guest/qdisc.py").open("a") as file:
        file.write("# another line\n")
    assert code_digest() == before
    assert text_digest() != text_before
    with (tmp_path / "guest/qdisc.py").open("a") as file:
        file.write("ANOTHER = 1\n")
    assert code_digest() != before


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_configured_with_every_algorithm_of_the_catalogue(name: str) -> None:
    assert set(CCAS) <= Recipe(name).ccas()


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_configured_with_every_queue_of_the_catalogue(name: str) -> None:
    # A step is CoDel's threshold, and Linux 6.12 has no DualPI2.
    missing = {"step"} | ({"dualpi2"} if name.startswith("linux-6.12") else set())
    assert set(QUEUE_KINDS) - Recipe(name).queues() == missing


def test_a_run_with_a_queue_that_the_kernel_lacks_is_refused(tmp_path: Path) -> None:
    backend = stub_backend(tmp_path, "exit 1")
    spec = delay_spec()
    (first, *others) = spec.links
    end = dataclasses.replace(first.a, egress=dataclasses.replace(first.a.egress, queue=Queue("cake", None)))
    spec = dataclasses.replace(spec, links=(dataclasses.replace(first, a=end), *others), pins={})
    assert backend.refuses(spec) == ("the guest's kernel has no queue 'cake', it has bfifo, pfifo",)


def test_a_run_boots_the_kernel_that_it_pins(tmp_path: Path) -> None:
    backend = stub_backend(tmp_path, "echo this is the first; exit 1")
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho this is the other; exit 1\n")
    other.chmod(0o755)
    kernels = {**backend.kernels, "other": dataclasses.replace(KERNEL, path=other, digest="o")}
    backend = dataclasses.replace(backend, kernels=kernels)
    assert backend.capabilities().kernels == {"linux-6.12": "k", "other": "o"}
    for pins, words in (({}, "the first"), ({"kernel": "k"}, "the first"), ({"kernel": "o"}, "the other")):
        spec = dataclasses.replace(delay_spec(), pins=pins)
        assert backend.refuses(spec) == ()
        with pytest.raises(RigError, match=f"this is {words}"):
            backend.run(spec, tmp_path)


@pytest.mark.parametrize("pinned", ["linux-7.3", "0123"])
def test_a_kernel_that_was_not_opened_is_refused(tmp_path: Path, pinned: str) -> None:
    backend = stub_backend(tmp_path, "exit 1")
    (reason,) = backend.refuses(dataclasses.replace(delay_spec(), pins={"kernel": pinned}))
    assert reason == f"the kernel {pinned} is none of linux-6.12 as they are here"


def test_an_algorithm_that_the_kernel_lacks_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    backend = stub_backend(tmp_path, "exit 1")
    flow = dataclasses.replace(delay_spec().flows[0], cca="renoo")
    (reason,) = backend.refuses(dataclasses.replace(delay_spec(), flows=(flow,), pins={}))
    assert reason == "no congestion control 'renoo', there are reno; did you mean 'reno'?"


def gone(pid: int) -> bool:
    """Whether a process ends within a second; one that nobody waited for counts as ended."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False
