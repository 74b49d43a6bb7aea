# SPDX-License-Identifier: Apache-2.0
"""First process of a run on the host's own kernel: the run, in the userland and with the folders of a guest.

Owns the choice of what hosts are made of. Must not mount anything: longfat.backends.enclosure has, and what this
process started ends with it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longfat.guest.network import Maker

TASK = Path("/task")
LATE_US = 1000  # a machine's timers are late by tens of microseconds, a busy one's by some hundreds


def main(image: str | None) -> None:
    """Read /task/spec.json, run it, leave the results in /task/raw.

    Hosts are containers of ``image`` where their node names none, or network namespaces when it is None.
    """
    maker: Maker
    if image is None:
        from longfat.guest.network import Namespaces

        maker = Namespaces(LATE_US)
    else:
        # First of all: Containernet's modules import each other, and only this way round.
        from longfat.guest.containers import Containers

        maker = Containers(image, LATE_US)
    from longfat.guest.run import run
    from longfat.runspec import RunSpec

    spec = RunSpec.from_json((TASK / "spec.json").read_text())
    scratch = Path("/tmp/run")
    scratch.mkdir()
    run(spec, TASK / "raw", scratch, maker)


if __name__ == "__main__":
    # The interpreter starts isolated and without site, as in the guest.
    sys.path[:] = [
        "/run/containernet",  # there is something only where the user has Containernet
        "/code",
        "/usr/lib/python3.11",
        "/usr/lib/python3.11/lib-dynload",
        "/usr/lib/python3/dist-packages",
    ]
    os.environ.update(DOCKER_HOST="unix:///run/docker.sock")  # for Containernet, which asks the environment
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin:/run", HOME="/tmp", LC_ALL="C", TERM="dumb")
    main(sys.argv[1] if len(sys.argv) > 1 else None)
