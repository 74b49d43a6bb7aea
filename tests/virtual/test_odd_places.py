# SPDX-License-Identifier: Apache-2.0
"""A study in places that once changed its bytes or ended it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from stress import places

pytestmark = pytest.mark.virtual
Play = Callable[[random.Random], str]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    with pytest.MonkeyPatch.context() as patch:
        yield places.prepare(tmp_path_factory.mktemp("places"), patch)


def long_temporary(chance: random.Random, place: places.Place) -> None:
    folder = place.work / ("t" * 70)
    folder.mkdir()
    place.environment["TMPDIR"] = str(folder)


def typesetting(chance: random.Random, place: places.Place) -> None:
    rc = place.work / "matplotlibrc"
    rc.write_text("text.usetex: True\nfont.family: serif\nsvg.fonttype: path\n", encoding="ascii")
    place.environment["MATPLOTLIBRC"] = str(rc)


def brackets(chance: random.Random, place: places.Place) -> None:
    place.results = str(place.work / "r[1]/[a-c]")


@pytest.mark.parametrize("oddity", [long_temporary, typesetting, brackets])
def test_a_study_has_the_same_bytes_there(play: Play, monkeypatch: pytest.MonkeyPatch, oddity: places.Oddity) -> None:
    monkeypatch.setattr(places, "ODDITIES", (oddity,))
    assert play(random.Random(1)) == "the same bytes"
