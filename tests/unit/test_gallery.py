# SPDX-License-Identifier: Apache-2.0
"""The gallery: small studies of one capability each, which check, plan and are listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.cli.study import find_study
from longfat.data.study_folder import FIGURES, MANIFEST
from longfat.plan import build_plan, estimate

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "experiments/gallery"
NAMES = sorted(path.parent.name for path in GALLERY.glob(f"*/{MANIFEST}"))
MOST_LINES = 40
MOST_SECONDS = 120  # of one core


@pytest.mark.parametrize("name", NAMES)
def test_a_study_of_the_gallery_checks_and_plans_and_is_small(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGFAT_ROOT", str(ROOT))
    folder = find_study(f"gallery/{name}")
    folder.check()
    assert folder.study.name == name
    assert [figure.artifact for figure in folder.figures.figures] == [name]
    plan = build_plan(folder.study, profile="quick", pins={})
    assert estimate(plan, jobs=1).wall_seconds < MOST_SECONDS
    lines = [len((folder.path / file).read_text(encoding="utf-8").splitlines()) for file in (MANIFEST, FIGURES)]
    assert sum(lines) <= MOST_LINES
