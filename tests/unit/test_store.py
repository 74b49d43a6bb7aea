# SPDX-License-Identifier: Apache-2.0
"""Files that are whole, locks that others wait for, things made once, and processes that end with their parent."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from longfat.system import store
from longfat.system.errors import RigError
from longfat.system.files import write_whole
from longfat.system.locks import hold
from longfat.system.store import draft, keep


def test_a_file_is_replaced_with_its_rights_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "lock.json"
    path.write_text("old")
    write_whole(path, "grün", 0o600)
    assert path.read_bytes() == "grün".encode()
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_replaced_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "taken", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_who_does_not_wait_is_told_that_somebody_holds_the_lock(tmp_path: Path) -> None:
    with hold(tmp_path / "folder/lock"), pytest.raises(BlockingIOError), hold(tmp_path / "folder/lock", wait=False):
        pass
    with hold(tmp_path / "folder/lock", wait=False), hold(tmp_path / "folder", folder=True, wait=False):
        assert list(tmp_path.rglob("lock")) == [tmp_path / "folder/lock"]


@pytest.mark.parametrize("old", ["nothing", "file", "folder"])
def test_a_draft_takes_the_place_of_what_was_there(tmp_path: Path, old: str) -> None:
    target = tmp_path / "thing"
    if old == "folder":
        (target / "old").mkdir(parents=True)
    elif old == "file":
        target.write_text("old")
    with draft(target) as new:
        (new.parent / "scratch").write_text("")
        if old == "folder":
            new.mkdir()
            (new / "new").write_text("")
        else:
            new.write_text("new")
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == (
        ["thing", "thing/new"] if old == "folder" else ["thing"]
    )


def test_a_draft_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "thing").write_text("old")
    with pytest.raises(ZeroDivisionError), draft(tmp_path / "thing") as new:
        new.write_text(str(1 // 0))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_only_the_thing_itself_is_brought_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[list[str]] = []

    def make(new: Path) -> None:
        (new.parent / "source/folder").mkdir(parents=True)
        (new.parent / "source/link").symlink_to(new.parent / "source/folder")
        (new.parent / "log").write_text("made")
        (new.parent / "link").symlink_to(new.parent / "source")
        new.mkdir()

    monkeypatch.setattr(
        store, "flush_file_system", lambda folder: flushed.append([path.name for path in folder.iterdir()])
    )
    keep(tmp_path / "thing", make, "it", "1 MB")
    assert flushed == [["thing"]]
    assert list((tmp_path / "thing").iterdir()) == []


def test_a_thing_is_made_once_whoever_asks(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(new: Path) -> None:
        made.append(new)
        new.write_text("thing")

    asking = [threading.Thread(target=keep, args=(tmp_path / "a/thing", make, "it", "1 MB")) for _ in range(3)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert len(made) == 1
    assert (tmp_path / "a/thing").read_text() == "thing"


def test_a_thing_that_is_not_right_is_made_again_and_leftovers_of_it_alone_go(tmp_path: Path) -> None:
    (tmp_path / "thing").write_text("wrong")
    for left in (".partial-thing-x", ".partial-other-x"):
        (tmp_path / left).mkdir()

    def make(new: Path) -> None:
        new.write_text("right")

    kept = keep(tmp_path / "thing", make, "it", "1 MB", right=lambda path: path.read_text() == "right")
    assert kept.read_text() == "right"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".partial-other-x", "thing", "thing.lock"]


def test_a_thing_that_cannot_be_written_is_named_with_its_need(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RigError, match=f"{tmp_path}/file: the thing cannot be written: File exists") as caught:
        keep(tmp_path / "file/thing", Path.touch, "the thing", "3 MB")
    assert (
        caught.value.hint == "it needs 3 MB of disk space in a folder that you own; LONGFAT_CACHE names another folder"
    )


PARENT = """\
import subprocess, time
from longfat.system.parent import end_with_parent
print(subprocess.Popen(["sleep", "60"], preexec_fn=end_with_parent).pid, flush=True)
time.sleep(60)
"""


def test_a_child_ends_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        assert select.select([child], [], [], 0)[0] == []
        parent.kill()
    assert select.select([child], [], [])[0] == [child]
    os.close(child)
