# SPDX-License-Identifier: Apache-2.0
"""Where Docker listens, and whether it answers. Must not start anything: the machine's owner does that."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Mapping
from pathlib import Path

from longfat.errors import RigError

DEFAULT = Path("/run/docker.sock")
SECONDS = 5.0


def docker_socket(environment: Mapping[str, str]) -> Path:
    """The socket that ``DOCKER_HOST`` names, else Docker's own place. Raises RigError when it is not a socket."""
    given = environment.get("DOCKER_HOST", "")
    if not given:
        return DEFAULT
    if not given.startswith("unix://"):
        message = "hosts are containers of this machine: Docker must be reached by a socket"
        raise RigError(message, where=f"DOCKER_HOST={given}", hint="unset DOCKER_HOST, or give unix:///PATH")
    return Path(given.removeprefix("unix://"))


def docker_reasons(path: Path) -> tuple[str, ...]:
    """Why Docker cannot be used; empty when it answers."""
    channel = socket.socket(socket.AF_UNIX)
    channel.settimeout(SECONDS)
    try:
        with channel:
            channel.connect(str(path))
            connection = http.client.HTTPConnection("docker")
            connection.sock = channel
            connection.request("GET", "/_ping")
            answer = connection.getresponse().read()
    except (OSError, http.client.HTTPException) as error:
        return (f"Docker does not answer at {path} ({error}); start it, or install it (images/packages-docker.txt)",)
    return () if answer == b"OK" else (f"the program that answers at {path} is not Docker",)
