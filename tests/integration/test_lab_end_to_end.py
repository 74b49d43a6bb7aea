# SPDX-License-Identifier: Apache-2.0
"""A lab from nothing to a figure and back: three emulated machines, made, prepared, measured on and destroyed.

By the commands that users give, in their order; each test goes on where the one before ended.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from lab_requirements import require_machines
from remote_study import processes

pytestmark = pytest.mark.infra

CHECKOUT = Path(__file__).parents[2]
HOSTS = {"receiver", "router", "sender"}
RECAP = r"^(\w+) +: (ok=.*)$"


class Lab:
    """Commands for one lab, and the results of its runs."""

    def __init__(self, folder: Path) -> None:
        self.labs = folder / "labs"
        self.folder = self.labs / "local"
        self.results = folder / "results"

    def __call__(self, *command: str, status: Collection[int] = (0,)) -> str:
        """Give a command, which must end with one of the statuses; what it printed."""
        environment = os.environ | {"LONGFAT_LABS": str(self.labs), "PYTHONPATH": str(CHECKOUT / "src")}
        done = subprocess.run(
            [sys.executable, "-m", "longfat", *command],
            cwd=CHECKOUT,
            env=environment | {"ANSIBLE_NOCOLOR": "1", "COLUMNS": "200"},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        said = done.stdout + done.stderr
        assert done.returncode in status, said[-6000:]
        return said

    def machines(self) -> list[int]:
        """Processes of the lab's machines."""
        return processes("-pidfile", str(self.folder))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    require_machines(*([] if shutil.which("tofu") else ["terraform"]))
    # Not below pytest's folders: a socket's path has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="lab-") as name:
        lab = Lab(Path(name))
        try:
            yield lab
        finally:
            if lab.machines():
                lab("lab", "down", "local", "--yes")


def test_up_makes_three_machines(lab: Lab) -> None:
    lab("lab", "up", "local", "--yes")
    inventory = json.loads((lab.folder / "inventory.json").read_text())
    assert {host["name"] for host in inventory["hosts"]} == HOSTS
    assert len(lab.machines()) == 3


def test_a_run_before_the_hosts_are_prepared_is_refused_with_the_command_that_prepares_them(lab: Lab) -> None:
    said = lab("reproduce", "_smoke", "--backend", "hosts", "--on", "local", "--results", str(lab.results), status={3})
    assert "./just lab provision local" in said


def test_provision_prepares_them_all(lab: Lab) -> None:
    lab("lab", "provision", "local", "--yes")


def test_a_second_provision_changes_nothing(lab: Lab) -> None:
    said = lab("lab", "provision", "local", "--yes")
    recap = {host: dict(re.findall(r"(\w+)=(\d+)", counts)) for host, counts in re.findall(RECAP, said, re.MULTILINE)}
    assert set(recap) == HOSTS
    assert {(counts["changed"], counts["failed"]) for counts in recap.values()} == {("0", "0")}, said[-6000:]


def test_the_smoke_study_runs_through_the_delay_element(lab: Lab) -> None:
    """Emulated machines may be too slow for a gate or two: then runs are invalid, the status 4, and that is right."""
    said = lab(
        "reproduce", "_smoke", "--backend", "hosts", "--on", "local", "--results", str(lab.results), status={0, 4}
    )
    assert "25 runs executed, 0 kept, 0 failed" in said
    lock = json.loads((lab.results / "lock.json").read_text())
    assert lock["pins"]["backend"] == "hosts"
    told = [json.loads(path.read_text()) for path in lab.results.glob("raw/delay.*/hosts.json")]
    assert told
    assert all(run["router"]["nodes"] == ["delay"] for run in told)
    assert all("longfat" in host["kernel"] for run in told for host in run.values())
    verdicts = json.loads((lab.results / "verdicts.json").read_text())["verdicts"]
    verdict = {item["claim"]: item["verdict"] for item in verdicts}["small-window-limits"]
    assert verdict in {"reproduced", "undecided"}


def test_down_leaves_nothing(lab: Lab) -> None:
    lab("lab", "down", "local", "--yes")
    assert lab.machines() == []
    assert not lab.folder.exists() or list(lab.folder.iterdir()) == []
    shutil.rmtree(lab.results)
