# SPDX-License-Identifier: Apache-2.0
"""The report page."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from evidenced import with_evidence
from fabricated_results import FIGURES, change_json, judge_study, write_results, write_study

from longfat.data.opened import draw_all
from longfat.dataset.build import build_dataset
from longfat.errors import RigError
from longfat.evidence.baselines import FOLDER, read_baselines
from longfat.evidence.judged import Judged, evidence_of
from longfat.identity import KernelSource
from longfat.plan import PlannedRun
from longfat.relations.counting import VerdictWord
from longfat.relations.evaluate import Evidence
from longfat.report.numbers import allowed, measured, shown
from longfat.report.report import write_report
from longfat.studies import StudyFolder


def analysed(folder: Path, repetitions: int | None = None, **options: object) -> Path:
    study = write_study(folder, repetitions=repetitions)
    write_results(study, folder, **options)  # type: ignore[arg-type]
    build_dataset(folder)
    judge_study(folder, study)
    return study


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")

    def bend(run: PlannedRun, record: Path) -> None:
        if run.experiment == "one-drop":
            change_json(record / "achieved.json", lambda data: data.update(memory_pressure=3))

    study = analysed(folder, bend=bend, omit=lambda run: run.scenario.startswith("delay") and run.repetition == 2)
    draw_all(folder, StudyFolder(study))
    first = write_report(folder, StudyFolder(study)).read_bytes()
    assert write_report(folder, StudyFolder(study)).read_bytes() == first
    return first.decode()


TABLE = """\
  - table: tab-1
    title: goodput of Reno
    columns: [window, measured]
    rows:
      - [1 MiB, {of: "goodput[delay, standard, window=1 MiB]", digits: 0}]
      - [8 MiB, {of: "goodput[delay, standard, window=8 MiB]", digits: 0}]
    paper: no number stated
"""


def text_of(page: str) -> str:
    body = re.sub(r"(?s)<script.*?</script>", " ", page.split("</style>")[1])
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_the_page_needs_nothing_but_itself(page: str) -> None:
    assert " src=" not in page
    links = re.findall(r'href="([^"#][^"]*)"', page.split("<script>")[0])
    assert "figures/fig-1.csv" in links and "lock.json" in links
    assert [link for link in links if ":" in link or link.startswith("/")] == []
    assert re.findall(r"http://|@import|url\((?!#)", page) == []


def test_the_page_begins_with_the_counts_and_the_setting(page: str) -> None:
    text = text_of(page)
    assert "Of 2 claims that only runs can decide, 2 are not measured." in text
    assert "4 runs ok , 1 run invalid , 4 runs missing , profile paper, stack modern, backend fake" in text
    assert text.index("Findings") < text.index("Trust") < text.index("Claims and verdicts") < text.index("Coverage")
    assert "0 of 1 repetitions are valid, at least 2 are needed: run invalid (1 x)" in text


def test_each_figure_stands_beside_what_the_paper_states(page: str) -> None:
    between = r'(?s)<section class="panel figure.*?(?=<section class="panel figure|</section>\n</div>)'
    first, second = re.findall(between, page)
    assert '<svg viewBox="0 14 ' in first and 'role="img" aria-label="fig-1: goodput"' in first
    assert "window (MiB)</text>" in first, "letters of a figure are letters"
    assert "The paper states About 940 &amp; no more. 940 Mb/s" in text_of("</style>" + first)
    assert "fig-2: one drop" in second and "The paper states No number stated" in text_of("</style>" + second)
    assert 'href="#explore=delay">Runs of delay<' in first


def test_coverage_settings_exclusions_and_provenance_are_there(page: str) -> None:
    text = text_of(page)
    assert "2 of the paper's 40 figures and tables, 2 of its 90 claims" in text.replace("&#39;", "'")
    assert "client1-eth0 to server: MTU 9000 B, 1000 Mbit/s, pfifo of 100 packets" in text
    assert "dropped: packet 100 after 1.5 s" in text
    assert "TCP came under memory pressure 3 times, allowed 0" in text
    assert re.search(r"lock [0-9a-f]{64}", text)
    assert re.search(r"dataset, flows [0-9a-f]{64}", text)
    assert "4 of 9 valid; 1 invalid, 4 missing" in text


def test_what_was_achieved_is_summed_up_by_interface_and_algorithm(page: str) -> None:
    text = text_of(page)
    assert "delay client1-eth0 1,000 Mbit/s, pfifo, 100 packets, 15 ms of delay, 9,000 B of MTU 0 drops" in text
    assert re.search(r"delay stream1 reno [0-9.]+ to [0-9.]+ Mbit/s of goodput, 30[0-9.]* ms smallest RTT", text)
    assert "1 run of one-drop; kernel none" in text


@pytest.mark.parametrize("pinned", [True, False])
def test_a_kernel_that_is_not_the_pinned_release_is_named_at_the_head(tmp_path: Path, pinned: bool) -> None:
    study = analysed(tmp_path, kernel=KernelSource("6.12.999", pinned))
    text = text_of(write_report(tmp_path, StudyFolder(study)).read_text(encoding="utf-8"))
    assert ("6.12.999, kernel that is not the pinned release" in text) is not pinned
    assert f"source of kernel none {KernelSource('6.12.999', pinned)}" in text


def test_a_figure_without_data_is_drawn_from_committed_runs_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = with_evidence(tmp_path, monkeypatch)
    (study / "figures.yaml").write_text(FIGURES + TABLE, encoding="utf-8")

    def shown(name: str, omit: Callable[[PlannedRun], bool]) -> list[str]:
        """The figures of a report that lacks runs."""
        results = tmp_path / "results" / name
        write_results(study, results, omit=omit)
        build_dataset(results)
        judge_study(results, study)
        draw_all(results, StudyFolder(study))
        evidence = evidence_of(StudyFolder(study), read_baselines(tmp_path / FOLDER))
        page = write_report(results, StudyFolder(study), evidence).read_text(encoding="utf-8")
        return re.findall(r'(?s)<section class="panel figure.*?</section>', page)

    def cells(panel: str) -> list[str]:
        return re.findall(r"(<td[^>]*>[^<]*)</td>", panel)

    bars, curve, table = shown("all", lambda run: False)
    assert "committed runs" not in bars + curve + table and bars.count("<svg") == curve.count("<svg") == 1
    own = cells(table)
    assert own[1].replace("\N{NO-BREAK SPACE}", "_") == "<td>280_\N{PLUS-MINUS SIGN}_0 (n_=_2)"

    none, no_curve, same_table = shown("none", lambda run: True)
    assert re.findall(' d="([^"]*)"', none) == re.findall(' d="([^"]*)"', bars), "equal runs give equal bars"
    assert "From committed runs, profile paper" in none and "fig-1.csv" not in none
    assert "<svg" not in no_curve and "no valid run" in no_curve, "the evidence has no curves"
    assert len(cells(same_table)) == len(own)

    _, _, half = shown("half", lambda run: run.factors.get("window") == 1 << 20)
    assert "committed runs" not in half, "a table is never mixed"


def test_a_report_without_verdicts_is_a_clear_error(tmp_path: Path) -> None:
    study = analysed(tmp_path)
    (tmp_path / "verdicts.json").unlink()
    with pytest.raises(RigError, match="the verdicts cannot be read"):
        write_report(tmp_path, StudyFolder(study))


def test_a_measurement_is_shown_with_spread_and_n() -> None:
    full = Evidence("goodput", "Mb/s", "", "holds", 948.25, 1.5, 3, 944.5, 951.97)
    assert measured(full) == "948 Mb/s (95 %: 944 to 952 Mb/s; n = 3)"
    assert measured(Evidence("x", "bytes", "", "holds", 3656000.0, None, 1)) == "3.66 MB (n = 1)"
    assert measured(Evidence("x", "", "", "holds", 3.75)) == "3.75 (computed)"
    once = Evidence("x", "s", "", "holds", 2.5, None, 1, 2.5, 2.5, repeats=2)
    assert measured(once) == "2.50 s (n = 1; 2 more byte-identical, counted once)"
    assert measured(Evidence("x", "", "", "no_data", reason="run missing")) == "run missing"


def test_a_number_has_three_digits_unless_a_limit_is_nearer_than_that() -> None:
    assert [shown(number) for number in (0, 0.0004, -0.0004, 0.512345, 78125, 1.2345)] == [
        *("0", "< 0.001", "> -0.001", "0.512", "78,100", "1.23")
    ]
    near = Evidence("x", "Mb/s", "852.15 to 955.4 Mb/s", "fails", 955.48, None, 1, limit_low=852.15, limit_high=955.4)
    assert measured(near) == "955.5 Mb/s (n = 1)"
    assert allowed(near) == "852 to 955 Mb/s"
    assert allowed(Evidence("x", "s", "at least 2.375 s", "holds", 3, limit_low=2.375)) == "at least 2.38 s"
    assert allowed(Evidence("x", "s", "5 ± 1 s", "holds", 5, agreement=True, limit_low=3, limit_high=7)) == "5 ± 1 s"


def test_claims_are_compared_with_those_of_another_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = with_evidence(tmp_path, monkeypatch)
    judge_study(tmp_path / "results" / "small", study)
    own = evidence_of(StudyFolder(study), read_baselines(tmp_path / FOLDER))
    assert own is not None
    other = dataclasses.replace(own, stack="linux-2.4")
    failed = [replace_word(item, "not_reproduced") for item in own.judged if item.verdict.claim == "halves"]
    other.__dict__["judged"] = tuple(failed + [item for item in own.judged if item.verdict.claim != "halves"])
    page = write_report(tmp_path / "results" / "small", StudyFolder(study), own, (), other).read_text(encoding="utf-8")
    text = text_of(page)
    assert text.index("0 only under linux-2.4") < text.index("1 only under modern: halves")
    assert text.count("Stack linux-2.4: \N{BALLOT X} not reproduced") == 1


def replace_word(item: Judged, word: VerdictWord) -> Judged:
    return dataclasses.replace(item, verdict=dataclasses.replace(item.verdict, verdict=word))


def test_what_goes_beyond_the_paper_has_a_section_and_does_not_count(tmp_path: Path) -> None:
    study = analysed(tmp_path)
    figures = FIGURES.replace("bars: fig-1", "bars: sensitivity-ring")
    (study / "figures.yaml").write_text(figures, encoding="utf-8")
    text = text_of(write_report(tmp_path, StudyFolder(study)).read_text(encoding="utf-8")).replace("&#39;", "'")
    heading = "Beyond the paper: how far the results depend on what it does not state"
    assert text.index("fig-2: one drop") < text.index(heading) < text.index("sensitivity-ring: goodput")
    assert "1 of the paper's 40 figures and tables, 2 of its 90 claims" in text


def test_verdicts_of_one_word_can_be_shown_alone_without_a_script(page: str) -> None:
    assert 'href="#only-not_measured">\N{EN DASH} 2 not measured</a>' in page
    assert page.count('class="claim is-not_measured"') == 2
    assert "#only-not_measured:target .claim:not(.is-not_measured)" in page
    assert 'href="#fig-1" class="inconclusive">fig-1 0/1</a>' in page


def test_the_page_says_of_its_limits_only_what_is_so_and_shows_what_has_changed(tmp_path: Path) -> None:
    study = analysed(tmp_path, repetitions=3)
    text = text_of(write_report(tmp_path, StudyFolder(study)).read_text(encoding="utf-8"))
    assert "when it was first judged, after its runs" in text
    assert "written before" not in text
    path = study / "claims.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("at=1500 ms] = 0.5", "at=1500 ms] = 0.6"), encoding="utf-8"
    )
    judge_study(tmp_path, study)
    page = write_report(tmp_path, StudyFolder(study)).read_text(encoding="utf-8")
    assert 'class="banner" id="changed"' in page
    assert (
        "halves, relation: was drop_ratio[one-drop, at=1500 ms] = 0.5, is drop_ratio[one-drop, at=1500 ms] = 0.6"
        in page
    )
