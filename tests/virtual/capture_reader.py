# SPDX-License-Identifier: Apache-2.0
"""An independent reader of a flow from a capture at its sender: bytes, times, retransmissions, outstanding data.

Shares no code with the package. Times are microseconds of the run, bytes count the payload. Must not assert anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from packets import SYN, Packet, read_packets

FIN, ACK = 0x01, 0x10
CIRCLE = 1 << 32
UNDELAYED_BYTES = 2 * 1448


@dataclass
class Connection:
    """One connection as its sender sees it; sequence numbers count payload from 0."""

    begun_us: float
    first: int
    acks: list[tuple[float, int]] = field(default_factory=list)
    outstanding: list[tuple[float, int]] = field(default_factory=list)
    retransmissions: int = 0
    _highest: int = 0
    _ended: bool = False

    @property
    def payload(self) -> int:
        """Bytes that were acknowledged in the end."""
        return min(max((ack for _, ack in self.acks), default=0), self._highest)

    @property
    def first_acked_us(self) -> float:
        """When the first data was acknowledged: at once, right behind the ACK that establishes the receiver's end."""
        return min(t_us for t_us, ack in self.acks if ack > 0)

    @property
    def prompt(self) -> tuple[float, int]:
        """Time and bytes of the last acknowledgment, or of the one before where the last one may be delayed.

        An acknowledgment of more than two segments fills a hole and is never delayed (RFC 5681, section 4.2).
        """
        last_us = next(t_us for t_us, ack in self.acks if ack >= self.payload)
        before = max((t_us, ack) for t_us, ack in self.acks if t_us < last_us)
        return (last_us, self.payload) if self.payload - before[1] > UNDELAYED_BYTES else before

    def acked_by(self, t_us: float) -> int:
        """Bytes acknowledged by that time."""
        return min(max((ack for at, ack in self.acks if at <= t_us), default=0), self.payload)

    def sent(self, t_us: float, packet: Packet) -> None:
        """Add a packet of the sender."""
        if packet.flags & SYN:
            self.retransmissions += t_us > self.begun_us
            return
        at = (packet.sequence - self.first) % CIRCLE
        if packet.payload:
            if at < self._highest:
                self.retransmissions += 1
                return
            self._highest = at + packet.payload
            self.outstanding.append((t_us, self._highest - max((ack for _, ack in self.acks[-1:]), default=0)))
        elif packet.flags & FIN:
            self.retransmissions += self._ended
        self._ended |= bool(packet.flags & FIN)

    def received(self, t_us: float, packet: Packet) -> None:
        """Add a packet of the receiver."""
        if packet.flags & ACK and not packet.flags & SYN:
            ack = (packet.acknowledgement - self.first) % CIRCLE
            self.acks.append((t_us, max(ack, self.acks[-1][1] if self.acks else 0)))


def read_connections(path: Path, port: int, origin_us: int) -> list[Connection]:
    """The connections to a port in the order of their first SYN."""
    found: list[Connection] = []
    current: dict[int, Connection] = {}
    for packet in read_packets(path):
        t_us = packet.time_us - origin_us
        outgoing = packet.destination_port == port
        end = packet.source_port if outgoing else packet.destination_port
        first = (packet.sequence + 1) % CIRCLE
        if outgoing and packet.flags & SYN and (end not in current or current[end].first != first):
            current[end] = Connection(t_us, first)
            found.append(current[end])
        if outgoing:
            current[end].sent(t_us, packet)
        else:
            current[end].received(t_us, packet)
    return found
