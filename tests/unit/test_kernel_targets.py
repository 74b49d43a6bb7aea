# SPDX-License-Identifier: Apache-2.0
"""Builds of the guest's kernel and of the x86-64 package, with a tiny source and a stub of make."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_kernels import NAME, VERSION, tiny_kernels

from longfat.builds.kernel import KernelBuild, build_kernel
from longfat.builds.kernel_targets import GUEST, TARGETS, X86_64, Target
from longfat.system.errors import RigError
from longfat.system.processes import is_running

SOURCE = Path(__file__).parents[2] / "src"
MKDEBIAN_DATE = "date -R -u -d @1735689600"


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return tiny_kernels(tmp_path, monkeypatch)


def package(kernels: Path) -> KernelBuild:
    return build_kernel(X86_64, kernels_folder=kernels)


@pytest.mark.parametrize(("target", "name"), [(GUEST, "linux"), (X86_64, f"linux-image-{VERSION}-1.deb")])
def test_a_kernel_is_patched_configured_and_built_once(
    kernels: Path, tmp_path: Path, target: Target, name: str
) -> None:
    said: list[str] = []
    first = build_kernel(target, kernels_folder=kernels, say=said.append)
    assert (first.path.name, first.path.read_text()) == (name, "one\ntwo\n")
    assert (first.version, first.pinned) == (VERSION, True)
    assert build_kernel(target, kernels_folder=kernels, say=said.append) == first
    assert len(said) == 1 and VERSION in said[0]
    calls = (tmp_path / "log").read_text().splitlines()
    assert {tuple(call.split()[1:3]) for call in calls} == {(f"ARCH={target.arch}", f"-j{os.cpu_count()}")}


def test_the_day_of_the_build_is_taken_out_of_the_package(
    kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = tmp_path / "programs/make"
    make.write_text(make.read_text().replace("cat tcp.c", "cat scripts/package/mkdebian"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "7")
    assert package(kernels).path.read_text() == f"echo $({MKDEBIAN_DATE})\n"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("config/a.config", {"um", "x86-64"}),
        (f"{NAME}/config/um/b.config", {"um"}),
        (f"{NAME}/config/x86-64/c.config", {"x86-64"}),
    ],
)
def test_a_change_of_a_fragment_is_another_kernel_only_where_it_is_used(
    kernels: Path, name: str, changes: set[str]
) -> None:
    def digests() -> dict[str, str]:
        return {target.name: build_kernel(target, kernels_folder=kernels).digest for target in TARGETS.values()}

    before = digests()
    with (kernels / name).open("a") as file:
        file.write("CONFIG_MORE=y\n")
    after = digests()
    assert {target for target in before if before[target] != after[target]} == changes


def test_an_interrupted_build_ends_all_that_it_started_and_leaves_nothing(kernels: Path, tmp_path: Path) -> None:
    child = tmp_path / "child"
    make = tmp_path / "programs/make"
    make.write_text(f"#!/bin/sh\nsleep 60 &\necho $! >{child}\nsleep 1\nkill -INT {os.getpid()}\nwait\n")
    with pytest.raises(KeyboardInterrupt):
        package(kernels)
    assert comes_true(lambda: not is_running(int(child.read_text())))
    assert not list((tmp_path / "cache/kernels").glob(".build-*"))


def test_a_build_ends_with_the_process_that_was_killed(kernels: Path, tmp_path: Path) -> None:
    child = tmp_path / "child"
    make = tmp_path / "programs/make"
    make.write_text(f"#!/bin/sh\nsleep 60 &\necho $! >{child}.new\nmv {child}.new {child}\nwait\n")
    code = f"from longfat.builds.kernel import *\nbuild_kernel(kernels_folder=Path({str(kernels)!r}))"
    builder = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE)})
    assert comes_true(child.exists)
    builder.kill()
    builder.wait()
    assert comes_true(lambda: not is_running(int(child.read_text())))


def comes_true(what: Callable[[], bool]) -> bool:
    """Return whether ``what`` becomes true within 20 seconds."""
    end = time.monotonic() + 20
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_a_damaged_package_is_refused_with_the_repair_and_one_in_the_cache_needs_no_program(kernels: Path) -> None:
    built = package(kernels)
    (kernels / str(X86_64.packages)).write_text("one nonesuch-one # reason\n")
    assert package(kernels) == built
    built.path.write_text("another")
    with pytest.raises(RigError, match="damaged") as caught:
        package(kernels)
    assert str(caught.value).endswith(f"hint: rm -r {built.path.parent} && ./just build kernel --target x86-64")
