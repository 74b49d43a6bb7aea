# SPDX-License-Identifier: Apache-2.0
"""Studies from the text of a manifest with some changes, loaded, planned, or refused; the head that many have."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from longfat.data.study_folder import StudyFolder
from longfat.plan import Plan, build_plan
from longfat.spec.runspec import RunSpec
from longfat.study.load import load_study
from longfat.study.study import Study
from longfat.system.errors import Problem, StudyError

Change = tuple[str, str]
HEAD = """\
format: 2
study: example
title: An example
algorithms: {standard: {cca: reno}}
experiments:
"""


def changed(text: str, *changes: Change) -> str:
    """Replace the first occurrence of each text, which must be there."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def study_of(folder: Path, text: str, *changes: Change) -> Study:
    """Load a manifest with some changes."""
    path = folder / "study.yaml"
    path.write_text(changed(text, *changes), encoding="utf-8")
    return load_study(path)


def plan_of(
    folder: Path, text: str, *changes: Change, profile: str = "paper", backend: str = "virtual", **pins: str
) -> Plan:
    """Plan a study."""
    return build_plan(study_of(folder, text, *changes), profile=profile, pins={"backend": backend, **pins})


def spec_of(folder: Path, text: str, *changes: Change, profile: str = "paper", backend: str = "virtual") -> RunSpec:
    """Plan a study and return its only run."""
    (run,) = plan_of(folder, text, *changes, profile=profile, backend=backend).runs
    return run.spec


def refused(read: Callable[[], object]) -> tuple[Problem, ...]:
    """Return the problems of what must be refused."""
    with pytest.raises(StudyError) as caught:
        read()
    return caught.value.problems


def problems_of(folder: Path, text: str, *changes: Change) -> tuple[Problem, ...]:
    """Load a manifest that must be refused, and return its problems."""
    return refused(lambda: study_of(folder, text, *changes))


def keys_of(folder: Path, text: str, *changes: Change) -> list[str | None]:
    """Return the keys of the problems of a manifest that must be refused."""
    return [problem.key for problem in problems_of(folder, text, *changes)]


def warnings_of(folder: Path, text: str, *changes: Change) -> list[tuple[int | None, str | None]]:
    """Return line and key of each warning about a study in a folder with its name."""
    own = folder / re.findall("^study: (.*)$", text, re.MULTILINE)[0]
    own.mkdir(exist_ok=True)
    study_of(own, text, *changes)
    return [(one.line, one.key) for one in StudyFolder(own).warnings]
