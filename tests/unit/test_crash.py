# SPDX-License-Identifier: Apache-2.0
"""Reports of a guest's kernel that stopped, read from its console."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from longfat.backends import crash
from longfat.backends.crash import Frame, explain
from longfat.system.errors import RigError, SettledError

KERNEL = Path("linux")
ENDED = RigError("the guest ended with status -6")
CONSOLE = """\
Pid: 61, comm: iperf Not tainted 6.12.117-longfat
RIP: 0033:0x60261c0e
RSP: 00000000609c3b20  EFLAGS: 00010246
Kernel panic - not syncing: {cause}
Call Trace:
 [<60261c0e>] ? 0x60261c0e
 [<60120bb2>] 0x60120bb2
"""
CALLS = (Frame("div_u64", "math64.h", 30), Frame("mine_grow", "tcp_mine.c", 42), Frame("tcp_ack"))


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of a kernel in the place of what addr2line finds."""

    def frames(kernel: Path, found: Sequence[int]) -> Iterator[Frame]:
        yield from CALLS if found else ()

    monkeypatch.setattr(crash, "frames", frames)


@pytest.mark.parametrize(
    ("panic", "words"),
    [
        ("Kernel mode signal 8", "a division by zero"),
        ("Segfault with no mm", "an access to memory that is not there"),
        ("tcp_mine: the window is lost", "tcp_mine: the window is lost"),
    ],
)
def test_the_first_line_names_file_line_function_and_cause(panic: str, words: str) -> None:
    found = explain(ENDED, CONSOLE.format(cause=panic), KERNEL, {"tcp_mine.c"})
    assert isinstance(found, SettledError)
    first, path, rest = found.message.split("\n", 2)
    assert first == f"tcp_mine.c:42, in mine_grow(): the guest's kernel stopped: {words}"
    assert path == "called by: div_u64() at math64.h:30 < mine_grow() at tcp_mine.c:42 < tcp_ack()"
    assert rest == ENDED.message


def test_a_crash_elsewhere_is_settled_too_and_names_no_file_of_the_study() -> None:
    found = explain(ENDED, CONSOLE.format(cause="Kernel mode signal 8"), KERNEL, {"tcp_other.c"})
    assert isinstance(found, SettledError)
    assert found.message.startswith("the guest's kernel stopped: a division by zero\n")


def test_a_bus_error_may_be_the_hosts_and_is_tried_again() -> None:
    found = explain(ENDED, CONSOLE.format(cause="Kernel mode signal 7"), KERNEL, {"tcp_mine.c"})
    assert not isinstance(found, SettledError)


def test_a_loop_is_named_only_where_it_is_in_the_studys_own_file() -> None:
    console = CONSOLE.format(cause="Kernel mode signal 8")
    assert explain(ENDED, console, KERNEL, {"tcp_other.c"}, hung=True) is ENDED
    found = explain(ENDED, console, KERNEL, {"tcp_mine.c"}, hung=True)
    assert found.message.startswith("tcp_mine.c:42, in mine_grow(): the guest's kernel loops endlessly\n")
