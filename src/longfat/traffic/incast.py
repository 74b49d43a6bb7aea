# SPDX-License-Identifier: Apache-2.0
"""Incast: many senders answer a request of one receiver at once, which asks again when it has all blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from longfat.runspec import Incast as Record
from longfat.schema import fields as f
from longfat.traffic.asked import gates_of
from longfat.traffic.kind import Around, Cost, Path, Section, Sides, Table, TcpEntry
from longfat.units import Duration, Size

SECONDS_PER_BLOCK = 1e-3  # programs, its packets apart
SECONDS_PER_SENDER = 0.2  # its server's start


class Incast(TcpEntry):
    """Senders that answer at once: the first is at `from`, the others at the hosts that follow it, in turn."""

    sender: f.NodeName = Field(alias="from", description="host of the first sender")
    receiver: f.NodeName = Field(alias="to", description="host that asks")
    duration: f.Length = Field(description="time for which it asks; what is under way at its end is cut off")
    senders: Annotated[int, Field(strict=True, ge=1, le=400)] = Field(description="how many answer")
    block: Annotated[Size, f.Within("1 B", "1 GiB")] = Field(description="what each of them sends")
    pause: f.Delay = Field(
        default=Duration(0), description="from the last byte of the slowest to the next request (default 0 s)"
    )

    def each(self, sides: Sides) -> Iterator[Incast]:
        """One for each sender: its number stands behind the name."""
        hosts = next((side for side in sides if self.sender in side), (self.sender,))
        for number in range(self.senders):
            sender = hosts[(hosts.index(self.sender) + number) % len(hosts)]
            yield self.model_copy(update={"name": f"{self.name}.{number + 1}", "sender": sender})


class IncastTraffic(Section[Incast, Record]):
    """See the module."""

    model = Incast
    meaning = "requests that many senders answer at once"
    example = (
        "{name: burst, from: client1, to: server, algorithm: reno, senders: 1, block: 64 kB, pause: 1 s, "
        "duration: 60 s}"
    )
    one = "incast"
    gates = gates_of("incast", "incast", "rounds", named="group")
    tables = (
        Table(
            "incast",
            "incast.json",
            {
                "incast": "text",
                "receiver": "text",
                "cca": "text",
                "senders": "whole",
                "start_us": "whole",
                "end_us": "whole",
                "rounds": "whole",
                "mean_completion_us": "whole",
            },
            written=lambda spec: bool(spec.incast),
            what="One row for each receiver that many senders answer at once.",
            meanings={
                "incast": "name of the incast in the study",
                "senders": "number of senders",
                "rounds": "complete rounds",
                "mean_completion_us": "mean time from a request to the last byte of the slowest sender",
            },
        ),
        Table(
            "incast_rounds",
            "incast_rounds.csv",
            {
                "t_us": "whole",
                "incast": "text",
                "senders": "whole",
                "block_bytes": "whole",
                "fastest_us": "whole",
                "completion_us": "whole",
            },
            written=lambda spec: bool(spec.incast),
            what="One row for each complete round.",
            meanings={
                "t_us": "time of the request",
                "incast": "name of the incast in the study",
                "senders": "number of senders",
                "block_bytes": "what each sender sends",
                "fastest_us": "time until the first sender's block was there",
                "completion_us": "time until the last sender's block was there",
            },
        ),
    )

    def record(self, entry: Incast, around: Around) -> Record:
        """One sender as the guest is told of it."""
        return Record(
            name=entry.name,
            group=entry.name.rpartition(".")[0],
            sender=entry.sender,
            receiver=entry.receiver,
            cca=around.algorithm(entry.algorithm).cca,
            duration_us=entry.duration.value,
            block_bytes=entry.block.value,
            pause_us=entry.pause.value,
            start_us=entry.start.value,
        )

    def words(self, record: Record) -> str:
        """What it sends, with whom."""
        return f"one of the senders of {record.group}, blocks of {record.block_bytes} B"

    def cost(self, record: Record, path: Path) -> Cost:
        """As many rounds as pauses and a round trip leave time for, or the path's rate if that is less."""
        rounds = record.duration_us / max(1, record.pause_us + path.round_trip_us)
        rounds = min(rounds, path.slowest_bps * record.duration_us / 8e6 / record.block_bytes)
        seconds = SECONDS_PER_SENDER + rounds * SECONDS_PER_BLOCK
        return Cost(rounds * record.block_bytes / path.mtu_bytes, seconds)

    def drawn(self, record: Record) -> str:
        """What it is."""
        return "incast"


KIND = IncastTraffic()
