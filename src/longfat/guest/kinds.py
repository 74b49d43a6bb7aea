# SPDX-License-Identifier: Apache-2.0
"""The kinds of traffic that a run can have: each is a module with one class, which is named here.

Must not know what they do. A kind that a run has nothing of does nothing.
"""

from __future__ import annotations

from typing import Any, Protocol

from longfat.guest.flows import Flows
from longfat.guest.pings import Pings
from longfat.guest.stage import Stage
from longfat.guest.udp_traffic import UdpTraffic
from longfat.guest.web_traffic import WebTraffic


class Kind(Protocol):
    """All traffic of one kind, as far as it is on this machine."""

    def prepare(self) -> None:
        """Start what has to be there before the measurement: what is sent to."""

    def plan(self) -> None:
        """Put on the time line what is started in the measurement. Called when its start is known."""

    def finish(self) -> None:
        """Wait for the end of every program and complete the raw files. Raises LaboratoryError when one failed."""

    def achieved(self) -> dict[str, Any]:
        """Members of achieved.json: what was read back of the traffic."""


def kinds(stage: Stage) -> tuple[Kind, ...]:
    """One object for each kind, in the order in which they are called."""
    return Flows(stage), WebTraffic(stage), UdpTraffic(stage), Pings(stage)
