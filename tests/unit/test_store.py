# SPDX-License-Identifier: Apache-2.0
"""Whole files, locks, the cache folder, things made once, and leftovers of killed processes."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from longfat.system.cache import cache_folder
from longfat.system.errors import RigError
from longfat.system.files import write_whole
from longfat.system.processes import is_running
from longfat.system.scratch import scratch_in
from longfat.system.store import draft, keep


def test_a_file_is_replaced_with_its_rights_and_no_draft_is_left(tmp_path: Path) -> None:
    path = tmp_path / "lock.json"
    path.write_text("old")
    write_whole(path, "grün", 0o600)
    assert path.read_bytes() == "grün".encode()
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


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


SOURCE = Path(__file__).parents[2] / "src"
HOLD = """
import sys, time
from pathlib import Path
from longfat.system.scratch import scratch_in
with scratch_in(Path(sys.argv[1]), "guest-") as folder:
    (folder / "capture").write_bytes(b"packets")
    print(folder, flush=True)
    time.sleep(60)
"""
GONE = 2**22 + 1  # above the kernel's largest number of a process


def holding(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that uses such a folder, and the folder."""
    command = [sys.executable, "-c", HOLD, str(parent)]
    process = subprocess.Popen(command, env={"PYTHONPATH": str(SOURCE)}, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def test_the_folder_of_a_killed_process_goes_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    (killed, left), (living, used) = holding(tmp_path), holding(tmp_path)
    killed.kill()
    killed.communicate()
    assert (left / "capture").exists()
    with scratch_in(tmp_path, "guest-") as own:
        assert sorted(tmp_path.iterdir()) == sorted([used, own])
    assert list(tmp_path.iterdir()) == [used]
    living.kill()
    living.communicate()


def test_programs_of_a_killed_process_are_ended_and_those_of_a_living_session_are_not(tmp_path: Path) -> None:
    killed, left = holding(tmp_path)
    killed.kill()
    killed.communicate()
    # As a part of a guest whose kernel is gone: its session's first process has ended.
    begun = subprocess.run(
        ["/bin/sh", "-c", "sleep 60 >/dev/null & echo $!"],
        cwd=left,
        start_new_session=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    stopped = os.pidfd_open(int(begun.stdout))
    with subprocess.Popen(["sleep", "60"], cwd=left, start_new_session=True) as living:
        with scratch_in(tmp_path, "guest-"):
            assert select.select([stopped], [], [], 10)[0]
            assert is_running(living.pid)
        living.kill()
    os.close(stopped)
    assert not left.exists()


def test_a_folder_that_is_just_being_made_and_files_of_other_names_stay(tmp_path: Path) -> None:
    (tmp_path / "guest-file").touch()
    for name in (".guest-made", "other"):
        (tmp_path / name).mkdir()
    with scratch_in(tmp_path, "guest-"):
        assert {".guest-made", "guest-file", "other"} < {path.name for path in tmp_path.iterdir()}


def test_the_draft_of_a_killed_process_goes_when_the_file_is_written_again(tmp_path: Path) -> None:
    for name in (f".verdicts.json-{GONE}", f".verdicts.json-{os.getppid()}", f".report.html-{GONE}"):
        (tmp_path / name).touch()
    write_whole(tmp_path / "verdicts.json", "[]")
    left = [f".report.html-{GONE}", f".verdicts.json-{os.getppid()}", "verdicts.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(left)


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
