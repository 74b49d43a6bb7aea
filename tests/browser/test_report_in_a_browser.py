# SPDX-License-Identifier: Apache-2.0
"""The report in a browser: five questions by their click paths, the explorer, phones, print, axe."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit"))

from axe_playwright_python.sync_playwright import Axe
from fabricated_results import CLAIMS, judge_study, write_results, write_study
from playwright.sync_api import Browser, Page, expect, sync_playwright

from longfat.data.opened import draw_all
from longfat.data.study_folder import StudyFolder, studies_in
from longfat.dataset.build import build_dataset
from longfat.report.front import write_front
from longfat.report.report import write_report

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


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. While it is there, Playwright has an event loop in this thread: it ends with this file."""
    if CHROMIUM is None:
        assert "browser" not in os.environ.get("LONGFAT_REQUIRE", ""), "chromium is not there"
        pytest.skip("needs chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
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


REPORT, FRONT = "small/report.html", "index.html"
pytestmark = pytest.mark.browser


@pytest.fixture
def report(page: Page, results: Path) -> Page:
    """The report, just opened."""
    page.goto((results / REPORT).as_uri())
    return page


def test_the_report_opens_in_two_seconds_and_leads_by_keyboard_to_the_findings(page: Page, results: Path) -> None:
    assert (results / REPORT).stat().st_size < 300_000
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # independent of other load on the machine
    page.goto((results / REPORT).as_uri())
    expect(page.get_by_role("heading", name="The answer")).to_be_visible()
    spent = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    assert 0 < spent["TaskDuration"] < 2
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the findings")).to_be_focused()


def test_the_findings_lead_to_the_claims_with_a_verdict_and_to_the_causes(report: Page) -> None:
    expect(report.locator(".answer")).to_contain_text("whether a larger window gives more")
    report.locator(".legend").get_by_role("link", name="reproduced").first.click()
    visible = [one for one in report.locator(".claim").all() if one.is_visible()]
    assert [one.get_attribute("id") for one in visible] == ["claim-window-limits", "claim-halves", "claim-product"]
    report.get_by_role("link", name="Causes").click()
    expect(report.locator(".cause")).to_contain_text("the paper's unit is a slip")


def test_a_figure_leads_to_its_runs_their_settings_and_their_command(report: Page) -> None:
    report.locator("#fig-2").get_by_role("link", name="Runs of one-drop").click()
    expect(report.locator("#explorer")).to_have_attribute("data-ready", "yes")
    expect(report.locator("#explorer .count")).to_have_text("3 of 15 runs")
    run = report.locator("#explorer .chosen details").first
    run.locator("summary").click()
    expect(run).to_contain_text(re.compile(r"\./just again [0-9a-f]{12};"))
    expect(run).to_contain_text("dropped: packet 100 after 1.5 s")
    folder = run.get_by_role("link", name="raw/one-drop.r01").get_attribute("href")
    assert folder is not None
    assert Path(report.url.removeprefix("file://").split("#")[0]).parent.joinpath(folder).is_dir()


def test_the_explorer_draws_the_samples_zooms_and_keeps_its_view_in_the_address(report: Page, results: Path) -> None:
    report.goto((results / REPORT).as_uri() + "#explore=delay")
    report.locator("#explorer[data-ready=yes]").wait_for()
    report.locator("#explorer select[name=window]").select_option(label="8 MiB")
    expect(report.locator("#explorer .count")).to_have_text("6 of 15 runs")
    box = report.locator("#explorer .u-over").first.bounding_box()
    assert box is not None
    report.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 40)
    values = report.locator("#explorer .u-legend").first.locator(".u-value").all_inner_texts()
    assert float(values[0]) == pytest.approx(0.9, abs=0.15)
    assert all(float(value) > 1 for value in values[1:] if value != "-")
    report.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
    report.mouse.down()
    report.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40, steps=5)
    report.mouse.up()
    expect(report).to_have_url(re.compile(r"&t=0\.\d+-0\.\d+"))
    report.get_by_label("retransmitted (segments)").check()
    view = report.url
    assert "show=cwnd,rtt,retrans,acked,queue" in view
    report.goto("about:blank")
    report.goto(view)
    report.locator("#explorer[data-ready=yes]").wait_for()
    assert report.url == view


@pytest.mark.parametrize("name", [REPORT, FRONT])
def test_a_page_fits_every_window_and_axe_finds_nothing(page: Page, results: Path, name: str) -> None:
    page.goto((results / name).as_uri() + ("#explore=delay" if name == REPORT else ""))
    if name == REPORT:
        page.locator("#explorer[data-ready=yes]").wait_for()
    for width in (1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page)
    assert [(fault["id"], fault["nodes"][0]["html"]) for fault in found.response["violations"]] == []


def test_it_prints_on_few_pages_without_the_explorer(report: Page) -> None:
    pages = len(re.findall(rb"/Type /Page\b", report.pdf(format="A4")))
    assert 1 <= pages <= 4
    report.emulate_media(media="print")
    expect(report.locator("#explore")).to_be_hidden()
