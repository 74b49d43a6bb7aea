# SPDX-License-Identifier: Apache-2.0
"""Video that adapts its rate: a viewer asks for segment after segment, and pauses while its buffer is full."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from longfat.runspec import Video as Record
from longfat.schema import fields as f
from longfat.schema.names import Finding
from longfat.traffic.asked import gates_of
from longfat.traffic.kind import Around, Cost, Path, Section, Table, TcpEntry
from longfat.units import Duration

SECONDS_PER_SEGMENT = 2e-3  # programs, its packets apart


class Video(TcpEntry):
    """A viewer at one host of a video at another, over one connection."""

    sender: f.NodeName = Field(alias="from", description="host of the server, which sends the segments")
    receiver: f.NodeName = Field(alias="to", description="host of the viewer")
    duration: f.Length = Field(description="time for which the viewer watches")
    ladder: tuple[f.LinkRate, ...] = Field(min_length=1, description="rates that there are, ascending")
    segment: Annotated[Duration, f.Within("100 ms", "60 s")] = Field(
        default=Duration(4_000_000), description="what one segment plays (default 4 s)"
    )
    buffer: Annotated[Duration, f.Within("100 ms", "600 s")] = Field(
        default=Duration(30_000_000), description="what the viewer's buffer holds (default 30 s)"
    )
    choice: Literal["buffer", "rate"] = Field(
        default="buffer",
        description="how the rate of a segment is chosen: by the buffer (default; the lowest below a quarter of it, "
        "the highest above nine tenths, in proportion between), or by the rate of the last three segments, of which "
        "four fifths are allowed",
    )

    def findings(self) -> Iterator[Finding]:
        """Rates that do not ascend, and a buffer that holds less than two segments."""
        rates = [rate.value for rate in self.ladder]
        if any(low >= high for low, high in pairwise(rates)):
            yield Finding(("ladder",), f"{', '.join(str(rate) for rate in self.ladder)} do not ascend")
        if self.buffer.value < 2 * self.segment.value:
            yield Finding(("buffer",), f"{self.buffer} is less than two segments of {self.segment}")


class VideoTraffic(Section[Video, Record]):
    """See the module."""

    model = Video
    meaning = "video in segments whose rates adapt"
    example = (
        "{name: film, from: client1, to: server, algorithm: reno, ladder: [1 Mbit/s, 3 Mbit/s, 9 Mbit/s], "
        "duration: 60 s}"
    )
    one = "video"
    gates = gates_of("video", "video", "segments")
    tables = (
        Table(
            "video",
            "video.json",
            {
                "video": "text",
                "sender": "text",
                "receiver": "text",
                "cca": "text",
                "start_us": "whole",
                "end_us": "whole",
                "segments": "whole",
                "mean_bps": "whole",
                "switches": "whole",
                "stalled_us": "whole",
                "startup_us": "whole",
            },
            written=lambda spec: bool(spec.video),
            what="One row for each viewer of a video.",
            meanings={
                "video": "name of the video in the study",
                "segments": "complete segments",
                "mean_bps": "mean bit rate of the segments",
                "switches": "changes of the bit rate",
                "stalled_us": "time for which the viewer's buffer was empty",
                "startup_us": "time until the first segment was there",
            },
        ),
        Table(
            "video_segments",
            "video_segments.csv",
            {
                "t_us": "whole",
                "video": "text",
                "bitrate_bps": "whole",
                "size_bytes": "whole",
                "taken_us": "whole",
                "buffer_us": "whole",
                "stalled_us": "whole",
            },
            written=lambda spec: bool(spec.video),
            what="One row for each complete segment of a video.",
            meanings={
                "t_us": "time of the request",
                "video": "name of the video in the study",
                "bitrate_bps": "bit rate of the segment",
                "size_bytes": "size of the segment",
                "taken_us": "time until its last byte was there",
                "buffer_us": "what the viewer's buffer then holds",
                "stalled_us": "time for which the viewer's buffer was empty before it",
            },
        ),
    )

    def record(self, entry: Video, around: Around) -> Record:
        """The viewer as the guest is told of it."""
        return Record(
            name=entry.name,
            sender=entry.sender,
            receiver=entry.receiver,
            cca=around.algorithm(entry.algorithm).cca,
            duration_us=entry.duration.value,
            ladder_bps=tuple(rate.value for rate in entry.ladder),
            segment_us=entry.segment.value,
            buffer_us=entry.buffer.value,
            choice=entry.choice,
            start_us=entry.start.value,
        )

    def words(self, record: Record) -> str:
        """Its rates, its segments, and how a rate is chosen."""
        rates = ", ".join(f"{bps / 1e6:g}" for bps in record.ladder_bps)
        return f"video of {rates} Mbit/s by {record.choice}, segments of {record.segment_us / 1e6:g} s"

    def cost(self, record: Record, path: Path) -> Cost:
        """Its highest rate, or the path's if that is less."""
        bps = min(record.ladder_bps[-1], path.slowest_bps)
        segments = record.duration_us / record.segment_us
        return Cost(bps * record.duration_us / 8e6 / path.mtu_bytes, segments * SECONDS_PER_SEGMENT)

    def drawn(self, record: Record) -> str:
        """What it is."""
        return "video"


KIND = VideoTraffic()
