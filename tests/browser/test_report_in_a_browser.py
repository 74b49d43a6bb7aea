# SPDX-License-Identifier: Apache-2.0
"""The report in a browser: six questions in at most two clicks each, the explorer, phones, print, dark mode, axe."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit"))

from axe_playwright_python.sync_playwright import Axe
from evidenced import add, repository
from fabricated_results import CLAIMS, make_results, write_study
from playwright.sync_api import Browser, Page, expect, sync_playwright
from test_evaluate import FOLDER as BCP133
from test_evaluate import invented
from test_headlines import HEADLINES

from longfat.cli.console import Output
from longfat.cli.watch import watch
from longfat.data.opened import draw_all
from longfat.data.study_folder import StudyFolder, studies_in
from longfat.evidence.baselines import FOLDER, read_baselines
from longfat.evidence.judged import evidence_of
from longfat.execute.results import open_results
from longfat.report.card.card import UNKNOWN
from longfat.report.card.document import card_document
from longfat.report.card.page import draw_card
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
    with pytest.MonkeyPatch.context() as patch:
        repository(root, patch)
        study = write_study(root, CLAIMS + MORE_CLAIMS, repetitions=3)
        small, folder = root / "results" / "small", StudyFolder(study)
        make_results(study, small, judged=True)
        add(small)
    draw_all(small, folder)
    (study / "README.md").write_text(README, encoding="utf-8")
    (study / "headlines.yaml").write_text(HEADLINES, encoding="utf-8")
    shutil.rmtree(root / "experiments" / "_canary")
    evidence = evidence_of(folder, read_baselines(root / FOLDER))
    assert evidence is not None
    write_report(small, folder, evidence, (), dataclasses.replace(evidence, stack="linux-2.4", grounds=()))
    write_front(root / "results", studies_in(root / "experiments"))
    rules = StudyFolder(BCP133).assuming({UNKNOWN: "htcp"})
    (root / "results" / CARD).parent.mkdir(parents=True)
    draw_card(invented("mine", card_document(rules)), card_document(rules), (root / "results" / CARD).parent)
    empty = root / "results" / "without-runs"
    make_results(study, empty, omit=lambda run: True, reported=True)
    write_report(empty, folder, evidence)
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


REPORT, FRONT, CARD = "small/report.html", "index.html", "bcp133/cards/mine.html"
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
    expect(page.locator(".question")).to_be_visible()
    spent = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    assert 0 < spent["TaskDuration"] < 2
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the findings")).to_be_focused()
    assert page.evaluate("document.documentElement.scrollHeight") <= 6000


def test_the_first_screen_says_what_was_asked_and_answered(report: Page) -> None:
    for place in (".question", ".answer", "#headlines", "#matrix", "#chart", ".trusted"):
        box = report.locator(place).bounding_box()
        assert box is not None and box["y"] < 900, place
    expect(report.locator(".question")).to_have_text("Does a larger window help?")
    expect(report.locator("#headlines")).to_contain_text("supported")
    expect(report.locator(".trusted")).to_contain_text("./just again small --sample")


def test_what_held_is_one_click_away_and_the_number_is_the_number_of_claims(report: Page) -> None:
    link = report.locator("#matrix .legend a.reproduced")
    (number,) = re.findall(r"\d+", link.inner_text())
    assert int(number) == report.locator("#matrix .dot .own.reproduced").count()
    link.click()
    visible = [one for one in report.locator(".claim").all() if one.is_visible()]
    assert len(visible) == int(number)
    report.locator(".pill-checks").click()
    assert [one.get_attribute("id") for one in report.locator(".claim").all() if one.is_visible()] == ["claim-product"]


def test_what_did_not_hold_is_one_click_away_with_its_cause(report: Page) -> None:
    report.get_by_role("link", name="Causes").click()
    expect(report.locator(".cause")).to_contain_text("the paper's unit is a slip")
    expect(report.locator(".cause")).to_contain_text("9 Gb/s")


def test_a_dot_opens_interval_limit_cause_figure_and_in_a_second_click_the_runs(report: Page) -> None:
    report.locator("#matrix .dot[href='#claim-far-too-much']").click()
    panel = report.locator("#beside")
    expect(panel).to_contain_text(re.compile(r"Measured .* Mb/s \(n = 1; 2 more .*\), allowed 8,550 to 9,450"))
    expect(panel).to_contain_text("the paper's unit is a slip")
    expect(panel.locator("svg")).to_be_visible()
    panel.locator(".runs-of").get_by_role("link").click()
    expect(panel).to_be_hidden()
    report.locator("#explorer[data-ready=yes]").wait_for()
    expect(report.locator("#explorer")).to_be_in_viewport()
    expect(report.locator("#explorer select[name=window]")).to_have_value("1048576")
    expect(report.locator("#explorer .held")).to_contain_text("window 1 MiB")


def test_one_switch_moves_all_dots_to_the_other_stack(report: Page) -> None:
    dots = report.locator("#matrix .dot b:visible")
    before = dots.all_inner_texts()
    report.get_by_label("linux-2.4").check()
    assert len(dots.all_inner_texts()) == len(before)
    assert dots.all_inner_texts() != before
    report.get_by_role("link", name="Today").click()
    expect(report.locator("#other-stack")).to_contain_text("linux-2.4")


def test_a_figure_leads_to_its_runs_their_settings_and_their_command(report: Page) -> None:
    report.locator("nav").get_by_role("link", name="Figures").click()
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


def test_a_bar_opens_its_own_runs_at_its_value(report: Page) -> None:
    report.locator("nav").get_by_role("link", name="Figures").click()
    report.locator("[data-explore*='window=8388608']").first.dispatch_event("click")
    expect(report.locator("#explorer")).to_have_attribute("data-ready", "yes")
    expect(report.locator("#explorer select[name=window]")).to_have_value(str(8 << 20))
    given = re.search(r"runs=([0-9a-f,]+)", report.url)
    assert given is not None
    expect(report.locator("#explorer .chosen details")).to_have_count(len(given[1].split(",")))


def test_the_first_digits_of_runs_ids_as_in_a_card_open_these_runs(report: Page, results: Path) -> None:
    ids = sorted(one.name.rpartition(".")[2][:8] for one in (results / "small/raw").glob("one-drop*"))
    report.goto(f"{(results / REPORT).as_uri()}#explore=&runs={ids[0]},{ids[-1]}")
    report.locator("#explorer[data-ready=yes]").wait_for()
    chosen = report.locator("#explorer .chosen summary code").all_inner_texts()
    assert {one[:8] for one in chosen} == {ids[0], ids[-1]}


def test_the_slider_is_of_the_experiment_with_the_most_claims_although_another_has_more_values(
    page: Page, tmp_path: Path
) -> None:
    study = write_study(tmp_path, repetitions=1)
    text = (study / "study.yaml").read_text(encoding="utf-8").replace("[1 MiB, 8 MiB]", "[1 MiB, 4 MiB, 8 MiB]")
    more = "{id: more, like: delay, sweep: {product: {algorithm: [standard], window: [1 MiB, 2 MiB, 3 MiB, 4 MiB]}}}"
    (study / "study.yaml").write_text(f"{text}  - {more}\n", encoding="utf-8")
    make_results(study, tmp_path, judged=True)
    page.goto(write_report(tmp_path, StudyFolder(study)).as_uri())
    chart = page.locator("#chart[data-ready=yes]")
    expect(chart).to_have_attribute("data-value", str(4 << 20))
    chart.locator("input[type=range]").fill("2")
    expect(chart).to_have_attribute("data-value", str(8 << 20))
    expect(chart.locator("output")).to_have_text("window 8 MiB")
    chart.locator("circle.point").last.click()
    expect(chart).to_have_attribute("data-value", str(8 << 20))
    chart.locator("input[type=range]").fill("0")
    link = chart.get_by_role("link", name="these runs")
    expect(link).to_have_attribute("href", re.compile("^#explore=delay&window="))
    link.click()
    page.locator("#explorer[data-ready=yes]").wait_for()
    expect(page.locator("#explorer select[name=window]")).to_have_value(str(1 << 20))


def test_without_a_factor_the_chart_is_the_runs_and_without_a_run_the_figure_with_the_most_claims(
    report: Page, results: Path
) -> None:
    chart = report.locator("#chart[data-ready=yes]")
    expect(chart.locator("input[type=range]")).to_have_count(0)
    expect(chart.locator(".plot").first).to_be_visible()
    report.goto((results / "without-runs" / "report.html").as_uri())
    figure = report.locator("#chart[data-ready=figure]")
    expect(figure.get_by_role("link")).to_have_attribute("href", "#fig-1")
    expect(figure.locator("svg")).to_be_visible()
    ids = report.locator("[id]").evaluate_all("found => found.map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_the_live_page_fits_a_phone_and_shows_progress_claims_curve_and_report(
    browser: Browser, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGFAT_ROOT", str(results.parent))
    said = io.StringIO()
    folder = StudyFolder(results.parent / "experiments" / "small")
    with (
        open_results(results / "small") as opened,
        watch(folder, opened, Output(file=said, width=200)),
        browser.new_context(viewport={"width": 390, "height": 800}) as context,
    ):
        page = context.new_page()
        page.goto(said.getvalue().split()[-1])
        expect(page.locator("#bars")).to_contain_text("12 of 12")
        expect(page.locator("#dots span")).to_have_count(len(folder.claims))
        expect(page.locator("polyline").first).to_have_attribute("points", re.compile(r"\d"))
        expect(page.locator("iframe")).to_be_visible(timeout=120_000)
        inside = page.frame_locator("iframe")
        expect(inside.locator(".question")).to_be_visible()
        for frame in page.frames:
            assert frame.evaluate("document.documentElement.scrollWidth <= innerWidth")


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


@pytest.mark.parametrize("name", [REPORT, FRONT, CARD])
def test_a_page_fits_every_window_and_axe_finds_nothing_even_in_the_dark(page: Page, results: Path, name: str) -> None:
    for width in (1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto("about:blank")
        page.goto((results / name).as_uri() + ("#explore=delay" if name == REPORT else ""))
        if name == REPORT:
            page.locator("#explorer[data-ready=yes]").wait_for()
            page.locator("#chart[data-ready=yes]").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    for width in (1400, 1024):  # the charts follow a page that becomes narrower
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
    found = Axe().run(page)
    assert [(fault["id"], fault["nodes"][0]["html"]) for fault in found.response["violations"]] == []
    page.emulate_media(color_scheme="dark")
    found = Axe().run(page, options={"runOnly": ["color-contrast"]})
    page.emulate_media(color_scheme="light")
    assert [fault["nodes"][0]["html"] for fault in found.response["violations"]] == []


def test_it_prints_on_few_pages_with_claims_and_causes_and_without_the_explorer(report: Page) -> None:
    pages = len(re.findall(rb"/Type /Page\b", report.pdf(format="A4")))
    assert 1 <= pages <= 4
    report.emulate_media(media="print")
    expect(report.locator("#explore")).to_be_hidden()
    expect(report.locator("#claim-far-too-much")).to_be_visible()
    report.emulate_media(media="screen")
