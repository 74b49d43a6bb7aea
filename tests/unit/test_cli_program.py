# SPDX-License-Identifier: Apache-2.0
"""The program as a whole: help, version, completion, and the generated reference."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from longfat.cli import app
from longfat.cli_options import PROFILES
from longfat.cli_reference import reference
from longfat.manifest import profiles

ROOT = Path(__file__).parents[2]
HEAVY = {"yaml", "numpy", "pyarrow", "longfat.plan"}


@pytest.mark.parametrize("command", ["schema", "--help", "completion bash", "check sandia-2003", "plan nope"])
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
    told = (tmp_path / "errors").read_text()
    assert "Traceback" not in told
    assert status == 141 or command == "plan nope" or "No space left on device" in told


def test_every_command_that_a_recipe_starts_is_there() -> None:
    root: Any = typer.main.get_command(app)
    started = set(re.findall(r"^    @?longfat ([a-z]+)", (ROOT / "Justfile").read_text(), re.M))
    assert started - {*root.commands} == set()


@pytest.mark.skipif(shutil.which("just") is None, reason="just is not installed")
def test_just_prints_the_program_s_own_error_alone(tmp_path: Path) -> None:
    program = tmp_path / "longfat"
    program.write_text("#!/bin/sh\necho 'error: no study' >&2\nexit 2\n")
    program.chmod(0o755)
    justfile = (ROOT / "Justfile").read_text().replace('justfile_directory() / ".venv/bin:"', f'"{tmp_path}:"')
    (tmp_path / "Justfile").write_text(justfile)
    command = ["just", "--justfile", str(tmp_path / "Justfile"), "reproduce", "nope"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: no study\n")


def test_the_reference_of_commands_is_that_of_the_program() -> None:
    assert (ROOT / "docs/commands.md").read_text(encoding="utf-8") == reference()


def test_the_profiles_of_the_command_line_are_those_of_the_manifest() -> None:
    assert profiles.PROFILES == PROFILES


def test_the_version_names_program_commit_kernels_and_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path))
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0, result.output
    first, commit, kernels, image = result.output.splitlines()
    assert re.fullmatch(r"longfat \d+\.\d+\.\d+\S*", first)
    assert commit.startswith("commit: ")
    assert kernels.startswith("kernels: linux-6.12 not built yet")
    assert image == "image: not built yet"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_that_the_shell_can_read(shell: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["completion", shell])
    assert result.exit_code == 0
    assert "_LONGFAT_COMPLETE=complete_" + shell in result.output
    if program := shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(result.output)
        assert subprocess.run([program, "-n", str(script)], check=False).returncode == 0


def test_studies_are_completed_and_nothing_heavy_is_imported(tmp_path: Path) -> None:
    for name in ("kelly-2003", "other"):
        (tmp_path / "experiments" / name).mkdir(parents=True)
        (tmp_path / "experiments" / name / "study.yaml").touch()
    words = {"_LONGFAT_COMPLETE": "complete_bash", "COMP_WORDS": "longfat plan k", "COMP_CWORD": "2"}
    environment = os.environ | words | {"PYTHONPATH": str(ROOT / "src"), "LONGFAT_ROOT": str(tmp_path)}
    code = f"import longfat.cli, sys\ntry: longfat.cli.main()\nfinally: print({HEAVY} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["kelly-2003", "set()"], done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("reproduce", "nope"), "no study 'nope'"),
        (("reproduce", "tiny", "--backend", "virtul"), "did you mean 'virtual'?"),
        (("run", "tiny", "--stack", "modem"), "did you mean 'modern'?"),
        (("plan", "tiny", "--profile", "quik"), "did you mean 'quick'?"),
        (("report", "tiny"), "`longfat run tiny` makes them"),
        (("verdicts", "tiny", "nope"), "no study 'nope'"),
    ],
)
def test_a_wrong_name_is_told_before_anything_heavy_is_imported(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "experiments/tiny").mkdir(parents=True)
    (tmp_path / "experiments/tiny/study.yaml").touch()
    code = (
        f"import sys\nfrom typer.testing import CliRunner\nfrom longfat.cli import app\n"
        f"result = CliRunner().invoke(app, {list(arguments)!r})\n"
        f"print(result.exit_code, {HEAVY} & set(sys.modules))\nprint(result.stderr)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "LONGFAT_ROOT": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("2 set()"), done.stdout + done.stderr
    assert message in done.stdout


def test_a_study_may_be_called_with_or_without_paper_before_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longfat.verbs.places import study_path

    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    for name in ("kelly-2003", "paper-own"):
        (tmp_path / "experiments" / name).mkdir(parents=True)
        (tmp_path / "experiments" / name / "study.yaml").touch()
    assert study_path("paper-kelly-2003") == study_path("kelly-2003") == tmp_path / "experiments/kelly-2003"
    assert study_path("own") == study_path("paper-own") == tmp_path / "experiments/paper-own"
