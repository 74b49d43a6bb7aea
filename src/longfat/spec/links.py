# SPDX-License-Identifier: Apache-2.0
"""Links of a RunSpec, and the egress of each interface. Standard library only, and pure.

Times are microseconds, sizes bytes, rates bits per second, according to the names of the fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from longfat.spec.plain import LATER, Scalar

MARKING: Mapping[str, tuple[str, ...]] = {
    "red": ("ecn",),
    "codel": ("ecn", "ce_threshold"),
    "fq_codel": ("ecn", "ce_threshold"),
    "pie": ("ecn",),
    "fq_pie": ("ecn",),
    "cake": (),
    "dualpi2": (),
}
"""Kinds of queue that can mark packets by ECN (RFC 3168, RFC 9331), with the settings that turn marking on; a kind
without such a setting always marks. CoDel marks above ``ce_threshold`` even without ``ecn`` (include/net/codel_impl.h).
"""


@dataclass(frozen=True)
class Queue:
    """The packet queue of an interface: a qdisc with its limit.

    ``limit_bytes`` is for ``bfifo`` and ``red``, ``limit_packets`` for other kinds, except ``cake``, which limits
    memory. ``parameters`` has the names of ``tc`` for ``red``, else of ``longfat.guest.options``.
    """

    kind: str = "pfifo"
    limit_packets: int | None = 1000
    limit_bytes: int | None = None
    parameters: dict[str, Scalar] = field(default_factory=dict)

    @property
    def marks(self) -> bool:
        """Whether the queue marks packets by ECN."""
        switches = MARKING.get(self.kind)
        return switches is not None and (not switches or any(self.parameters.get(name) for name in switches))

    @property
    def red_weight_log(self) -> int:
        """Exponent W of the weight 2^-W of each arrival in the average of a queue of kind ``red``, as in tc.

        The smallest W with which a burst of ``burst`` packets leaves the average below ``min`` (tc-red(8)). Raises
        ValueError without such a W.
        """
        burst, size = int(self.parameters["burst"]), int(self.parameters["avpkt"])
        wanted = burst + 1 - int(self.parameters["min"]) / size
        for exponent in range(1, 32):
            weight = 0.5**exponent
            if 1 <= wanted <= (1 - (1 - weight) ** burst) / weight:
                return exponent
        raise ValueError(f"a burst of {burst} packets of {size} bytes has no weight")


@dataclass(frozen=True)
class DeliberateDrop:
    """Drop of one packet at egress: number ``packet`` after ``at_us``, from 1."""

    at_us: int
    packet: int = 100


@dataclass(frozen=True)
class Change:
    """Change of a wire at ``at_us``: new rate, new delay, or no bit leaves it (``held``); None keeps a value."""

    at_us: int
    rate_bps: int | None = None
    delay_us: int | None = None
    held: bool | None = None


@dataclass(frozen=True)
class Policer:
    """A token bucket in front of a queue, which drops frames without enough tokens. Framing does not count."""

    TICK_NS: ClassVar[int] = 64  # include/net/pkt_sched.h
    MOST_TICKS: ClassVar[int] = 2**32 - 1  # struct tc_police in linux/pkt_cls.h

    rate_bps: int
    burst_bytes: int

    @property
    def byte_rate(self) -> int:
        """Rate in bytes per second, the unit of the kernel."""
        return self.rate_bps // 8

    @property
    def burst_ticks(self) -> int:
        """Time in which the rate, which is not 0, fills the bucket, in whole ticks of the kernel."""
        return self.burst_bytes * 10**9 // self.byte_rate // self.TICK_NS

    def passes(self, frame_bytes: int) -> bool:
        """Return whether a full bucket has enough tokens for a frame."""
        return self.burst_ticks * self.TICK_NS * self.byte_rate >= frame_bytes * 10**9


@dataclass(frozen=True)
class Pause:
    """Marks of a queue in packets: with more than ``above``, those who send to its node stop, until ``below`` is left.

    IEEE 802.3, annex 31B. A frame that is leaving goes on.
    """

    above: int
    below: int


@dataclass(frozen=True)
class Trace:
    """Full packets that may leave in each millisecond, repeated, from a file with the digest ``sha256`` (hex).

    ``packets`` has a word for equal milliseconds: ``3`` for one with three packets, ``0*20`` for twenty without
    packets.
    """

    sha256: str
    packets: str

    def milliseconds(self) -> Iterator[tuple[int, int]]:
        """Yield the packets of a millisecond, and the number of equal milliseconds in sequence."""
        for word in self.packets.split():
            count, _, times = word.partition("*")
            yield int(count), int(times or 1)


@dataclass(frozen=True)
class Bursts:
    """Losses by the two-state chain of Gilbert and Elliott, with probabilities in millionths.

    ``enter_ppm`` and ``leave_ppm`` are for a change of state before each packet, ``in_burst_ppm`` and ``between_ppm``
    for the loss of a packet in either state.
    """

    enter_ppm: int
    leave_ppm: int
    in_burst_ppm: int = 1_000_000
    between_ppm: int = 0


@dataclass(frozen=True)
class Impairment:
    """Random loss and jitter without a queue, drawn from the run's seed and the interface's name.

    ``loss_ppm`` millionths of the packets are lost independently, or losses come in ``bursts``. The delay of the
    interface varies uniformly by ``jitter_us`` in both directions, so that packets may overtake each other, unless they
    stay ``in_order``. ``overtaking_ppm`` millionths have no delay.
    """

    loss_ppm: int = 0
    bursts: Bursts | None = None
    jitter_us: int = 0
    overtaking_ppm: int = field(default=0, metadata=LATER)
    in_order: bool = field(default=False, metadata=LATER)

    @property
    def words(self) -> str:
        """Description in prose."""
        loss = f"loses {self.loss_ppm / 1e4:g} %" if self.loss_ppm else ""
        bursts = "loses bursts" if self.bursts else ""
        jitter = f"jitter {self.jitter_us / 1000:g} ms" if self.jitter_us else ""
        order = "in order" if self.in_order else ""
        overtaking = f"{self.overtaking_ppm / 1e4:g} % overtake" if self.overtaking_ppm else ""
        return ", ".join(part for part in (loss, bursts, jitter, order, overtaking) if part)

    def settings(self) -> dict[str, int]:
        """Return the settings of netem: probabilities in parts of 2^32, jitter in nanoseconds."""
        found = {"loss": _of_32_bits(self.loss_ppm), "jitter": 1000 * self.jitter_us}
        if self.overtaking_ppm:
            found |= {"reorder": _of_32_bits(self.overtaking_ppm)}
        if self.in_order:
            found |= {"rate": _IN_NO_TIME}
        if not self.bursts:
            return found
        return found | {
            "enter": _of_32_bits(self.bursts.enter_ppm),
            "leave": _of_32_bits(self.bursts.leave_ppm),
            "pass_in_burst": _of_32_bits(1_000_000 - self.bursts.in_burst_ppm),
            "lose_between": _of_32_bits(self.bursts.between_ppm),
        }


@dataclass(frozen=True)
class Card:
    """A network card and the input processing of the host behind an interface.

    An interrupt comes ``moderation_us`` after the arrival of a packet, and delivers all packets that have arrived
    (ethtool's ``rx-usecs``). Then the host processes one packet in ``packet_us``; ``input_packets`` may wait
    (``net.core.netdev_max_backlog``), and further packets are dropped.
    """

    moderation_us: int = 0
    packet_us: int = 0
    input_packets: int = 1000

    @property
    def words(self) -> str:
        """Description in prose."""
        moderation = f"interrupts after {self.moderation_us} us" if self.moderation_us else ""
        packet = f"busy {self.packet_us} us a packet, {self.input_packets} wait" if self.packet_us else ""
        return ", ".join(part for part in (moderation, packet) if part)

    def settings(self) -> tuple[dict[str, int], ...]:
        """Return the settings of each netem in the order of the packets' path, in nanoseconds."""
        moderation = {"latency": 0, "limit": _NEVER_FULL, "slot": 1000 * self.moderation_us}
        packet = {"latency": 0, "limit": self.input_packets, "packet": 1000 * self.packet_us}
        return (*((moderation,) if self.moderation_us else ()), *((packet,) if self.packet_us else ()))


_NEVER_FULL = 1_000_000  # packets: more than arrive before an interrupt
_IN_NO_TIME = 10**12  # bytes per second: with any rate netem keeps the order


def _of_32_bits(ppm: int) -> int:
    return min((ppm << 32) // 1_000_000, 2**32 - 1)


@dataclass(frozen=True)
class Egress:
    """Egress of an interface: policer, then queue, then rate, then delay.

    The rate counts each packet with its Ethernet header and ``framing_bytes``: 24 for preamble, start delimiter, frame
    check sequence and inter-packet gap (IEEE 802.3). A ``rate_bps`` of None leaves the interface unshaped; a
    ``delay_us`` of 0 adds no delay element. Only an unshaped interface may have an ``impairment``, and only one without
    a delay either a ``card``. From the start of the measurement until the end of all traffic, ``changes``, in the order
    of time, replace rate and delay, and a ``trace`` replaces the rate.

    The clock of the interface is ``clock_ppb`` parts per billion fast (negative: slow), except for a ``trace``, and its
    cable delays by a further ``distance_ns``: ``wire_bps`` and ``wire_delay_ns`` include both. Each frame has a further
    delay, uniform from 0 to ``processing_ns``; frames keep their order.
    """

    rate_bps: int | None = None
    framing_bytes: int = 24
    queue: Queue = field(default_factory=Queue)
    delay_us: int = 0
    drops: tuple[DeliberateDrop, ...] = ()
    impairment: Impairment | None = field(default=None, metadata=LATER)
    changes: tuple[Change, ...] = field(default=(), metadata=LATER)
    trace: Trace | None = field(default=None, metadata=LATER)
    policer: Policer | None = field(default=None, metadata=LATER)
    card: Card | None = field(default=None, metadata=LATER)
    pause: Pause | None = field(default=None, metadata=LATER)
    clock_ppb: int = field(default=0, metadata=LATER)
    distance_ns: int = field(default=0, metadata=LATER)
    processing_ns: int = field(default=0, metadata=LATER)

    @property
    def wire_bps(self) -> int | None:
        """Rate of the wire in bit/s by the interface's clock; None if it is unshaped."""
        return None if self.rate_bps is None else self.by_clock(self.rate_bps)

    @property
    def wire_delay_ns(self) -> int:
        """Delay of the wire in nanoseconds, including the distance."""
        return 1000 * self.delay_us + self.distance_ns

    def by_clock(self, rate_bps: int) -> int:
        """Return a nominal rate by the interface's clock, rounded to bit/s, and at least 1 bit/s if it is not 0."""
        deviation = (2 * rate_bps * self.clock_ppb + 10**9) // (2 * 10**9)
        return max(rate_bps + deviation, min(rate_bps, 1))


@dataclass(frozen=True)
class Interface:
    """One end of a link: its node and its egress."""

    node: str
    egress: Egress = field(default_factory=Egress)


@dataclass(frozen=True)
class Link:
    """A cable between two interfaces with one MTU."""

    a: Interface
    b: Interface
    mtu_bytes: int = 1500
