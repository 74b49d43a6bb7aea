# SPDX-License-Identifier: Apache-2.0
"""Composed roots: no guest starts on a damaged root, and a cache that one user built serves the others."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_images import cache as cache
from tiny_images import empty_cache

from longfat.builds.image import ImageBuild, build_image, load_image
from longfat.builds.roots import open_root
from longfat.system import store
from longfat.system.files import flush_file_system

CODE = "c" * 64
MODULE = "code/longfat/guest/traffic.py"
COMPILED = "code/longfat/guest/__pycache__/traffic.pyc"


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


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("changed", MODULE), ("changed", COMPILED), ("removed", "usr/bin/python3")),
        *(("added", name) for name in ("code/json.py", "usr/bin/sitecustomize.py")),
        *(("described", text) for text in ("", '{"format": 9, "code_sha256": ""}')),
        ("not described", ""),
    ],
)
def test_a_damaged_root_is_composed_again_before_any_guest_starts(cache: Path, kind: str, name: str) -> None:
    built = build_image()
    root, _ = opened(built)
    assert (root / "usr/bin/python3").samefile(built.path / "usr/bin/python3")
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


def test_a_file_that_may_not_be_linked_is_copied(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str, **_: object) -> None:
        raise PermissionError(1, "Operation not permitted", source, None, target)

    built = build_image()
    monkeypatch.setattr(os, "link", refuse)
    root, _ = opened(built)
    assert (root / "usr/bin/python3").read_text() == "python"
    assert not (root / "usr/bin/python3").samefile(built.path / "usr/bin/python3")


SOURCE = Path(__file__).parents[2] / "src"
NOBODY = 65534
OPEN = """
import sys
from pathlib import Path
from longfat.builds.image import load_image
from longfat.builds.roots import open_root
from longfat.system.errors import RigError
try:
    print(open_root(load_image(Path(sys.argv[1])), "c" * 64, lambda root: None))
except RigError as error:
    print(error)
"""


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of an image with files for root only and a composed root, built under the strictest umask."""
    if os.geteuid():
        pytest.skip("a cache of another user needs root")
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        cache = empty_cache(Path(name), monkeypatch)
        tree = Path(name) / "tree"
        (tree / "etc/ssl/private").mkdir(parents=True)
        (tree / "etc/ssl/private").chmod(0o700)
        (tree / "etc/shadow").write_text("root:*:")
        (tree / "etc/shadow").chmod(0o600)
        before = os.umask(0o077)
        try:
            opened = build_image()
            open_root(opened, "c" * 64, lambda root: (root / "code/start").write_text("code"))
        finally:
            os.umask(before)
        assert opened.path.is_relative_to(cache)
        yield opened.path.parent


def asked_by_nobody(folder: Path) -> str:
    nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if subprocess.run([*nobody, "test", "-r", SOURCE / "longfat/__init__.py"], check=False).returncode:
        pytest.skip("the checkout itself is closed to other users")
    environment = {"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"]}
    command = [*nobody, sys.executable, "-c", OPEN, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_another_user_opens_the_image_and_the_root_that_root_built(built: Path) -> None:
    assert asked_by_nobody(built).strip() == str(next((built.parents[1] / "roots").glob("*/root")))
    assert load_image(built).path == built / "root", "and it is right for its owner too"


def test_every_file_of_an_image_may_be_read_by_everybody(built: Path) -> None:
    modes = {path: path.lstat().st_mode for path in built.rglob("*") if not path.is_symlink()}
    assert built / "root/etc/shadow" in modes
    assert not [path for path, mode in modes.items() if not mode & stat.S_IROTH]
