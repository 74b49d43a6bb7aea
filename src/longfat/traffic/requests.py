# SPDX-License-Identifier: Apache-2.0
"""Requests: users at one host that ask a server at another, take in what it sends, think, and ask again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from longfat.gates import Evidence
from longfat.runspec import Requests as Record
from longfat.schema import fields as f
from longfat.schema.names import Finding
from longfat.traffic.kind import Around, Cost, Path, Section, Table, TcpEntry
from longfat.units import Duration, Size

SECONDS_PER_REQUEST = 2e-3  # connection and programs, the packets of a response apart
ROUND_TRIPS = 2  # of each request: the connection, and the request with the first of its response


class Requests(TcpEntry):
    """Users at one host that ask a server at another: each request is a connection of its own."""

    sender: f.NodeName = Field(alias="from", description="host of the server, which sends the responses")
    receiver: f.NodeName = Field(alias="to", description="host of the users")
    duration: f.Length = Field(description="time for which the users ask")
    users: Annotated[int, Field(strict=True, ge=1, le=10_000)] = Field(
        description="users, each with one request at a time"
    )
    response: Annotated[Size, f.Within("1 B", "16 GiB")] = Field(description="mean size of a response")
    sizes: Literal["fixed", "exponential", "pareto"] = Field(
        default="fixed", description="law that sizes of responses are drawn from (default fixed)"
    )
    shape: f.Number = Field(
        default=1.5, description="shape of the Pareto law, above 1: the smaller, the heavier its tail (default 1.5)"
    )
    request: Annotated[Size, f.Within("8 B", "1 MiB")] = Field(
        default=Size(200), description="size of a request (default 200 B)"
    )
    think: f.Delay = Field(
        default=Duration(0), description="mean time from a response to the user's next request (default 0 s)"
    )
    thinking: Literal["fixed", "exponential"] = Field(
        default="exponential", description="law that times between are drawn from (default exponential)"
    )

    @property
    def draws(self) -> bool:
        """Sizes, times, and when each user begins."""
        return self.sizes != "fixed" or bool(self.think.value)

    def findings(self) -> Iterator[Finding]:
        """A law without a mean, and a shape without a law."""
        if self.shape <= 1:
            yield Finding(("shape",), f"{self.shape:g} is out of range; allowed: more than 1, for there to be a mean")
        if "shape" in self.model_fields_set and self.sizes != "pareto":
            yield Finding(("shape",), f"a law {self.sizes!r} has no shape", "sizes: pareto")


def requests_were_reported(evidence: Evidence) -> Iterator[str]:
    """Each is in achieved.json and in requests.json."""
    seen = {item["requests"] for item in evidence.achieved.get("requests", ())}
    told = {report["requests"] for report in evidence.told.get("requests", ())}
    for one in evidence.spec.requests:
        if one.name not in seen & told:
            yield f"requests {one.name} were not reported"


def algorithm_of_responses_holds(evidence: Evidence) -> Iterator[str]:
    """The server's connections used the declared algorithm and no other."""
    found = {item["requests"]: item["ccas"] for item in evidence.achieved.get("requests", ())}
    for one in evidence.spec.requests:
        if one.name in found and found[one.name] != [one.cca]:
            seen = ", ".join(found[one.name]) or "not seen"
            yield f"algorithm of the responses of {one.name} is {seen}, declared {one.cca}"


def requests_were_answered(evidence: Evidence) -> Iterator[str]:
    """Some response came, and no request failed: nothing in a laboratory refuses one."""
    for report in evidence.told.get("requests", ()):
        if not report["responses"]:
            yield f"no request of {report['requests']} was answered"
        if report["errors"]:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(report["errors"].items()))
            yield f"requests of {report['requests']} failed ({kinds}), allowed 0"


def _row(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """Errors of all kinds together."""
    return {**report, "errors": sum(report["errors"].values())}


class RequestTraffic(Section[Requests, Record]):
    """See the module."""

    model = Requests
    meaning = "requests, each answered by a response of its own size"
    example = (
        "{name: ask, from: client1, to: server, algorithm: reno, users: 20, response: 30 kB, sizes: pareto, "
        "think: 1 s, duration: 60 s}"
    )
    one = "requests"
    gates = (requests_were_reported, algorithm_of_responses_holds, requests_were_answered)
    tables = (
        Table(
            "requests",
            "requests.json",
            {
                "requests": "text",
                "sender": "text",
                "receiver": "text",
                "cca": "text",
                "users": "whole",
                "start_us": "whole",
                "end_us": "whole",
                "bytes_received": "whole",
                "responses": "whole",
                "errors": "whole",
                "unfinished": "whole",
                "mean_response_us": "whole",
            },
            written=lambda spec: bool(spec.requests),
            row=_row,
            what="One row for each group of users that request data over one connection each time.",
            meanings={
                "requests": "name of the requests in the study",
                "users": "number of users",
                "responses": "complete responses",
                "errors": "failed requests",
                "unfinished": "requests without a complete answer at the end",
                "mean_response_us": "mean time from the start of a connection to the response's last byte",
            },
        ),
        Table(
            "responses",
            "responses.csv",
            {"t_us": "whole", "requests": "text", "user": "whole", "response_bytes": "whole", "response_us": "whole"},
            written=lambda spec: bool(spec.requests),
            what="One row for each complete response to such a request.",
            meanings={
                "t_us": "time of the request",
                "requests": "name of the requests in the study",
                "user": "number of the user",
                "response_bytes": "size of the response",
                "response_us": "time from the start of the connection to the response's last byte",
            },
        ),
    )

    def record(self, entry: Requests, around: Around) -> Record:
        """The users as the guest is told of them."""
        return Record(
            name=entry.name,
            sender=entry.sender,
            receiver=entry.receiver,
            users=entry.users,
            cca=around.algorithm(entry.algorithm).cca,
            duration_us=entry.duration.value,
            response_bytes=entry.response.value,
            sizes=entry.sizes,
            shape=entry.shape,
            request_bytes=entry.request.value,
            think_us=entry.think.value,
            thinking=entry.thinking,
            start_us=entry.start.value,
        )

    def words(self, record: Record) -> str:
        """How many users, and what they ask for."""
        think = f"thinking {record.think_us / 1e6:g} s ({record.thinking})" if record.think_us else "without thinking"
        return f"{self.drawn(record)}, responses of {record.response_bytes} B ({record.sizes}), {think}"

    def cost(self, record: Record, path: Path) -> Cost:
        """As many requests as round trips and thinking leave time for, or the path's rate if that is less."""
        cycle_us = max(1, record.think_us + ROUND_TRIPS * path.round_trip_us)
        count = record.users * record.duration_us / cycle_us
        count = min(count, path.slowest_bps * record.duration_us / 8e6 / record.response_bytes)
        return Cost(count * (record.response_bytes / path.mtu_bytes + ROUND_TRIPS), count * SECONDS_PER_REQUEST)

    def drawn(self, record: Record) -> str:
        """How many users."""
        return f"{record.users} users with requests"


KIND = RequestTraffic()
