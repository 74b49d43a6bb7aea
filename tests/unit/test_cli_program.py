# SPDX-License-Identifier: Apache-2.0
"""The program as a whole: help, version, completion, broken outputs, and the options of its commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longfat.cli import app
from longfat.cli.paths import study_path
from longfat.cli.root import COMMANDS, load_command

ROOT = Path(__file__).parents[2]
NAMES = [name for group in COMMANDS.values() for name in group]


@pytest.mark.parametrize(
    "command", ["check --schema study", "--help", "completion bash", "check sandia-2003", "plan nope"]
)
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


def commands_below(command: Any) -> Iterator[Any]:
    """Yield a command, or the commands of a group."""
    yield from getattr(command, "commands", {"": command}).values()


def test_an_option_has_one_help_in_all_commands() -> None:
    helps: dict[str, set[str]] = {}
    for command in (one for name in NAMES for one in commands_below(load_command(name))):
        for option in (one for one in command.params if one.param_type_name == "option"):
            helps.setdefault(max(option.opts, key=len), set()).add(option.help)
    several = {"--backend", "--results"}  # one or several backends; the results of a study or of any
    assert {name for name, texts in helps.items() if len(texts) > 1} <= several


def test_reproduce_has_at_most_eight_options_and_help_one_line_for_a_command() -> None:
    options = [one for one in load_command("reproduce").params if one.param_type_name == "option"]
    assert len(options) <= 8
    lines = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output.splitlines()
    assert all(any(re.match(rf"  {name}  ", line) for line in lines) for name in NAMES)
    assert len(NAMES) <= 24 and max(map(len, lines)) <= 80 and len(lines) < 60


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


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("longfat plan k", ["kelly-2003"]),
        ("longfat re", ["reproduce", "report"]),
        ("longfat plan x --exp", ["--expanded"]),
    ],
)
def test_commands_options_and_studies_are_completed(tmp_path: Path, words: str, found: list[str]) -> None:
    for name in ("kelly-2003", "other"):
        (tmp_path / "experiments" / name).mkdir(parents=True)
        (tmp_path / "experiments" / name / "study.yaml").touch()
    typed = {"_LONGFAT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    environment = os.environ | typed | {"PYTHONPATH": str(ROOT / "src"), "LONGFAT_ROOT": str(tmp_path)}
    done = subprocess.run([sys.executable, "-m", "longfat"], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == found, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("reproduce", "nope"), "no study 'nope'"),
        (("reproduce", "tiny", "--backend", "virtul"), "did you mean 'virtual'?"),
        (("report", "tiny"), "`longfat run tiny` makes them"),
        (("verdicts", "tiny", "nope"), "no study 'nope'"),
        (("evidence", "fill"), "no study is named"),
        (("shell",), "no run or study is named"),
    ],
)
def test_a_wrong_name_is_an_error_with_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "experiments/tiny").mkdir(parents=True)
    shutil.copy(ROOT / "experiments/_smoke/study.yaml", tmp_path / "experiments/tiny/study.yaml")
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    result = CliRunner().invoke(app, list(arguments))
    assert (result.exit_code, message in result.stderr) == (2, True), result.output


def test_a_study_may_be_called_with_or_without_paper_before_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    for name in ("kelly-2003", "paper-own"):
        (tmp_path / "experiments" / name).mkdir(parents=True)
        (tmp_path / "experiments" / name / "study.yaml").touch()
    assert study_path("paper-kelly-2003") == study_path("kelly-2003") == tmp_path / "experiments/kelly-2003"
    assert study_path("own") == study_path("paper-own") == tmp_path / "experiments/paper-own"
