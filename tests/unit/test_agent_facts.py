# SPDX-License-Identifier: Apache-2.0
"""What the agent on a host tells of it."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from longfat.backends.testbed.agent.facts import speed_bps, version
from longfat.backends.testbed.agent.serve import Lines
from longfat.backends.testbed.connect.code import MODULES, agent_code


@pytest.mark.parametrize(("text", "speed"), [("1000\n", 10**9), ("-1\n", None), ("", None)])
def test_a_card_without_a_known_speed_has_none(tmp_path: Path, text: str, speed: int | None) -> None:
    file = tmp_path / "speed"
    file.write_text(text)
    assert speed_bps(file) == speed


def test_a_program_that_is_not_there_has_no_version() -> None:
    assert version(("no-such-program", "--version")) is None
    assert version(("sh", "-c", "echo usage; echo tool 1.2 >&2; exit 1")) == "tool 1.2"


def test_bytes_become_lines_wherever_they_are_cut() -> None:
    taken: list[str] = []
    lines = Lines(taken.append)
    for data in (b'{"a"', b': 1}\n{"b": 2}\n{"c', b'": 3}\n'):
        lines.feed(data)
    assert taken == ['{"a": 1}', '{"b": 2}', '{"c": 3}']


def test_the_code_that_is_sent_is_the_same_each_time_and_holds_what_it_imports() -> None:
    code = agent_code()
    assert code == agent_code()
    names = set(zipfile.ZipFile(io.BytesIO(code)).namelist())
    assert {f"longfat/{name}" for name in MODULES if name.endswith(".py")} <= names
    assert {"longfat/backends/testbed/agent/part.py", "longfat/guest/run.py"} <= names
