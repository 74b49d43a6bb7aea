# SPDX-License-Identifier: Apache-2.0
"""The runs of the shipped studies are those whose digests are committed."""

from __future__ import annotations

import json

import pytest
from study_identities import COMMITTED, STUDIES, study_identities

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", STUDIES)
def test_the_shipped_studies_have_the_runs_that_are_committed(name: str) -> None:
    """Where a change is meant, ``python tests/unit/study_identities.py`` renews them."""
    assert study_identities(name) == json.loads(COMMITTED.read_text(encoding="utf-8"))[name]
