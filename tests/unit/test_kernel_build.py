# SPDX-License-Identifier: Apache-2.0
"""The builder of the guest's kernel, with a tiny source and a stub of make; and the search for the source."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tarfile
from pathlib import Path

import pytest
from tiny_kernels import NAME, PATCH, VERSION, pack, settings, tiny_kernels

from longfat.builds.kernel import (
    build_kernel,
    check_configuration,
)
from longfat.builds.kernel_recipe import KERNELS_FOLDER, Recipe
from longfat.builds.kernel_source import find_source
from longfat.catalog.kernels import DEFAULT_KERNEL, ERA_KERNEL, KERNELS
from longfat.errors import RigError


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return tiny_kernels(tmp_path, monkeypatch)


def made(tmp_path: Path) -> int:
    """How many kernels the stub was asked for."""
    log = tmp_path / "log"
    return log.read_text().count(" linux\n") if log.exists() else 0


def refused(kernels: Path) -> str:
    with pytest.raises(RigError) as caught:
        build_kernel(kernels_folder=kernels)
    assert caught.value.exit_status == 3
    return str(caught.value)


def test_a_kernel_is_patched_configured_and_built_once(kernels: Path, tmp_path: Path) -> None:
    said: list[str] = []
    first = build_kernel(kernels_folder=kernels, say=said.append)
    assert first.path.read_text() == "one\ntwo\n"
    assert (first.version, first.pinned) == (VERSION, True)
    assert said == [f"building the {VERSION} guest kernel (about two minutes on two cores)"]
    assert build_kernel(kernels_folder=kernels, say=said.append) == first
    assert (made(tmp_path), len(said)) == (1, 1)


def test_a_build_leaves_the_kernel_and_its_facts_only(kernels: Path) -> None:
    kernel = build_kernel(kernels_folder=kernels)
    assert sorted(path.name for path in kernel.path.parent.iterdir()) == ["kernel.json", "kit.tar.gz", "linux"]
    assert sorted(path.name for path in kernel.path.parents[1].iterdir()) == [
        *sorted([kernel.digest[:32], "lock", "sources.json", "um.lock"])
    ]


@pytest.mark.parametrize("name", ["config/a.config", f"{NAME}/patches/0001-a-line.patch"])
def test_a_change_of_a_patch_or_an_option_is_another_kernel(kernels: Path, tmp_path: Path, name: str) -> None:
    before = build_kernel(kernels_folder=kernels)
    path = kernels / name
    path.write_text(path.read_text().replace("CONFIG_NET", "CONFIG_WAN").replace("+two", "+three"))
    after = build_kernel(kernels_folder=kernels)
    assert after.digest != before.digest
    assert (before.path.exists(), made(tmp_path)) == (True, 2)


def test_a_missing_patch_is_named_before_anything_is_unpacked(kernels: Path, tmp_path: Path) -> None:
    (kernels / NAME / "series").write_text("0001-a-line.patch\n0002-absent.patch\n0003-gone.patch\n")
    assert "patches named in the series are missing: 0002-absent.patch, 0003-gone.patch" in refused(kernels)
    assert made(tmp_path) == 0


def test_a_patch_that_does_not_apply_ends_the_build_with_the_words_of_patch(kernels: Path, tmp_path: Path) -> None:
    (kernels / NAME / "patches" / "0001-a-line.patch").write_text(PATCH.replace(" one", " uno"))
    text = refused(kernels)
    assert "kernel build failed" in text
    assert "hunk FAILED" in text
    assert made(tmp_path) == 0


def test_an_option_lost_by_kconfig_is_named(kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOST", "CONG_BIC")
    assert "the kernel does not accept these options: CONFIG_TCP_CONG_BIC=y" in refused(kernels)
    assert made(tmp_path) == 0


def test_all_lost_options_are_named_at_once_also_those_that_must_be_off() -> None:
    wanted = "CONFIG_A=y\nCONFIG_B=7\n# CONFIG_C is not set\n# CONFIG_D is not set\n# a remark\n"
    with pytest.raises(RigError, match=r"options: CONFIG_B=7, # CONFIG_C is not set$"):
        check_configuration(wanted, "CONFIG_A=y\nCONFIG_B=8\nCONFIG_C=y\n")


def test_a_failed_compilation_shows_the_end_of_its_log_and_leaves_no_kernel(
    kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKEN", "1")
    text = refused(kernels)
    assert "error: no such thing" in text
    assert re.search(r"^\S+/cache/kernels/[0-9a-f]{32}\.log: kernel build failed", text)
    assert [path for path in (tmp_path / "cache/kernels").iterdir() if path.is_dir()] == []
    monkeypatch.delenv("BROKEN")
    assert build_kernel(kernels_folder=kernels).path.exists()


def test_a_program_that_is_not_installed_is_named(
    kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_programs = tmp_path / "few"
    build_programs.mkdir()
    for name in ("tar", "make"):
        (build_programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(build_programs))
    assert "kernel build failed: the program patch is not installed" in refused(kernels)


def test_a_damaged_executable_is_found_and_the_way_out_is_told(kernels: Path, tmp_path: Path) -> None:
    kernel = build_kernel(kernels_folder=kernels)
    kernel.path.write_bytes(kernel.path.read_bytes()[:-1])
    text = refused(kernels)
    assert "the kernel is damaged: the executable is not the one that was built" in text
    assert f"hint: rm -r {kernel.path.parent} && ./just kernel" in text
    shutil.rmtree(kernel.path.parent)
    assert build_kernel(kernels_folder=kernels) == kernel


@pytest.mark.parametrize("name", ["linux", "kernel.json"])
def test_a_missing_file_of_a_kernel_is_damage(kernels: Path, name: str) -> None:
    (build_kernel(kernels_folder=kernels).path.parent / name).unlink()
    assert "the kernel is damaged: kernel.json or linux cannot be read" in refused(kernels)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}'])
def test_facts_of_another_shape_are_damage(kernels: Path, text: str) -> None:
    (build_kernel(kernels_folder=kernels).path.parent / "kernel.json").write_text(text)
    assert "the kernel is damaged" in refused(kernels)


def test_a_kernel_under_the_name_of_another_is_damage(kernels: Path) -> None:
    path = build_kernel(kernels_folder=kernels).path.with_name("kernel.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "digest": "0" * 64}))
    assert "the executable is not the one that was built" in refused(kernels)


def test_a_tarball_without_a_kernel_is_refused_with_its_path(kernels: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    path = pack(tmp_path / "other", "1.2.3", makefile="README")
    settings(kernels, distribution_tarball=str(path))
    assert refused(kernels).startswith(f"{path}: the tarball contains no kernel source")


def test_a_file_that_is_no_tarball_is_refused_with_its_path(kernels: Path, tmp_path: Path) -> None:
    path = tmp_path / "linux.tar.xz"
    path.write_bytes(b"a page that says the file has moved")
    settings(kernels, distribution_tarball=str(path))
    assert refused(kernels).startswith(f"{path}: the kernel source cannot be unpacked")


def test_a_tarball_that_is_cut_short_is_refused(kernels: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole.tar.xz"
    with tarfile.open(whole, "w:xz") as tar:
        tar.add(tmp_path / f"linux-{VERSION}", f"linux-{VERSION}")
    path = tmp_path / "cut.tar.xz"
    path.write_bytes(whole.read_bytes()[:150])
    settings(kernels, distribution_tarball=str(path))
    assert "the kernel source cannot be unpacked" in refused(kernels)


def test_a_source_that_is_not_the_pinned_one_is_used_with_a_warning(kernels: Path, tmp_path: Path) -> None:
    settings(kernels, distribution_tarball=str(pack(tmp_path, "6.12.99")))
    said: list[str] = []
    kernel = build_kernel(kernels_folder=kernels, say=said.append)
    assert (kernel.version, kernel.pinned) == ("6.12.99", False)
    assert said[0] == f"warning: kernel source is 6.12.99, the references were made with {VERSION}"
    build_kernel(kernels_folder=kernels, say=said.append)
    assert said[-1] == said[0], "the warning comes with every use"


def test_a_cache_folder_that_cannot_be_made_is_named(kernels: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    text = refused(kernels)
    assert f"{tmp_path}/cache/kernels: the kernel's source cannot be written: Not a directory" in text
    assert "in a folder that you own; LONGFAT_CACHE names another folder" in text


def test_a_cache_folder_that_cannot_be_written_to_is_named(kernels: Path, tmp_path: Path) -> None:
    (tmp_path / "cache/kernels/lock").mkdir(parents=True)  # root may write to any folder, but not to this "file"
    assert "the kernel's source cannot be written: Is a directory" in refused(kernels)


def test_the_pinned_release_is_fetched_where_the_distribution_has_none(kernels: Path, tmp_path: Path) -> None:
    tarball = shutil.copy(tmp_path / f"linux-{VERSION}.tar", kernels)
    sha256 = hashlib.sha256(Path(tarball).read_bytes()).hexdigest()
    (kernels / "sums").write_text(f"{sha256}  linux-{VERSION}.tar\n")
    settings(kernels)
    said: list[str] = []
    assert build_kernel(kernels_folder=kernels, say=said.append).pinned
    assert said[0] == f"fetching {kernels.as_uri()}/linux-{VERSION}.tar"
    build_kernel(kernels_folder=kernels, say=said.append)
    assert sum(line.startswith("fetching") for line in said) == 1


def test_a_kernel_that_is_there_is_used_without_writing_to_the_cache_folder(kernels: Path, tmp_path: Path) -> None:
    kernel = build_kernel(kernels_folder=kernels)
    for name in ("lock", "um.lock"):
        (tmp_path / "cache/kernels" / name).unlink()
        (tmp_path / "cache/kernels" / name).mkdir()  # cannot be opened, by root neither
    assert build_kernel(kernels_folder=kernels) == kernel


def test_a_kernel_whose_source_is_gone_is_used_for_the_patches_it_was_built_with(kernels: Path, tmp_path: Path) -> None:
    kernel = build_kernel(kernels_folder=kernels)
    settings(kernels)
    assert build_kernel(kernels_folder=kernels) == kernel
    (kernels / "config/a.config").write_text("CONFIG_NET=y\n")
    assert "no kernel source" in refused(kernels)


def test_without_a_source_the_kernel_of_the_pinned_release_comes_first(kernels: Path, tmp_path: Path) -> None:
    first = build_kernel(kernels_folder=kernels)
    settings(kernels, distribution_tarball=str(pack(tmp_path, "6.12.99")))
    second = build_kernel(kernels_folder=kernels)
    (tmp_path / "cache/kernels/damaged").mkdir()
    (tmp_path / "cache/kernels/damaged/kernel.json").write_text("{}")
    settings(kernels)
    assert build_kernel(kernels_folder=kernels) == first
    settings(kernels, pinned="6.12.99")
    assert build_kernel(kernels_folder=kernels).digest == second.digest


def test_a_fetched_release_with_another_digest_is_thrown_away(kernels: Path, tmp_path: Path) -> None:
    shutil.copy(tmp_path / f"linux-{VERSION}.tar", kernels)
    (kernels / "sums").write_text(f"{'0' * 64}  linux-{VERSION}.tar\n")
    settings(kernels)
    assert "which kernel.org does not list" in refused(kernels)
    assert sorted(path.name for path in (tmp_path / "cache/kernels").iterdir()) == ["lock"]


def test_without_any_source_the_package_to_install_is_named(kernels: Path) -> None:
    settings(kernels)
    text = refused(kernels)
    assert "no kernel source: /nonexistent/linux.tar.xz does not exist and " in text
    assert "hint: apt-get install linux-source-6.12" in text


def test_version_and_digest_of_a_tarball_are_read_again_when_it_changes(kernels: Path, tmp_path: Path) -> None:
    path = tmp_path / f"linux-{VERSION}.tar"
    values = settings(kernels, distribution_tarball=str(path))
    folder = tmp_path / "memory"
    folder.mkdir()
    before = find_source(values, folder, print)
    (tmp_path / "other").mkdir()
    shutil.copyfile(pack(tmp_path / "other", "6.12.99"), path)
    os.utime(path, (1, 1))
    after = find_source(values, folder, print)
    assert (before.version, after.version) == (VERSION, "6.12.99")
    assert before.sha256 != after.sha256


def test_the_digest_depends_on_the_order_of_the_patches(kernels: Path, tmp_path: Path) -> None:
    shutil.copy(kernels / NAME / "patches/0001-a-line.patch", kernels / NAME / "patches/0002-b.patch")
    source = find_source(settings(kernels, distribution_tarball=str(tmp_path / f"linux-{VERSION}.tar")), kernels, print)
    digests = set()
    for series in ("0001-a-line.patch\n0002-b.patch\n", "0002-b.patch\n0001-a-line.patch\n"):
        (kernels / NAME / "series").write_text(series)
        digests.add(Recipe(NAME, kernels).digest(source))
    assert len(digests) == 2


def test_the_catalogue_names_every_folder_with_a_source() -> None:
    assert sorted(KERNELS) == sorted(path.parent.name for path in KERNELS_FOLDER.glob("*/source.toml"))


def test_the_kernels_of_the_two_stacks_differ_in_nothing_but_the_tick() -> None:
    today, era = ([path.read_text() for path in Recipe(name).fragments()] for name in (DEFAULT_KERNEL, ERA_KERNEL))
    different = [(one, other) for one, other in zip(today, era, strict=True) if one != other]
    assert [[line for line in text.splitlines() if line[0] != "#"] for text in different[0]] == [
        ["CONFIG_HZ=1000"],
        ["CONFIG_HZ=100"],
    ]
    assert len(different) == 1
    assert Recipe(DEFAULT_KERNEL).patches() == Recipe(ERA_KERNEL).patches()
    assert Recipe(DEFAULT_KERNEL).settings() == Recipe(ERA_KERNEL).settings()


@pytest.mark.parametrize("name", KERNELS)
def test_a_series_names_every_patch_there_is(name: str) -> None:
    recipe = Recipe(name)
    assert recipe.patches() == sorted((recipe.base_folder / "patches").glob("*.patch"))


PATCHES = list(dict.fromkeys(patch for name in KERNELS for patch in Recipe(name).patches()))


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: f"{path.parents[1].name}-{path.name[:4]}")
def test_each_patch_names_its_source(patch: Path) -> None:
    header = patch.read_text(encoding="utf-8").split("\ndiff --git ", 1)[0]
    assert re.search(r"^Sources?: ", header, re.M)
