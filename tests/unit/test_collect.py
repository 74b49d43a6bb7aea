# SPDX-License-Identifier: Apache-2.0
"""What a guest leaves is taken over as files and folders, and nothing that it leaves reads or fills the host."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from longfat.backends import collect as module
from longfat.backends.collect import collect, read_text
from longfat.errors import RigError


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A folder as a guest leaves it."""
    folder = tmp_path / "raw"
    (folder / "iperf").mkdir(parents=True)
    (folder / "outcome.json").write_text("{}")
    (folder / "iperf" / "flow1.client.txt").write_bytes(b"\0\n")
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def test_files_and_folders_come_as_they_are(left: Path, target: Path) -> None:
    collect(left, target)
    assert sorted(str(path.relative_to(target)) for path in target.rglob("*")) == [
        *("iperf", "iperf/flow1.client.txt", "outcome.json")
    ]
    assert (target / "iperf" / "flow1.client.txt").read_bytes() == b"\0\n"


@pytest.mark.parametrize("name", ["stolen.txt", "iperf/stolen.txt"])
def test_a_link_is_refused_by_its_name(left: Path, target: Path, name: str) -> None:
    (left / name).symlink_to("/etc/passwd")
    with pytest.raises(RigError, match=f"{left / name}: a run left something that is neither a file nor a folder"):
        collect(left, target)
    assert not list(target.rglob("stolen*"))


def test_a_link_in_the_place_of_the_folder_itself_is_refused(tmp_path: Path, target: Path) -> None:
    (tmp_path / "raw").symlink_to("/etc")
    with pytest.raises(RigError, match="neither a file nor a folder"):
        collect(tmp_path / "raw", target)


def test_a_pipe_and_a_socket_are_refused_and_not_waited_for(left: Path, target: Path) -> None:
    os.mkfifo(left / "pipe")
    with pytest.raises(RigError, match="pipe: a run left something that is neither a file nor a folder"):
        collect(left, target)
    (left / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(left / "socket"))
        with pytest.raises(RigError, match="socket: a run left something that is neither a file nor a folder"):
            collect(left, target)


def test_a_hole_as_large_as_a_disk_is_refused_before_it_is_copied(left: Path, target: Path) -> None:
    os.truncate(left / "outcome.json", 1 << 40)
    with pytest.raises(RigError, match="a run left more than 100000 files or 32 GiB"):
        collect(left, target)
    assert not (target / "outcome.json").exists()


def test_more_files_than_any_run_has_are_refused(left: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILES", 2)
    with pytest.raises(RigError, match="a run left more than 2 files"):
        collect(left, target)


def test_folders_in_folders_are_refused(left: Path, target: Path) -> None:
    (left / "a/b/c/d/e").mkdir(parents=True)
    with pytest.raises(RigError, match="a run left nested folders"):
        collect(left, target)


def test_a_console_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "console.log").symlink_to("/etc/passwd")
    assert "neither a file nor a folder" in read_text(tmp_path / "console.log")
    assert "root:" not in read_text(tmp_path / "console.log")
