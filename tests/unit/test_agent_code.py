# SPDX-License-Identifier: Apache-2.0
"""The agent of a host: its lines, its locks, losses of cards, and the guest's modules as processes from its code."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from longfat.backends.hosts import agent_code
from longfat.backends.testbed.agent import facts, serve
from longfat.backends.testbed.agent.serve import Agent, Lines
from longfat.guest import program
from longfat.guest.sysctls import GuestError


def test_bytes_become_lines_wherever_they_are_cut() -> None:
    taken: list[str] = []
    lines = Lines(taken.append)
    for data in (b'{"a"', b': 1}\n{"b": 2}\n{"c', b'": 3}\n'):
        lines.feed(data)
    assert taken == ['{"a": 1}', '{"b": 2}', '{"c": 3}']


def test_a_host_is_locked_against_other_runs_and_against_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt = tmp_path / "daily_lock"
    apt.touch(0o640)
    for name, value in (("STATE", tmp_path), ("APT_LOCK", apt), ("CLAIM_S", -1.0)):
        monkeypatch.setattr(serve, name, value)
    one, other = Agent(tmp_path), Agent(tmp_path)
    one._claim_host()
    with pytest.raises(GuestError, match="another run uses this host"):
        other._claim_host()
    one.end()
    with apt.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(GuestError, match="apt updates this host"):
            other._claim_host()
    assert apt.stat().st_mode & 0o777 == 0o640


def test_a_packet_that_a_card_loses_ends_the_run() -> None:
    before = {"lo": facts.lost_packets("lo"), "eth1": 4}
    facts.require_no_loss(before, {**before, "lo": facts.lost_packets("lo")})
    with pytest.raises(GuestError, match="eth1 2"):
        facts.require_no_loss(before, {**before, "eth1": 6})


def called(function: str, order: Any) -> subprocess.CompletedProcess[str]:
    command = program.command("importlib", function, order)
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=60)


@pytest.mark.parametrize("archived", [False, True])
def test_the_modules_of_the_guest_are_found_in_a_folder_and_in_an_archive(
    archived: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if archived:
        (tmp_path / "code.zip").write_bytes(agent_code())
        assert (tmp_path / "code.zip").read_bytes() == agent_code(), "it is the same each time"
        monkeypatch.setattr(program, "CODE", str(tmp_path / "code.zip"))
    assert called("import_module", "longfat.guest.echo").returncode == 0
    absent = called("import_module", "longfat.guest.absent")
    assert absent.returncode == 1
    assert "No module named 'longfat.guest.absent'" in absent.stderr
