# SPDX-License-Identifier: Apache-2.0
"""The pings of one run while it happens, and the table of their round-trip times."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

from longfat.guest import echo
from longfat.guest.processes import finish, started
from longfat.guest.reports import write_points
from longfat.guest.stage import Stage


class Pings:
    """Pings from the first sender to the first receiver, where the run asks for them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._ping: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """The kernel answers pings."""

    def plan(self) -> None:
        """Begin with the measurement."""
        if interval_us := self._stage.spec.probes.ping_interval_us:
            self._stage.timeline.at(0, lambda: self._start(interval_us))

    def finish(self) -> None:
        """End ping and write the table."""
        if self._ping:
            self._ping.send_signal(signal.SIGINT)
            finish(self._ping, "ping")
            said = (self._stage.folder / "ping.txt").read_text()
            replies = echo.parse_replies(said, self._stage.timeline.origin_epoch_us)
            write_points(self._stage.folder / "pings.csv", "rtt_us", replies)

    def achieved(self) -> dict[str, Any]:
        """Nothing of a ping is set."""
        return {}

    def _start(self, interval_us: int) -> None:
        stage = self._stage
        sender, receiver = (
            next(node.name for node in stage.spec.nodes if node.role == role) for role in ("sender", "receiver")
        )
        command = echo.ping_command(stage.network.topology.address(receiver), interval_us)
        process = stage.network.start_tool(sender, command, stage.output("ping.txt"))
        self._ping = started(stage.cleanup, process)
