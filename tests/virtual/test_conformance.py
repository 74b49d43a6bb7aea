# SPDX-License-Identifier: Apache-2.0
"""The kernel's congestion controls against the published laws, one test for each law."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from guests import virtual

from longfat.conformance.law import Law
from longfat.conformance.laws import LAWS
from longfat.conformance.runs import Runs

pytestmark = [pytest.mark.virtual, pytest.mark.slow]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """The runs of all selected laws, begun at once and executed beside each other."""
    parameters = [getattr(item, "callspec", None) for item in request.session.items]
    selected = [spec.params["law"] for spec in parameters if spec is not None and "law" in spec.params]
    with Runs(virtual()) as runs:
        runs.begin(law for law in selected if isinstance(law, Law))
        yield runs


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_kernel_follows_the_law_of(law: Law, runs: Runs) -> None:
    assert runs.finding(law).problems == []
