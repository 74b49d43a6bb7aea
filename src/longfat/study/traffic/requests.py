# SPDX-License-Identifier: Apache-2.0
"""Requests for responses of random sizes, by users with think times, or at random times.

Owns the gates and rows of all kinds in which a program at the receiver requests data from a server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from longfat.spec.gates import Evidence, Gate
from longfat.spec.runspec import Requests as Record
from longfat.spec.units import Duration, Size
from longfat.study.schema import fields as f
from longfat.study.schema.files import OwnFile, StudyFile
from longfat.study.schema.names import Finding
from longfat.study.traffic.kind import Around, Column, Cost, Path, Section, Table, TcpEntry


def was_reported(kind: str, words: str) -> Gate:
    """Each entry is in achieved.json and in the kind's table. ``words`` name it in messages: "requests {} were"."""

    def gate(evidence: Evidence) -> Iterator[str]:
        seen = {item[kind] for item in evidence.achieved.get(kind, ())}
        reported = {report[kind] for report in evidence.program_reports.get(kind, ())}
        for one in getattr(evidence.spec, kind):
            if one.name not in seen & reported:
                yield f"{words.format(one.name)} not reported"

    return gate


def algorithm_holds(kind: str, words: str) -> Gate:
    """The connections of each server used the declared algorithm only. ``words`` name them: "the server of {}"."""

    def gate(evidence: Evidence) -> Iterator[str]:
        found = {item[kind]: item["ccas"] for item in evidence.achieved.get(kind, ())}
        for one in getattr(evidence.spec, kind):
            if one.name in found and found[one.name] != [one.cca]:
                seen = ", ".join(found[one.name]) or "not seen"
                yield f"algorithm of {words.format(one.name)} is {seen}, declared {one.cca}"

    return gate


def total_errors(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a report as a row of its table, with the errors of all kinds added up."""
    return {**report, "errors": sum(report["errors"].values())}


def errors_text(errors: Mapping[str, int]) -> str:
    """Return counts of errors as a message lists them."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(errors.items()))


SECONDS_PER_REQUEST = 2e-3  # connection and programs, without the packets of a response
ROUND_TRIPS = 2  # of each request: the connection, then the request and the start of its response
MILLION = 1_000_000
Points = tuple[tuple[int, int], ...]


class Requests(TcpEntry):
    """Requests from one host to a server at another, each over its own connection."""

    examples: ClassVar[tuple[str, ...]] = (
        "{name: ask, from: client1, to: server, algorithm: reno, users: 20, response: 30 kB, sizes: pareto, "
        "think: 1 s, duration: 60 s}",
    )

    sender: f.NodeName = Field(alias="from", description="host of the server, which sends the responses")
    receiver: f.NodeName = Field(alias="to", description="host of the users")
    duration: f.Length = Field(description="time in which requests begin; one that is under way at its end is cut off")
    users: Annotated[int, Field(strict=True, ge=1, le=10_000)] | None = Field(
        default=None, description="users, each with one request at a time; this or `every` is required"
    )
    every: Annotated[Duration, f.Within("1 us", "3600 s")] | None = Field(
        default=None,
        description="mean time between two requests, which begin as a Poisson process, independently of earlier ones",
    )
    response: Annotated[Size, f.Within("1 B", "16 GiB")] | None = Field(
        default=None, description="mean size of a response; this or `cdf` is required"
    )
    sizes: Literal["fixed", "exponential", "pareto"] = Field(
        default="fixed", description="distribution of the sizes of responses (default fixed)"
    )
    shape: f.Number = Field(
        default=1.5,
        description="shape of the Pareto distribution, above 1: the smaller, the heavier its tail (default 1.5)",
    )
    cdf: OwnFile | None = Field(
        default=None,
        description="file next to study.yaml with the distribution of sizes, instead of `response` and `sizes`: lines "
        "of bytes and the percentage of responses that are no larger, ascending to 100, interpolated linearly",
    )
    request: Annotated[Size, f.Within("8 B", "1 MiB")] = Field(
        default=Size(200), description="size of a request (default 200 B)"
    )
    think: f.Delay = Field(
        default=Duration(0), description="mean time from a response to the user's next request (default 0 s)"
    )
    thinking: Literal["fixed", "exponential"] = Field(
        default="exponential", description="distribution of these times (default exponential)"
    )

    @property
    def draws(self) -> bool:
        """Whether sizes, times, or the first requests of users are random."""
        return bool(self.every or self.cdf or self.think.value) or self.sizes != "fixed"

    def findings(self) -> Iterator[Finding]:
        """Yield keys that exclude or require each other, and a distribution that cannot be read."""
        if (self.users is None) == (self.every is None):
            yield Finding(("users",), "give either `users` or `every`")
        if (self.response is None) == (self.cdf is None):
            yield Finding(("response",), "give either `response` or `cdf`")
        if self.shape <= 1:
            yield Finding(("shape",), f"{self.shape:g} is out of range; allowed: more than 1, so that a mean exists")
        if "shape" in self.model_fields_set and self.sizes != "pareto":
            yield Finding(("shape",), f"sizes {self.sizes!r} have no shape", "sizes: pareto")
        if self.cdf is not None:
            try:
                points_of(self.cdf)
            except ValueError as error:
                yield Finding(("cdf",), str(error))


def points_of(file: StudyFile) -> Points:
    """Return the points of a distribution: bytes, and the millionths of responses that are no larger.

    Raises ValueError with file, line, the line given and the values allowed.
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
        where = f"{file.name}, line {number}: {line!r}"
        try:
            size, percent = (float(word) for word in words)
        except ValueError:
            raise ValueError(f"{where} is not two numbers, bytes and percent") from None
        if not (1 <= size <= 1 << 34 and 0 <= percent <= 100):
            raise ValueError(f"{where} is out of range; allowed: 1 B to 16 GiB, 0 to 100 %")
        point = round(size), round(percent * MILLION / 100)
        if points and (point[0] < points[-1][0] or point[1] <= points[-1][1]):
            raise ValueError(f"{where} does not ascend from the line before")
        points.append(point)
    if not points or points[-1][1] != MILLION:
        raise ValueError(f"{file.name} does not end with 100 percent")
    return tuple(points)


def mean_of(points: Points) -> float:
    """Return the mean of a distribution that is linear between its points."""
    first_size, first_share = points[0]
    total = float(first_size * first_share)
    for (low, below), (high, above) in pairwise(points):
        total += (low + high) / 2 * (above - below)
    return total / MILLION


def requests_were_answered(evidence: Evidence) -> Iterator[str]:
    """Require a response and no failed request: nothing in a guest refuses one."""
    for report in evidence.program_reports.get("requests", ()):
        if not report["responses"]:
            yield f"no request of {report['requests']} was answered"
        if report["errors"]:
            yield f"requests of {report['requests']} failed ({errors_text(report['errors'])}), allowed 0"


class RequestTraffic(Section[Requests, Record]):
    """The kind of requests."""

    model = Requests
    meaning = "requests for responses of given or drawn sizes"
    one = "requests"
    gates = (
        was_reported("requests", "requests {} were"),
        algorithm_holds("requests", "the responses of {}"),
        requests_were_answered,
    )
    tables = (
        Table(
            "requests",
            "requests.json",
            {
                "requests": Column("text", "name of the requests in the study"),
                "sender": Column("text"),
                "receiver": Column("text"),
                "cca": Column("text"),
                "users": Column("whole", "number of users; 0 for requests at random times"),
                "start_us": Column("whole"),
                "end_us": Column("whole"),
                "bytes_received": Column("whole"),
                "responses": Column("whole", "complete responses"),
                "errors": Column("whole", "failed requests"),
                "unfinished": Column("whole", "requests without a complete answer at the end"),
                "mean_response_us": Column(
                    "whole", "mean time from the start of a connection to the response's last byte"
                ),
            },
            written=lambda spec: bool(spec.requests),
            row=total_errors,
            what="One row for each entry of requests.",
        ),
        Table(
            "responses",
            "responses.csv",
            {
                "t_us": Column("whole", "time of the request"),
                "requests": Column("text", "name of the requests in the study"),
                "user": Column("whole", "number of the user, or of the request"),
                "response_bytes": Column("whole", "size of the response"),
                "response_us": Column("whole", "time from the start of the connection to the response's last byte"),
            },
            written=lambda spec: bool(spec.requests),
            what="One row for each complete response to such a request.",
        ),
    )

    def record(self, entry: Requests, around: Around) -> Record:
        """Return the requests in the guest's form."""
        table = points_of(entry.cdf) if entry.cdf else ()
        return Record(
            **entry.common,
            users=entry.users or 0,
            cca=around.algorithm(entry.algorithm).cca,
            response_bytes=entry.response.value if entry.response else round(mean_of(table)),
            sizes="table" if table else entry.sizes,
            shape=entry.shape,
            request_bytes=entry.request.value,
            think_us=entry.think.value,
            thinking=entry.thinking,
            every_us=entry.every.value if entry.every else None,
            table=table,
        )

    def words(self, record: Record) -> str:
        """Return the number of users or the interval of requests, and the sizes."""
        found = f"{self.drawn(record)}, responses of {record.response_bytes} B ({record.sizes})"
        if record.every_us:
            return found
        if not record.think_us:
            return f"{found}, without thinking"
        return f"{found}, thinking {record.think_us / 1e6:g} s ({record.thinking})"

    def cost(self, record: Record, path: Path) -> Cost:
        """Return the cost of the requests that begin, limited by round trips, think times and the path's rate."""
        cycle_us = record.every_us or max(1, record.think_us + ROUND_TRIPS * path.round_trip_us)
        count = (record.users or 1) * record.duration_us / cycle_us
        count = min(count, path.slowest_bps * record.duration_us / 8e6 / record.response_bytes)
        return Cost(count * (record.response_bytes / path.mtu_bytes + ROUND_TRIPS), count * SECONDS_PER_REQUEST)

    def drawn(self, record: Record) -> str:
        """Return the number of users, or the interval of requests."""
        if record.every_us:
            return f"a request every {record.every_us / 1000:g} ms"
        return f"{record.users} users with requests"


KIND = RequestTraffic()
