# SPDX-License-Identifier: Apache-2.0
"""Study folders of other people: data until they are run, and programs only with the user's consent."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stress import studies
from test_no_traceback import CHANCES, ROUNDS, Play, playing
from tiny_study import call

from longfat.report.crate import copy_study
from longfat.report.page import POLICY, render
from longfat.report.readme import read_readme
from longfat.study.expressions import MOST_LEVELS, ExpressionError, parse
from longfat.study.formulas import Amount, Formula, FormulaError
from longfat.system.errors import StudyError
from longfat.system.files import read_plain
from longfat.system.text import has_controls, visible


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study outside of the repository."""
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path / "own"))
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path / "cache"))
    assert call("new", "sent").exit_code == 0
    monkeypatch.delitem(sys.modules, "longfat_metrics_of_sent", raising=False)  # of an earlier test
    folder = tmp_path / "sent"
    (tmp_path / "own/experiments/sent").rename(folder)
    assert call("check", str(folder)).exit_code == 0
    return folder


def program(folder: Path, last: str = "") -> Path:
    """Write a metrics.py that leaves a mark; return the place of the mark."""
    mark = folder.parent / "ran"
    (folder / "metrics.py").write_text(f"open({str(mark)!r}, 'a').close()\n{last}\n", encoding="utf-8")
    return mark


@pytest.mark.parametrize(
    ("command", "statuses"),
    [("check", {2}), ("reproduce", {2, 3}), ("report", {2, 3}), ("package", {2, 3}), ("plan", {0})],
)
def test_no_command_runs_the_program_of_a_study_outside_of_the_repository(
    theirs: Path, command: str, statuses: set[int]
) -> None:
    mark = program(theirs)
    done = call(command, str(theirs))
    assert done.exit_code in statuses and not mark.exists(), done.output


def test_trust_is_for_one_content_of_the_program(theirs: Path) -> None:
    mark = program(theirs)
    assert "--trust" in call("check", str(theirs)).stderr
    assert call("check", str(theirs), "--trust").exit_code == 0 and mark.exists()
    mark.unlink()
    program(theirs, "# changed")
    assert call("check", str(theirs)).exit_code == 2 and not mark.exists()


@pytest.mark.parametrize("end", ["import sys; sys.exit(0)", "raise StopIteration", "raise GeneratorExit", "class"])
def test_a_program_that_ends_the_process_is_a_problem_of_the_study(theirs: Path, end: str) -> None:
    program(theirs, end)
    done = call("check", str(theirs), "--trust")
    assert done.exit_code == 2 and "metrics.py" in done.stderr


@pytest.mark.parametrize("name", ["claims.yaml", "figures.yaml", "metrics.py", "README.md", "study.yaml"])
@pytest.mark.parametrize("kind", ["link", "pipe", "hole"])
def test_a_file_that_leaves_the_folder_never_ends_or_is_huge_is_refused(theirs: Path, name: str, kind: str) -> None:
    secret = theirs.parent / "id_ed25519"
    secret.write_text("begin: of-my-key\n", encoding="utf-8")
    path = theirs / name
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)
    done = call("check", str(theirs))
    assert done.exit_code == 2 and name in done.stderr and "of-my-key" not in done.output


def test_a_plain_file_is_read_by_a_link_within_the_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/real").write_bytes(b"abc")
    (tmp_path / "name").symlink_to("data/real")
    assert read_plain(tmp_path / "name", tmp_path, 3) == b"abc"
    with pytest.raises(OSError, match="more than 2 bytes"):
        read_plain(tmp_path / "name", tmp_path, 2)


def test_a_readme_in_another_encoding_is_named_by_check(theirs: Path) -> None:
    (theirs / "README.md").write_text("# Zürich", encoding="latin-1")
    done = call("check", str(theirs))
    assert done.exit_code == 2 and "README.md" in done.stderr and "0xfc" in done.stderr


@pytest.mark.parametrize("given_name", ["a\nb", "a\x1b[2Jb", "a\u202eb"])
def test_a_folder_with_control_characters_in_its_name_is_refused(theirs: Path, given_name: str) -> None:
    folder = theirs.rename(theirs.with_name(given_name))
    done = call("plan", str(folder))
    assert done.exit_code == 2 and not has_controls(done.output)


def test_a_path_is_the_folder_of_that_path_and_not_a_study_of_that_name(
    theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("new", "sent").exit_code == 0
    (theirs / "study.yaml").write_text("format: 2\n", encoding="utf-8")
    monkeypatch.chdir(theirs.parent)
    assert call("check", "sent").exit_code == 0
    assert call("check", "./sent").exit_code == 2


@pytest.mark.parametrize("escape", ["\\e[31m", "\\x07", "\\u2066", "\\0", "\\x9b"])
@pytest.mark.parametrize(
    ("file", "key"), [("study.yaml", "title"), ("claims.yaml", "statement"), ("study.yaml", "new")]
)
def test_control_characters_in_a_study_are_a_problem_with_its_line(
    theirs: Path, file: str, key: str, escape: str
) -> None:
    lines = (theirs / file).read_text(encoding="utf-8").splitlines()
    at = next((n for n, line in enumerate(lines) if line.strip().startswith(f"{key}:")), len(lines))
    line = lines[at] if at < len(lines) else f"{key}: x"
    lines[at : at + 1] = [f'{line.partition(":")[0]}: "{escape} x"']
    (theirs / file).write_text("\n".join(lines), encoding="utf-8")
    done = call("check", str(theirs))
    assert done.exit_code == 2 and f"{file}:{at + 1}" in done.stderr
    assert not has_controls(done.output)


@given(st.text())
def test_no_control_character_reaches_a_terminal(text: str) -> None:
    assert not has_controls(visible(text))
    assert has_controls(text) or visible(text) == text


@pytest.mark.parametrize(
    "image", ["![x](http://a.example/b)", "![x][y]\n\n[y]: //a.example/b", "<img src=//a.example>"]
)
def test_a_readme_loads_nothing_from_the_network(image: str) -> None:
    readme = read_readme(f"# Title\nCited.\n\nText {image}\n", ["claim"])
    assert "<img" not in readme.question
    assert "default-src 'none'" in POLICY and "https:" not in POLICY


def test_every_page_forbids_the_network() -> None:
    pages = [*Path(render.__code__.co_filename).parent.glob("*.html.j2")]
    whole = [page for page in pages if "<head>" in page.read_text(encoding="utf-8")]
    assert whole and all("{{ policy }}" in page.read_text(encoding="utf-8") for page in whole)


@pytest.mark.parametrize("title", ["$\\alpha$ and $\\nothing$", "$9 of $10", "cost: $", "${x}$"])
def test_a_dollar_in_a_title_is_a_dollar(theirs: Path, title: str) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from longfat.figures.style import SETTINGS

    with mpl.rc_context(SETTINGS):
        figure = Figure()
        drawn = figure.suptitle(title)
        figure.canvas.draw()
        assert drawn.get_text() == title and drawn.get_parse_math() is False


@settings(max_examples=40)
@given(st.integers(1, 3000), st.sampled_from(["+1", "-x[y]", "*2", "/ 3"]), st.booleans())
def test_a_relation_is_read_or_refused_however_deep_it_is(count: int, step: str, nested: bool) -> None:
    text = f"{'(' * count}1{')' * count} > 0" if nested else f"1{step * count} > 0"
    if count < MOST_LEVELS - 5 or nested:
        assert parse(text, "relation")
    elif count > MOST_LEVELS:
        with pytest.raises(ExpressionError):
            parse(text, "relation")


@given(st.integers(2, 10**6), st.integers(1, 60))
def test_a_formula_of_any_size_has_a_value_or_a_fault(base: int, doublings: int) -> None:
    from fractions import Fraction

    names = {"x0": Amount(Fraction(base))}
    fault = None
    for step in range(doublings):
        try:
            value = Formula(f"x{step} * x{step}").value(names.__getitem__)
        except FormulaError as error:
            fault = error
            break
        names[f"x{step + 1}"] = Amount(Fraction(value))
    assert fault or len(str(value)) < 4300


@pytest.mark.parametrize("target", ["..", "more.csv", "table.csv", "absent"])
def test_a_package_has_no_hidden_file_and_takes_no_link(tmp_path: Path, target: str) -> None:
    study = tmp_path / "study"
    (study / "data").mkdir(parents=True)
    (study / "data/table.csv").touch()
    (study / ".netrc").touch()
    (study / ".git").mkdir()
    copy_study(study, tmp_path / "copy", tmp_path)
    assert {path.name for path in (tmp_path / "copy").rglob("*")} == {"data", "table.csv"}
    (study / "data/more.csv").symlink_to(target)
    with pytest.raises(StudyError, match=r"more\.csv"):
        copy_study(study, tmp_path / "again", tmp_path)


def test_a_package_takes_no_huge_file(tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    with (study / "trace.csv").open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(StudyError, match=r"trace\.csv"):
        copy_study(study, tmp_path / "copy", tmp_path)


hostilities = playing(studies.prepare)


@settings(ROUNDS, max_examples=4)
@given(chance=CHANCES)
def test_a_hostile_folder_is_refused_or_without_effect(hostilities: Play, chance: Random) -> None:
    assert hostilities(chance)
