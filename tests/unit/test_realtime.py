# SPDX-License-Identifier: Apache-2.0
"""Backends in real time, as far as they can be told without starting a run."""

from __future__ import annotations

import dataclasses
import socket
import threading
from pathlib import Path

import pytest
from conftest import cable_spec

from longfat.backends.enclosure import enclosed
from longfat.backends.realtime import RealtimeBackend, containernet_checkout, docker_reasons, docker_socket
from longfat.errors import RigError
from longfat.guest.host_kernel import FEATURES, HostKernel
from longfat.runspec import Node, Program, Web

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
def test_web_traffic_is_refused_in_real_time(name: str) -> None:
    web = Web("surf", "client1", "server", 10, "reno", 1_000_000)
    reasons = backend(name).refuses(dataclasses.replace(cable_spec(), web=(web,)))
    assert f"backend {name} has no web traffic; backend virtual has" in reasons


@pytest.mark.parametrize("name", ["mininet", "containernet"])
def test_a_program_is_refused_in_real_time(name: str) -> None:
    one = Program("own", "client1", "server", ("./send",), ("./receive",), 1_000_000)
    reasons = backend(name).refuses(dataclasses.replace(cable_spec(), programs=(one,)))
    assert f"backend {name} has no {Program.what}; backend virtual has" in reasons


def test_programs_without_docker_have_processes_of_their_own() -> None:
    command = enclosed(Path("/root-of-guest"), Path("/task"), ["program"])
    assert command[0] == "unshare"
    assert {"--pid", "--mount", "--kill-child"} <= set(command)
    assert command[-1] == "program"


def test_programs_with_docker_see_the_machines_processes_and_its_socket() -> None:
    shown = {"docker.sock": Path("/run/docker.sock")}
    command = enclosed(Path("/root-of-guest"), Path("/task"), ["program"], all_processes=True, shown=shown)
    assert "--pid" not in command
    assert command[command.index("/run/docker.sock") + 1] == "docker.sock"


def test_the_socket_is_dockers_own_unless_docker_host_names_another() -> None:
    assert docker_socket({}) == Path("/run/docker.sock")
    assert docker_socket({"DOCKER_HOST": "unix:///tmp/d"}) == Path("/tmp/d")


def test_docker_on_another_machine_is_refused() -> None:
    with pytest.raises(RigError, match="DOCKER_HOST"):
        docker_socket({"DOCKER_HOST": "tcp://192.0.2.1:2375"})


def test_a_daemon_that_is_not_there_is_a_reason_with_the_way_out(tmp_path: Path) -> None:
    (reason,) = docker_reasons(tmp_path / "none")
    assert "Docker does not answer" in reason
    assert "packages-docker.txt" in reason


@pytest.mark.parametrize(("body", "reasons"), [(b"OK", 0), (b"no", 1)])
def test_only_dockers_answer_counts(tmp_path: Path, body: bytes, reasons: int) -> None:
    path = tmp_path / "s"
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


def test_containernet_is_used_where_a_checkout_of_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "mininet").mkdir()
    (tmp_path / "mininet" / "net.py").write_text("class Containernet(Mininet):\n    pass\n")
    assert containernet_checkout({"LONGFAT_CONTAINERNET": str(tmp_path)}) == tmp_path
    assert containernet_checkout({}) is None


def test_a_folder_without_containernet_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="LONGFAT_CONTAINERNET"):
        containernet_checkout({"LONGFAT_CONTAINERNET": str(tmp_path)})
