# SPDX-License-Identifier: Apache-2.0
"""Identities: of Python code, a digest of its behaviour, and of a kernel, the release of its source.

Owns the canonical form of code: the syntax tree without places, comments, docstrings and statements that do nothing. It
is the same under every version of Python that can read the source, unlike ``ast.dump``: fields are listed by name, and
fields that are empty, or that not every version has, are left out.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent

WORDS = ("kind", "type_comment", "type_ignores")
"""Fields of a syntax tree that have no effect: the prefix of u"", comments for type checkers."""


@dataclass(frozen=True)
class KernelSource:
    """The release that a kernel was built from, and whether it is the pinned release, that of the references.

    ``patches`` has those of the project's series, in their order, and ``own`` the files that the study adds, each with
    its SHA-256 (hex). ``name`` is the kernel's name in ``kernels/``.
    """

    version: str
    pinned: bool
    own: Mapping[str, str] = field(default_factory=dict)
    patches: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    def __str__(self) -> str:
        release = f"Linux {self.version}, {'the pinned release' if self.pinned else 'not the pinned release'}"
        release = f"{self.name}: {release}" if self.name else release
        own = ", ".join(f"{name} ({digest[:12]})" for name, digest in self.own.items())
        return f"{release}, with {own} of the study" if own else release


def package_sources(names: Iterable[str]) -> list[Path]:
    """Return the Python files of this package that ``names`` lists, with all files of each folder among them."""
    found = []
    for name in names:
        path = PACKAGE / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def code_identity(root: Path, paths: Iterable[Path]) -> str:
    """SHA-256 (hex) over the canonical forms of Python files and their names under ``root``."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.relative_to(root)}\0{canonical(path.read_text(encoding='utf-8'))}\0".encode())
    return digest.hexdigest()


def canonical(source: str) -> str:
    """The canonical form of a module's source. Raises SyntaxError."""
    return _form(ast.parse(source))


def _form(value: Any) -> str:
    if isinstance(value, ast.JoinedStr):
        return f"JoinedStr({_form(list(_parts(value)))})"
    if isinstance(value, ast.AST):
        fields = [(name, child) for name, child in sorted(ast.iter_fields(value)) if name not in WORDS]
        if not isinstance(value, ast.Constant):
            fields = [(name, child) for name, child in fields if not _is_empty(child)]
        return f"{type(value).__name__}({','.join(f'{name}={_form(child)}' for name, child in fields)})"
    if isinstance(value, list):
        return f"[{','.join(_form(item) for item in value if not _does_nothing(item))}]"
    return ascii(value)


def _is_empty(child: Any) -> bool:
    """Whether a field is empty; the use of a name follows from its place."""
    return child is None or child == [] or isinstance(child, ast.expr_context)


def _does_nothing(item: Any) -> bool:
    """Whether a statement is a docstring, any other lone constant, or ``pass``."""
    return isinstance(item, ast.Pass) or (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))


def _parts(joined: ast.JoinedStr) -> Iterator[ast.expr]:
    """The parts of an f-string; versions differ in how many constants a stretch of its text is divided into."""
    text = ""
    for part in joined.values:
        if isinstance(part, ast.Constant):
            text += str(part.value)
            continue
        if text:
            yield ast.Constant(text)
        text = ""
        yield part
    if text:
        yield ast.Constant(text)
