# SPDX-License-Identifier: Apache-2.0
"""The sysctls of the project's own patches: off by default, bounded, one value for each network namespace."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from guests import ask

pytestmark = pytest.mark.virtual

DEFAULTS = {
    "tcp_small_queues": 1,
    "tcp_recv_fill": 0,
    "tcp_slow_start_ack_counting": 0,
    "tcp_strict_cwnd_limited": 0,
    "tcp_rate_halving": 0,
    "tcp_local_congestion": 0,
    "tcp_fixed_win_scale": 0,
    "tcp_rcv_truesize": 0,
    "tcp_cc_info": 0,
}
# The smallest and the largest value, and one beyond each.
RANGES = {
    "tcp_small_queues": (0, 1, -1, 2),
    "tcp_recv_fill": (0, 1, -1, 2),
    "tcp_slow_start_ack_counting": (0, 1, -1, 2),
    "tcp_strict_cwnd_limited": (0, 1, -1, 2),
    "tcp_rate_halving": (0, 1, -1, 2),
    "tcp_local_congestion": (0, 2, -1, 3),
    "tcp_fixed_win_scale": (0, 1, -1, 2),
    "tcp_rcv_truesize": (0, 1 << 20, -1, (1 << 20) + 1),
    "tcp_cc_info": (0, 1, -1, 2),
}
PROGRAM = f"""
import ctypes, os
from pathlib import Path
RANGES = {RANGES!r}
def path(name): return Path("/proc/sys/net/ipv4", name)
def values(): return {{name: int(path(name).read_text()) for name in RANGES}}
def written(name, value):
    try:
        path(name).write_text(str(value))
    except OSError as error:
        return error.errno
    return int(path(name).read_text())
answer = {{"defaults": values()}}
answer["written"] = {{name: [written(name, value) for value in RANGES[name]] for name in RANGES}}
for name in RANGES: written(name, RANGES[name][0])
here, there = os.pipe()
child = os.fork()
if not child:
    ctypes.CDLL(None).unshare(0x40000000)  # CLONE_NEWNET
    fresh = values()
    for name in RANGES: written(name, RANGES[name][1])
    os.write(there, repr([fresh, values()]).encode())
    os._exit(0)
os.waitpid(child, 0)
answer["new_namespace"], answer["set_there"] = eval(os.read(here, 10000))
answer["set_here"] = values()
"""


@pytest.fixture(scope="module")
def answer() -> Any:
    return ask(PROGRAM)


def test_each_switch_is_off_by_default(answer: Any) -> None:
    assert answer["defaults"] == DEFAULTS


@pytest.mark.parametrize("name", RANGES)
def test_a_switch_takes_its_range_and_nothing_beyond(answer: Any, name: str) -> None:
    smallest, largest, below, above = RANGES[name]
    assert below < smallest < largest < above
    assert answer["written"][name] == [smallest, largest, errno.EINVAL, errno.EINVAL]


def test_a_new_namespace_starts_with_the_defaults(answer: Any) -> None:
    assert answer["set_here"] != DEFAULTS
    assert answer["new_namespace"] == DEFAULTS


def test_two_namespaces_hold_different_values(answer: Any) -> None:
    assert answer["set_here"] == {name: bounds[0] for name, bounds in RANGES.items()}
    assert answer["set_there"] == {name: bounds[1] for name, bounds in RANGES.items()}
