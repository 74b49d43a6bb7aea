# SPDX-License-Identifier: Apache-2.0
"""The program as a whole: completion and broken outputs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longfat.cli import app

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("command", ["check --schema study", "check _smoke", "plan nope"])
@pytest.mark.parametrize(("output", "status"), [("pipe", 141), ("/dev/full", 3)])
def test_output_that_goes_nowhere_ends_the_program_without_a_traceback(
    command: str, output: str, status: int, tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe, Path("/dev/full").open("wb") as full, (tmp_path / "errors").open("wb") as errors:
        done = subprocess.run(
            [sys.executable, "-m", "longfat", *command.split()],
            stdout=pipe if output == "pipe" else full,
            stderr=subprocess.STDOUT if command == "plan nope" else errors,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "LONGFAT_ROOT": str(ROOT)},
        )
    assert done.returncode == status
    text = (tmp_path / "errors").read_text()
    assert "Traceback" not in text
    assert status == 141 or command == "plan nope" or "No space left on device" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_that_the_shell_can_read(shell: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["completion", shell])
    assert result.exit_code == 0
    assert "_LONGFAT_COMPLETE=complete_" + shell in result.output
    if program := shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(result.output)
        assert subprocess.run([program, "-n", str(script)], check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("longfat plan k", ["kelly-2003"]),
        ("longfat re", ["reproduce", "report"]),
        ("longfat plan x --exp", ["--expanded"]),
        ("longfat plan mine --only win", ["window"]),
        ("longfat try vega", ["vegas"]),
    ],
)
def test_commands_options_and_studies_are_completed(tmp_path: Path, words: str, found: list[str]) -> None:
    for name in ("kelly-2003", "other"):
        (tmp_path / "experiments" / name).mkdir(parents=True)
        (tmp_path / "experiments" / name / "study.yaml").touch()
    assert CliRunner().invoke(app, ["new", "mine"], env={"LONGFAT_ROOT": str(tmp_path)}).exit_code == 0
    typed = {"_LONGFAT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    environment = os.environ | typed | {"PYTHONPATH": str(ROOT / "src"), "LONGFAT_ROOT": str(tmp_path)}
    done = subprocess.run([sys.executable, "-m", "longfat"], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == found, done.stderr
