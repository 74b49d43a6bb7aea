# SPDX-License-Identifier: Apache-2.0
"""The pings of a run: a program sends them and prints the table of round-trip times."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longfat.guest import echo
from longfat.guest.processes import end_with_run, finish
from longfat.spec.network import longest_rtt_us
from longfat.spec.runspec import RunSpec

if TYPE_CHECKING:
    from longfat.guest.run import RunContext


class Traffic:
    """The pings of a run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self.ports: dict[str, int] = {}
        self._programs: list[subprocess.Popen[bytes]] = []

    def prepare(self) -> None:
        """Do nothing: the kernel answers pings."""

    def plan(self) -> None:
        """Start the program, which waits for the start of the measurement."""
        context = self._context
        linger_ns = max(echo.LINGER_NS, 2000 * longest_rtt_us(context.spec))
        for ping in (one for one in context.spec.pings if context.here(one.sender)):
            address = context.network.topology.address(ping.receiver)
            when = ping.interval_us, context.timeline.origin_ns, context.timeline.end_us
            command = echo.command(address, *when, linger_ns)
            process = context.network.start_tool(ping.sender, command, context.output("pings.csv"))
            self._programs.append(end_with_run(context.cleanup, process))

    def finish(self) -> None:
        """Wait for the program, which waits for the reply to its last request."""
        for process in self._programs:
            finish(process, "the ping probe", within_s=self._context.drain_s)

    def achieved(self) -> dict[str, Any]:
        """Return no members: a ping has no settings."""
        return {}


def report(spec: RunSpec, folder: Path) -> None:
    """Do nothing: the program has written the table."""
