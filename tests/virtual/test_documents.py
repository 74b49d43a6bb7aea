# SPDX-License-Identifier: Apache-2.0
"""Console blocks of README, tutorials and how-tos do what the pages say, and print what the pages show."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from console import agrees, executed, follow

pytestmark = pytest.mark.virtual

ROOT = Path(__file__).parents[2]
PAGES = [page for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))] if executed(page)]
SHARED = ("_smoke",)  # results that several pages start from


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for results that are made once."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture
def checkout(tmp_path: Path, shared: Path) -> Path:
    """A checkout without results, except for those that other pages have made."""
    for folder in ("experiments", "kernels"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "results").mkdir()
    for name in SHARED:
        if (shared / name).exists():
            shutil.copytree(shared / name, tmp_path / "results" / name)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says_and_prints_what_it_shows(page: Path, checkout: Path, shared: Path) -> None:
    for command, output in follow(page, checkout):
        assert agrees(command.output, output), f"$ {command.line}\n{output}"
    for name in SHARED:
        if (checkout / "results" / name).exists() and not (shared / name).exists():
            shutil.copytree(checkout / "results" / name, shared / name)
