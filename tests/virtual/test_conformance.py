# SPDX-License-Identifier: Apache-2.0
"""The kernel's congestion controls against the published laws, one test for each law of the study `_laws`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from guests import virtual

from longfat.cli.console import Output
from longfat.cli.reproduce import reproduce
from longfat.data.study_folder import StudyFolder
from longfat.relations.judge import Verdict, read_verdicts

pytestmark = [pytest.mark.virtual, pytest.mark.slow]

STUDY = "_laws"
CLAIMS = Path(__file__).parents[2] / "experiments" / STUDY / "claims.yaml"


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """The verdicts of the study, reproduced now."""
    virtual()
    folder = tmp_path_factory.mktemp("laws")
    with open(os.devnull, "w") as nowhere:
        assert reproduce(Output(file=nowhere), STUDY, results=folder)
    return {verdict.claim: verdict for verdict in read_verdicts(folder)}


@pytest.mark.parametrize("law", [claim.id for claim in StudyFolder(CLAIMS.parent).claims])
def test_the_kernel_meets_or_deviates_as_stated_from(law: str, verdicts: dict[str, Verdict]) -> None:
    found = verdicts[law]
    assert found.verdict == "reproduced" or found.deviation, found.reason
