# SPDX-License-Identifier: Apache-2.0
"""The study of RFC 9743 and its report cards, from the files alone and from invented numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import pytest
import yaml
from manifests import refused

from longfat.cli.evaluate import SHIPPED, TABLE, in_order, table_of
from longfat.data.study_folder import StudyFolder
from longfat.plan import Plan, build_plan
from longfat.report.card.card import COMPARED, QLOG, UNKNOWN, Card, Cell, Judgement, candidate, read_cards, write_card
from longfat.report.card.document import FILE, CardDocument, card_document
from longfat.report.card.page import Column, draw_card, report_of, strip
from longfat.study.catalog.ccas import CCAS
from longfat.system.errors import RigError, StudyError

FOLDER = Path(__file__).parents[2] / "experiments" / "bcp133"
DRAFT = FOLDER.parent / "bbr-draft"


@pytest.fixture(scope="module")
def folder() -> StudyFolder:
    return StudyFolder(FOLDER).assuming({UNKNOWN: "htcp"})


@pytest.fixture(scope="module")
def document(folder: StudyFolder) -> CardDocument:
    return card_document(folder)


def planned(folder: StudyFolder) -> Plan:
    return build_plan(folder.study, profile="quick", pins={})


def invented(algorithm: str, document: CardDocument) -> Card:
    """A card with 1, 2, 3 ... from row to row, and a verdict of each kind in turn."""
    cells = {
        row.row: {
            column: Cell(float(number), number - 0.5, number + 0.5, 3, ("0123abcd",)) for column in document.columns
        }
        for number, row in enumerate(document.rows, 1)
    }
    claimed = [row.row for row in document.rows if row.claim]
    verdicts = {
        row: Judgement(tuple(COMPARED.values())[index % 4], (f"{row}: <compared>",))
        for index, row in enumerate(claimed)
    }
    return Card(algorithm, document.study, "quick", "k" * 32, "l" * 64, 10, 12, cells, verdicts)


def test_the_candidate_runs_its_algorithm_and_shares_all_other_runs(folder: StudyFolder) -> None:
    assert StudyFolder(FOLDER).header.unknowns[UNKNOWN].among == tuple(CCAS)
    of_htcp, of_reno = (planned(folder.assuming({UNKNOWN: name})) for name in ("htcp", "reno"))
    flows = [run.spec.flows[0].cca for run in of_htcp.runs if run.scenario.startswith("depth.who-candidate")]
    assert set(flows) == {"htcp"}
    assert {run.run_id for run in of_reno.runs} < {run.run_id for run in of_htcp.runs}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("claim: queue,", "claim: quene,"),
        ("bloat, who=${who}", "bloat, who=reno"),
        ('of: "waiting[bloat', 'of: "awaiting[bloat'),
        ('section: "5.1.2"', "section: 5.1"),
    ],
)
def test_a_faulty_row_is_named_with_its_line(right: str, wrong: str, tmp_path: Path, folder: StudyFolder) -> None:
    text = (FOLDER / FILE).read_text(encoding="utf-8")
    assert right in text
    (tmp_path / FILE).write_text(text.replace(right, wrong, 1))
    faulty = StudyFolder(tmp_path)
    faulty.__dict__.update(study=folder.study, claims=folder.claims)
    (problem,) = refused(lambda: card_document(faulty))
    assert problem.key.startswith("rows[1].")
    assert right in text.splitlines()[(problem.line or 0) - 1]


def test_a_card_is_read_as_it_was_written_and_a_faulty_one_is_refused(document: CardDocument, tmp_path: Path) -> None:
    card = invented("htcp", document)
    path = write_card(card, tmp_path / "htcp.json")
    assert read_cards(tmp_path) == {"htcp": card}
    for wrong in (path.read_text().replace('"planned": 12', '"planned": "many"'), "{", "[]"):
        path.write_text(wrong)
        with pytest.raises(RigError, match=r"htcp\.json"):
            read_cards(tmp_path)


@pytest.mark.parametrize(("better", "band"), [("less", (0.0, 60.0)), ("more", (30.0, 100.0))])
def test_the_band_of_a_card_ends_at_the_worse_peer(
    document: CardDocument, better: Literal["less", "more"], band: tuple[float, float]
) -> None:
    row = next(row for row in document.rows if row.better == better)
    values = {name: Cell(value, value, value, 3, ()) for name, value in zip(document.columns, (10, 3, 6), strict=False)}
    assert document.candidate == next(iter(document.columns))
    card = replace(invented("htcp", document), cells={row.row: values})
    columns = [Column(name, card, name, name == document.candidate) for name in list(values)]
    drawn = strip(row, columns)
    assert drawn and (drawn.start, drawn.end, drawn.dot) == (*map(pytest.approx, band), pytest.approx(100))
    missing = replace(card, cells={row.row: {**values, columns[2].name: Cell(None, None, None, 0, (), "failed")}})
    assert strip(row, [replace(column, card=missing) for column in columns]) is None


def test_each_number_of_a_card_opens_its_runs_in_the_explorer_of_the_cards_report(
    document: CardDocument, tmp_path: Path
) -> None:
    (tmp_path / "cards").mkdir()
    card = invented("my algorithm", document)
    assert "#explore" not in draw_card(card, document, tmp_path / "cards").read_text(encoding="utf-8")
    (tmp_path / report_of("my algorithm")).touch()
    links = re.findall(r'<a href="([^"#]*)(#explore[^"]*)">', draw_card(card, document, tmp_path / "cards").read_text())
    assert {(tmp_path / "cards" / unquote(page)).exists() for page, _ in links} == {True}
    assert {runs for _, runs in links} == {"#explore=&amp;runs=0123abcd"}
    assert len(links) >= len(document.rows) * len(document.columns)
    write_card(card, tmp_path / "another.json")
    with pytest.raises(RigError, match="the card is of 'my algorithm'"):
        read_cards(tmp_path)


def test_the_committed_table_is_that_of_the_committed_cards(folder: StudyFolder, document: CardDocument) -> None:
    assert {row.claim for row in document.rows if row.claim} == {claim.id for claim in folder.claims}
    cards = read_cards(FOLDER / "cards")
    assert set(cards) == set(SHIPPED)
    assert (FOLDER / TABLE).read_text(encoding="utf-8") == table_of(in_order(cards), document)


def test_every_check_of_the_drafts_22_cases_has_a_row_and_the_committed_card_is_that_of_its_table() -> None:
    study = StudyFolder(DRAFT)
    document, cards = card_document(study), read_cards(DRAFT / "cards")
    assert [row.claim for row in document.rows] == [claim.id for claim in study.claims]
    assert {row.section for row in document.rows} == {str(case) for case in range(1, 23)}
    assert (DRAFT / TABLE).read_text(encoding="utf-8") == table_of(in_order(cards), document)
    failed = {row for row, one in cards["bbr"].verdicts.items() if one.word == "not reproduced"}
    assert {row for row, one in cards["bbr"].verdicts.items() if one.cause} == failed
    assert study.assuming({UNKNOWN: "bbr"}).study.experiments


def test_a_file_evaluated_against_the_draft_is_the_candidate_of_a_complete_copy(tmp_path: Path) -> None:
    source = tmp_path / "tcp_mybbr.c"
    source.write_text('struct tcp_congestion_ops a = { .name = "mybbr" };', encoding="utf-8")
    name, copy = candidate(StudyFolder(DRAFT), str(source), tmp_path / "own")
    assert name == "mybbr"
    assert {path.name for path in DRAFT.iterdir() if path.is_file()} < {path.name for path in copy.path.iterdir()}
    assert UNKNOWN not in copy.header.unknowns


def program(folder: Path) -> Path:
    folder.mkdir()
    for name in ("send", "receive"):
        (folder / name).write_text("#!/bin/sh\n", encoding="utf-8")
    return folder


def test_programs_evaluated_against_the_draft_replace_every_flow_and_get_its_limits(tmp_path: Path) -> None:
    draft = StudyFolder(DRAFT)
    name, copy = candidate(draft, str(program(tmp_path / "quic")), tmp_path / "own")
    runs = planned(copy).runs
    assert name == "quic"
    assert all(run.spec.programs and not run.spec.flows for run in runs)
    assert {keep for run in runs for one in run.spec.programs for keep in one.keep} == {QLOG}
    sent = {run.experiment: run.spec.programs[0].send[4:] for run in runs}
    assert sent["drain-inflight"] == () and sent["refill"] == ("10000000", "2", "0.1")
    declared = {run.scenario: run.spec.probes.socket_interval_us for run in planned(draft).runs}
    assert all(run.spec.probes.queue_interval_us == declared[run.scenario] for run in runs)


def test_rows_that_need_drops_of_tcp_are_left_out_of_the_card_of_programs_with_the_reason(tmp_path: Path) -> None:
    document = card_document(StudyFolder(DRAFT))
    _, copy = candidate(StudyFolder(DRAFT), str(program(tmp_path / "quic")), tmp_path / "own")
    left = card_document(copy)
    gone = {row.row for row in document.rows} - {row.row for row in left.rows}
    dropping = {
        one["id"] for one in yaml.safe_load((DRAFT / "study.yaml").read_text())["experiments"] if "drops" in one
    }
    assert gone == {row.row for row in document.rows if any(f"[{one}," in row.of for one in dropping)} != set()
    assert [row.claim for row in left.rows] == [claim.id for claim in copy.claims]
    assert len(left.left_out) == len(document.left_out) + len(gone)


def test_programs_do_not_replace_one_of_several_flows(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="several flows"):
        candidate(StudyFolder(FOLDER), str(program(tmp_path / "quic")), tmp_path / "own")


def test_a_card_without_some_rows_can_be_drawn(folder: StudyFolder, document: CardDocument, tmp_path: Path) -> None:
    card = invented("htcp", document)
    row = next(row.row for row in document.rows if row.claim)
    verdicts = {name: one for name, one in card.verdicts.items() if name != row}
    assert row in card.verdicts
    page = draw_card(replace(card, verdicts=verdicts, cells={}), document, tmp_path).read_text(encoding="utf-8")
    assert "the card is older than this row" in page
