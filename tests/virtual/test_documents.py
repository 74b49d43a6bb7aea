# SPDX-License-Identifier: Apache-2.0
"""Console blocks of README, tutorials and how-tos do what the pages say, and print what the pages show."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from console import agrees, executed, follow

pytestmark = [pytest.mark.virtual, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
FOLLOWED = ("own-algorithm",)  # by test_own_algorithm
PAGES = [page for page in sorted(ROOT.glob("docs/*.md")) if executed(page) and page.stem not in FOLLOWED]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which README was followed."""
    root = tmp_path_factory.mktemp("checkout")
    for folder in ("experiments", "kernels"):
        shutil.copytree(ROOT / folder, root / folder)
    done(ROOT / "README.md", root)
    return root


def done(page: Path, checkout: Path) -> None:
    for folder in ("experiments", "results"):  # each page creates the study
        shutil.rmtree(checkout / folder / "buffers", ignore_errors=True)
    for command, output in follow(page, checkout):
        assert agrees(command.output, output), f"$ {command.line}\n{output}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says_and_prints_what_it_shows(page: Path, checkout: Path) -> None:
    done(page, checkout)
