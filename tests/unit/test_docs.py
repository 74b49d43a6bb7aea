# SPDX-License-Identifier: Apache-2.0
"""The documentation's pictures are of today's evidence, and its site has every page once."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


DRAW, SITE = module(DOCS / "pictures/draw.py"), module(DOCS / "site/build.py")


@pytest.mark.parametrize("name", [*DRAW.PICTURES, *DRAW.STUDIES])
def test_a_picture_is_drawn_from_todays_evidence(name: str) -> None:
    text = (DOCS / "pictures" / name).read_text(encoding="utf-8")
    assert DRAW.digest_of(name) in text, "python docs/pictures/draw.py draws it anew"


def test_the_site_has_every_document_and_what_it_leads_to_once(tmp_path: Path) -> None:
    SITE.assemble(tmp_path)
    pages = [page for section in SITE.nav(tmp_path) for own in section.values() for page in own]
    assert len(set(pages)) == len(pages)
    assert set(pages) == {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")}
    assert {path.name for path in (tmp_path / "docs/pictures").iterdir()} == {*DRAW.PICTURES, *DRAW.STUDIES}
