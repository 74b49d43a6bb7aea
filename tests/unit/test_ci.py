# SPDX-License-Identifier: Apache-2.0
"""Continuous integration: every suite that has to be asked for has a caller, and none passes by skipping its tests."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
NIGHT = ROOT / ".ci/night"
WORKFLOW = ROOT / ".github/workflows/ci.yml"
STARTED = "".join((ROOT / name).read_text() for name in (".ci/night", ".ci/run", "Justfile"))


def test_the_workflow_starts_every_suite_of_the_night() -> None:
    done = subprocess.run([NIGHT, "nonesuch"], capture_output=True, text=True)
    assert done.returncode == 2
    suites = done.stderr.removeprefix("night ").split("|")
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    assert jobs["night"]["strategy"]["matrix"]["suite"] == [suite.strip() for suite in suites]
    for job, script in (("gate", ".ci/run"), ("night", ".ci/night ")):
        assert any(str(step.get("run")).startswith(script) for step in jobs[job]["steps"])


def test_every_test_that_is_left_out_by_default_runs_in_some_suite() -> None:
    left_out = re.findall(
        r"not (\w+)", re.findall(r'^addopts = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.M)[0]
    )
    assert len(left_out) >= 4
    assert [marker for marker in left_out if f"-m {marker}" not in STARTED] == []


def test_every_need_of_a_test_is_required_by_some_suite() -> None:
    sources = [
        path.read_text() for path in (ROOT / "tests").rglob("*.py") if not path.is_relative_to(ROOT / "tests/unit")
    ]
    needs = {need for text in sources for need in re.findall(r'(?:refuse|require_packages)\("(\w+)"', text)}
    required = {need for words in re.findall(r'LONGFAT_REQUIRE="?([a-z0-9 ]+)', STARTED) for need in words.split()}
    assert {"docker", "infra", "terraform"} <= needs
    assert needs - required == set()
