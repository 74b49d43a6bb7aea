# SPDX-License-Identifier: Apache-2.0
"""What a guest sees of the host: the composed root, read-only, and the folder of its own run."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from guests import ask, virtual

pytestmark = pytest.mark.virtual

SECRET = "a-file-of-the-host.txt"
PROGRAM = f"""
import ctypes, os
from longfat.guest.init import mount
answer = {{"root": sorted(os.listdir("/")), "task": sorted(os.listdir("/task")), "homes": os.listdir("/home")}}
answer["home"] = sorted(os.listdir("/root"))
answer["sees_task_root"] = os.path.exists("/task/root")
os.symlink("/", "/task/raw/out")
os.symlink("../../..", "/task/raw/up")
os.mkdir("/tmp/m")
answer["mounted"] = {{}}
for option in ("/..", "..", "/../../..", "/raw/../../..", "/raw/out", "/raw/up/", "/etc", "//../..", "/raw/.."):
    try:
        mount("none", "/tmp/m", "hostfs", option)
    except OSError as error:
        answer["mounted"][option] = error.errno
    else:
        answer["mounted"][option] = sorted(os.listdir("/tmp/m"))
        ctypes.CDLL(None).umount(b"/tmp/m")
mount("none", "/tmp/m", "hostfs", "/")
answer["itself"] = sorted(os.listdir("/tmp/m"))
def written():
    found = {{}}
    for path in ("/{SECRET}", "/usr/bin/{SECRET}", "/code/{SECRET}", "/etc/passwd", "/code/start.pyc"):
        try:
            open(path, "a").write("x")
            found[path] = 0
        except OSError as error:
            found[path] = error.errno
    return found
answer["written"] = written()
MS_REMOUNT = 32
libc = ctypes.CDLL(None, use_errno=True)
answer["remounted"] = libc.mount(b"none", b"/", None, MS_REMOUNT, None)
answer["changed"] = written()
for name, change in (("cut", lambda: os.truncate("/etc/passwd", 1)), ("removed", lambda: os.unlink("/etc/passwd")),
                     ("moved", lambda: os.rename("/etc/passwd", "/etc/passwd2")), ("made", lambda: os.mkdir("/new"))):
    try:
        change()
        answer["changed"][name] = 0
    except OSError as error:
        answer["changed"][name] = error.errno
"""


@pytest.fixture(scope="module")
def answer() -> Any:
    return ask(PROGRAM)


def test_the_root_of_a_guest_is_the_image_with_the_guests_code(answer: Any) -> None:
    assert set(answer["root"]) == {path.name for path in virtual().root.iterdir()}
    assert {"code", "task", "usr"} <= set(answer["root"])
    assert answer["homes"] == [] and set(answer["home"]) <= {".bashrc", ".profile"}


def test_a_guest_sees_the_folder_of_its_run_and_not_that_of_others(answer: Any) -> None:
    assert {"console.log", "program.py", "raw"} <= set(answer["task"])
    assert set(answer["task"]) <= {"console.log", "guest", "program.py", "raw", "root"}
    assert not answer["sees_task_root"], "the link to the composed root leads nowhere inside the guest"


def test_no_mount_of_a_guest_leads_out_of_its_folder(answer: Any) -> None:
    assert answer["mounted"] == dict.fromkeys(answer["mounted"], errno.EPERM)
    assert len(answer["mounted"]) == 9
    assert set(answer["itself"]) == set(answer["task"])


def test_the_root_is_read_only(answer: Any) -> None:
    assert answer["written"] == dict.fromkeys(answer["written"], errno.EROFS)
    assert not list(virtual().root.glob(f"*/{SECRET}"))


def test_a_root_that_the_guest_mounts_again_for_writing_is_not_written_to_on_the_host(answer: Any) -> None:
    assert answer["remounted"] == 0, "the guest's own kernel lets its root user do so"
    assert 0 not in answer["changed"].values(), answer["changed"]
    assert len(answer["changed"]) == 9
    assert not list(virtual().root.glob(f"*/{SECRET}"))
