# SPDX-License-Identifier: Apache-2.0
"""The quickest study of the gallery, from its manifest to its picture, with programs of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from guests import virtual

from longfat.backends import own_files
from longfat.cli.run import files_of
from longfat.data.study_folder import StudyFolder
from longfat.dataset.parse import parse_run
from longfat.plan import build_plan
from longfat.spec.gates import Evidence
from longfat.study.traffic import misses

pytestmark = pytest.mark.virtual

STUDY = Path(__file__).parents[2] / "experiments/gallery/program"


def test_a_run_of_a_study_with_its_own_programs_is_valid(tmp_path: Path) -> None:
    folder = StudyFolder(STUDY)
    own_files.keep(files_of(folder), virtual().jail)
    run = build_plan(folder.study, profile="quick", pins=virtual().pins()).runs[0]
    assert virtual().refuses(run.spec) == ()
    virtual().run(run.spec, tmp_path)
    parsed = parse_run(tmp_path, run.run_id, run.spec)
    assert misses(Evidence(run.spec, parsed.achieved, parsed.reports, parsed.told, parsed.end_us)) == ()
