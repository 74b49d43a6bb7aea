# SPDX-License-Identifier: Apache-2.0
"""What a machine's own kernel cannot do is refused with the missing option and the backend that can."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from conftest import cable_spec, delay_spec

from longfat.guest import host_kernel
from longfat.guest.host_kernel import FEATURES, HostKernel, needed_features
from longfat.runspec import Egress, Interface, Link, Queue, RunSpec

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


def test_a_cable_needs_veth_a_shaper_and_its_queue() -> None:
    assert needed_features(cable_spec()) == {"veth", "tbf", "pfifo"}


def test_a_path_with_delay_and_drop_needs_a_delay_element_and_a_filter_too() -> None:
    assert needed_features(delay_spec()) == {"veth", "tbf", "pfifo", "netem", "matchall"}


@pytest.mark.usefixtures("settings")
def test_a_kernel_that_has_all_of_it_refuses_nothing() -> None:
    assert EVERYTHING.refuses(delay_spec()) == ()


@pytest.mark.usefixtures("settings")
def test_a_missing_delay_element_is_named_with_its_option_and_the_backend_that_has_it() -> None:
    (reason,) = without("netem").refuses(delay_spec())
    assert "CONFIG_NET_SCH_NETEM" in reason
    assert "a delay" in reason
    assert "backend virtual has it" in reason


@pytest.mark.usefixtures("settings")
def test_an_algorithm_that_the_kernel_lacks_is_refused() -> None:
    (reason,) = EVERYTHING.refuses(delay_spec(cca="htcp"))
    assert "no congestion control 'htcp', there are cubic, reno" in reason


@pytest.mark.usefixtures("settings")
def test_a_red_queue_needs_red() -> None:
    queue = Egress(rate_bps=10**8, queue=Queue("red", None, 100_000))
    spec = dataclasses.replace(cable_spec(), links=(Link(Interface("client1", queue), Interface("server")),))
    (reason,) = without("red").refuses(spec)
    assert "CONFIG_NET_SCH_RED" in reason


@pytest.mark.usefixtures("settings")
def test_a_switch_of_the_projects_own_kernel_is_refused() -> None:
    (reason,) = EVERYTHING.refuses(with_sysctl("net.ipv4.tcp_rate_halving", "1"))
    assert "no sysctl net.ipv4.tcp_rate_halving" in reason
    assert "backend virtual has it" in reason


def test_a_limit_of_the_whole_machine_is_never_set_but_asked_for(settings: Path) -> None:
    limit = settings / "net.core.rmem_max"
    limit.write_text("212992\n")
    (reason,) = EVERYTHING.refuses(with_sysctl("net.core.rmem_max", "33554432"))
    assert "net.core.rmem_max is 212992 for the whole machine, the run needs 33554432" in reason
    assert "sysctl -w net.core.rmem_max=33554432" in reason
    assert limit.read_text() == "212992\n"


def test_a_limit_that_is_as_declared_is_no_reason(settings: Path) -> None:
    (settings / "net.core.rmem_max").write_text("33554432\n")
    assert EVERYTHING.refuses(with_sysctl("net.core.rmem_max", "33554432")) == ()


def test_modules_count_as_algorithms_because_a_socket_loads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tcp_htcp.ko", "tcp_bic.ko.xz", "tcp_diag.ko", "udp_diag.ko"):
        (tmp_path / name).touch()
    monkeypatch.setattr(host_kernel, "modules_folder", lambda: tmp_path)
    monkeypatch.setattr(host_kernel, "offered_ccas", lambda: ["cubic", "reno"])
    assert host_kernel.host_ccas() == {"cubic", "reno", "htcp", "bic"}
