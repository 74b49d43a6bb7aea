# SPDX-License-Identifier: Apache-2.0
"""Makes an HTML page that needs nothing else: a template and the looks that all pages share, ``page.css``."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import jinja2
import markupsafe

from longfat.errors import RigError
from longfat.files import write_whole


def render(template: str, **values: Any) -> str:
    """The page that a template of this folder makes of the values; their text is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=jinja2.select_autoescape(("html.j2",)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["words"] = words
    environment.filters["unbroken"] = unbroken
    environment.filters["cell"] = cell
    environment.globals["asset"] = asset
    return environment.get_template(template).render(values)


def asset(name: str) -> markupsafe.Markup:
    """A style sheet or a program of this folder as it is: part of the page, so that the page needs nothing else."""
    return markupsafe.Markup((Path(__file__).parent / name).read_text(encoding="utf-8"))


def words(name: str) -> str:
    """A name of the files as people read it."""
    return name.replace("_", " ")


def cell(text: str) -> str:
    """Format a text for a cell of a table in Markdown."""
    return " ".join(html.escape(text, quote=False).replace("|", "\\|").split())


def unbroken(text: str) -> str:
    """A number that stays on one line with its deviation; the number of runs may follow on the next."""
    for mark in ("\N{PLUS-MINUS SIGN}", "="):
        text = text.replace(f" {mark} ", f"\N{NO-BREAK SPACE}{mark}\N{NO-BREAK SPACE}")
    return text


def write_page(path: Path, page: str) -> Path:
    """Write the page whole or not at all; give its path. Raises RigError when that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Names of files that are no text in the locale's encoding stand in the page as the bytes that they are.
        write_whole(path, page.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise RigError(f"cannot write the page: {error}", where=str(path)) from error
    return path
