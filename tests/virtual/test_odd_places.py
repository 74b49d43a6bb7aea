# SPDX-License-Identifier: Apache-2.0
"""A study in places that once changed its bytes or ended it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from stress import places

pytestmark = pytest.mark.virtual


def once_faulty(chance: random.Random, place: places.Place) -> None:
    folder, rc = place.work / ("t" * 70), place.work / "matplotlibrc"
    folder.mkdir()
    rc.write_text("text.usetex: True\nfont.family: serif\nsvg.fonttype: path\n", encoding="ascii")
    place.environment |= {"TMPDIR": str(folder), "MATPLOTLIBRC": str(rc)}
    place.results = str(place.work / "r[1]/[a-c]")


def test_a_study_has_the_same_bytes_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "ODDITIES", (once_faulty,))
    assert places.prepare(tmp_path, monkeypatch)(random.Random(1)) == "the same bytes"
