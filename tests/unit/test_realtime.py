# SPDX-License-Identifier: Apache-2.0
"""Backends in real time, without a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.backends import virtual
from longfat.backends.enclosure import enclose
from longfat.backends.realtime import docker_socket, open_backend
from longfat.builds.image import ImageBuild
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


def test_the_userland_needs_no_kernel_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "images/one/root"
    image.mkdir(parents=True)
    monkeypatch.setattr(virtual, "build_image", lambda **_: ImageBuild(image, "d" * 64, ""))
    monkeypatch.setattr(virtual, "build_own_kernel", lambda *_, **__: pytest.fail("a kernel is built"))
    monkeypatch.setattr(virtual, "open_root", lambda image, code, add, say: add(tmp_path) or tmp_path)
    backend = open_backend("mininet", lambda line: None)
    assert (backend.root / "code/longfat/guest/container_init.py").is_file()
