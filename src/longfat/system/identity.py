# SPDX-License-Identifier: Apache-2.0
"""Identities: digests of Python code by its behaviour, and the release of a kernel's source.

Owns the canonical form of code: the syntax tree without positions, comments, docstrings and no-ops. Unlike ``ast.dump``
it does not depend on the version of Python: fields are listed by name, and fields that are empty or absent in some
versions are left out.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]

WORDS = ("kind", "type_comment", "type_ignores")
"""Fields of a syntax tree without effect: the prefix of u"", comments for type checkers."""


@dataclass(frozen=True)
class KernelSource:
    """The source of a kernel: its release, and whether that is the pinned release behind the evidence.

    ``patches`` are the patches of the project's series, in order, and ``own`` the files of the study, each with its
    SHA-256 (hex). ``name`` is the kernel's name in ``kernels/``.
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
    """Return the Python files of this package in ``names``, which are files and folders."""
    found = []
    for name in names:
        path = PACKAGE / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def code_identity(root: Path, paths: Iterable[Path]) -> str:
    """Return the SHA-256 (hex) of the canonical forms of Python files and their names under ``root``."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.relative_to(root)}\0{canonical(path.read_text(encoding='utf-8'))}\0".encode())
    return digest.hexdigest()


def canonical(source: str) -> str:
    """Return the canonical form of a module's source. Raises SyntaxError."""
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
    """Return whether a field is empty, or a context, which follows from the position."""
    return child is None or child == [] or isinstance(child, ast.expr_context)


def _does_nothing(item: Any) -> bool:
    """Return whether a statement is a docstring, another constant, or ``pass``."""
    return isinstance(item, ast.Pass) or (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))


def _parts(joined: ast.JoinedStr) -> Iterator[ast.expr]:
    """Yield the parts of an f-string with adjacent constants joined, which versions of Python split differently."""
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
