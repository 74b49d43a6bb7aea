# SPDX-License-Identifier: Apache-2.0
"""The identity of code depends on behaviour, not on comments, layout or the version of Python."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

import pytest

from longfat.backends import hosts
from longfat.system.identity import canonical, code_identity, package_sources

# Its digest was the same under 3.11, 3.12 and 3.13.
SNIPPET = (Path(__file__).parents[1] / "data" / "python-3.11-snippet.txt").read_text(encoding="utf-8")
DIGEST = "b30425df7e6a2bd30b8c8cd9abb1e5cba3766f17b37fc2981c12ceeb9fc335f8"

FUNCTION = '''\
import os


def share(part: int, whole: int = 100, *, digits: int = 2) -> float:
    """The share in percent."""
    if part > whole:
        raise ValueError(f"{part} of {whole}")
    text = "a " "text"
    return round(100 * part / whole, digits)
'''


def test_the_canonical_form_of_a_fixed_snippet_is_the_same_under_every_python() -> None:
    assert hashlib.sha256(canonical(SNIPPET).encode()).hexdigest() == DIGEST


def test_the_fixed_snippet_has_every_kind_of_statement_expression_pattern_and_operator() -> None:
    abstract = (ast.stmt, ast.expr, ast.pattern, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)
    known = {kind.__name__ for base in abstract for kind in base.__subclasses__()}
    came_later = {"TypeAlias", "TemplateStr", "Interpolation"}
    gone = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis"}  # of 3.7, which 3.11 still names
    assert known - came_later - gone == known & {type(node).__name__ for node in ast.walk(ast.parse(SNIPPET))}


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ('    """The share in percent."""\n', "", True),
        ("The share in percent.", "Which part of the whole it is.", True),
        ("import os", '"""A module."""\n\nimport os\n\n"Words between."', True),
        ('text = "a " "text"', "text = (\n        'a text'\n    )", True),
        ("whole: int = 100, *,", "whole: int = 1_00,\n    *,", True),
        ("    if part", "    pass\n    if part", True),
        ("int = 100", "int = 99", False),
        ("digits: int = 2", "digits: int", False),
        (", *, digits", ", digits", False),
        ("{part} of", "{part!r} of", False),
    ],
)
def test_words_and_layout_change_nothing_and_a_change_of_behaviour_does(before: str, after: str, same: bool) -> None:
    assert before in FUNCTION
    assert (canonical(FUNCTION.replace(before, after)) == canonical(FUNCTION)) is same


def test_an_identity_covers_the_names_of_the_files(tmp_path: Path) -> None:
    for name in ("one.py", "other.py"):
        (tmp_path / name).write_text(FUNCTION)
    one, other = (code_identity(tmp_path, [tmp_path / name]) for name in ("one.py", "other.py"))
    assert one != other


def test_no_code_with_an_identity_reads_docstrings() -> None:
    texts = [path.read_text(encoding="utf-8") for path in package_sources(hosts.MODULES)]
    assert len(texts) > 30
    assert not any("__doc__" in text for text in texts)
