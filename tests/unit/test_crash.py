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


PLACE = "tcp_mine.c:42, in mine_grow(): "
STOPPED = "the guest's kernel stopped: "


@pytest.mark.parametrize(
    ("panic", "own", "hung", "first"),
    [
        ("Kernel mode signal 8", "tcp_mine.c", False, f"{PLACE}{STOPPED}a division by zero"),
        ("Kernel mode signal 8", "tcp_mine.c", True, f"{PLACE}the guest's kernel loops endlessly"),
        ("Kernel mode signal 8", "tcp_other.c", False, f"{STOPPED}a division by zero"),
        ("Segfault with no mm", "tcp_mine.c", False, f"{PLACE}{STOPPED}an access to memory that is not there"),
        ("tcp_mine: the window is lost", "tcp_mine.c", False, f"{PLACE}{STOPPED}tcp_mine: the window is lost"),
    ],
)
def test_a_crash_is_settled_and_its_first_line_names_the_cause_and_a_place_in_the_studys_own_file(
    panic: str, own: str, hung: bool, first: str
) -> None:
    found = explain(ENDED, CONSOLE.format(cause=panic), KERNEL, {own}, hung=hung)
    assert isinstance(found, SettledError)
    path = "called by: div_u64() at math64.h:30 < mine_grow() at tcp_mine.c:42 < tcp_ack()"
    assert found.message.split("\n", 2) == [first, path, ENDED.message]


def test_a_bus_error_may_be_the_hosts_and_is_tried_again_and_so_is_a_loop_elsewhere() -> None:
    found = explain(ENDED, CONSOLE.format(cause="Kernel mode signal 7"), KERNEL, {"tcp_mine.c"})
    assert not isinstance(found, SettledError)
    assert explain(ENDED, CONSOLE.format(cause="Kernel mode signal 8"), KERNEL, {"tcp_other.c"}, hung=True) is ENDED
