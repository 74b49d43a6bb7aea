# SPDX-License-Identifier: Apache-2.0
"""Identification: runs and evidence give the values of an unknown for which a claim holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidenced import copied, printed, repository
from fabricated_results import MANIFEST

from longfat.backends.registry import open_backend
from longfat.cli.evidence import identify_unknown, print_conditions
from longfat.cli.fill import Wanted
from longfat.evidence.baselines import FOLDER, Combination, begin, write_baseline
from longfat.system.errors import StudyError

# 1 MiB a round trip is more than 200 Mb/s where that is shorter than 42 ms.
UNKNOWN = """\
unknowns:
  way: {what: length of the way, default: 30 ms, between: [10 ms, 90 ms], source: a map}
"""
CLAIM = """\
format: 2
study: small
claims:
  - id: fast
    artifact: fig-1
    statement: A window of 1 MiB gives more than 200 Mb/s.
    paper: {where: figure 1}
    relation: goodput[delay, standard, window=1 MiB] > 200
  - id: drops
    artifact: fig-2
    statement: A drop takes half.
    paper: {value: 0.5, where: figure 2}
    relation: drop_ratio[one-drop, at=1500 ms] = 0.5
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A repository whose study does not know how long its way is, in a baseline of the fake backend; and the output."""
    root = tmp_path_factory.mktemp("identified")
    with pytest.MonkeyPatch.context() as patch:
        folder = repository(root, patch)
        text = MANIFEST.replace("rtt: 30 ms", 'rtt: "${way}"', 1).replace("experiments:\n", f"{UNKNOWN}experiments:\n")
        (folder / "study.yaml").write_text(text, encoding="utf-8")
        (folder / "claims.yaml").write_text(CLAIM, encoding="utf-8")
        combination = Combination.of(open_backend("fake", {}).pins())
        write_baseline(begin([combination], {"a": "1"}, "2026-01-01"), root / FOLDER)
        return root, run()


@pytest.fixture
def said(made: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the output of the command that made the evidence."""
    copied(made[0], tmp_path, monkeypatch)
    return made[1]


def run(*at: str) -> str:
    wanted = Wanted(3, None, "paper", backend="fake", jobs=1)
    values = at or ("52 ms", "30 ms", "90 ms", "10 ms")
    return printed(lambda console: identify_unknown("small", "way", ["fast"], values, wanted, console))


def test_runs_and_evidence_show_where_a_claim_holds(said: str) -> None:
    assert "fast: reproduced at 10 ms to 30 ms, not reproduced at 52 ms to 90 ms" in said
    again = printed(lambda console: print_conditions("small", console))
    assert "fast: reproduced at 10 ms to 30 ms, not reproduced at 52 ms to 90 ms" in again
    assert "drops" not in again  # it was not asked, and does not depend on it


def test_a_second_time_nothing_is_run(said: str) -> None:
    again = run()
    assert "runs executed" not in again and "0 batches" in again
    assert again.splitlines()[-1] == said.splitlines()[-1]


@pytest.mark.usefixtures("said")
def test_a_value_that_is_not_plausible_is_refused() -> None:
    with pytest.raises(StudyError) as raised:
        run("41 ms", "95 ms", "long")
    assert raised.value.where == "--values"
