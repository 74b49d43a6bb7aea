# SPDX-License-Identifier: Apache-2.0
"""Place of the cache folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.system.cache import cache_folder
from longfat.system.errors import RigError


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({}, "/home/somebody/.cache/longfat"),
        ({"XDG_CACHE_HOME": "/var/tmp/caches"}, "/var/tmp/caches/longfat"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/somebody/.cache/longfat"),
        ({"XDG_CACHE_HOME": "/var/tmp/caches", "LONGFAT_CACHE": "/srv/longfat"}, "/srv/longfat"),
    ],
)
def test_variables_choose_the_folder(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], folder: str) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    for name in ("LONGFAT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, environment.get(name, ""))
    assert cache_folder() == Path(folder)


def test_a_relative_cache_folder_is_refused_with_the_absolute_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGFAT_CACHE", "cache")
    with pytest.raises(RigError) as caught:
        cache_folder()
    assert caught.value.hint == f"LONGFAT_CACHE={Path.cwd() / 'cache'}"
