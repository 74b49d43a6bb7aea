# SPDX-License-Identifier: Apache-2.0
"""Threat model and reliability name tests that there are, and what the first says of names in a manifest holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fabricated_results import MANIFEST, write_study

from longfat.errors import StudyError
from longfat.manifest.load import load_study

TESTS = Path(__file__).parents[1]
NAMED = re.compile(r"`(?!`)((?:unit|virtual|realtime)/\w+\.py)?(?:::(\w+))?`")


@pytest.mark.parametrize("page", ["threat-model", "reliability"])
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    path, found = TESTS, 0
    for file, name in NAMED.findall((TESTS.parent / f"docs/{page}.md").read_text(encoding="utf-8")):
        path = TESTS / file if file else path  # `::name` alone is of the file before
        assert path.is_file()
        assert not name or f"def {name}(" in path.read_text(encoding="utf-8"), name
        found += 1
    assert found > 15


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
