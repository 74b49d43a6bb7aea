# SPDX-License-Identifier: Apache-2.0
"""Some rounds of the stress tests that need no guest, drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from stress import damage, fuzz

Play = Callable[[Random], str]
ROUNDS = settings(
    max_examples=20, phases=[Phase.generate], suppress_health_check=list(HealthCheck), report_multiple_bugs=False
)
CHANCES = st.randoms(use_true_random=False)


@pytest.fixture(scope="module")
def damages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    with pytest.MonkeyPatch.context() as patch:
        yield damage.prepare(tmp_path_factory.mktemp("damage"), patch)


@pytest.fixture(scope="module")
def changes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    with pytest.MonkeyPatch.context() as patch:
        yield fuzz.prepare(tmp_path_factory.mktemp("fuzz"), patch)


@ROUNDS
@given(chance=CHANCES)
def test_a_damaged_file_is_named_or_harmless(damages: Play, chance: Random) -> None:
    assert damages(chance)


@ROUNDS
@given(chance=CHANCES)
def test_a_changed_study_is_refused_or_used(changes: Play, chance: Random) -> None:
    assert changes(chance)
