# SPDX-License-Identifier: Apache-2.0
"""Backends in real time without a run: what the machine's own kernel lacks, and which userland they use."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from conftest import cable_spec, delay_spec

from longfat.backends import virtual
from longfat.backends.enclosure import enclose
from longfat.backends.realtime import docker_socket, open_backend
from longfat.builds.image import ImageBuild
from longfat.guest import host_kernel
from longfat.guest.host_kernel import FEATURES, HostKernel
from longfat.spec.runspec import Egress, Interface, Link, Queue, RunSpec
from longfat.system.errors import RigError

EVERYTHING = HostKernel("6.1.0", frozenset({"reno", "cubic"}), frozenset(FEATURES), ())


def without(*features: str) -> HostKernel:
    return dataclasses.replace(EVERYTHING, features=EVERYTHING.features - set(features))


def with_sysctl(name: str, value: str) -> RunSpec:
    spec = cable_spec()
    sender, receiver = spec.nodes
    return dataclasses.replace(spec, nodes=(dataclasses.replace(sender, sysctls={name: value}), receiver))


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of /proc/sys."""
    monkeypatch.setattr(host_kernel, "sysctl_path", lambda name: tmp_path / name)
    for name in ("net.ipv4.tcp_sack", "net.ipv4.ip_forward"):
        (tmp_path / name).write_text("1\n")
    return tmp_path


RED = Egress(rate_bps=10**8, queue=Queue("red", None, 100_000))
RED_SPEC = dataclasses.replace(cable_spec(), links=(Link(Interface("client1", RED), Interface("server")),))


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize(
    ("kernel", "spec", "words"),
    [
        (without("netem"), delay_spec(), ["CONFIG_NET_SCH_NETEM", "a delay", "backend virtual has it"]),
        (without("red"), RED_SPEC, ["CONFIG_NET_SCH_RED"]),
        (EVERYTHING, delay_spec(cca="htcp"), ["'htcp'", "cubic, reno"]),
        (
            EVERYTHING,
            with_sysctl("net.ipv4.tcp_rate_halving", "1"),
            ["net.ipv4.tcp_rate_halving", "backend virtual has it"],
        ),
    ],
)
def test_each_missing_part_of_a_kernel_is_named(kernel: HostKernel, spec: RunSpec, words: list[str]) -> None:
    (reason,) = kernel.refuses(spec)
    assert [word for word in words if word not in reason] == []
    assert EVERYTHING.refuses(delay_spec()) == ()


def test_a_limit_of_the_whole_machine_is_never_set_but_required(settings: Path) -> None:
    limit = settings / "net.core.rmem_max"
    limit.write_text("212992\n")
    (reason,) = EVERYTHING.refuses(with_sysctl("net.core.rmem_max", "33554432"))
    assert "net.core.rmem_max is 212992" in reason and "sysctl -w net.core.rmem_max=33554432" in reason
    assert limit.read_text() == "212992\n"
    limit.write_text("33554432\n")
    assert EVERYTHING.refuses(with_sysctl("net.core.rmem_max", "33554432")) == ()


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
