# SPDX-License-Identifier: Apache-2.0
"""A guest's root that was changed behind the project's back is made again, and never booted as it is."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from longfat.backends import virtual
from longfat.backends.virtual import open_virtual

pytestmark = pytest.mark.virtual


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A composed root that no other process uses, in the user's own cache folder."""
    digest = hashlib.sha256(f"{os.getpid()}".encode()).hexdigest()
    monkeypatch.setattr(virtual, "text_digest", lambda: digest)
    root = open_virtual().root
    yield root
    shutil.rmtree(root.parent)


@pytest.mark.parametrize("pattern", ["traffic.py", "__pycache__/traffic.*.pyc"])
def test_a_changed_module_of_the_guest_is_never_executed(root: Path, pattern: str) -> None:
    (module,) = (root / "code/longfat/guest").glob(pattern)
    before = module.read_bytes()
    module.write_bytes(before.replace(b"8", b"9"))
    said: list[str] = []
    assert open_virtual(said.append).root == root
    assert len(said) == 1 and "damaged" in said[0]
    assert module.read_bytes() == before


def test_a_whole_root_is_used_as_it_is(root: Path) -> None:
    said: list[str] = []
    before = root.stat().st_ino
    assert open_virtual(said.append).root.stat().st_ino == before
    assert said == []
