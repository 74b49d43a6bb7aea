# SPDX-License-Identifier: Apache-2.0
"""Collection of a guest's output: only files and folders, no file of the host, and a limited size."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from longfat.backends import collect as module
from longfat.backends.collect import collect, read_text
from longfat.system.errors import RigError


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A folder as a guest leaves it, next to an empty one."""
    folder = tmp_path / "raw"
    (tmp_path / "target").mkdir()
    (folder / "iperf").mkdir(parents=True)
    (folder / "outcome.json").write_text("{}")
    (folder / "iperf" / "flow1.client.txt").write_bytes(b"\0\n")
    return folder


@pytest.mark.parametrize("name", ["stolen", "iperf/stolen", "."])
def test_a_link_is_refused_by_its_name(left: Path, tmp_path: Path, name: str) -> None:
    place = left / name
    if name == ".":
        place = left.with_name("linked")
    place.symlink_to("/etc/passwd")
    with pytest.raises(RigError, match=f"{place}: a run left something that is neither a file nor a folder"):
        collect(place if name == "." else left, tmp_path / "target")
    assert not list((tmp_path / "target").rglob("stolen*"))


def test_a_pipe_and_a_socket_are_refused_and_not_waited_for(left: Path, tmp_path: Path) -> None:
    os.mkfifo(left / "pipe")
    with pytest.raises(RigError, match="pipe: "):
        collect(left, tmp_path / "target")
    (left / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(left / "socket"))
        with pytest.raises(RigError, match="socket: "):
            collect(left, tmp_path / "target")


def test_more_than_any_run_leaves_is_refused_before_it_is_copied(
    left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.truncate(left / "outcome.json", 1 << 40)  # a hole
    with pytest.raises(RigError, match="32 GiB"):
        collect(left, tmp_path / "target")
    assert not (tmp_path / "target/outcome.json").exists()
    os.truncate(left / "outcome.json", 1)
    (left / "a/b/c/d/e").mkdir(parents=True)
    with pytest.raises(RigError, match="nested folders"):
        collect(left, tmp_path / "target")
    monkeypatch.setattr(module, "MAX_FILES", 2)
    with pytest.raises(RigError, match="more than 2 files"):
        collect(left, tmp_path / "target")


def test_a_console_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "console.log").symlink_to("/etc/passwd")
    assert "neither a file nor a folder" in read_text(tmp_path / "console.log")
    assert "root:" not in read_text(tmp_path / "console.log")
