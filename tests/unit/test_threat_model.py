# SPDX-License-Identifier: Apache-2.0
"""Names in a manifest lead to no path and no shell."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabricated_results import MANIFEST, write_study

from longfat.study.load import load_study
from longfat.system.errors import StudyError


@pytest.mark.parametrize(
    "name", ["../up", "/etc", "a b", "$(id)", "a;id", "a|b", "a`id`", "a'b", 'a"b', "-rf", "a\\nb"]
)
@pytest.mark.parametrize(
    ("of", "was"),
    [
        ("study: small", "small"),
        ("name: stream1", "stream1"),
        ("id: delay", "delay"),
        ("from: client1", "client1"),
        ("standard: {cca", "standard"),
        ("cca: reno", "reno"),
    ],
)
def test_no_name_leads_to_a_path_or_a_shell(tmp_path: Path, of: str, was: str, name: str) -> None:
    quoted = "'" + name.replace("'", "''") + "'"
    assert of in MANIFEST
    study = write_study(tmp_path)
    (study / "study.yaml").write_text(MANIFEST.replace(of, of.replace(was, quoted), 1), encoding="utf-8")
    with pytest.raises(StudyError):
        load_study(study / "study.yaml")
