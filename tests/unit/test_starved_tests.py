# SPDX-License-Identifier: Apache-2.0
"""A test in real time that was starved in the end is a skip with its measured reason; any other fault is red."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import pytest
from scarce_backends import skip_if_busy, skip_if_starved, skip_if_waiting

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


def ended(status: int, said: str) -> CompletedProcess[str]:
    return CompletedProcess([], status, said, "")


def test_a_command_that_waits_for_a_calm_machine_until_its_time_is_over_is_a_skip() -> None:
    said = "one: tasks waited for a CPU 94 % of the time, allowed 25 %; it is repeated when the machine is calm"
    with pytest.raises(pytest.skip.Exception, match=r"CPU 94 % of the time, allowed 25 %$"):
        skip_if_waiting(ended(124, said))


@pytest.mark.parametrize(("status", "said"), [(124, "1 of 9 runs"), (1, "tasks waited for a CPU 94 % of the time")])
def test_a_command_that_hangs_or_fails_is_no_skip(status: int, said: str) -> None:
    assert skip_if_waiting(ended(status, said)) is None  # type: ignore[func-returns-value]


class Pressure:
    """A file like /proc/pressure/cpu, whose total grows with each look."""

    def __init__(self, file: Path, grows_us: int) -> None:
        self.file, self.grows_us, self.looks = file, grows_us, 0
        self.look(0)

    def look(self, _: float) -> None:
        self.file.write_text(f"some avg10=98.58 avg60=83.77 avg300=9.12 total={self.looks * self.grows_us}\n")
        self.looks += 1


def test_a_machine_whose_tasks_wait_all_the_time_is_a_skip_that_says_how_much(tmp_path: Path) -> None:
    busy = Pressure(tmp_path / "cpu", 2_000_000)
    with pytest.raises(pytest.skip.Exception, match=r"tasks waited for a CPU 98.58 % of the last 10 s"):
        skip_if_busy(busy.file, busy.look)


def test_a_calm_machine_costs_a_test_in_real_time_one_look(tmp_path: Path) -> None:
    calm = Pressure(tmp_path / "cpu", 10_000)
    skip_if_busy(calm.file, calm.look)
    assert calm.looks == 2
