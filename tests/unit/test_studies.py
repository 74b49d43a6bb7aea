# SPDX-License-Identifier: Apache-2.0
"""A study's folder is opened once and handed through a command: each of its files is read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from evidenced import copied, printed, with_evidence
from fabricated_results import CLAIMS, FIGURES, MANIFEST, write_study

from longfat.cli.check import check
from longfat.cli.console import Output
from longfat.cli.evidence import add
from longfat.cli.fill import Wanted, fill_studies
from longfat.cli.plan import plan
from longfat.cli.report import report
from longfat.cli.reproduce import reproduce
from longfat.cli.sample import repeat_sample
from longfat.cli.verdicts import verdicts
from longfat.data.study_folder import StudyFolder, studies_in
from longfat.study.schema import source
from longfat.system.errors import StudyError

ALL = {"study.yaml": 1, "claims.yaml": 1, "figures.yaml": 1}
VERBS: dict[str, tuple[Callable[[Output], object], dict[str, int]]] = {
    "check": (lambda console: check(console, "small"), ALL),
    "plan": (lambda console: plan(console, "small", profile="paper", backend="fake"), {"study.yaml": 1}),
    "reproduce": (lambda console: reproduce(console, "small", profile="paper", backend="fake", jobs=1), ALL),
    "report": (lambda console: report(console, "small"), ALL),
    "verdicts": (
        lambda console: verdicts(console, ["small"]),
        {"study.yaml": 1, "claims.yaml": 1},
    ),
    "evidence fill": (
        lambda console: fill_studies(["small"], Wanted(1, 60.0, "paper", backend="fake", jobs=1), console),
        ALL,
    ),
    "evidence add": (lambda console: add(console, "small", jobs=1), ALL),
    "again": (
        lambda console: repeat_sample("small", "2", 1, None, 1, None, console),
        {"study.yaml": 1, "claims.yaml": 1},
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the study, its results and its evidence."""
    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        with_evidence(root, patch)
        printed(lambda console: report(console, "small"))
    return root


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file of the study `small` was read."""
    counts: Counter[str] = Counter()
    text = source._text

    def counted(path: Path) -> str:
        if path.parent.name == "small":
            counts[path.name] += 1
        return text(path)

    monkeypatch.setattr(source, "_text", counted)
    return counts


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_reads_each_file_of_its_study_once(
    verb: str, read: Counter[str], made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(made, tmp_path, monkeypatch)
    command, expected = VERBS[verb]
    printed(command)
    assert read == expected


def test_faults_of_claims_and_figures_are_told_together(tmp_path: Path) -> None:
    claims, figures = CLAIMS.replace("goodput[delay", "speed[delay"), FIGURES.replace("x: window", "x: length")
    folder = StudyFolder(write_study(tmp_path, claims=claims, figures=figures))
    with pytest.raises(StudyError) as caught:
        folder.check()
    assert {Path(problem.file).name for problem in caught.value.problems} == {"claims.yaml", "figures.yaml"}


def test_a_fault_of_the_manifest_is_told_alone_for_the_others_are_read_against_it(tmp_path: Path) -> None:
    folder = StudyFolder(write_study(tmp_path, claims="claims: 1"))
    (folder.path / "study.yaml").write_text(MANIFEST.replace("30 ms", "30"), encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        folder.check()
    assert {Path(problem.file).name for problem in caught.value.problems} == {"study.yaml"}


def test_a_study_without_claims_and_figures_has_none(tmp_path: Path) -> None:
    path = write_study(tmp_path)
    (path / "claims.yaml").unlink()
    (path / "figures.yaml").unlink()
    (folder,) = studies_in(path.parent)
    assert (folder.claims, folder.figures.figures, folder.catalogue.size) == ((), (), None)
    assert folder.digest("claims.yaml") == ""


def test_other_assumptions_leave_the_claims_as_they_are_and_may_be_of_some_experiments_alone(tmp_path: Path) -> None:
    unknowns = "unknowns:\n  way: {what: its length, default: 30 ms, between: [10 ms, 90 ms], source: a map}\n"
    folder = StudyFolder(write_study(tmp_path))
    text = MANIFEST.replace("rtt: 30 ms", 'rtt: "${way}"', 1).replace("experiments:\n", f"{unknowns}experiments:\n")
    (folder.path / "study.yaml").write_text(text, encoding="utf-8")
    other = folder.assuming({"way": "60 ms"}, ["delay"])
    assert other.claims is folder.claims
    assert [one.id for one in other.study.experiments] == ["delay"]
    assert str(other.study.experiments[0].points[0].experiment.topology.rtt) == "60 ms"
    assert {one.id for one in folder.assuming({"way": "60 ms"}).study.experiments} > {"delay"}
