# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several unit tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def evidence_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a study whose nine runs are in its evidence, made once; tests use copies of it."""
    from evidenced import with_evidence  # its imports would slow down every other test

    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        with_evidence(root, patch)
    return root


@pytest.fixture
def evidence_study(evidence_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The study in a copy of that repository."""
    from evidenced import copied

    return copied(evidence_made, tmp_path, monkeypatch)
