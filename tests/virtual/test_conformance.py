# SPDX-License-Identifier: Apache-2.0
"""The kernel's congestion controls against the published laws, one test for each law of the study `_laws`."""

from __future__ import annotations

from pathlib import Path

import pytest
from guests import virtual
from rich.console import Console

from longfat.relations.judge import Verdict, read_verdicts
from longfat.studies import StudyFolder
from longfat.verbs.conclude import reproduce
from longfat.verbs.conformance import STUDY, met
from longfat.verbs.run import Machine
from longfat.verbs.study import Choices

pytestmark = [pytest.mark.virtual, pytest.mark.slow]

CLAIMS = Path(__file__).parents[2] / "experiments" / STUDY / "claims.yaml"


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """The verdicts of the study, reproduced now."""
    virtual()
    folder = tmp_path_factory.mktemp("laws")
    assert reproduce(STUDY, Choices(), Machine(results=folder), Console(quiet=True))
    return {verdict.claim: verdict for verdict in read_verdicts(folder)}


@pytest.mark.parametrize("law", [claim.id for claim in StudyFolder(CLAIMS.parent).claims])
def test_the_kernel_meets_or_deviates_as_stated_from(law: str, verdicts: dict[str, Verdict]) -> None:
    found = verdicts[law]
    assert met(found) or found.deviation, found.reason
