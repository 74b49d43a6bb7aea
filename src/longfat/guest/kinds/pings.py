# SPDX-License-Identifier: Apache-2.0
"""The pings of a run: a program sends them and prints the table of round-trip times."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longfat.guest import echo
from longfat.guest.processes import end_with_run, finish
from longfat.network import longest_rtt_us
from longfat.runspec import RunSpec

if TYPE_CHECKING:
    from longfat.guest.run import RunContext


class Traffic:
    """The pings of a run."""

    def __init__(self, stage: RunContext) -> None:
        self._stage = stage
        self.ports: dict[str, int] = {}
        self._programs: list[subprocess.Popen[bytes]] = []

    def prepare(self) -> None:
        """Do nothing: the kernel answers pings."""

    def plan(self) -> None:
        """Start the program, which waits for the start of the measurement."""
        stage = self._stage
        linger_ns = max(echo.LINGER_NS, 2000 * longest_rtt_us(stage.spec))
        for asked in (one for one in stage.spec.pings if stage.here(one.sender)):
            address = stage.network.topology.address(asked.receiver)
            when = asked.interval_us, stage.timeline.origin_ns, stage.timeline.end_us
            command = echo.command(address, *when, linger_ns)
            process = stage.network.start_tool(asked.sender, command, stage.output("pings.csv"))
            self._programs.append(end_with_run(stage.cleanup, process))

    def finish(self) -> None:
        """Wait for the program, which waits for the reply to its last request."""
        for process in self._programs:
            finish(process, "the ping probe", within_s=self._stage.drain_s)

    def achieved(self) -> dict[str, Any]:
        """Return nothing: no setting belongs to a ping."""
        return {}


def report(spec: RunSpec, folder: Path) -> None:
    """Do nothing: the program has written the table."""
