# SPDX-License-Identifier: Apache-2.0
"""How verbs print: a line of text as it is, and places as links where the terminal can follow them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

WARNING = "yellow"


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print one line: neither wrapped, nor read as markup, nor coloured by what is in it."""
    console.print(text, style=style, soft_wrap=True, markup=False, highlight=False)


def say_place(console: Console, what: str, path: Path) -> None:
    """Print where something is; a terminal that knows OSC 8 makes the path a link."""
    from rich.text import Text  # slow to import, and most of the command's start never prints

    line = Text(f"{what}: ")
    line.append(str(path), style=f"link {path.resolve().as_uri()}")
    console.print(line, soft_wrap=True, highlight=False)


def open_page(console: Console, path: Path) -> None:
    """Show a page in the user's browser, or say why it is not."""
    import webbrowser  # looks for browsers when it is imported

    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        say(console, "not opened: there is no display", WARNING)
    elif not webbrowser.open(path.resolve().as_uri()):
        say(console, "not opened: there is no browser", WARNING)


def print_json(data: Any) -> None:
    """Print data as JSON on standard output, where nothing else goes then."""
    print(json.dumps(data, indent=2))
