# SPDX-License-Identifier: Apache-2.0
"""Odd machines: limits, signals, full disks, checkouts at odd paths, and other local users."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_bootstrap import Machine
from test_bootstrap import machine as machine

from longfat.backends import virtual
from longfat.builds.kernel import _Runner
from longfat.system import store
from longfat.system.errors import RigError
from longfat.system.locks import hold
from longfat.system.store import in_cache
from longfat.system.trust import LIST, agree

SOURCE = Path(__file__).parents[2] / "src"


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    own = {"PYTHONPATH": str(SOURCE), "COLUMNS": "200"}
    line = [sys.executable, "-c", code, *words]
    return subprocess.run(line, env={**os.environ, **own}, capture_output=True, text=True)


def started(before: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Start Python in a process that did something before."""
    code = f"import os, resource, signal, sys\n{before}\nos.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    return python(code, *words)


def test_too_few_descriptors_are_refused_with_the_way_out() -> None:
    limit = "resource.setrlimit(resource.RLIMIT_NOFILE, (25, 25))"
    done = started(limit, "-P", "-m", "longfat", "--version")
    assert done.returncode == 3 and "ulimit" in done.stderr and "Traceback" not in done.stderr


def test_a_low_limit_of_descriptors_is_raised() -> None:
    code = "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (30, 4096)); from longfat.system import processes as p"
    done = python(f"{code}; print(p.enough_descriptors(), r.getrlimit(r.RLIMIT_NOFILE)[0])")
    hard = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 4096)
    assert done.stdout.split() == ["True", str(hard)]


def test_a_parent_that_ignores_its_children_changes_nothing() -> None:
    script = (
        "import signal, sys; from longfat.cli import root; root.app = lambda **given: print(signal.getsignal(17)); "
        "root.main()"
    )
    done = started("signal.signal(signal.SIGCHLD, signal.SIG_IGN)", "-c", script)
    assert done.stdout.strip().endswith(str(signal.Handlers.SIG_DFL)), done.stderr


def test_a_lock_that_is_held_is_named_with_its_holder_to_whoever_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print(flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", code, str(tmp_path / "lock")]
    monkeypatch.setattr(store, "LONG_S", 0.0)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None and other.stdout.readline()
        name = f"process {other.pid} ({sys.executable}"
        assert store.holder(tmp_path / "lock").startswith(name)

        def announced(text: str) -> int:  # then the holder ends
            assert other.stdin is not None
            seen.append(text)
            other.stdin.close()
            return 0

        seen: list[str] = []
        monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=announced))
        with store.hold_patiently(tmp_path / "lock"):
            assert name in seen[0]
    assert store.holder(tmp_path / "lock") == "another process"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o600), (0o002, 0o660), (0o000, 0o666), (0o077, 0o600)])
def test_a_lock_belongs_to_its_writer(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        for _ in range(2):
            with hold(tmp_path / "lock"):
                assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == mode
    finally:
        os.umask(before)


def test_the_list_of_trusted_programs_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path))
    agree(b"program")
    assert stat.S_IMODE((tmp_path / LIST).stat().st_mode) == 0o600


def test_a_full_disk_names_the_file_that_is_written_and_not_its_source(tmp_path: Path) -> None:
    with pytest.raises(RigError) as caught, in_cache(tmp_path / "roots/new", "the root", "1 GB"):
        raise OSError(errno.ENOSPC, "No space left on device", "/elsewhere/source.py")
    assert caught.value.where == str(tmp_path / "roots/new")


def test_a_build_that_fails_on_a_full_disk_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1))  # type: ignore[attr-defined]
    log = tmp_path / "log"
    with log.open("wb") as output, pytest.raises(RigError, match="MB of disk are free"):
        _Runner(tmp_path, log, output, print)(["false"])


def test_a_container_that_denies_a_call_is_refused_before_the_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(process: int) -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    assert not list(virtual._missing_calls())
    monkeypatch.setattr(os, "pidfd_open", denied)
    monkeypatch.setattr(virtual, "_may_trace", lambda: False)
    assert [re.search(r" (\w+)\(2\)", reason)[1] for reason in virtual._missing_calls()] == ["pidfd_open", "ptrace"]  # type: ignore[index]


def test_a_kernel_without_landlock_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "landlock_version", lambda: 0)
    said: list[str] = []
    monkeypatch.setattr(virtual, "build_image", lambda say: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        virtual.open_virtual(said.append, kernels=())
    assert any("Landlock" in line for line in said)


@pytest.mark.parametrize("name", ["x$(id)", "a`id`", "it's", 'say "hi"', "two\nlines", "a:b", "back\\slash"])
def test_a_checkout_at_a_path_that_programs_misread_is_refused(machine: Machine, name: str) -> None:
    odd = machine.checkout.rename(machine.checkout.with_name(name))
    machine.checkout = odd
    done = machine.start("check")
    assert done.returncode == 3 and "plain path" in done.stderr
    assert machine.calls() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize(("mode", "user"), [(0o700, 0), (0o755, 65534)])
def test_ci_follows_the_pages_as_whoever_can_read_the_checkout(tmp_path: Path, mode: int, user: int) -> None:
    for folder in (tmp_path, *list(tmp_path.parents)[:-2]):
        if folder != Path(tempfile.gettempdir()):
            folder.chmod(0o755)
    checkout = tmp_path / "below/checkout"
    (checkout / ".venv/bin").mkdir(parents=True)
    (tmp_path / "below").chmod(mode)
    for name in ("just", ".venv/bin/just"):
        (checkout / name).write_text("#!/bin/sh\nid -u\n", encoding="ascii")
        (checkout / name).chmod(0o755)
    (tmp_path / "scratch/home").mkdir(parents=True)
    text = (SOURCE.parent / ".ci/run").read_text(encoding="utf-8")
    function = re.search(r"^follow\(\) .*?^}", text, re.M | re.S)
    assert function is not None
    own = {"scratch": str(tmp_path / "scratch"), "LONGFAT_CACHE": str(checkout)}
    words = ["bash", "-euc", f"{function[0]}\nfollow"]
    done = subprocess.run(words, cwd=checkout, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{user}\n"), done.stderr
