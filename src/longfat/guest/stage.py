# SPDX-License-Identifier: Apache-2.0
"""What everything that takes part in a run meets on this machine. Owns nothing of it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from longfat.guest.network import Network
from longfat.guest.probes import SeenSockets
from longfat.guest.processes import drain_s
from longfat.guest.timeline import Timeline
from longfat.runspec import RunSpec


@dataclass(frozen=True)
class Stage:
    """The run, its network as far as it is here, its time line, and what the probe of the sockets has seen.

    Raw files go to ``folder``, what is not kept to ``scratch``. ``cleanup`` ends what still runs when the run ends.
    """

    spec: RunSpec
    network: Network
    cleanup: ExitStack
    timeline: Timeline
    seen: SeenSockets
    folder: Path
    scratch: Path

    def here(self, node: str) -> bool:
        """Whether the node is on this machine."""
        return node in self.network.ports

    def output(self, name: str) -> IO[bytes]:
        """A raw file for what a program says."""
        return self.cleanup.enter_context((self.folder / name).open("wb"))

    @cached_property
    def drain_s(self) -> float:
        """How long after its end a program may still be running."""
        return drain_s(self.spec)

    def show_time(self) -> None:
        """Show the host that the run goes on: it ends a guest that shows it no longer."""
        (self.folder / "clock").write_text(str(self.timeline.now_us()))
