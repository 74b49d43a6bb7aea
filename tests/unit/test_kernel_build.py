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

from longfat.builds.kernel import build_kernel, check_configuration
from longfat.builds.kernel_recipe import KERNELS_FOLDER, Recipe
from longfat.builds.kernel_source import Source
from longfat.catalog.kernels import DEFAULT_KERNEL, ERA_KERNEL, KERNELS
from longfat.errors import RigError

SOURCE = Source(Path("linux.tar"), VERSION, "ab" * 32)


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return tiny_kernels(tmp_path, monkeypatch)


def count_builds(tmp_path: Path) -> int:
    """Count the calls of the stub that make a guest's kernel."""
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
    assert build_kernel(kernels_folder=kernels, say=said.append) == first
    assert (count_builds(tmp_path), len(said)) == (1, 1)


def test_a_build_leaves_only_the_kernel_and_its_facts(kernels: Path) -> None:
    kernel = build_kernel(kernels_folder=kernels)
    assert sorted(path.name for path in kernel.path.parent.iterdir()) == ["kernel.json", "kit.tar.gz", "linux"]
    assert sorted(path.name for path in kernel.path.parents[1].iterdir()) == [
        *sorted([kernel.digest[:32], "lock", "um.lock"])
    ]


@pytest.mark.parametrize(
    ("name", "old", "new", "changes"),
    [
        ("config/a.config", "CONFIG_NET=y", "CONFIG_WAN=y", True),
        ("config/a.config", "# CONFIG_SMP is not set", "# CONFIG_NUMA is not set", True),
        ("config/a.config", "CONFIG_NET", "# A comment.\nCONFIG_NET", False),
        ("patches/0001-a-line.patch", "+two", "+three", True),
        ("patches/0001-a-line.patch", "b/tcp.c", "b/udp.c", True),
        ("patches/0001-a-line.patch", "-1 +1,2", "-2 +2,2", True),
        ("patches/0001-a-line.patch", "a line more", "another message", False),
        ("patches/0001-a-line.patch", "+1,2 @@", "+1,2 @@ int function(void)", False),
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
    (kernels / "patches/0002-b.patch").write_text(PATCH.replace("two", "three"))
    digests = set()
    for first, second in (("0001", "0002"), ("0002", "0001")):
        for number, path in zip((first, second), sorted((kernels / "patches").glob("*.patch")), strict=True):
            path.rename(path.with_name(f"{number}-renamed{path.name[4:]}"))
        (kernels / "series").write_text("\n".join(path.name for path in (kernels / "patches").glob("*.patch")))
        digests.add(Recipe(NAME, kernels).digest(SOURCE))
    assert len(digests) == 2


def test_the_guests_command_line_is_part_of_the_identity(kernels: Path) -> None:
    before = Recipe(NAME, kernels).digest(SOURCE)
    with (kernels / NAME / "source.toml").open("a") as file:
        file.write('command_line = "seccomp=auto"\n')
    assert Recipe(NAME, kernels).digest(SOURCE) != before


def test_a_kernels_patch_replaces_the_patch_of_the_series_with_the_same_number(kernels: Path) -> None:
    (kernels / NAME / "patches").mkdir()
    (kernels / NAME / "patches/0001-another-line.patch").write_text(PATCH.replace("+two", "+another"))
    (kernels / NAME / "patches/0002-more.patch").write_text(
        "--- a/tcp.c\n+++ b/tcp.c\n@@ -2 +2,2 @@\n another\n+more\n"
    )
    assert build_kernel(kernels_folder=kernels).path.read_text() == "one\nanother\nmore\n"


def test_missing_patches_are_named_before_anything_is_unpacked(kernels: Path, tmp_path: Path) -> None:
    (kernels / "series").write_text("0001-a-line.patch\n0002-absent.patch\n0003-gone.patch\n")
    assert "0002-absent.patch, 0003-gone.patch" in refused(kernels)
    assert count_builds(tmp_path) == 0


def test_a_patch_that_does_not_apply_ends_the_build_with_the_output_of_patch(kernels: Path, tmp_path: Path) -> None:
    (kernels / "patches" / "0001-a-line.patch").write_text(PATCH.replace(" one", " uno"))
    assert "hunk FAILED" in refused(kernels)
    assert count_builds(tmp_path) == 0


def test_an_option_lost_by_kconfig_is_named(kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOST", "CONG_BIC")
    assert "CONFIG_TCP_CONG_BIC=y" in refused(kernels)
    assert count_builds(tmp_path) == 0


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
    assert re.search(r"^\S+/cache/kernels/[0-9a-f]{32}\.log: ", text)
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
    assert "the program patch is not installed" in refused(kernels)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("linux", None), ("linux", "another"), ("kernel.json", None), ("kernel.json", "")),
        *(("kernel.json", "[]"), ("kernel.json", "{}"), ("kernel.json", '{"format": 1}')),
    ],
)
def test_damage_is_found_with_the_command_that_repairs_it(kernels: Path, name: str, text: str | None) -> None:
    kernel = build_kernel(kernels_folder=kernels)
    path = kernel.path.with_name(name)
    path.unlink()
    if text is not None:
        path.write_text(text)
    assert f"hint: rm -r {path.parent} && ./just build kernel" in refused(kernels)
    shutil.rmtree(path.parent)
    assert build_kernel(kernels_folder=kernels) == kernel


def test_a_kernel_under_the_name_of_another_is_damage(kernels: Path) -> None:
    path = build_kernel(kernels_folder=kernels).path.with_name("kernel.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "digest": "0" * 64}))
    assert "damaged" in refused(kernels)


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


def test_a_source_that_is_not_the_pinned_one_is_used_with_a_warning(kernels: Path, tmp_path: Path) -> None:
    settings(kernels, distribution_tarball=str(pack(tmp_path, "6.12.99")))
    said: list[str] = []
    kernel = build_kernel(kernels_folder=kernels, say=said.append)
    assert (kernel.version, kernel.pinned) == ("6.12.99", False)
    assert "6.12.99" in said[0] and VERSION in said[0]
    build_kernel(kernels_folder=kernels, say=said.append)
    assert said[-1] == said[0], "the warning comes with every use"


@pytest.mark.parametrize("place", ["cache", "cache/kernels/lock"])
def test_a_cache_folder_that_cannot_be_written_to_is_named(kernels: Path, tmp_path: Path, place: str) -> None:
    if place == "cache":
        (tmp_path / place).write_text("a file where a folder should be")
    else:
        (tmp_path / place).mkdir(parents=True)  # root may write to any folder, but not to this "file"
    text = refused(kernels)
    assert text.startswith(f"{tmp_path}/cache/kernels")
    assert "LONGFAT_CACHE" in text


def test_the_pinned_release_is_fetched_if_the_distribution_has_none(kernels: Path, tmp_path: Path) -> None:
    tarball = shutil.copy(tmp_path / f"linux-{VERSION}.tar", kernels)
    sha256 = hashlib.sha256(Path(tarball).read_bytes()).hexdigest()
    (kernels / "sums").write_text(f"{sha256}  linux-{VERSION}.tar\n")
    settings(kernels)
    said: list[str] = []
    assert build_kernel(kernels_folder=kernels, say=said.append).pinned
    build_kernel(kernels_folder=kernels, say=said.append)
    assert sum(line.startswith("fetching") for line in said) == 1


def test_a_fetched_release_with_another_digest_is_removed(kernels: Path, tmp_path: Path) -> None:
    shutil.copy(tmp_path / f"linux-{VERSION}.tar", kernels)
    (kernels / "sums").write_text(f"{'0' * 64}  linux-{VERSION}.tar\n")
    settings(kernels)
    assert "kernel.org" in refused(kernels)
    assert sorted(path.name for path in (tmp_path / "cache/kernels").iterdir()) == ["lock"]


def test_a_kernel_in_the_cache_is_used_without_writing_there(kernels: Path, tmp_path: Path) -> None:
    kernel = build_kernel(kernels_folder=kernels)
    for name in ("lock", "um.lock"):
        (tmp_path / "cache/kernels" / name).unlink()
        (tmp_path / "cache/kernels" / name).mkdir()  # nobody can open it, not even root
    assert build_kernel(kernels_folder=kernels) == kernel


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


def test_without_any_source_the_package_to_install_is_named(kernels: Path) -> None:
    settings(kernels)
    assert "hint: apt-get install linux-source-6.12" in refused(kernels)


def test_the_catalogue_names_every_folder_with_a_source() -> None:
    assert sorted(KERNELS) == sorted(path.parent.name for path in KERNELS_FOLDER.glob("*/source.toml"))


def test_the_kernels_of_the_two_stacks_differ_only_in_the_tick() -> None:
    today, era = ([path.read_text() for path in Recipe(name).fragments()] for name in (DEFAULT_KERNEL, ERA_KERNEL))
    ((one, other),) = [pair for pair in zip(today, era, strict=True) if pair[0] != pair[1]]
    options = [[line for line in text.splitlines() if line[0] != "#"] for text in (one, other)]
    assert options == [["CONFIG_HZ=1000"], ["CONFIG_HZ=100"]]
    assert Recipe(DEFAULT_KERNEL).patches() == Recipe(ERA_KERNEL).patches()


PATCHES = sorted(KERNELS_FOLDER.glob("**/*.patch"))


def test_every_patch_belongs_to_a_kernel() -> None:
    assert {patch for name in KERNELS for patch in Recipe(name).patches()} == {*PATCHES}


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: f"{path.parents[1].name}-{path.name[:4]}")
def test_the_header_of_a_patch_has_its_author_its_number_and_its_source(patch: Path) -> None:
    header = patch.read_text(encoding="utf-8").split("\ndiff --git ", 1)[0]
    assert re.findall(r"^From: (.*)", header, re.MULTILINE) == ["Longfat <longfat@users.noreply.example>"]
    assert re.search(rf"^Subject: \[PATCH {patch.name[2:4]}/\d\d\] ", header, re.MULTILINE)
    assert re.search(r"^Source: ", header, re.MULTILINE)
