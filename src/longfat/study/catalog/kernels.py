# SPDX-License-Identifier: Apache-2.0
"""Names of kernels, each with a folder in ``kernels/``, and the files that a study adds to one of them.

Source, patches and configuration of a kernel are in its folder.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

DEFAULT_KERNEL = "linux-6.12"
"""Kernel of the profile ``modern``: HZ=1000."""

ERA_KERNEL = "linux-6.12-hz100"
"""Kernel of the profile ``linux-2.4``: source and patches of ``DEFAULT_KERNEL``, with HZ=100."""

STACK_KERNELS = (DEFAULT_KERNEL, ERA_KERNEL)
"""Kernels of the profiles."""

KERNELS: tuple[str, ...] = (*STACK_KERNELS, "linux-7.3")


@dataclass(frozen=True)
class Piece:
    """A file of a study that becomes part of a kernel: its name in the study's folder, its path, its SHA-256 (hex)."""

    name: str
    path: Path
    sha256: str


@dataclass(frozen=True)
class Tree:
    """A git repository of kernel source: its folder on this machine, and the commit that is built (40 hex digits)."""

    path: Path
    commit: str


@dataclass(frozen=True)
class OwnKernel:
    """A kernel of ``kernels/`` with files of a study: patches in their order, and C files with one algorithm each.

    A ``tree`` replaces the source of ``base``; patches and configuration of ``base`` remain.
    """

    base: str = DEFAULT_KERNEL
    patches: tuple[Piece, ...] = ()
    sources: tuple[Piece, ...] = ()
    tree: Tree | None = None

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All files of the study."""
        return (*self.patches, *self.sources)

    @property
    def changed(self) -> bool:
        """Whether the kernel is not the one in ``kernels/``."""
        return bool(self.pieces or self.tree)

    @property
    def name(self) -> str:
        """Name in the pins of runs until the kernel is built: ``base``, plus a digest of the study's changes, if any.

        The digest depends on the commit of a tree and the content of files, not on their paths.
        """
        if not self.changed:
            return self.base
        digest = hashlib.sha256(self.tree.commit.encode() if self.tree else b"")
        for piece in self.pieces:
            digest.update(f"{piece.path.name}\0{piece.sha256}\0".encode())
        return f"{self.base}{OWN}{digest.hexdigest()[:16]}"


OWN = "+"
"""Separator in the names of kernels with files of a study."""
