# SPDX-License-Identifier: Apache-2.0
"""Builds of kernels for guests and machines from a tiny source by a stub of make; the search for the source."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from needs import comes_true
from tiny_kernels import NAME, PATCH, VERSION, pack, settings, tiny_kernels

from longfat.builds.kernel import KernelBuild, build_environment, build_kernel, check_configuration, count_objects
from longfat.builds.kernel_recipe import Recipe
from longfat.builds.kernel_source import Source
from longfat.builds.kernel_targets import GUEST, TARGETS, X86_64, Target
from longfat.study.catalog.kernels import DEFAULT_KERNEL, ERA_KERNEL
from longfat.system.errors import RigError
from longfat.system.processes import is_running

MKDEBIAN_DATE = "date -R -u -d @1735689600"
SOURCE = Source(Path("linux.tar"), VERSION, "ab" * 32)


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return tiny_kernels(tmp_path, monkeypatch)


def refused(kernels: Path) -> str:
    with pytest.raises(RigError) as caught:
        build_kernel(kernels_folder=kernels)
    assert caught.value.exit_status == 3
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "old", "new", "changes"),
    [
        ("config/a.config", "CONFIG_NET=y", "CONFIG_WAN=y", True),
        ("config/a.config", "CONFIG_NET", "# A comment.\nCONFIG_NET", False),
        ("patches/0001-a-line.patch", "+two", "+three", True),
        ("patches/0001-a-line.patch", "b/tcp.c", "b/udp.c", True),
        ("patches/0001-a-line.patch", "a line more", "another message", False),
        ("patches/0001-a-line.patch", "--- a/tcp.c", "index 0123..4567 100644\n--- a/tcp.c", False),
    ],
)
def test_what_a_patch_or_fragment_does_is_the_identity_and_not_its_words(
    kernels: Path, name: str, old: str, new: str, changes: bool
) -> None:
    before = Recipe(NAME, kernels).digest(SOURCE)
    text = (kernels / name).read_text()
    assert old in text
    (kernels / name).write_text(text.replace(old, new))
    assert (Recipe(NAME, kernels).digest(SOURCE) != before) is changes


def test_the_identity_depends_on_the_order_of_the_patches(kernels: Path) -> None:
    names, texts, digests = ("0001-a-line.patch", "0002-b.patch"), (PATCH, PATCH.replace("two", "three")), set()
    (kernels / "series").write_text("\n".join(names))
    for first, second in (texts, texts[::-1]):
        (kernels / "patches" / names[0]).write_text(first)
        (kernels / "patches" / names[1]).write_text(second)
        digests.add(Recipe(NAME, kernels).digest(SOURCE))
    assert len(digests) == 2


def test_all_lost_options_are_named_at_once_also_those_that_must_be_off() -> None:
    wanted = "CONFIG_A=y\nCONFIG_B=7\n# CONFIG_C is not set\n# CONFIG_D is not set\n# a remark\n"
    with pytest.raises(RigError, match=r"options: CONFIG_B=7, # CONFIG_C is not set$"):
        check_configuration(wanted, "CONFIG_A=y\nCONFIG_B=8\nCONFIG_C=y\n")


def test_a_failed_compilation_shows_the_end_of_its_log_and_leaves_no_kernel(kernels: Path, tmp_path: Path) -> None:
    (tmp_path / "log.broken").touch()
    text = refused(kernels)
    assert "error: no such thing" in text
    assert re.search(r"^\S+/cache/kernels/[0-9a-f]{32}\.log: ", text)
    assert [path for path in (tmp_path / "cache/kernels").iterdir() if path.is_dir()] == []
    (tmp_path / "log.broken").unlink()
    assert build_kernel(kernels_folder=kernels).path.exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [("linux", None), ("linux", "another"), ("kernel.json", None), ("kernel.json", "[]"), ("kernel.json", "{}")],
)
def test_damage_is_found_with_the_command_that_repairs_it(kernels: Path, name: str, text: str | None) -> None:
    kernel = build_kernel(kernels_folder=kernels)
    path = kernel.path.with_name(name)
    path.unlink()
    if text is not None:
        path.write_text(text)
    assert str(path.parent) in refused(kernels)
    shutil.rmtree(path.parent)
    assert build_kernel(kernels_folder=kernels) == kernel


@pytest.mark.parametrize("kind", ["no kernel", "no tarball", "cut short"])
def test_a_file_that_is_no_kernel_source_is_refused_with_its_path(kernels: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "linux.tar.xz"
    if kind == "no kernel":
        (tmp_path / "other").mkdir()
        path = pack(tmp_path / "other", "1.2.3", makefile="README")
    elif kind == "no tarball":
        path.write_bytes(b"a page that says the file has moved")
    else:
        with tarfile.open(path, "w:xz") as tar:
            tar.add(tmp_path / f"linux-{VERSION}", f"linux-{VERSION}")
        path.write_bytes(path.read_bytes()[:150])
    settings(kernels, distribution_tarball=str(path))
    assert refused(kernels).startswith(f"{path}: ")


@pytest.mark.parametrize("version", ["6.12.99", VERSION])
def test_a_source_of_another_version_or_with_other_bytes_is_used_with_a_warning(
    kernels: Path, tmp_path: Path, version: str
) -> None:
    known = settings(kernels)["sha256"]
    tarball = tmp_path / f"linux-{version}.tar" if version == VERSION else pack(tmp_path, version)
    tarball.write_bytes(tarball.read_bytes() + bytes(512))
    settings(kernels, distribution_tarball=str(tarball), sha256=known)
    said: list[str] = []
    kernel = build_kernel(kernels_folder=kernels, say=said.append)
    assert (kernel.version, kernel.pinned) == (version, False)
    assert version in said[0] and VERSION in said[0]
    build_kernel(kernels_folder=kernels, say=said.append)
    assert said[-1] == said[0], "the warning comes with every use"


@pytest.mark.parametrize("variable", ["KCFLAGS", "MAKEFLAGS", "CROSS_COMPILE", "CC", "LD_PRELOAD", "C_INCLUDE_PATH"])
def test_no_variable_of_the_user_reaches_a_build(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "x")
    assert variable not in build_environment() and build_environment()["PATH"]


def test_a_cache_folder_that_cannot_be_written_to_is_named(kernels: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    assert refused(kernels).startswith(f"{tmp_path}/cache/kernels")


def test_the_pinned_release_is_fetched_if_the_distribution_has_none(kernels: Path, tmp_path: Path) -> None:
    tarball = shutil.copy(tmp_path / f"linux-{VERSION}.tar", kernels)
    sha256 = hashlib.sha256(Path(tarball).read_bytes()).hexdigest()
    (kernels / "sums").write_text(f"{sha256}  linux-{VERSION}.tar\n")
    settings(kernels)
    said: list[str] = []
    assert build_kernel(kernels_folder=kernels, say=said.append).pinned
    build_kernel(kernels_folder=kernels, say=said.append)
    assert sum(line.startswith("fetching") for line in said) == 1


def test_a_kernel_of_the_same_recipe_is_used_the_pinned_release_first(kernels: Path, tmp_path: Path) -> None:
    settings(kernels, distribution_tarball=str(tmp_path / f"linux-{VERSION}.tar"), pinned="6.12.99")
    first = build_kernel(kernels_folder=kernels)
    assert not first.pinned
    (tmp_path / "cache/kernels/damaged").mkdir()
    (tmp_path / "cache/kernels/damaged/kernel.json").write_text("{}")
    settings(kernels, distribution_tarball=str(pack(tmp_path, "6.12.99")))
    assert build_kernel(kernels_folder=kernels).digest == first.digest, (
        "a distribution's update is no reason to build again"
    )
    shutil.move(first.path.parent, tmp_path / "first")
    second = build_kernel(kernels_folder=kernels)
    shutil.move(tmp_path / "first", first.path.parent)
    settings(kernels, pinned="6.12.99")
    assert build_kernel(kernels_folder=kernels).digest == second.digest
    (kernels / "config/a.config").write_text("CONFIG_NET=y\n")
    assert "no kernel source" in refused(kernels)


def test_the_kernels_of_the_two_stacks_differ_only_in_the_tick() -> None:
    today, era = ([path.read_text() for path in Recipe(name).fragments()] for name in (DEFAULT_KERNEL, ERA_KERNEL))
    ((one, other),) = [pair for pair in zip(today, era, strict=True) if pair[0] != pair[1]]
    options = [[line for line in text.splitlines() if line[0] != "#"] for text in (one, other)]
    assert options == [["CONFIG_HZ=1000"], ["CONFIG_HZ=100"]]
    assert Recipe(DEFAULT_KERNEL).patches() == Recipe(ERA_KERNEL).patches()


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
    assert "gcc" in json.loads(first.path.with_name("kernel.json").read_text())["compiler"]
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


def test_progress_is_counted_while_folders_vanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fs/a.o", "fs/a.c", "net/b.o", "net/.tmp_7/c.o"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    scandir = os.scandir

    def after_a_removal(folder: str) -> object:
        if ".tmp_7" in str(folder):
            shutil.rmtree(tmp_path / "net/.tmp_7", ignore_errors=True)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", after_a_removal)
    assert count_objects(tmp_path) == 2


def test_a_build_ends_with_the_process_that_was_killed(kernels: Path, tmp_path: Path) -> None:
    child = tmp_path / "child"
    make = tmp_path / "programs/make"
    make.write_text(f"#!/bin/sh\nsleep 60 &\necho $! >{child}.new\nmv {child}.new {child}\nwait\n")
    code = f"from longfat.builds.kernel import *\nbuild_kernel(kernels_folder=Path({str(kernels)!r}))"
    builder = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert comes_true(child.exists)
    builder.kill()
    builder.wait()
    assert comes_true(lambda: not is_running(int(child.read_text())))


def test_a_damaged_package_is_refused_with_the_repair_and_one_in_the_cache_needs_no_program(kernels: Path) -> None:
    built = package(kernels)
    (kernels / str(X86_64.packages)).write_text("one nonesuch-one # reason\n")
    assert package(kernels) == built
    built.path.write_text("another")
    with pytest.raises(RigError, match="damaged") as caught:
        package(kernels)
    assert str(caught.value).endswith(f"hint: rm -r {built.path.parent} && ./just build kernel --target x86-64")
