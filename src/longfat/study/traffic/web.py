# SPDX-License-Identifier: Apache-2.0
"""Web traffic: users at one host that fetch files from an HTTP server at another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from longfat.spec.gates import Evidence
from longfat.spec.runspec import Web as Record
from longfat.spec.units import Ratio
from longfat.study.schema import fields as f
from longfat.study.traffic.kind import Around, Column, Cost, Path, Section, Table, TcpEntry
from longfat.study.traffic.requests import algorithm_holds, errors_text, total_errors, was_reported

SECONDS_PER_REQUEST = 3e-3  # programs and connection of a request, without its packets
# Allowed share of failed requests. Nothing in a guest refuses a request, so failures point to a limit of the programs;
# a thousandth changes the bytes by less than the model's own randomness.
ERROR_SHARE = 0.001


@dataclass(frozen=True)
class WebModel:
    """A model of users, which the guest implements: a user's demand if transfers took no time.

    The plan estimates run times from these rates; a test compares them with the models.
    """

    name: str
    summary: str
    bytes_per_s: float
    requests_per_s: float


_SOURCE = "SURGE (Barford, Crovella, SIGMETRICS 1998): 2000 files, sizes lognormal up to 133 kB and Pareto beyond; "
_SOURCE += "pages with embedded files, times between requests Weibull within a page and Pareto after it; "

WEB_MODELS: dict[str, WebModel] = {
    model.name: model
    for model in (
        WebModel(
            "surge",
            _SOURCE + "popularity by Zipf's law, so that the sizes of requests are Pareto from 1000 bytes as published",
            2_670.0,
            0.224,
        ),
        WebModel(
            "surge_files",
            _SOURCE + "all files equally popular, so that requests have the sizes of files",
            14_900.0,
            0.224,
        ),
    )
}


class Web(TcpEntry):
    """Web users at one host that fetch files from an HTTP server at another."""

    examples: ClassVar[tuple[str, ...]] = (
        "{name: surf, from: client1, to: server, algorithm: reno, users: 100, duration: 60 s}",
    )

    sender: f.NodeName = Field(alias="from", description="host of the HTTP server, which sends the data")
    receiver: f.NodeName = Field(alias="to", description="host of the users")
    duration: f.Length = Field(description="time in which the users send requests")
    users: Annotated[int, Field(strict=True, ge=1, le=20_000)] = Field(description="users, each with one connection")
    model: Annotated[str, f.among("web model", WEB_MODELS)] = Field(
        default="surge", description="files and times of requests (default surge)"
    )
    off_times: f.OffTimes = Field(
        default=Ratio(1_000_000), description="factor of the model's times between requests (default 100 %)"
    )

    @property
    def draws(self) -> bool:
        """Always true: files and OFF times are random."""
        return True


def users_were_served(evidence: Evidence) -> Iterator[str]:
    """Require replies and few errors: a failed request carries no data, and its user continues early."""
    for report in evidence.program_reports.get("web", ()):
        errors, replies = sum(report["errors"].values()), report["replies"]
        if not replies:
            yield f"the users of {report['web']} got no reply"
        elif errors > ERROR_SHARE * (errors + replies):
            kinds, share = errors_text(report["errors"]), 100 * errors / (errors + replies)
            yield f"{share:.2g} % of the requests of {report['web']} failed ({kinds}), allowed {100 * ERROR_SHARE:g} %"


class WebTraffic(Section[Web, Record]):
    """The kind of web traffic."""

    model = Web
    meaning = "the web traffic"
    one = "web traffic"
    route_sets_algorithm = True
    gates = (
        was_reported("web", "web traffic {} was"),
        algorithm_holds("web", "the server of {}"),
        users_were_served,
    )
    tables = (
        Table(
            "web",
            "web.json",
            {
                "web": Column("text", "name of the web traffic in the study"),
                "sender": Column("text"),
                "receiver": Column("text"),
                "cca": Column("text"),
                "model": Column("text", "model of the users"),
                "users": Column("whole", "number of users"),
                "start_us": Column("whole"),
                "end_us": Column("whole"),
                "bytes_received": Column("whole"),
                "replies": Column("whole", "complete replies"),
                "errors": Column("whole", "failed requests"),
                "unfinished": Column("whole", "requests without a complete answer at the end"),
                "mean_reply_us": Column("whole", "mean time from a request to its reply's last byte"),
            },
            written=lambda spec: bool(spec.web),
            row=total_errors,
            what="One row for each group of web users.",
        ),
    )

    def record(self, entry: Web, around: Around) -> Record:
        """Return the users in the guest's form."""
        return Record(
            **entry.common,
            users=entry.users,
            cca=around.algorithm(entry.algorithm).cca,
            model=entry.model,
            off_ppm=entry.off_times.value,
        )

    def words(self, record: Record) -> str:
        """Return the number of users, and their model."""
        return f"{self.drawn(record)} ({record.model}, OFF times {record.off_ppm / 1e4:g} %)"

    def cost(self, record: Record, path: Path) -> Cost:
        """Return the demand of all users over their model time, which is longer with shorter OFF times."""
        model, seconds = WEB_MODELS[record.model], record.users * record.duration_us / record.off_ppm
        return Cost(seconds * model.bytes_per_s / path.mtu_bytes, seconds * model.requests_per_s * SECONDS_PER_REQUEST)

    def drawn(self, record: Record) -> str:
        """Return the number of users."""
        return f"{record.users} web users"


KIND = WebTraffic()
