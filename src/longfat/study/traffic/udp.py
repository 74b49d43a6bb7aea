# SPDX-License-Identifier: Apache-2.0
"""UDP traffic of a constant or sinusoidal rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from longfat.spec.gates import Evidence
from longfat.spec.runspec import Udp as Record
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding
from longfat.study.traffic.kind import Around, Column, Cost, Entry, Path, Section, Table

SENT_SLACK_S = 0.002  # the sender wakes each millisecond, and not after the last one
SECONDS_PER_DATAGRAM = 3e-5  # for the system call that sends it, without its hops


class Udp(Entry):
    """UDP traffic from one host to another, of a constant rate or of mean + swing * sin(2 pi t / period)."""

    examples: ClassVar[tuple[str, ...]] = ("{name: camera, from: client1, to: server, rate: 2 Mbit/s, duration: 60 s}",)

    rate: f.LinkRate | None = Field(default=None, description="constant rate, IPv4 headers included")
    mean: f.LinkRate | None = Field(
        default=None, description="instead of `rate`: mean of a sinusoidal rate, IPv4 headers included"
    )
    swing: f.LinkRate | None = Field(default=None, description="amplitude of the sine, up to its mean")
    period: f.Length | None = Field(default=None, description="period of the sine")

    def findings(self) -> Iterator[Finding]:
        """Yield a mix of both forms, missing keys of a sine, and negative rates."""
        sine = {"mean": self.mean, "swing": self.swing, "period": self.period}
        given = [name for name, value in sine.items() if value is not None]
        if self.rate and given:
            message = f"cannot be combined with {' and '.join(given)}: a constant rate has no sine"
            yield Finding(("rate",), message, "give `rate`, or `mean`, `swing` and `period`")
        elif not self.rate and len(given) < len(sine):
            missing = [name for name in sine if name not in given]
            message = f"{' and '.join(missing)} of a sine are missing" if given else "is required here and missing"
            yield Finding(("rate",), message, "give `rate`, or `mean`, `swing` and `period`")
        elif self.mean and self.swing and self.swing.value > self.mean.value:
            yield Finding(("swing",), f"{self.swing} is more than the mean of {self.mean}; no rate is below 0")


def traffic_sent_and_arrived(evidence: Evidence) -> Iterator[str]:
    """Require that each UDP sender sent its due packets, and that some arrived."""
    reports = {report["udp"]: report for report in evidence.program_reports.get("udp", ())}
    for udp in evidence.spec.udp:
        report = reports.get(udp.name)
        if report is None or not report["arrived_packets"]:
            yield f"no packet of UDP traffic {udp.name} arrived"
            continue
        sent, due = report["sent_packets"], report["due_packets"]
        ticked = SENT_SLACK_S * (udp.mean_bps + udp.swing_bps) / 8 / report["packet_bytes"]
        if abs(sent - due) > 1 + ticked:
            yield f"UDP traffic {udp.name} sent {sent} packets where {due} were due: its host or the link is too slow"


class UdpTraffic(Section[Udp, Record]):
    """The kind of UDP traffic."""

    model = Udp
    meaning = "the UDP traffic"
    one = "UDP traffic"
    gates = (traffic_sent_and_arrived,)
    tables = (
        Table(
            "udp",
            "udp.json",
            {
                "udp": Column("text", "name of the UDP stream in the study"),
                "sender": Column("text"),
                "receiver": Column("text"),
                "start_us": Column("whole"),
                "end_us": Column("whole"),
                "packet_bytes": Column("whole", "length of each packet, IPv4 header included"),
                "due_packets": Column("whole", "packets that its rate makes due in its time"),
                "sent_packets": Column("whole", "packets sent"),
                "received_packets": Column("whole", "packets received in the stream's time"),
                "arrived_packets": Column(
                    "whole", "packets received in all, also those that were on their way at its end"
                ),
            },
            written=lambda spec: bool(spec.udp),
            what="One row for each UDP stream of a run.",
        ),
        Table(
            "datagrams",
            "datagrams.csv",
            {
                "t_us": Column("whole"),
                "udp": Column("text", "name of the UDP stream in the study"),
                "received_packets": Column("whole", "packets received so far"),
                "received_bytes": Column("whole", "bytes received so far, IPv4 headers included"),
            },
            written=lambda spec: bool(spec.udp and spec.probes.queue_interval_us),
            what="Samples of what has reached the receiver of each UDP stream.",
        ),
    )

    def record(self, entry: Udp, around: Around) -> Record:
        """Return the traffic; a constant rate is a mean without a swing."""
        mean = entry.rate or entry.mean
        assert mean is not None  # ``findings`` refuses other entries
        return Record(
            **entry.common,
            mean_bps=mean.value,
            swing_bps=entry.swing.value if entry.swing else 0,
            period_us=entry.period.value if entry.period else None,
        )

    def words(self, record: Record) -> str:
        """Return its rate."""
        if record.period_us is None:
            return f"UDP of {record.mean_bps / 1e6:g} Mbit/s"
        rate = f"{record.mean_bps / 1e6:g} +- {record.swing_bps / 1e6:g} Mbit/s"
        return f"UDP of {rate}, period {record.period_us / 1e6:g} s"

    def cost(self, record: Record, path: Path) -> Cost:
        """Return the CPU seconds of its sender; its packets are few compared with TCP's."""
        packets = record.mean_bps * record.duration_us / 8e6 / path.mtu_bytes
        return Cost(seconds=packets * SECONDS_PER_DATAGRAM)


KIND = UdpTraffic()
