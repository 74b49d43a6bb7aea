# SPDX-License-Identifier: Apache-2.0
"""Short flows: they begin at times of their own and have sizes of their own, whatever else is under way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from longfat.runspec import ShortFlows as Record
from longfat.schema import fields as f
from longfat.schema.files import OwnFile, StudyFile
from longfat.schema.names import Finding
from longfat.traffic.asked import errors_together, gates_of
from longfat.traffic.kind import Around, Cost, Path, Section, Table, TcpEntry
from longfat.units import Duration, Size

SECONDS_PER_FLOW = 2e-3  # connection and programs, its packets apart
ROUND_TRIPS = 2  # of each flow: the connection, and the request with the first bytes
MILLION = 1_000_000
Points = tuple[tuple[int, int], ...]


class ShortFlows(TcpEntry):
    """Short flows from one host to another: each is a connection of its own, on which the receiver asks for it."""

    duration: f.Length = Field(description="time in which flows begin; one that is under way at its end is cut off")
    every: Annotated[Duration, f.Within("1 us", "3600 s")] = Field(
        description="mean time from one beginning to another"
    )
    arrivals: Literal["poisson", "fixed"] = Field(
        default="poisson", description="law of these times: exponential ones, or all alike (default poisson)"
    )
    size: Annotated[Size, f.Within("1 B", "16 GiB")] | None = Field(
        default=None, description="mean size; required unless there is a `cdf`"
    )
    sizes: Literal["fixed", "exponential", "pareto", "lognormal"] = Field(
        default="fixed", description="law that sizes are drawn from (default fixed)"
    )
    shape: f.Number = Field(
        default=1.5,
        description="shape of the Pareto law, above 1, or standard deviation of the lognormal law's logarithm "
        "(default 1.5)",
    )
    cdf: OwnFile | None = Field(
        default=None,
        description="file beside study.yaml with the distribution of sizes, in place of `size` and `sizes`: lines of "
        "bytes and the percentage of flows that are no larger, ascending up to 100, with straight lines between",
    )

    @property
    def draws(self) -> bool:
        """Times and sizes."""
        return self.arrivals == "poisson" or self.sizes != "fixed" or self.cdf is not None

    def findings(self) -> Iterator[Finding]:
        """Sizes given twice or not at all, a shape without a law, a distribution that is none."""
        if (self.size is None) == (self.cdf is None):
            yield Finding(("size",), "give `size` or `cdf`, one of the two")
        if self.shape <= (1 if self.sizes == "pareto" else 0):
            least = "1, for there to be a mean" if self.sizes == "pareto" else "0"
            yield Finding(("shape",), f"{self.shape:g} is out of range; allowed: more than {least}")
        if "shape" in self.model_fields_set and self.sizes not in ("pareto", "lognormal"):
            yield Finding(("shape",), f"a law {self.sizes!r} has no shape", "sizes: pareto")
        if self.cdf is not None:
            try:
                points_of(self.cdf)
            except ValueError as error:
                yield Finding(("cdf",), str(error))


def points_of(file: StudyFile) -> Points:
    """The points of a distribution: bytes, and the millionths of flows that are no larger.

    Raises ValueError with file, line, what was found and what is allowed.
    """
    points: list[tuple[int, int]] = []
    try:
        lines = file.path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file.name} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            size, percent = (float(word) for word in words)
        except ValueError:
            raise ValueError(f"{file.name}, line {number}: {line!r} is not two numbers, bytes and percent") from None
        point = round(size), round(percent * MILLION / 100)
        if not (1 <= point[0] <= 1 << 34 and 0 <= percent <= 100):
            raise ValueError(
                f"{file.name}, line {number}: {line!r} is out of range; allowed: 1 B to 16 GiB, 0 to 100 %"
            )
        if points and (point[0] < points[-1][0] or point[1] <= points[-1][1]):
            raise ValueError(f"{file.name}, line {number}: {line!r} does not ascend from the line before")
        points.append(point)
    if not points or points[-1][1] != MILLION:
        raise ValueError(f"{file.name} does not end with 100 percent")
    return tuple(points)


def mean_of(points: Sequence[tuple[int, int]]) -> float:
    """The mean of a distribution that has straight lines between its points."""
    first_size, first_share = points[0]
    total = float(first_size * first_share)
    for (low, below), (high, above) in pairwise(points):
        total += (low + high) / 2 * (above - below)
    return total / MILLION


class ShortFlowTraffic(Section[ShortFlows, Record]):
    """See the module."""

    model = ShortFlows
    meaning = "short flows, each of a size of its own"
    example = (
        "{name: mice, from: client1, to: server, algorithm: reno, every: 100 ms, size: 30 kB, sizes: pareto, "
        "duration: 60 s}"
    )
    one = "short flows"
    gates = gates_of("short_flows", "short flows", "completed")
    tables = (
        Table(
            "short_flows",
            "short_flows.json",
            {
                "short_flows": "text",
                "sender": "text",
                "receiver": "text",
                "cca": "text",
                "start_us": "whole",
                "end_us": "whole",
                "bytes_received": "whole",
                "completed": "whole",
                "unfinished": "whole",
                "errors": "whole",
            },
            written=lambda spec: bool(spec.short_flows),
            row=errors_together,
            what="One row for each source of short flows.",
            meanings={
                "short_flows": "name of the short flows in the study",
                "completed": "flows whose last byte arrived",
                "unfinished": "flows that were under way at the end",
                "errors": "flows that failed",
            },
        ),
        Table(
            "completions",
            "completions.csv",
            {
                "t_us": "whole",
                "short_flows": "text",
                "size_bytes": "whole",
                "completion_us": "whole",
                "ideal_us": "whole",
            },
            written=lambda spec: bool(spec.short_flows),
            what="One row for each short flow that was completed.",
            meanings={
                "t_us": "time at which the flow began",
                "short_flows": "name of the short flows in the study",
                "size_bytes": "size of the flow",
                "completion_us": "time from the start of the connection to the flow's last byte",
                "ideal_us": "least time that the path allows",
            },
        ),
    )

    def record(self, entry: ShortFlows, around: Around) -> Record:
        """The flows as the guest is told of them."""
        table = points_of(entry.cdf) if entry.cdf else ()
        return Record(
            name=entry.name,
            sender=entry.sender,
            receiver=entry.receiver,
            cca=around.algorithm(entry.algorithm).cca,
            duration_us=entry.duration.value,
            every_us=entry.every.value,
            size_bytes=entry.size.value if entry.size else round(mean_of(table)),
            arrivals=entry.arrivals,
            sizes="table" if table else entry.sizes,
            shape=entry.shape,
            table=table,
            start_us=entry.start.value,
        )

    def words(self, record: Record) -> str:
        """How often, and how large."""
        often = f"every {record.every_us / 1000:g} ms ({record.arrivals})"
        return f"TCP flows of {record.size_bytes} B on average ({record.sizes}), {often}"

    def cost(self, record: Record, path: Path) -> Cost:
        """As many flows as begin, or the path's rate if that is less."""
        count = record.duration_us / record.every_us
        count = min(count, path.slowest_bps * record.duration_us / 8e6 / record.size_bytes)
        return Cost(count * (record.size_bytes / path.mtu_bytes + ROUND_TRIPS), count * SECONDS_PER_FLOW)

    def drawn(self, record: Record) -> str:
        """How often."""
        return f"a flow every {record.every_us / 1000:g} ms"


KIND = ShortFlowTraffic()
