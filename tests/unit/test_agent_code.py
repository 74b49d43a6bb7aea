# SPDX-License-Identifier: Apache-2.0
"""Code that a host of a lab gets, and the guest's modules as processes from it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from longfat.backends.hosts import agent_code
from longfat.backends.testbed.agent.serve import Lines
from longfat.guest import program


def test_bytes_become_lines_wherever_they_are_cut() -> None:
    taken: list[str] = []
    lines = Lines(taken.append)
    for data in (b'{"a"', b': 1}\n{"b": 2}\n{"c', b'": 3}\n'):
        lines.feed(data)
    assert taken == ['{"a": 1}', '{"b": 2}', '{"c": 3}']


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
