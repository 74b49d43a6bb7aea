# SPDX-License-Identifier: Apache-2.0
"""Builds of guests' kernels with a tiny source and a stub of make, and the search for the source."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tarfile
from pathlib import Path

import pytest
from tiny_kernels import NAME, PATCH, VERSION, pack, settings, tiny_kernels

from longfat.builds.kernel import build_environment, build_kernel, check_configuration
from longfat.builds.kernel_recipe import Recipe
from longfat.builds.kernel_source import Source
from longfat.study.catalog.kernels import DEFAULT_KERNEL, ERA_KERNEL
from longfat.system.errors import RigError

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


def test_a_kernel_records_its_compiler(kernels: Path) -> None:
    facts = json.loads(build_kernel(kernels_folder=kernels).path.with_name("kernel.json").read_text())
    assert "gcc" in facts["compiler"]


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
