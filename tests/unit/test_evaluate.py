# SPDX-License-Identifier: Apache-2.0
"""The study of RFC 9743 and the cards that are made of it: from the files alone and from numbers made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from own_algorithm import write_study
from typer.testing import CliRunner

from longfat.card.card import Card, Cell, Judgement, Word, read_card, read_cards, write_card
from longfat.card.document import FILE, CardDocument, card_document
from longfat.card.own import own_study
from longfat.card.page import draw_card, draw_matrix, matrix_text
from longfat.card.sheet import counted
from longfat.catalog.ccas import CCAS
from longfat.cli import app
from longfat.errors import RigError, StudyError
from longfat.plan import Plan, build_plan, estimate
from longfat.studies import StudyFolder
from longfat.verbs.evaluate import SHIPPED, TABLE, UNKNOWN, require_algorithm, table_of

FOLDER = Path(__file__).parents[2] / "experiments" / "bcp133"
ASKED = (
    *("5.1.1", "5.1.2", "5.1.3", "5.1.4", "5.1.5", "5.2", "5.2.1", "5.2.2", "5.2.3", "5.3", "6", "6.1", "6.2", "6.4"),
    *("7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8", "7.9", "7.10", "7.11"),
)


@pytest.fixture(scope="module")
def folder() -> StudyFolder:
    return StudyFolder(FOLDER).assuming({UNKNOWN: "htcp"})


@pytest.fixture(scope="module")
def document(folder: StudyFolder) -> CardDocument:
    return card_document(folder)


def planned(folder: StudyFolder) -> Plan:
    return build_plan(folder.study, profile="quick", pins={})


def made_up(algorithm: str, document: CardDocument) -> Card:
    """A card whose candidate has 1, 2, 3 ... from row to row, and a verdict of each kind in turn."""
    cells = {
        row.row: {
            column: Cell(float(number), number - 0.5, number + 0.5, 3, ("0123abcd",)) for column in document.columns
        }
        for number, row in enumerate(document.rows, 1)
    }
    claimed = [row.row for row in document.rows if row.claim]
    words: tuple[Word, ...] = ("no worse", "worse", "open", "not measured")
    verdicts = {row: Judgement(words[index % 4], (f"{row}: as told",)) for index, row in enumerate(claimed)}
    return Card(algorithm, document.study, "quick", "k" * 32, "l" * 64, 10, 12, cells, verdicts)


def test_any_algorithm_of_the_kernel_may_be_the_candidate() -> None:
    assert StudyFolder(FOLDER).header.unknowns[UNKNOWN].among == tuple(CCAS)
    assert set(SHIPPED) <= set(CCAS)


def test_the_candidate_runs_its_algorithm_and_shares_all_other_runs(folder: StudyFolder) -> None:
    of_htcp, of_reno = (planned(folder.assuming({UNKNOWN: name})) for name in ("htcp", "reno"))
    flows = [run.spec.flows[0].cca for run in of_htcp.runs if run.scenario.startswith("depth.who-candidate")]
    assert set(flows) == {"htcp"}
    # The candidate Reno needs no run that Reno beside it does not need.
    assert {run.run_id for run in of_reno.runs} < {run.run_id for run in of_htcp.runs}


def test_the_quick_profile_is_planned_for_six_minutes_on_two_cores(folder: StudyFolder) -> None:
    assert estimate(planned(folder), jobs=2).wall_seconds <= 360


def test_every_section_that_asks_for_something_has_a_row_or_a_reason(document: CardDocument) -> None:
    shown = {section for row in document.rows for section in row.section.split(", ")}
    left_out = {section for one in document.left_out for section in one.section.split(", ")}
    assert shown | left_out == set(ASKED)


def test_every_claim_has_its_row(folder: StudyFolder, document: CardDocument) -> None:
    assert [row.claim for row in document.rows if row.claim] != []
    assert {row.claim for row in document.rows if row.claim} == {claim.id for claim in folder.claims}


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("claim: queue,", "claim: quene,", "unknown claim 'quene'"),
        ("bloat, who=${who}", "bloat, who=reno", "does not say where the algorithm belongs"),
        ('of: "waiting[bloat', 'of: "awaiting[bloat', "unknown metric 'awaiting'"),
        ('section: "5.1.2"', "section: 5.1", "section"),
    ],
)
def test_a_faulty_row_is_named_with_its_line(
    right: str, wrong: str, message: str, tmp_path: Path, folder: StudyFolder
) -> None:
    for path in FOLDER.glob("*.*"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8").replace("bcp133", "bcp133"))
    text = (FOLDER / FILE).read_text(encoding="utf-8")
    assert right in text
    (tmp_path / FILE).write_text(text.replace(right, wrong, 1))
    faulty = StudyFolder(tmp_path, folder.given, dict(folder._sources))
    faulty.__dict__.update(study=folder.study, claims=folder.claims)
    with pytest.raises(StudyError, match=f"card.yaml:1[0-9]: rows.1.*{message}"):
        card_document(faulty)


def test_a_card_is_read_as_it_was_written(document: CardDocument, tmp_path: Path) -> None:
    card = made_up("htcp", document)
    assert read_card(write_card(card, tmp_path / "htcp.json")) == card


def test_a_card_that_is_no_card_is_refused_with_the_place(document: CardDocument, tmp_path: Path) -> None:
    path = write_card(made_up("htcp", document), tmp_path / "htcp.json")
    path.write_text(path.read_text().replace('"planned": 12', '"planned": "many"'))
    with pytest.raises(RigError, match="planned"):
        read_card(path)


def test_a_card_with_another_number_is_refused_and_one_without_a_digest_is_not(
    document: CardDocument, tmp_path: Path
) -> None:
    path = write_card(made_up("htcp", document), tmp_path / "htcp.json")
    text = path.read_text()
    path.write_text(text.replace('"planned": 12', '"planned": 13'))
    with pytest.raises(RigError, match=r"htcp\.json: the card was changed since it was made"):
        read_cards(tmp_path)
    path.write_text(json.dumps({name: value for name, value in json.loads(text).items() if name != "sha256"}))
    assert read_card(path) == made_up("htcp", document)


def test_the_page_has_each_number_with_its_evidence_and_the_sheet_is_the_same_each_time(
    document: CardDocument, tmp_path: Path
) -> None:
    card = made_up("htcp", document)
    first, second = tmp_path / "first", tmp_path / "second"
    page = draw_card(card, document, first).read_text(encoding="utf-8")
    for row in document.rows:
        assert f'<tr id="{row.row}">' in page
    assert "queue: as told" in page
    assert "0123abcd" in page
    assert counted(card) == "Against Reno and CUBIC: 4 no worse, 4 worse, 4 open, 3 not measured"
    draw_card(card, document, second)
    assert (first / "htcp.svg").read_bytes() == (second / "htcp.svg").read_bytes()


def test_the_matrix_has_a_column_for_each_card_and_marks_what_is_worse(document: CardDocument, tmp_path: Path) -> None:
    cards = [made_up(name, document) for name in ("reno", "htcp")]
    heading, _, first, second, third, *_ = matrix_text(cards, document).splitlines()
    assert heading.endswith("| reno | htcp |")
    assert first.endswith("| 1.0 | 1.0 |")
    assert second.endswith("| 2.0 | 2.0 |")
    assert third.endswith("| **3.0** | **3.0** |")
    assert draw_matrix(cards, document, tmp_path).read_bytes().startswith(b"\x89PNG")


def test_the_table_beside_the_study_is_that_of_its_cards(document: CardDocument) -> None:
    cards = read_cards(FOLDER / "cards", SHIPPED)
    assert {card.algorithm for card in cards} >= {"reno", "cubic", "bbr"}
    assert (FOLDER / TABLE).read_text(encoding="utf-8") == table_of(cards, document)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("tcp_mine.c", "there is no such file"),
        ("cubik", "unknown algorithm 'cubik'"),
    ],
)
def test_what_is_no_algorithm_is_refused_before_any_run(given: str, message: str) -> None:
    with pytest.raises(StudyError, match=message) as error:
        require_algorithm(given)
    assert error.value.hint
    ended = CliRunner().invoke(app, ["evaluate", given])
    assert ended.exit_code == 2


def test_a_c_file_takes_the_candidates_place_in_a_copy_of_the_study(tmp_path: Path) -> None:
    source = write_study(tmp_path) / "tcp_sqrt.c"
    own = own_study(StudyFolder(FOLDER), source, tmp_path / "own")
    assert own.study.algorithm("candidate").cca == "sqrt"
    text = (own.path / "study.yaml").read_text(encoding="utf-8")
    assert "  candidate: {source: tcp_sqrt.c}" in text
    assert "unknowns" not in text
    assert "${algorithm}" not in text
    assert own.name == "bcp133"
    assert {path.name for path in own.path.iterdir()} == {
        *("study.yaml", "claims.yaml", "card.yaml", "metrics.py", "tcp_sqrt.c")
    }
