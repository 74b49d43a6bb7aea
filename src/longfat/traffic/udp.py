# SPDX-License-Identifier: Apache-2.0
"""UDP traffic whose rate swings about a mean as a sine does."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from longfat.gates import Evidence
from longfat.manifest import fields as f
from longfat.manifest.names import Finding
from longfat.runspec import Udp as Record
from longfat.traffic.kind import Around, Cost, Entry, Path, Section, Table

SECONDS_PER_DATAGRAM = 3e-5  # sent by a program, one system call each; its way apart


class Udp(Entry):
    """UDP traffic from one host to another whose rate is mean + swing * sin(2 pi t / period)."""

    mean: f.LinkRate = Field(description="its mean rate, IPv4 headers included")
    swing: f.LinkRate = Field(description="by how much its rate rises above the mean and falls below it")
    period: f.Length = Field(description="time of one swing")

    def findings(self) -> Iterator[Finding]:
        """A rate below 0."""
        if self.swing.value > self.mean.value:
            yield Finding(("swing",), f"{self.swing} is more than the mean of {self.mean}; no rate is below 0")


def traffic_arrived(evidence: Evidence) -> Iterator[str]:
    """Something of each UDP traffic reached its receiver; how much is for the queues on the way to say."""
    found = {item["udp"]: item["received_packets"] for item in evidence.achieved.get("udp", ())}
    for udp in evidence.spec.udp:
        if not found.get(udp.name):
            yield f"no packet of UDP traffic {udp.name} arrived"


class UdpTraffic(Section[Udp, Record]):
    """See the module."""

    model = Udp
    meaning = "the UDP traffic"
    example = "{name: wave, from: client1, to: server, mean: 2 Mbit/s, swing: 1 Mbit/s, period: 9 s, duration: 60 s}"
    one = "UDP traffic"
    gates = (traffic_arrived,)
    tables = (
        Table(
            "datagrams",
            "datagrams.csv",
            {"t_us": "whole", "udp": "text", "received_packets": "whole", "received_bytes": "whole"},
            written=lambda spec: bool(spec.udp and spec.probes.queue_interval_us),
            what="Samples of what has reached the receiver of each UDP stream.",
            meanings={
                "udp": "name of the UDP stream in the study",
                "received_packets": "packets received so far",
                "received_bytes": "bytes received so far, IPv4 headers included",
            },
        ),
    )

    def record(self, entry: Udp, around: Around) -> Record:
        """The wave as the guest is told of it."""
        return Record(
            name=entry.name,
            sender=entry.sender,
            receiver=entry.receiver,
            mean_bps=entry.mean.value,
            swing_bps=entry.swing.value,
            period_us=entry.period.value,
            duration_us=entry.duration.value,
            start_us=entry.start.value,
        )

    def words(self, record: Record) -> str:
        """Its rate."""
        rate = f"{record.mean_bps / 1e6:g} +- {record.swing_bps / 1e6:g} Mbit/s"
        return f"UDP of {rate}, period {record.period_us / 1e6:g} s"

    def cost(self, record: Record, path: Path) -> Cost:
        """Its packets are few beside those of TCP; its sending program is not."""
        packets = record.mean_bps * record.duration_us / 8e6 / path.mtu_bytes
        return Cost(seconds=packets * SECONDS_PER_DATAGRAM)


KIND = UdpTraffic()
