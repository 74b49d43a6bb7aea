# SPDX-License-Identifier: Apache-2.0
"""Functions of the guest's modules as processes, from a folder and from the archive that a host of a lab gets."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from longfat.backends.testbed.connect.code import agent_code
from longfat.guest import program


def called(function: str, order: Any) -> subprocess.CompletedProcess[str]:
    command = program.command("importlib", function, order)
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=60)


@pytest.mark.parametrize("archived", [False, True])
def test_the_modules_of_the_guest_are_found_in_a_folder_and_in_an_archive(
    archived: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if archived:
        (tmp_path / "code.zip").write_bytes(agent_code())
        monkeypatch.setattr(program, "CODE", str(tmp_path / "code.zip"))
    assert called("import_module", "longfat.guest.echo").returncode == 0
    absent = called("import_module", "longfat.guest.absent")
    assert absent.returncode == 1
    assert "No module named 'longfat.guest.absent'" in absent.stderr


def test_the_function_gets_the_order_as_plain_data() -> None:
    assert "'dict' object has no attribute" in called("import_module", {"name": ["x", 1]}).stderr
