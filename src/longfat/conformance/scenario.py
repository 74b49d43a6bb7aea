# SPDX-License-Identifier: Apache-2.0
"""The runs that laws are measured on: one path of constant RTT, flows that fill their windows, losses when asked.

Owns how such a run becomes a RunSpec. The delay stands on the way back and the bottleneck behind the first router, so
that neither the sender's own queue nor its limits stop a window from being used. Knows no law.
"""

from __future__ import annotations

from dataclasses import dataclass

from longfat.network import frame_bytes
from longfat.runspec import DeliberateDrop, Egress, Flow, Interface, Link, Node, Probes, Queue, RunSpec

SOCKET_BYTES = 1000  # what the kernel counts for a packet in a socket buffer besides its own bytes, rounded up
ENDLESS_BYTES = 1 << 30  # a queue that never drops
LEAST_BUFFER_BYTES = 1 << 20
SEGMENTS_PER_ACK = 2  # the receiver delays its acknowledgements (RFC 1122, section 4.2.3.2)
SENDER_SYSCTLS = {
    "net.ipv4.tcp_cc_info": "1",  # the samples show dwnd
    "net.ipv4.tcp_small_queues": "0",  # a packet that a delay holds back limits no window
}


@dataclass(frozen=True)
class Sender:
    """One sending host: its algorithm, the parameters as ``net.ipv4.tcp_<cca>.<name>``, and its parallel streams."""

    cca: str
    parameters: tuple[tuple[str, int], ...] = ()
    streams: int = 1
    start_us: int = 0
    end_us: int | None = None
    segments: int | None = None

    def sysctls(self) -> dict[str, str]:
        """The parameters as sysctls of the sender's namespace."""
        return {f"net.ipv4.tcp_{self.cca}.{name}": str(value) for name, value in self.parameters}


@dataclass(frozen=True)
class Scenario:
    """Senders that share a bottleneck of ``rate_pps`` full packets a second.

    ``segments`` is the largest window that any of the flows shall be able to use; a Sender may have its own.
    ``queue_packets`` of None is a queue that never drops. Each time of ``drops_us`` loses one packet.
    ``forward_us`` of the RTT are on the way to the receiver; ``sysctls`` are set on senders and receiver.
    The RTT is that of a full packet on a path without a queue: the time that it takes to leave is part of it.
    """

    senders: tuple[Sender, ...]
    duration_us: int
    segments: int
    rtt_us: int = 20_000
    rate_pps: int = 50_000
    drops_us: tuple[int, ...] = ()
    queue_packets: int | None = None
    mtu_bytes: int = 1500
    sample_us: int = 2_000
    queue_sample_us: int | None = None
    forward_us: int = 0
    sysctls: tuple[tuple[str, str], ...] = ()
    seed: int = 1

    def spec(self, pins: dict[str, str]) -> RunSpec:
        """The scenario as a RunSpec; flows are called ``flow1``, ``flow2`` and so on."""
        packet_bytes = self.mtu_bytes + SOCKET_BYTES
        receive_bytes = max(2 * self.segments * packet_bytes, LEAST_BUFFER_BYTES)
        limits = {f"net.core.{name}": str(2 * receive_bytes) for name in ("rmem_max", "wmem_max")}
        limits |= {"net.core.netdev_max_backlog": "100000"} | dict(self.sysctls)
        queue = Queue("bfifo", None, ENDLESS_BYTES)
        if self.queue_packets is not None:
            queue = Queue("pfifo", self.queue_packets)
        bottleneck = Egress(
            rate_bps=self.rate_pps * frame_bytes(self.mtu_bytes, Egress()) * 8,
            queue=queue,
            drops=tuple(DeliberateDrop(at_us) for at_us in self.drops_us),
        )
        leaving_us = 1_000_000 // self.rate_pps
        forward = Egress(delay_us=self.forward_us)
        back = Egress(delay_us=self.rtt_us - self.forward_us - leaving_us)
        nodes, links, flows = [], [], []
        for number, sender in enumerate(self.senders, 1):
            name = f"client{number}"
            send_bytes = max((sender.segments or self.segments) * packet_bytes * 3 // 4, LEAST_BUFFER_BYTES // 4)
            nodes.append(Node(name, "sender", limits | SENDER_SYSCTLS | sender.sysctls()))
            links.append(Link(Interface(name, forward), Interface("router", back), self.mtu_bytes))
            flows.append(
                Flow(
                    f"flow{number}",
                    name,
                    "server",
                    sender.cca,
                    (sender.end_us or self.duration_us) - sender.start_us,
                    window_bytes=receive_bytes,
                    send_window_bytes=send_bytes,
                    start_us=sender.start_us,
                    streams=sender.streams,
                )
            )
        nodes.append(Node("router", "router", {"net.ipv4.ip_forward": "1"}))
        nodes.append(Node("server", "receiver", limits | {"net.ipv4.tcp_recv_fill": "1"}))
        links.append(Link(Interface("router", bottleneck), Interface("server"), self.mtu_bytes))
        return RunSpec(
            nodes=tuple(nodes),
            links=tuple(links),
            flows=tuple(flows),
            probes=Probes(self.sample_us, self.queue_sample_us),
            seed=self.seed,
            pins=pins,
        )
