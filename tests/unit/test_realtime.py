# SPDX-License-Identifier: Apache-2.0
"""Backends in real time, without a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.backends.enclosure import enclose
from longfat.backends.realtime import docker_socket
from longfat.system.errors import RigError


def test_programs_share_the_machines_processes_only_with_docker() -> None:
    command = enclose(Path("/root-of-guest"), Path("/task"), ["program"])
    assert (command[0], command[-1]) == ("unshare", "program")
    assert {"--pid", "--mount", "--kill-child"} <= set(command)
    binds = {"docker.sock": Path("/run/docker.sock")}
    command = enclose(Path("/root-of-guest"), Path("/task"), ["program"], all_processes=True, binds=binds)
    assert "--pid" not in command
    assert command[command.index("/run/docker.sock") + 1] == "docker.sock"


def test_the_socket_is_dockers_own_unless_docker_host_names_another() -> None:
    assert docker_socket({}) == Path("/run/docker.sock")
    assert docker_socket({"DOCKER_HOST": "unix:///tmp/d"}) == Path("/tmp/d")
    with pytest.raises(RigError, match="DOCKER_HOST"):
        docker_socket({"DOCKER_HOST": "tcp://192.0.2.1:2375"})
