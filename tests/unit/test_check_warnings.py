# SPDX-License-Identifier: Apache-2.0
"""What ``longfat check`` says about a whole folder: problems of all files, its name, idle repetitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabricated_results import MANIFEST, write_study
from manifests import Change, changed
from tiny_study import call

from longfat.data.study_folder import StudyFolder


def test_a_name_that_is_not_the_folder_s_is_warned_of(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    words = "'small' is not the name of the folder, 'h3-small'"
    assert words not in str(StudyFolder(study).warnings)
    study = study.rename(study.with_name("h3-small"))
    assert words in str(StudyFolder(study).warnings[0])
    assert call("check", str(study)).output.startswith("h3-small: ")


def test_problems_of_the_other_files_come_with_those_of_the_manifest(tmp_path: Path) -> None:
    study = write_study(tmp_path, claims="format: 2\nstudy: small\nclaims: 7\n")
    (study / "study.yaml").write_text(changed(MANIFEST, ("repetitions: 2", "repetitions: x")), encoding="utf-8")
    (study / "figures.yaml").write_text("format: 2\nfigures: []\n", encoding="utf-8")
    said = call("check", str(study)).output
    assert [f"/{name}.yaml:" in said for name in ("study", "claims", "figures")] == [True] * 3


def test_an_unknown_backend_in_the_manifest_is_named_by_check(tmp_path: Path) -> None:
    study = write_study(
        tmp_path, claims="format: 2\nstudy: small\nclaims: []\n", figures="format: 2\nstudy: small\nfigures: []\n"
    )
    text = MANIFEST.replace("study: small\n", "study: small\nbackends: [virtual, ns22]\n")
    (study / "study.yaml").write_text(text, encoding="utf-8")
    assert "study.yaml:3: backends: unknown backend 'ns22'" in call("check", str(study)).output


@pytest.mark.parametrize(
    ("axis", "problem"),
    [
        ("window", "the axis has no unit, and 'window' the value '8 MiB' (write `window in MiB`)"),
        ("window in ms", "'window' cannot be drawn in ms: it has the value '1 MiB'"),
        ("window in kB", "no problems"),
        ("algorithm", "no problems"),
    ],
)
def test_an_axis_has_the_unit_of_its_factor(tmp_path: Path, axis: str, problem: str) -> None:
    figure = f"[{{bars: all, title: Goodput, of: 'goodput[delay]', x: {axis}, paper: none}}]"
    study = write_study(tmp_path, figures=f"format: 2\nstudy: small\nfigures: {figure}\n")
    assert problem in call("check", str(study)).output


@pytest.mark.parametrize(
    ("changes", "claims"),
    [
        ([], ["window-limits"]),
        ([("        start_jitter: 1 ms\n", "")], ["window-limits"]),
        ([("repetitions: 2", "repetitions: 3")], []),
        ([("0 ppm", "1 ppm")], ["window-limits", "halves"]),
    ],
)
def test_idle_repetitions_are_warned_of(tmp_path: Path, changes: list[Change], claims: list[str]) -> None:
    study = write_study(tmp_path)
    (study / "study.yaml").write_text(changed(MANIFEST, *changes), encoding="utf-8")
    found = [str(one) for one in StudyFolder(study).warnings if "decide no claim" in str(one)]
    assert len(found) == len(claims)
    assert all(f"3 are needed by {claim!r}" in one for one, claim in zip(found, claims, strict=True))
