# SPDX-License-Identifier: Apache-2.0
"""Composed roots: no guest starts on a root that differs from the image and the guest's code."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tiny_images import empty_cache

from longfat.builds.image import ImageBuild, build_image
from longfat.builds.roots import open_root, root_fault
from longfat.system import store
from longfat.system.errors import RigError
from longfat.system.files import flush_file_system

CODE = "c" * 64
MODULE = "code/longfat/guest/traffic.py"
COMPILED = "code/longfat/guest/__pycache__/traffic.pyc"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder and a stub of mmdebstrap."""
    return empty_cache(tmp_path, monkeypatch)


def add_code(root: Path) -> None:
    for name in (MODULE, COMPILED):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("8 * total")


def opened(built: ImageBuild) -> tuple[Path, list[str]]:
    said: list[str] = []
    return open_root(built, CODE, add_code, said.append), said


def alter(path: Path) -> None:
    """Change a byte and keep size and times, as a failing disk does."""
    times = path.stat()
    path.write_bytes(b"#" + path.read_bytes()[1:])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_root_is_composed_once_and_is_the_image_with_the_code(cache: Path) -> None:
    built = build_image()
    root, said = opened(built)
    assert root == cache / "roots" / f"{built.digest[:16]}-{CODE[:16]}" / "root"
    assert (root / "usr/bin/python3").samefile(built.path / "usr/bin/python3")
    assert (root / MODULE).read_text() == "8 * total"
    before = root.stat().st_ino
    assert opened(built) == (root, [])
    assert (root.stat().st_ino, said) == (before, [])
    assert root_fault(root.parent, built) is None


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("changed", MODULE), ("changed", COMPILED), ("removed", "usr/bin/python3")),
        *(("added", name) for name in ("code/json.py", "code/longfat/json", "usr/bin/sitecustomize.py", "etc")),
        *(("described", text) for text in ("", "[]", "{}", '{"format": 9, "code_sha256": ""}')),
        ("not described", ""),
    ],
)
def test_a_damaged_root_is_composed_again_before_any_guest_starts(cache: Path, kind: str, name: str) -> None:
    built = build_image()
    root, _ = opened(built)
    if kind == "changed":
        alter(root / name)
    elif kind == "removed":
        (root / name).unlink()
    elif kind == "added":
        (root / name).symlink_to("/task")
    elif kind == "described":
        (root.parent / "root.json").write_text(name)
    else:
        (root.parent / "root.json").unlink()
    again, said = opened(built)
    assert len(said) == 1 and str(root.parent) in said[0]
    assert (again / MODULE).read_text() == (again / COMPILED).read_text() == "8 * total"
    assert (again / "usr/bin/python3").read_text() == "python"
    assert kind != "added" or not os.path.lexists(again / name)
    assert opened(built) == (root, [])


def test_following_the_hint_for_a_damaged_image_repairs_the_roots_too(cache: Path) -> None:
    built = build_image()
    opened(built)
    with (built.path / "usr/bin/python3").open("a") as file:
        file.write("DAMAGE")
    follow_hint()
    again, _ = opened(build_image())
    assert (again / "usr/bin/python3").read_text() == "python"


def follow_hint() -> None:
    """Do what the message for the damaged image says, with a program in the place of ./just."""
    with pytest.raises(RigError, match="the image is damaged") as caught:
        build_image()
    remove, _, build = str(caught.value.hint).partition(" && ")
    assert build == "./just build image"
    subprocess.run(["sh", "-euc", remove], check=True)
    build_image()


def test_image_and_root_are_on_the_disk_before_they_get_their_names(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[tuple[str, bool]] = []

    def flush(folder: Path) -> None:
        flush_file_system(folder)
        names = [path.name for path in folder.parent.iterdir() if path.is_dir() and path != folder]
        flushed.append((folder.parent.name, names == []))

    monkeypatch.setattr(store, "flush_file_system", flush)
    opened(build_image())
    assert flushed == [("images", True), ("roots", True)]


def test_code_that_cannot_be_added_leaves_no_root(cache: Path) -> None:
    def fail(root: Path) -> None:
        raise RigError("the guest could not compile")

    built = build_image()
    with pytest.raises(RigError, match="could not compile"):
        open_root(built, CODE, fail)
    assert [path.name for path in (cache / "roots").iterdir()] == [".lock"]


def test_adding_code_must_leave_the_files_of_the_image_alone(cache: Path) -> None:
    def too_much(root: Path) -> None:
        add_code(root)
        (root / "usr/bin/more").write_text("")

    with pytest.raises(RigError, match="composed root"):
        open_root(build_image(), CODE, too_much)


def test_what_a_killed_start_left_is_removed_by_the_next_that_composes(cache: Path) -> None:
    leftover = cache / "roots/.partial-killed/root"
    leftover.mkdir(parents=True)
    opened(build_image())
    assert not leftover.exists()


def test_a_cache_folder_that_takes_no_root_is_named(cache: Path) -> None:
    built = build_image()
    (cache / "roots").write_text("")
    with pytest.raises(RigError, match="File exists"):
        opened(built)
