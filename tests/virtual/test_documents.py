# SPDX-License-Identifier: Apache-2.0
"""Console blocks of tutorials and how-tos do what the pages say, and print what the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest
from console import LONGEST, ROOT, differences, executed

pytestmark = [pytest.mark.virtual, pytest.mark.slow]

PAGES = [page for page in sorted(ROOT.glob("docs/*.md")) if executed(page) and page not in LONGEST]  # `./just follow`


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says_and_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    assert differences(page, tmp_path) == []
