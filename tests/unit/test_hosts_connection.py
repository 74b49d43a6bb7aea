# SPDX-License-Identifier: Apache-2.0
"""Failing connections, with a stub of ssh; the command line of the real ssh; the clocks of hosts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longfat.backends import hosts
from longfat.backends.testbed.connect.connection import (
    EXCHANGES,
    Clock,
    Connections,
    HostFailed,
    read_clock,
    ssh_command,
)
from longfat.backends.testbed.inventory import Host
from longfat.system.errors import RigError

SENDER = Host("sender", "sender", "192.0.2.1", 2222, "root", ("one",), "")


def refused_by(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> HostFailed:
    """The error of a connection whose ssh does what the script says."""
    ssh = folder / "ssh"
    ssh.write_text(f"#!/bin/sh\n{script}\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    with pytest.raises(HostFailed) as caught, Connections([SENDER], folder / "mine", b"code"):
        pass
    return caught.value


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!", "key"),
        ("root@192.0.2.1: Permission denied (publickey).", "log in"),
        ("sudo: a password is required", "root"),
    ],
)
def test_what_ssh_says_becomes_a_reason_with_the_host_and_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, reason: str
) -> None:
    error = refused_by(tmp_path, monkeypatch, f"echo '{said}' >&2; exit 255")
    assert error.where == "sender" and reason in error.message and said in error.message


def test_ssh_asks_nothing_and_knows_the_hosts_of_the_lab_only(tmp_path: Path) -> None:
    command = ssh_command(SENDER, tmp_path)
    assert {"BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={tmp_path}/known_hosts"} <= set(command)
    assert not {"-i", "IdentitiesOnly=yes"} & set(command)
    (tmp_path / "id_ed25519").touch()
    assert {str(tmp_path / "id_ed25519"), "IdentitiesOnly=yes"} <= set(ssh_command(SENDER, tmp_path))


DELAY = st.integers(min_value=0, max_value=10**9)


@given(st.integers(-(10**12), 10**12), st.lists(st.tuples(DELAY, DELAY), min_size=EXCHANGES, max_size=EXCHANGES))
def test_the_true_offset_is_within_the_uncertainty(offset: int, delays: list[tuple[int, int]]) -> None:
    def exchanges() -> Iterator[tuple[int, int, int]]:
        for k, (there, back) in enumerate(delays):
            sent = k * 10**10
            yield sent, sent + there + offset, sent + there + back

    following = exchanges()
    clock = read_clock(lambda: next(following))
    assert abs(clock.offset_ns - offset) <= clock.uncertainty_ns + 1
    assert clock.uncertainty_ns == min(there + back for there, back in delays) // 2


def test_a_commander_too_far_from_a_host_is_refused_before_any_run(monkeypatch: pytest.MonkeyPatch) -> None:
    trips_ms = {"near": 19, "far": 21}
    monkeypatch.setattr(Connections, "clock", lambda self, name: Clock(0, trips_ms[name] * 500_000))
    connections = Connections([], Path(), b"")
    assert hosts._read_clocks(connections, ("near",)).keys() == {"near"}
    with pytest.raises(RigError) as caught:
        hosts._read_clocks(connections, ("near", "far"))
    assert caught.value.where == "far" and "router" in str(caught.value.hint)
