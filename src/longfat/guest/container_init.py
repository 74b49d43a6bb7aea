# SPDX-License-Identifier: Apache-2.0
"""First process of a run on a host's own kernel, in the userland and with the folders of a guest.

Makes the hosts namespaces or containers. longfat.backends.enclosure has mounted everything, and ends all programs with
this process.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longfat.guest.network import Maker

TASK = Path("/task")
LATE_US = 1000  # timers of a machine are late by tens of microseconds, of a busy machine by hundreds


def main(image: str | None) -> None:
    """Execute /task/spec.json, and write the results to /task/raw.

    Hosts are containers of ``image``, unless their node names another image, or network namespaces if it is None.
    """
    maker: Maker
    if image is None:
        from longfat.guest.network import Namespaces

        maker = Namespaces(LATE_US)
    else:
        # First: Containernet's modules import each other, and only in this order.
        from longfat.guest.containers import Containers

        maker = Containers(image, LATE_US)
    from longfat.guest.run import run
    from longfat.spec.runspec import RunSpec

    spec = RunSpec.from_json((TASK / "spec.json").read_text())
    scratch = Path("/tmp/run")
    scratch.mkdir()
    run(spec, TASK / "raw", scratch, maker)


if __name__ == "__main__":
    # The interpreter starts isolated and without site, as in the guest.
    sys.path[:] = [
        "/run/containernet",  # only with the user's Containernet
        "/code",
        "/usr/lib/python3.11",
        "/usr/lib/python3.11/lib-dynload",
        "/usr/lib/python3/dist-packages",
    ]
    os.environ.update(DOCKER_HOST="unix:///run/docker.sock")  # for Containernet
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin:/run", HOME="/tmp", LC_ALL="C", TERM="dumb")
    main(sys.argv[1] if len(sys.argv) > 1 else None)
