# SPDX-License-Identifier: Apache-2.0
"""The timed cases, and the arithmetic of timing: choice of cases, best of several runs. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from longfat.errors import Problem, StudyError

NONE = "none"


@dataclass(frozen=True)
class Case:
    """One Reno flow to time: rate in bit/s, MTU in bytes, length in seconds.

    Sockets and queues are sampled every ``sample_us``. On the machine's ``own_kernel`` there are no delay, no stated
    window and none of the project's switches.
    """

    name: str
    rate_bps: int
    mtu_bytes: int
    seconds: float
    sample_us: int = 100_000
    own_kernel: bool = False

    @property
    def flow(self) -> str:
        """The flow without its length."""
        return f"{self.rate_bps / 1e9:g} Gb/s, MTU {self.mtu_bytes}"


CASES: Mapping[str, Case] = {
    # A round trip and a sample, which is the least that a run is allowed to be.
    "fixed": Case("fixed cost of a run", 1_000_000_000, 9000, 0.04, sample_us=10_000),
    "1g-9000": Case("10 s of 1 Gb/s, MTU 9000", 1_000_000_000, 9000, 10),
    "1g-1500": Case("10 s of 1 Gb/s, MTU 1500", 1_000_000_000, 1500, 10),
    "100m-1500": Case("30 s of 100 Mb/s, MTU 1500, sampled every 10 ms", 100_000_000, 1500, 30, sample_us=10_000),
    "2.4g-1500": Case("10 s of 2.4 Gb/s, MTU 1500", 2_400_000_000, 1500, 10),
    "10g-9000": Case("10 s of 10 Gb/s, MTU 9000", 10_000_000_000, 9000, 10),
}
SIDE_BY_SIDE = "1g-9000"  # the case that also runs twice at a time
PEERS: Mapping[str, str] = {"host": "mininet", "ns2": "ns2", "ns3": "ns3"}  # and the backends that run them
PEER_CASES = ("1g-9000", "1g-1500")
PEER_SECONDS = {"ns3": 1.0}  # of simulated time: ns-3 takes minutes for ten


@dataclass(frozen=True)
class Timing:
    """Wall and CPU seconds of a run, the TCP segments it sent in both directions, and its goodput in bit/s."""

    wall_s: float
    cpu_s: float
    segments: int
    goodput_bps: int


def chosen(option: str, given: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The known ids that an option names, in their own order: all without any, no one with ``none``.

    Raises StudyError with all unknown ones.
    """
    if tuple(given) == (NONE,):
        return ()
    unknown = [name for name in given if name not in known]
    problems = tuple(Problem(option, None, name, "unknown", _near(name, known)) for name in unknown)
    if problems:
        raise StudyError(f"{option} takes {', '.join(known)}, or only {NONE}", problems=problems)
    return tuple(name for name in known if not given or name in given)


def _near(name: str, known: Sequence[str]) -> str | None:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else None


def best(timings: Sequence[Timing]) -> Timing:
    """The least wall and the least CPU time, each by itself: whatever else the machine does only adds to them."""
    wall_s, cpu_s = min(timing.wall_s for timing in timings), min(timing.cpu_s for timing in timings)
    return Timing(wall_s, cpu_s, timings[0].segments, timings[0].goodput_bps)
