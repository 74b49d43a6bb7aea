# SPDX-License-Identifier: Apache-2.0
"""Backends in real time, as far as they can be told without starting a run."""

from __future__ import annotations

import dataclasses
import socket
import threading
from pathlib import Path

import pytest
from conftest import cable_spec

from longfat.backends.enclosure import enclose
from longfat.backends.realtime import RealtimeBackend, containernet_checkout, docker_reasons, docker_socket
from longfat.guest.host_kernel import FEATURES, HostKernel
from longfat.spec.runspec import Node, Program, Web
from longfat.system.errors import RigError

KERNEL = HostKernel("6.1.0", frozenset({"reno"}), frozenset(FEATURES), ())


def backend(name: str, docker: Path | None = None) -> RealtimeBackend:
    folder = Path("/nowhere")
    return RealtimeBackend(name, KERNEL, "i" * 64, "l" * 64, folder, folder, folder, docker)


def test_the_pins_name_the_kernel_of_the_machine() -> None:
    pins = backend("mininet").pins()
    assert pins["backend"] == "mininet"
    assert pins["kernel"].startswith("6.1.0 ")


def test_hosts_from_an_image_need_containers() -> None:
    nodes = (dataclasses.replace(cable_spec().nodes[0], sysctls={}, image="web:1"), Node("server", "receiver"))
    spec = dataclasses.replace(cable_spec(), nodes=nodes)
    assert backend("mininet").refuses(spec) == (
        "backend mininet has no hosts from the image 'web:1'; backend containernet has",
    )
    assert backend("containernet", Path("/run/docker.sock")).refuses(spec) == ()


@pytest.mark.parametrize("name", ["mininet", "containernet"])
def test_web_traffic_and_programs_are_refused_in_real_time(name: str) -> None:
    web = Web("surf", "client1", "server", 10, "reno", 1_000_000)
    program = Program("own", "client1", "server", ("./send",), ("./receive",), 1_000_000)
    reasons = backend(name).refuses(dataclasses.replace(cable_spec(), web=(web,), programs=(program,)))
    for what in ("web traffic", Program.what):
        assert f"backend {name} has no {what}; backend virtual has" in reasons


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


@pytest.mark.parametrize(("body", "reasons"), [(b"OK", 0), (b"no", 1)])
def test_only_dockers_answer_counts(tmp_path: Path, body: bytes, reasons: int) -> None:
    path = tmp_path / "s"
    assert len(docker_reasons(path)) == 1  # nobody listens
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)

        def serve() -> None:
            channel, _ = server.accept()
            with channel:
                channel.recv(4096)
                channel.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        thread = threading.Thread(target=serve)
        thread.start()
        found = docker_reasons(path)
        thread.join()
    assert len(found) == reasons


def test_containernet_is_used_from_a_checkout(tmp_path: Path) -> None:
    assert containernet_checkout({}) is None
    with pytest.raises(RigError, match="LONGFAT_CONTAINERNET"):
        containernet_checkout({"LONGFAT_CONTAINERNET": str(tmp_path)})
    (tmp_path / "mininet").mkdir()
    (tmp_path / "mininet" / "net.py").write_text("class Containernet(Mininet):\n    pass\n")
    assert containernet_checkout({"LONGFAT_CONTAINERNET": str(tmp_path)}) == tmp_path
