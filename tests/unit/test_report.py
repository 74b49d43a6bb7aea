# SPDX-License-Identifier: Apache-2.0
"""The report page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from evidenced import change, evidence_in
from fabricated_results import change_json, judge_study, make_results, write_study

from longfat.data.opened import draw_all
from longfat.data.study_folder import StudyFolder
from longfat.plan import PlannedRun
from longfat.relations.evaluate import Evidence
from longfat.report.numbers import allowed, measured, shown
from longfat.report.report import write_report
from longfat.system.identity import KernelSource


def analysed(folder: Path, repetitions: int | None = None, drawn: bool = False, **options: object) -> Path:
    study = write_study(folder, repetitions=repetitions, drawn=drawn)
    make_results(study, folder, judged=True, **options)  # type: ignore[arg-type]
    return study


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")

    def bend(run: PlannedRun, record: Path) -> None:
        if run.experiment == "one-drop":
            change_json(record / "achieved.json", lambda data: data.update(memory_pressure=3))

    study = analysed(folder, drawn=True, bend=bend, omit=lambda run: run.experiment == "delay" and run.repetition == 2)
    draw_all(folder, StudyFolder(study))
    first = write_report(folder, StudyFolder(study)).read_bytes()
    assert write_report(folder, StudyFolder(study)).read_bytes() == first
    return first.decode()


def text_of(page: str) -> str:
    body = re.sub(r"(?s)<script.*?</script>", " ", page.split("</style>")[1])
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_the_page_needs_nothing_but_itself(page: str) -> None:
    assert " src=" not in page
    links = re.findall(r'href="([^"#][^"]*)"', page.split("<script>")[0])
    assert "figures/fig-1.csv" in links and "lock.json" in links
    assert [link for link in links if ":" in link or link.startswith("/")] == []
    assert re.findall(r"http://|@import|url\((?!#)", page) == []


def test_each_figure_stands_next_to_the_statement_of_the_paper(page: str) -> None:
    between = r'(?s)<section class="panel figure.*?(?=<section class="panel figure|</section>\n</div>)'
    first, second = re.findall(between, page)
    assert '<svg viewBox="0 14 ' in first and 'role="img" aria-label="fig-1: goodput"' in first
    assert "window (MiB)</text>" in first, "letters of a figure are letters"
    assert "About 940 &amp; no more. 940 Mb/s" in text_of("</style>" + first)
    assert "fig-2: one drop" in second


def test_counts_settings_exclusions_and_provenance_are_there(page: str) -> None:
    text = text_of(page)
    assert "Runs can decide 2 claims either way: 2 are undecided." in text
    assert "4 of 9 valid; 1 invalid, 4 missing" in text
    assert "client1-eth0 to server: MTU 9000 B, 1000 Mbit/s, pfifo of 100 packets" in text
    assert "TCP came under memory pressure 3 times, allowed 0" in text
    assert re.search(r"lock [0-9a-f]{64}", text)
    assert re.search(r"dataset, flows [0-9a-f]{64}", text)


@pytest.mark.parametrize("pinned", [True, False])
def test_a_kernel_that_is_not_the_pinned_release_is_named_at_the_head(tmp_path: Path, pinned: bool) -> None:
    study = analysed(tmp_path, kernel=KernelSource("6.12.999", pinned))
    text = text_of(write_report(tmp_path, StudyFolder(study)).read_text(encoding="utf-8"))
    assert ("6.12.999, kernel that is not the pinned release" in text) is not pinned
    assert f"source of kernel none {KernelSource('6.12.999', pinned)}" in text


def test_a_figure_without_data_is_drawn_from_committed_runs_and_marked(evidence_study: Path, tmp_path: Path) -> None:
    folder, results = StudyFolder(evidence_study), tmp_path / "results" / "none"
    make_results(evidence_study, results, omit=lambda run: True, reported=True)
    page = write_report(results, folder, evidence_in(evidence_study)).read_text(encoding="utf-8")
    bars, curve = re.findall(r'(?s)<section class="panel figure.*?</section>', page)
    assert "From committed runs, profile paper" in bars and bars.count("<svg") == 1 and "fig-1.csv" not in bars
    assert "<svg" not in curve, "the evidence has no curves"


def test_a_number_has_three_digits_unless_a_limit_is_nearer_than_that() -> None:
    assert [shown(number) for number in (0, 0.0004, -0.0004, 0.512345, 78125, 1.2345)] == [
        *("0", "< 0.001", "> -0.001", "0.512", "78,100", "1.23")
    ]
    near = Evidence(
        "x", "Mb/s", "852.15 to 955.4 Mb/s", "not reproduced", 955.48, None, 1, limit_low=852.15, limit_high=955.4
    )
    assert (measured(near), allowed(near)) == ("955.5 Mb/s (n = 1)", "852.1 to 955.4 Mb/s")
    full = Evidence("goodput", "Mb/s", "", "reproduced", 948.25, 1.5, 3, 944.5, 951.97, confidence=0.9)
    assert measured(full) == "948 Mb/s (90 %: 944 to 952 Mb/s; n = 3)"
    rounding = Evidence("a - b", "Mb/s", "", "not reproduced", 0.0, None, 3, -1e-15, 1e-15, limit_low=5.5)
    assert measured(rounding) == "0 Mb/s (n = 3)"


def test_a_claim_that_has_changed_after_it_was_first_judged_is_shown(tmp_path: Path) -> None:
    study = analysed(tmp_path, repetitions=3)
    change(study / "claims.yaml", "at=1500 ms] = 0.5", "at=1500 ms] = 0.6")
    judge_study(tmp_path, study)
    page = write_report(tmp_path, StudyFolder(study)).read_text(encoding="utf-8")
    assert 'class="banner" id="changed"' in page
    assert "was drop_ratio[one-drop, at=1500 ms] = 0.5, is drop_ratio[one-drop, at=1500 ms] = 0.6" in page


def test_a_verdict_of_ns2_stands_next_to_the_verdict(tmp_path: Path) -> None:
    study = analysed(tmp_path)
    claim = StudyFolder(study).claims[0].id
    ns2 = {"key": {"kernel": "ns-2.35"}, "profile": "quick", "verdicts": {claim: "not reproduced"}}
    (study / "ns2.json").write_text(json.dumps(ns2), encoding="utf-8")
    found = text_of(write_report(tmp_path, StudyFolder(study)).read_text(encoding="utf-8"))
    assert re.findall(r"ns-2\.35, quick: \S+ (not reproduced)", found) == ["not reproduced"]
