# SPDX-License-Identifier: Apache-2.0
"""Settings with which every kernel and program of the laboratory would fail, reported before anything runs.

Owns certain failures. Possible failures are left to the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from longfat.manifest.models import Delay, Dumbbell, Experiment
from longfat.schema.names import Finding
from longfat.units import Duration, Size

# The laboratory has the same numbers: guest/processes.py, qdisc.py, drops.py and traffic.py.
DRAIN_US = 60_000_000  # so long after its end a flow's programs may still run,
DRAIN_ROUNDS = 10  # or so many round-trip times
DROP_WINDOW_US = 200_000  # a deliberate drop is over by then
DROP_LOOK_US = 1000  # and its filter is removed so much later
BLOCK_BYTES = 1 << 20  # memory that iperf2 fills for each stream that it sends
BASE_BYTES = 64 << 20  # the guest's own share of its memory
DEFAULT_MEMORY_BYTES = 1 << 30  # as in runspec.py
FIRST_PACKETS = 10  # a flow sends before its first acknowledgment (RFC 6928); they are there at its end too
FRAME_BYTES = 38  # Ethernet's header, framing and gap around a packet
HEADERS_BYTES = 40  # IPv4 and TCP


def impossible(experiment: Experiment, mtu: Size) -> list[Finding]:
    """The parts of an experiment, whose single keys are valid, that cannot be done."""
    return [
        *_rates(experiment, mtu),
        *_samples(experiment),
        *_memory(experiment),
        *_drops(experiment, mtu),
    ]


def _packet_us(experiment: Experiment, mtu: Size) -> int:
    """How long a full packet takes at the slowest rate of the topology."""
    return (mtu.value + FRAME_BYTES) * 8_000_000 // experiment.topology.rate.value


def _rates(experiment: Experiment, mtu: Size) -> Iterator[Finding]:
    """Flows whose last packets do not arrive in the time that is waited for them."""
    packet_us = _packet_us(experiment, mtu)
    drain_us = max(DRAIN_US, DRAIN_ROUNDS * experiment.topology.rtt.value)
    for flow in experiment.flows:
        window = min((one.value for one in (flow.window, flow.send_window) if one), default=FIRST_PACKETS * mtu.value)
        count = max(1, min(FIRST_PACKETS, window // (mtu.value - HEADERS_BYTES)))
        if count * packet_us > drain_us:
            message = (
                f"at {experiment.topology.rate} the {count} packets that {flow.name!r} has in flight when it ends take "
                f"{count * packet_us / 1e6:.0f} s, and {drain_us / 1e6:.0f} s are waited for them"
            )
            yield Finding(("topology", "rate"), message)
            return


def _samples(experiment: Experiment) -> Iterator[Finding]:
    """Flows whose sockets are never seen: their settings are read back from samples."""
    interval = experiment.probes.sockets.value
    ends = [one.start.value + one.duration.value for one in experiment.sent]
    ends += [one.start.value + one.start_jitter.value + one.duration.value for one in experiment.flows]
    ends += [experiment.duration.value] if experiment.duration else []
    last = (max(ends, default=0) - 1) // interval * interval
    for index, flow in enumerate(experiment.flows):
        first = flow.start.value + experiment.topology.rtt.value
        if last < max(first, interval):
            message = (
                f"{flow.name!r} is never seen: sockets are sampled every {experiment.probes.sockets}, and the run ends "
                f"at {Duration(max(ends))}, its first round trip at {Duration(first)}"
            )
            yield Finding(("flows", index, "duration"), message, "a longer duration, or a shorter interval of probes")


def _memory(experiment: Experiment) -> Iterator[Finding]:
    """Streams whose blocks alone do not go into the guest."""
    memory = experiment.memory or Size(DEFAULT_MEMORY_BYTES)
    streams = sum(flow.streams for flow in experiment.every_flow)
    needed = streams * BLOCK_BYTES + BASE_BYTES
    if needed > memory.value:
        message = f"{streams} streams take at least {needed >> 20} MiB of memory, but the guest has {memory}"
        yield Finding(("memory",) if experiment.memory else ("flows",), message, "give it more with `memory`")


def _drops(experiment: Experiment, mtu: Size) -> Iterator[Finding]:
    """Deliberate drops that take longer than they may, or than the next one leaves them."""
    topology = experiment.topology
    if not isinstance(topology, Delay | Dumbbell) or not experiment.drops:
        return
    windows = [one.value for flow in experiment.flows for one in (flow.window, flow.send_window) if one]
    if min(windows, default=mtu.value) < mtu.value:
        return  # its packets are smaller, and follow each other faster
    packet_us = _packet_us(experiment, mtu)
    needed = [Duration(max(DROP_LOOK_US, drop.packet * packet_us)) for drop in experiment.drops]
    for index, (drop, long) in enumerate(zip(experiment.drops, needed, strict=True)):
        if long.value > DROP_WINDOW_US:
            message = (
                f"the drop takes packet {drop.packet}, but so many need {long} at {topology.rate}, and a drop has to "
                f"be over in {Duration(DROP_WINDOW_US)}"
            )
            yield Finding(("drops", index), message)
    ordered = sorted((drop.at.value, index) for index, drop in enumerate(experiment.drops))
    for (first, before), (then, index) in pairwise(ordered):
        if then - first < needed[before].value <= DROP_WINDOW_US:
            message = (
                f"{Duration(then)} is less than {needed[before]} after the drop before it, which is not over by then"
            )
            yield Finding(("drops", index, "at"), message)
