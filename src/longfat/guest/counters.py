# SPDX-License-Identifier: Apache-2.0
"""Counters of the kernel: protocols and marked packets of a node, and the wait of the machine's tasks for a CPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from longfat.guest.files import read_file

if TYPE_CHECKING:
    from longfat.guest.network import Network

ARRIVAL_COLUMNS = "t_us,node,packets,marked_packets"
MARKED = "InCEPkts"
ARRIVED = ("InNoECTPkts", "InECT1Pkts", "InECT0Pkts", MARKED)
PROC = Path("/proc")
TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
BUSY = slice(1, 4)  # user, nice, system: fields of the line "cpu" in /proc/stat
STOLEN = slice(8, 9)


def read_counters(network: Network, node: str) -> dict[str, int]:
    """Return the protocol counters of a node's namespace by ``Group.Name``."""
    counters: dict[str, int] = {}
    with network.inside(node):
        for table in ("snmp", "netstat"):
            lines = read_file(f"/proc/self/net/{table}").splitlines()
            for names, values in zip(lines[::2], lines[1::2], strict=True):
                group, *keys = names.split()
                counters.update(
                    (f"{group[:-1]}.{key}", int(value)) for key, value in zip(keys, values.split()[1:], strict=True)
                )
    return counters


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Return the counters that have changed, with their increase."""
    return {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}


def open_arrivals() -> TextIO:
    """Open the counters of packets that reach the current network namespace."""
    return Path("/proc/self/net/netstat").open()


def read_arrivals(counters: TextIO) -> tuple[int, int]:
    """Return the IPv4 packets received so far, and the packets marked CE among them.

    A sender's tcp_info cannot replace them: with classic ECN (RFC 3168) the receiver repeats the echo until the sender
    answers, so tcpi_delivered_ce counts a round trip of acknowledgments for each mark. Raises ValueError if the kernel
    does not count them.
    """
    counters.seek(0)
    lines = [line.split() for line in counters if line.startswith("IpExt:")]
    if len(lines) != 2:
        raise ValueError("the kernel lacks the counters IpExt")
    found = dict(zip(*lines, strict=True))
    try:
        return sum(int(found[name]) for name in ARRIVED), int(found[MARKED])
    except KeyError as error:
        raise ValueError(f"the kernel does not count {error}") from error


def pressure_us(machine: Path = PROC) -> int | None:
    """Return the microseconds since boot in which some runnable task waited for a CPU; None if they are not counted.

    A task that the hypervisor does not run has a CPU in the kernel's view. Its wait is the CPUs' stolen time, which is
    added (Documentation/accounting/psi.rst, proc(5)).
    """
    try:
        text = (machine / "pressure/cpu").read_text(encoding="ascii")
    except OSError:
        return None
    (some,) = (line for line in text.splitlines() if line.startswith("some "))
    return int(some.rpartition("total=")[2]) + _cpu_us(machine, STOLEN)


def others_us(machine: Path = PROC) -> int | None:
    """Return the CPU time since boot of programs outside the run, in microseconds over all CPUs (proc(5)).

    Other machines on the same hypervisor are programs outside the run: stolen time counts.

    None unless this is the first process of its own PID namespace, in which only the run's programs are visible. Ended
    programs are counted with their parents.
    """
    if os.getpid() != 1:
        return None
    own = 0
    for path in machine.glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended: its parent has its time
        own += sum(map(int, fields[11:15]))
    return max(0, _cpu_us(machine, BUSY) - own * TICK_US) + _cpu_us(machine, STOLEN)


def _cpu_us(machine: Path, fields: slice) -> int:
    return sum(map(int, (machine / "stat").read_text().splitlines()[0].split()[fields])) * TICK_US
