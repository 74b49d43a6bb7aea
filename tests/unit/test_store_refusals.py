# SPDX-License-Identifier: Apache-2.0
"""What the cache folder refuses, in words."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from longfat.builds.roots import _link
from longfat.system.errors import RigError
from longfat.system.store import keep


def refuse(source: str, target: str) -> None:
    raise PermissionError(1, "Operation not permitted", source, None, target)


def test_a_tree_that_cannot_be_copied_is_named_with_file_and_reason(tmp_path: Path) -> None:
    (tmp_path / "image").mkdir()
    (tmp_path / "image/file").touch()

    def make(new: Path) -> None:
        shutil.copytree(tmp_path / "image", new, copy_function=refuse)

    with pytest.raises(RigError) as caught:
        keep(tmp_path / "cache", make, "the thing", "1 MB")
    assert "Operation not permitted" in str(caught.value)
    assert "None" not in str(caught.value)


def test_a_file_that_may_not_be_linked_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").write_text("text")
    os.utime(tmp_path / "one", (1, 1))
    monkeypatch.setattr(os, "link", refuse)
    _link(str(tmp_path / "one"), str(tmp_path / "two"))
    assert (tmp_path / "two").read_text() == "text"
    assert (tmp_path / "two").stat().st_mtime == 1
