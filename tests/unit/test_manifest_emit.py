# SPDX-License-Identifier: Apache-2.0
"""YAML as it is written: what is emitted reads back, texts have quotes only where they need them."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.manifest.emit import WIDTH, Lines, emitted
from longfat.manifest.source import read_source

LONG = "More than fits on a line: " + "word, " * 30 + "and its end."
TEXTS = [
    "plain",
    "with, a comma",
    "key: value",
    "a #comment",
    "ends with:",
    "5.4e-5",
    "true",
    "null",
    "",
    " space",
    "two  spaces" * 20,
    "${window}",
    "[list]",
    "- item",
    "% of all",
    'say "this"',
    "it's",
    "two\nlines",
    "back\\slash",
    "\N{PLUS-MINUS SIGN} 3",
    LONG,
]


def read(folder: Path, lines: list[str]) -> object:
    path = folder / "some.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_source(path).data


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_reads_back_wherever_it_stands(tmp_path: Path, text: str) -> None:
    data = {"alone": text, "beside": {"one": text, "two": [text, 1]}, "lines": Lines([text, text]), text or "k": 1}
    assert read(tmp_path, emitted(data)) == data


def test_quotes_are_only_where_they_are_needed() -> None:
    assert emitted({"a": "one, two [three]", "b": ["one, two", "one (two)"], "c": "${x}", "62500": "half"}) == [
        "a: one, two [three]",
        'b: ["one, two", one (two)]',
        'c: "${x}"',
        "62500: half",
    ]


def test_a_long_text_is_folded() -> None:
    lines = emitted({"statement": LONG}, 4)
    assert lines[0] == "    statement: >-"
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(line.strip() for line in lines[1:]) == LONG


def test_lines_and_rows_have_their_own_layout() -> None:
    row = [{"of": "x" * 60}, {"of": "y" * 60}]
    assert emitted({"relation": Lines(["a", "b"]), "rows": [row]}) == [
        "relation:",
        "  - a",
        "  - b",
        "rows:",
        "  - [",
        f"    {{of: {'x' * 60}}},",
        f"    {{of: {'y' * 60}}}",
        "  ]",
    ]
