# SPDX-License-Identifier: Apache-2.0
"""A converted document as text, with a proof that it reads back as intended."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from longfat.manifest.rewrite import rewritten
from longfat.manifest.source import read_source


def document_text(path: Path, section: str, entries: Sequence[Mapping[str, object]]) -> str:
    """The text of the file in format 2 with the section's new entries; comments stay above their entries."""
    text = rewritten(path.read_text(encoding="utf-8"), read_source(path), section, entries)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_text(text, encoding="utf-8")
        data = read_source(copy).data
    if data["format"] != 2 or data[section] != entries:
        raise AssertionError(f"{path} is not written as it was meant: please report this file")
    return text
