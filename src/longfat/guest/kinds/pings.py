# SPDX-License-Identifier: Apache-2.0
"""The pings of one run while it happens, and the table of their round-trip times."""

from __future__ import annotations

import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longfat.guest import echo
from longfat.guest.processes import finish, started
from longfat.guest.reports import write_points
from longfat.runspec import Ping, RunSpec

if TYPE_CHECKING:
    from longfat.guest.stage import Stage


class Traffic:
    """The pings, where the run asks for them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._ping: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """The kernel answers pings."""

    def plan(self) -> None:
        """Begin with the measurement."""
        for asked in self._stage.spec.pings:
            self._stage.timeline.at(0, partial(self._start, asked))

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

    def _start(self, asked: Ping) -> None:
        stage = self._stage
        command = echo.ping_command(stage.network.topology.address(asked.receiver), asked.interval_us)
        process = stage.network.start_tool(asked.sender, command, stage.output("ping.txt"))
        self._ping = started(stage.cleanup, process)


def report(spec: RunSpec, folder: Path) -> None:
    """The table is written when ping ends."""
