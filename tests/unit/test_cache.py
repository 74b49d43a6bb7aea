# SPDX-License-Identifier: Apache-2.0
"""Where the cache folder is."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.cache import cache_folder
from longfat.errors import RigError


@pytest.fixture(autouse=True)
def a_home_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("LONGFAT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)


def test_the_cache_folder_is_in_the_home_folder_by_default() -> None:
    assert cache_folder() == Path("/home/somebody/.cache/longfat")


def test_the_desktop_standard_moves_the_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/tmp/caches")
    assert cache_folder() == Path("/var/tmp/caches/longfat")


def test_a_relative_folder_of_the_desktop_standard_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")
    assert cache_folder() == Path("/home/somebody/.cache/longfat")


def test_the_projects_own_variable_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/tmp/caches")
    monkeypatch.setenv("LONGFAT_CACHE", "/srv/longfat")
    assert cache_folder() == Path("/srv/longfat")


def test_a_relative_cache_folder_is_refused_with_the_absolute_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGFAT_CACHE", "cache")
    with pytest.raises(RigError, match="LONGFAT_CACHE is 'cache', but must be an absolute path") as caught:
        cache_folder()
    assert caught.value.hint == f"LONGFAT_CACHE={Path.cwd() / 'cache'}"


def test_without_a_home_folder_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(RigError, match="there is no home folder") as caught:
        cache_folder()
    assert caught.value.hint == "set LONGFAT_CACHE to an absolute path"
