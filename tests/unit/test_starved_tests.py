# SPDX-License-Identifier: Apache-2.0
"""A test in real time that was starved in the end is a skip with its measured reason; any other fault is red."""

from __future__ import annotations

from pathlib import Path

import pytest
from scarce_backends import skip_if_starved

HEAD = "run_id,scenario,repetition,status,reason\n"
STARVED = 'a,one,1,invalid,"tasks waited for a CPU 27 % of the time, allowed 25 %"\n'
WRONG = 'b,two,1,invalid,"tasks waited for a CPU 27 % of the time, allowed 25 %; MTU of a is 1 B, declared 2 B"\n'


def results(tmp_path: Path, rows: str) -> Path:
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "exclusions.csv").write_text(HEAD + rows)
    return tmp_path


def test_starved_runs_alone_are_a_skip_that_says_how_much(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="too busy for real time: tasks waited for a CPU 27 % of the time"):
        skip_if_starved(results(tmp_path, STARVED))


@pytest.mark.parametrize("rows", ["", WRONG, STARVED + WRONG])
def test_anything_else_is_no_skip(tmp_path: Path, rows: str) -> None:
    folder = results(tmp_path, rows)
    skip_if_starved(folder)
    assert (folder / "dataset").is_dir()
