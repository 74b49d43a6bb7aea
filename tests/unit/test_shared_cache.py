# SPDX-License-Identifier: Apache-2.0
"""A cache that one user built serves the others."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_images import empty_cache

from longfat.builds.image import build_image, load_image
from longfat.builds.roots import open_root

SOURCE = Path(__file__).parents[2] / "src"
NOBODY = 65534
OPEN = """
import sys
from pathlib import Path
from longfat.builds.image import load_image
from longfat.builds.roots import open_root
from longfat.errors import RigError
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
