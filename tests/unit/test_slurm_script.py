# SPDX-License-Identifier: Apache-2.0
"""The script for sbatch(1): what blanks and quotes in paths and variables become."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from longfat.cluster.protocol import Work
from longfat.cluster.slurm import script_of


@pytest.mark.parametrize("name", ["plain", "two words", "it's", 'a "quoted" $HOME'])
def test_a_path_is_one_word_to_sbatch_and_to_the_shell(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / name
    root.mkdir()
    monkeypatch.setenv("LONGFAT_ROOT", str(root))
    text = script_of(Work("name", root / "results", ("--shard", "auto"), root / "work", 2, 1, 1 << 30, 600))
    options = dict(re.findall(r"^#SBATCH --([a-z-]+)=(.*)$", text, re.M))
    assert shlex.split(options["output"]) == [f"{root}/work/task-%a.log"]
    exported = "\n".join(line for line in text.splitlines() if "; export " in line or line.startswith("cd "))
    shown = subprocess.run(
        ["sh", "-c", f'{exported}\nprintf %s "$LONGFAT_ROOT"; pwd -P'],
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == f"{root}{root}\n"


def test_a_node_keeps_its_own_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGFAT_CACHE", "/here it is")
    text = script_of(Work("name", tmp_path, (), tmp_path, 1, 1, 1 << 30, 600))
    (line,) = (line for line in text.splitlines() if line.startswith("LONGFAT_CACHE="))
    for environment, expected in (({}, "/here it is"), ({"LONGFAT_CACHE": "/of the node"}, "/of the node")):
        command = ["sh", "-c", f'{line}\nprintf %s "$LONGFAT_CACHE"']
        assert subprocess.run(command, env=environment, capture_output=True, text=True).stdout == expected
