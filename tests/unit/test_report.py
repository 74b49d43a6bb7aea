# SPDX-License-Identifier: Apache-2.0
"""The report page and the comparison with a committed reference."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from evidenced import with_evidence
from fabricated_results import FIGURES, change_json, judge_study, write_results, write_study

from longfat.data.opened import draw_all
from longfat.dataset.build import build_dataset
from longfat.dataset.load import load_dataset
from longfat.errors import RigError, StudyError
from longfat.evidence.epochs import FOLDER, read_epochs
from longfat.evidence.judged import evidence_of
from longfat.identity import KernelSource
from longfat.plan import PlannedRun
from longfat.plan.lockfile import read_lock
from longfat.record.bundle import run_folder_name
from longfat.relations.evaluate import Evidence
from longfat.report.numbers import allowed, measured, shown
from longfat.report.reference import compare, other_stack, write_reference
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
    beside = re.findall(r'href="([^"#][^"]*)"', page.split("<script>")[0])
    assert "figures/fig-1.csv" in beside and "lock.json" in beside
    assert [link for link in beside if ":" in link or link.startswith("/")] == []
    assert re.findall(r"http://|@import|url\((?!#)", page) == []


def test_the_page_begins_with_the_counts_and_the_setting(page: str) -> None:
    text = text_of(page)
    assert "Of 2 claims that only runs can decide, 2 are not measured." in text
    assert "4 runs ok , 1 run invalid , 4 runs missing , profile paper, stack modern, backend fake" in text
    assert text.index("Findings") < text.index("Trust") < text.index("Claims and verdicts") < text.index("Coverage")


def test_verdicts_are_worded_and_have_their_reasons(page: str) -> None:
    text = text_of(page)
    assert "0 of 1 repetitions are valid, at least 2 are needed: run invalid (1 x)" in text
    assert 'class="verdict not_measured"><span aria-hidden="true">\N{EN DASH}</span> not measured<' in page
    # Of the four scenarios there is one run each, of the drop's scenario the one that is not valid.
    assert "; lacks 8 runs of profile paper, about 0.1 min of CPU" in text
    assert "; lacks 2 runs of profile paper, about 0.1 min of CPU" in text


def test_text_of_the_study_is_escaped(page: str) -> None:
    assert "A &lt;small&gt; study" in page
    assert "A larger window &lt;gives&gt; more." in page
    assert "About 940 &amp; no more." in page
    assert "<small>" not in page


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


def test_a_kernel_that_is_not_of_the_pinned_release_is_named_at_the_head_and_any_among_the_digests(
    tmp_path: Path,
) -> None:
    def told(version: str, *, pinned: bool) -> str:
        study = analysed(tmp_path / version, kernel=KernelSource(version, pinned))
        return text_of(write_report(tmp_path / version, StudyFolder(study)).read_text(encoding="utf-8"))

    pinned, newer = told("6.12.117", pinned=True), told("6.12.999", pinned=False)
    assert "source of kernel none Linux 6.12.117, the pinned release" in pinned
    assert "kernel that is not the pinned release" not in pinned
    assert "6.12.999, kernel that is not the pinned release" in newer
    assert "source of kernel none Linux 6.12.999, not the pinned release" in newer


def test_what_the_reports_own_runs_do_not_have_is_shown_from_committed_ones_and_marked(
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
        evidence = evidence_of(StudyFolder(study), read_epochs(tmp_path / FOLDER))
        page = write_report(results, StudyFolder(study), evidence).read_text(encoding="utf-8")
        return re.findall(r'(?s)<section class="panel figure.*?</section>', page)

    def cells(panel: str) -> list[str]:
        return re.findall(r"(<td[^>]*>[^<]*)</td>", panel)

    bars, curve, table = shown("all", lambda run: False)
    assert "committed" not in bars + curve + table and bars.count("<svg") == curve.count("<svg") == 1
    own = cells(table)
    assert own[1].replace("\N{NO-BREAK SPACE}", "_") == "<td>280_\N{PLUS-MINUS SIGN}_0 (n_=_2)"

    none, no_curve, lacking = shown("none", lambda run: True)
    assert re.findall(' d="([^"]*)"', none) == re.findall(' d="([^"]*)"', bars), "the same runs make the same bars"
    assert "All from committed runs, profile paper" in none and "fig-1.csv" not in none
    assert "<svg" not in no_curve and "no valid run" in no_curve, "the evidence has no curves"
    committed = [cell.replace("<td", '<td class="committed"') for cell in own]
    assert cells(lacking) == [own[0], committed[1], own[2], committed[3]]

    _, _, mixed = shown("half", lambda run: run.factors.get("window") == 1 << 20)
    assert cells(mixed) == [own[0], committed[1], *own[2:]]
    assert "In italics from committed runs, profile paper" in mixed


def test_a_figure_that_was_not_drawn_is_said_to_be_missing(tmp_path: Path) -> None:
    study = analysed(tmp_path)
    assert "fig-1 has not been drawn" in write_report(tmp_path, StudyFolder(study)).read_text(encoding="utf-8")


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
    assert measured(once) == "2.50 s (n = 1; 2 more the same to the byte, which count once)"
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


def other_reference(results: Path, study: Path, **changes: object) -> Path:
    """Make the results a reference, then let it be of another stack."""
    path = write_reference(results, StudyFolder(study))
    change_json(path, lambda data: data.update(changes))
    return path


def test_a_reference_has_each_run_only_where_runs_make_no_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = StudyFolder(analysed(tmp_path))
    assert "runs" not in json.loads(write_reference(tmp_path, study).read_text(encoding="ascii"))
    monkeypatch.setattr("longfat.report.reference.makes_evidence", lambda backend: backend != "fake")
    found = json.loads(write_reference(tmp_path, study).read_text(encoding="ascii"))["runs"]
    assert found.keys() == {folder.name for folder in (tmp_path / "raw").iterdir()}
    assert found == {
        run_folder_name(r.scenario, r.repetition, r.run_id): r.measured for r in load_dataset(tmp_path).runs
    }
    assert compare(tmp_path, study).status == "identical"


def test_claims_stand_beside_those_of_another_stack(tmp_path: Path) -> None:
    study = analysed(tmp_path, repetitions=3)
    other_reference(tmp_path, study, stack="linux-2.4", verdicts={"halves": "not_reproduced"})
    page = write_report(tmp_path, StudyFolder(study)).read_text(encoding="utf-8")
    text = text_of(page)
    assert "Today&#39;s stack beside the era&#39;s" in text
    assert "under stack linux-2.4 (the same profile). Of 1 claims that were judged under both stacks 0 have" in text
    assert text.index("0 only under linux-2.4") < text.index("1 only under modern: halves")
    articles = re.findall(r'(?s)(<article[^>]*id="claim-([^"]+)".*?</article>)', page)
    rows = {claim: text_of("</style>" + row) for row, claim in articles}
    assert "Other stack linux-2.4: \N{BALLOT X} not reproduced" in rows["halves"]
    assert "Other stack linux-2.4: not judged" in rows["window-limits"]


def test_claims_of_a_kernel_stand_beside_those_of_a_simulator(tmp_path: Path) -> None:
    study = analysed(tmp_path, repetitions=3)
    path = other_reference(tmp_path, study, verdicts={"halves": "not_reproduced"})
    change_json(path, lambda data: data["key"].update(backend="ns2", kernel="ns-2.35"))
    text = text_of(write_report(tmp_path, StudyFolder(study)).read_text(encoding="utf-8"))
    assert "Backend fake beside backend ns2" in text
    assert "under backend ns2 (the same profile). Of 1 claims that were judged under both backends 0 have" in text
    assert "1 only under fake: halves" in text
    assert "Other backend" in text


def test_the_reference_of_the_same_profile_is_the_one_beside(tmp_path: Path) -> None:
    study = analysed(tmp_path)
    path = other_reference(tmp_path, study, stack="linux-2.4", profile="paper", verdicts={"halves": "inconclusive"})
    far = json.loads(path.read_text(encoding="ascii")) | {"profile": "quick", "verdicts": {"halves": "not_reproduced"}}
    (path.parent / "0.json").write_text(json.dumps(far), encoding="ascii")
    found = other_stack(tmp_path, StudyFolder(study), read_lock(tmp_path / "lock.json"))
    assert found is not None
    assert (found.profile, found.verdicts) == ("paper", {"halves": "inconclusive"})


def test_a_reference_of_the_same_or_of_an_unknown_stack_is_not_beside(tmp_path: Path) -> None:
    study = analysed(tmp_path)
    path = write_reference(tmp_path, StudyFolder(study))
    reference = json.loads(path.read_text(encoding="ascii"))
    assert (reference["profile"], reference["stack"]) == ("paper", "modern")
    page = write_report(tmp_path, StudyFolder(study)).read_text(encoding="utf-8")
    assert "Other stack" not in page
    assert "Other backend" not in page
    del reference["profile"], reference["stack"]
    path.write_text(json.dumps(reference), encoding="ascii")
    assert "Other stack" not in write_report(tmp_path, StudyFolder(study)).read_text(encoding="utf-8")
    assert compare(tmp_path, StudyFolder(study)).status == "identical"


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


def test_equal_results_are_identical_to_the_reference_they_made(tmp_path: Path) -> None:
    study = analysed(tmp_path)
    assert compare(tmp_path, StudyFolder(study)).status == "no_reference"
    path = write_reference(tmp_path, StudyFolder(study))
    assert path.parent == study / "reference"
    match = compare(tmp_path, StudyFolder(study))
    assert match.status == "identical"
    assert "all verdicts match" in match.lines[0]


def test_a_changed_number_differs_from_the_reference_and_the_table_is_named(tmp_path: Path) -> None:
    study = analysed(tmp_path)
    write_reference(tmp_path, StudyFolder(study))

    def bend(run: PlannedRun, record: Path) -> None:
        change_json(record / "flows.json", lambda data: data[0].update(goodput_bps=1.0))

    again = tmp_path / "again"
    write_results(study, again, bend)
    build_dataset(again)
    judge_study(again, study)
    match = compare(again, StudyFolder(study))
    assert match.status == "differs"
    assert match.lines[0].startswith("table flows is ")
    assert "claim window-limits is not_reproduced, the reference has reproduced" in match.lines


def test_another_kernel_has_no_reference_and_the_difference_is_named(tmp_path: Path) -> None:
    study = analysed(tmp_path)
    path = write_reference(tmp_path, StudyFolder(study))
    data = json.loads(path.read_text(encoding="ascii"))
    data["key"]["kernel"] = "0123456789abcdef"
    path.write_text(json.dumps(data), encoding="ascii")
    match = compare(tmp_path, StudyFolder(study))
    assert match.status == "no_reference"
    assert "kernel is none, the reference has 0123456789ab" in match.lines
    assert match.lines[-1] == "and yet every verdict is the same"


def test_what_differs_from_the_nearest_reference_is_named_if_its_settings_are_the_same(tmp_path: Path) -> None:
    study = analysed(tmp_path, repetitions=3)
    path = write_reference(tmp_path, StudyFolder(study))
    change_json(path, lambda data: data["key"].update(kernel="0123456789abcdef"))
    change_json(path, lambda data: data["verdicts"].update(halves="not_reproduced"))
    assert (
        compare(tmp_path, StudyFolder(study)).lines[-1]
        == "claim halves is reproduced, the reference has not_reproduced"
    )
    change_json(path, lambda data: data.update(profile="smoke"))
    assert compare(tmp_path, StudyFolder(study)).lines[-1] == "kernel is none, the reference has 0123456789ab"


def test_results_with_excluded_runs_make_no_reference(tmp_path: Path) -> None:
    study = analysed(tmp_path, omit=lambda run: run.experiment == "one-drop")
    with pytest.raises(StudyError, match="runs that are not ok: 1; a reference needs every run"):
        write_reference(tmp_path, StudyFolder(study))


def test_a_damaged_reference_is_a_clear_error(tmp_path: Path) -> None:
    study = analysed(tmp_path)
    write_reference(tmp_path, StudyFolder(study)).write_text("{}", encoding="ascii")
    with pytest.raises(StudyError, match="the reference cannot be read"):
        compare(tmp_path, StudyFolder(study))
