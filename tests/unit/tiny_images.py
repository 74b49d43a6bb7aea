# SPDX-License-Identifier: Apache-2.0
"""An image of a few files in its own cache folder, built by a stub of mmdebstrap. Must not assert anything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from longfat.builds import image

STUB = """#!/bin/sh
# Stands in for mmdebstrap: its last option before the sources is the target.
for argument; do case $argument in *.tar) target=$argument ;; esac; done
echo "$@" >>{log}
echo "$SOURCE_DATE_EPOCH" >>{log}
tar --create --file="$target" --directory={tree} .
"""


def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty cache folder and a stub of mmdebstrap that makes a tiny userland and keeps a log."""
    tree = tmp_path / "tree"
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/python3").write_text("python")
    (tree / "bin").symlink_to("usr/bin")
    (tree / "code").mkdir()
    (tree / "dev").mkdir()
    (tree / "dev/null").write_text("a device node would be here")
    (tree / "var/lib/dpkg").mkdir(parents=True)
    (tree / "var/lib/dpkg/status").write_text(
        "Package: iperf\nVersion: 2.1.8\n more: text\n\nPackage: mount\nVersion: 2.38\n"
    )
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "mmdebstrap").write_text(STUB.format(log=tmp_path / "log", tree=tree))
    (programs / "mmdebstrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LONGFAT_ARCHIVE", raising=False)
    monkeypatch.setattr(image.os, "geteuid", lambda: 0)
    monkeypatch.setattr(image, "source_lines", lambda suite, snapshot: ())
    return tmp_path / "cache"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder and a stub of mmdebstrap."""
    return empty_cache(tmp_path, monkeypatch)
