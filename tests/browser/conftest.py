# SPDX-License-Identifier: Apache-2.0
"""A report of a fabricated study with every kind of verdict, opened in a real browser, without a network."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit"))

from fabricated_results import CLAIMS, judge_study, write_results, write_study
from playwright.sync_api import Browser, Page, sync_playwright

from longfat.data.opened import draw_all
from longfat.dataset.build import build_dataset
from longfat.report.front import write_front
from longfat.report.report import write_report
from longfat.studies import StudyFolder, studies_in

CHROMIUM = shutil.which("chromium")
MORE_CLAIMS = """\
  - id: far-too-much
    artifact: fig-1
    statement: The small window gives 9 Gb/s.
    paper: {value: 9000, unit: Mb/s, where: Results}
    relation: goodput[delay, standard, window=1 MiB] = 9000
  - id: product
    statement: A path of 1 Gb/s with 30 ms holds 3.75 MB.
    paper: {value: 3.75, unit: MB, where: Background}
    relation: bandwidth_delay_product(rate=1 Gbit/s, rtt=30 ms) = 3.75
"""
README = """\
# small

A. Author, *A small study*, 2003.

The paper asks whether a larger window gives more.

## Results
**`far-too-much`** (273 Mb/s, not 9000). The window is the limit, and the paper's unit is a slip.
"""


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder ``results`` with the report of the study and the front page."""
    root = tmp_path_factory.mktemp("browser")
    study = write_study(root, CLAIMS + MORE_CLAIMS, repetitions=3)
    (study / "README.md").write_text(README, encoding="utf-8")
    small = root / "results" / "small"
    write_results(study, small)
    build_dataset(small)
    judge_study(small, study)
    draw_all(small, StudyFolder(study))
    write_report(small, StudyFolder(study))
    write_front(root / "results", studies_in(root / "experiments"))
    return root / "results"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    if CHROMIUM is None:
        assert "browser" not in os.environ.get("LONGFAT_REQUIRE", ""), "chromium is not there"
        pytest.skip("needs chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def window(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A page that may load nothing from a network, and the faults of its scripts."""
    faults: list[str] = []
    with browser.new_context(offline=True) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        yield page, faults


@pytest.fixture
def page(window: tuple[Page, list[str]]) -> Iterator[Page]:
    """A page of 1400 pixels on which no script may fail."""
    page, faults = window
    page.set_viewport_size({"width": 1400, "height": 900})
    yield page
    assert faults == []
    page.goto("about:blank")
