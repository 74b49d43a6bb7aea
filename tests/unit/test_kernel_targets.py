# SPDX-License-Identifier: Apache-2.0
"""Differences between the guest's kernel and the x86-64 package, with a tiny source and a stub of make."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_kernels import NAME, VERSION, tiny_kernels

from longfat.builds.kernel import KernelBuild, build_kernel
from longfat.builds.kernel_recipe import KERNELS_FOLDER, Recipe
from longfat.builds.kernel_targets import GUEST, TARGETS, X86_64, Target
from longfat.builds.packages import missing_packages
from longfat.catalog.kernels import KERNELS
from longfat.errors import RigError
from longfat.processes import is_running

SOURCE = Path(__file__).parents[2] / "src"
MKDEBIAN_DATE = "date -R -u -d @1735689600"


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return tiny_kernels(tmp_path, monkeypatch)


def package(kernels: Path) -> KernelBuild:
    return build_kernel(X86_64, kernels_folder=kernels)


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "log").read_text().splitlines()


def test_a_package_is_patched_configured_and_built_once(kernels: Path, tmp_path: Path) -> None:
    said: list[str] = []
    first = build_kernel(X86_64, kernels_folder=kernels, say=said.append)
    assert first.path.name == f"linux-image-{VERSION}-1.deb"
    assert first.path.read_text() == "one\ntwo\n"
    assert len(said) == 1 and VERSION in said[0]
    assert build_kernel(X86_64, kernels_folder=kernels, say=said.append) == first
    assert [call.split()[1:3] for call in calls(tmp_path)] == [["ARCH=x86_64", f"-j{os.cpu_count()}"]] * 2
    assert len(said) == 1


def test_options_that_no_fragment_names_have_the_kernels_defaults_in_a_package_and_are_off_in_a_guest(
    kernels: Path, tmp_path: Path
) -> None:
    package(kernels)
    build_kernel(kernels_folder=kernels)
    goals = [call.split()[3] for call in calls(tmp_path)]
    assert goals == ["alldefconfig", "bindeb-pkg", "allnoconfig", "linux", "longfat-flags"]


def test_the_release_of_a_package_ends_with_its_digest(kernels: Path) -> None:
    built = package(kernels)
    facts = json.loads((built.path.parent / "kernel.json").read_text())
    assert facts["release"] == f"release-{built.digest[:8]}"
    assert (facts["target"], facts["version"], facts["digest"]) == ("x86-64", VERSION, built.digest)
    assert all(re.fullmatch("[0-9a-f]{64}", facts[f"{what}_sha256"]) for what in ("config", "package", "source"))


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


def test_a_guest_does_not_wait_for_a_package_that_is_being_built(kernels: Path, tmp_path: Path) -> None:
    (tmp_path / "cache/kernels").mkdir(parents=True)
    with (tmp_path / "cache/kernels/x86-64.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert build_kernel(GUEST, kernels_folder=kernels).path.exists()


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


def test_packages_that_only_this_build_needs_are_named_with_the_command_that_installs_them(
    kernels: Path, tmp_path: Path
) -> None:
    (kernels / X86_64.packages).write_text("# why\none nonesuch-one # a\ntwo /nonesuch/two # b\nthree sh # c\n")
    with pytest.raises(RigError) as caught:
        package(kernels)
    assert caught.value.where == X86_64.packages
    assert caught.value.message.endswith(": one two")
    assert str(caught.value.hint).endswith("one two")
    assert not (tmp_path / "log").exists()
    assert build_kernel(kernels_folder=kernels).path.exists(), "the guest's kernel needs none of them"


@pytest.mark.parametrize(
    ("listing", "wanted", "missing"),
    [
        ("# a remark\n\nqemu ?nonesuch-qemu # test\ndash ?sh # test\n", False, []),
        ("qemu ?nonesuch-qemu # test\ndash ?sh # test\n", True, ["qemu"]),
        ("one mkfs # in /usr/sbin\ntwo nonesuch # nowhere\n", False, ["two"]),
    ],
)
def test_packages_are_missing_if_their_program_is(
    monkeypatch: pytest.MonkeyPatch, listing: str, wanted: bool, missing: list[str]
) -> None:
    monkeypatch.setenv("PATH", "/bin")
    assert missing_packages(listing, wanted=wanted) == missing


def test_a_damaged_package_is_refused_with_the_repair_and_one_in_the_cache_needs_no_program(kernels: Path) -> None:
    built = package(kernels)
    (kernels / str(X86_64.packages)).write_text("one nonesuch-one # reason\n")
    assert package(kernels) == built
    built.path.write_text("another")
    with pytest.raises(RigError, match="damaged") as caught:
        package(kernels)
    assert str(caught.value).endswith(f"hint: rm -r {built.path.parent} && ./just build kernel --target x86-64")


def test_two_packages_under_one_digest_are_damage(kernels: Path) -> None:
    built = package(kernels)
    built.path.with_name("linux-image-other.deb").write_bytes(built.path.read_bytes())
    with pytest.raises(RigError, match=r"kernel\.json"):
        package(kernels)


def test_a_kernel_without_configuration_for_a_target_is_refused(kernels: Path) -> None:
    (kernels / NAME / "config/x86-64/c.config").unlink()
    with pytest.raises(RigError, match=f"the kernel {NAME} has no configuration for x86-64"):
        package(kernels)
    assert build_kernel(kernels_folder=kernels).path.exists()


EVERY_RECIPE = [
    pytest.param(Recipe(name), target, id=f"{name}-{target.name}")
    for name in KERNELS
    for target in TARGETS.values()
    if (KERNELS_FOLDER / name / "config" / target.name).is_dir()
]


@pytest.mark.parametrize(("recipe", "target"), EVERY_RECIPE)
def test_no_two_fragments_of_a_kernel_of_the_project_set_one_option(recipe: Recipe, target: Target) -> None:
    lines = "".join(path.read_text() for path in recipe.fragments(target)).splitlines()
    options = [match[1] for line in lines if (match := re.match(r"(?:# )?(CONFIG_\w+)(?:=| is not set)", line))]
    assert len(options) > 20
    assert [option for option in set(options) if options.count(option) > 1] == []


@pytest.mark.parametrize(("recipe", "target"), EVERY_RECIPE)
def test_every_kernel_of_the_project_has_every_algorithm_and_queue_built_in(recipe: Recipe, target: Target) -> None:
    shared = [path for path in recipe.fragments(target) if path.parent == KERNELS_FOLDER / "config"]
    assert [path.name for path in shared] == ["congestion-control.config", "network.config"]
    assert [line for path in shared for line in path.read_text().splitlines() if line.endswith("=m")] == []
