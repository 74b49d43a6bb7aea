# SPDX-License-Identifier: Apache-2.0
"""Pings from the first sender to the first receiver, requested by an experiment's probes."""

from __future__ import annotations

from longfat.study.traffic.kind import Column, Kind, Table


class Pings(Kind):
    """The kind of pings."""

    tables = (
        Table(
            "pings",
            "pings.csv",
            {
                "t_us": Column("whole", "time of the request"),
                "rtt_us": Column("real", "round-trip time; null if no reply came"),
            },
            written=lambda spec: bool(spec.pings),
            what="One row for each ping.",
        ),
    )


KIND = Pings()
