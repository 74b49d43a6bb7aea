# SPDX-License-Identifier: Apache-2.0
"""The study of docs/own-algorithm.md, written as the page says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/own-algorithm.md"
_FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.M | re.S)


def write_study(folder: Path) -> Path:
    """Write the page's files into a folder; the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _FILE.findall(PAGE.read_text(encoding="utf-8")):
        (folder / name).write_text(text, encoding="utf-8")
    return folder
