# SPDX-License-Identifier: Apache-2.0
"""Rendering of self-contained pages, from a template and the common style sheet ``page.css``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import markupsafe

from longfat.relations.counting import apart
from longfat.report.findings import GLYPHS
from longfat.report.forest import HEIGHT, WIDTH
from longfat.report.numbers import allowed, measured
from longfat.system.files import write_whole

# A page needs no network, whatever text of a study it has; the front page has pictures next to it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src 'self' file: data:"


def render(template: str, **values: Any) -> str:
    """Render a template of this folder; in HTML the text of values is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=jinja2.select_autoescape(("html.j2",)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "words": words,
        "slug": slug,
        "unbroken": unbroken,
        "cell": cell,
        "measured": measured,
        "allowed": allowed,
    }
    environment.globals |= {"asset": asset, "apart": apart}
    environment.globals |= {"glyphs": GLYPHS, "forest_size": (WIDTH, HEIGHT), "policy": POLICY}
    return environment.get_template(template).render(values)


def asset(name: str) -> markupsafe.Markup:
    """Return a style sheet or a script of this folder, to become part of a page."""
    return markupsafe.Markup((Path(__file__).parent / name).read_text(encoding="utf-8"))


def words(name: str) -> str:
    """Format a name from a file for people."""
    return name.replace("_", " ")


def slug(word: str) -> str:
    """Return an outcome's word as the name of a CSS class."""
    return word.replace(" ", "-")


def cell(text: str) -> str:
    """Format a text for a cell of a table in Markdown."""
    return " ".join(text.replace("|", "\\|").split())


def unbroken(text: str) -> str:
    """Prevent a line break between a number and its deviation; n may follow on the next line."""
    for mark in ("\N{PLUS-MINUS SIGN}", "="):
        text = text.replace(f" {mark} ", f"\N{NO-BREAK SPACE}{mark}\N{NO-BREAK SPACE}")
    return text


def write_page(path: Path, page: str) -> Path:
    """Write a page atomically; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A file's name that is not valid in the locale's encoding is written as its bytes.
    write_whole(path, page.encode("utf-8", "surrogateescape"))
    return path
