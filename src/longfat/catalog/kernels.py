# SPDX-License-Identifier: Apache-2.0
"""The named kernels that a study may ask for: a folder of ``kernels/`` for each, and what a study adds to one of them.

Which source, patches and configuration a kernel has is in its folder.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from pathlib import Path

from longfat.errors import StudyError

DEFAULT_KERNEL = "linux-6.12"
"""Kernel of today's stack: HZ=1000."""

ERA_KERNEL = "linux-6.12-hz100"
"""Kernel of the stack of Linux 2.4: the source and the patches of ``DEFAULT_KERNEL``, with HZ=100."""

STACK_KERNELS = (DEFAULT_KERNEL, ERA_KERNEL)
"""Kernels of the stacks."""

KERNELS: tuple[str, ...] = (*STACK_KERNELS, "linux-7.3")


@dataclass(frozen=True)
class Piece:
    """A file of a study that becomes part of a kernel: its name in the study's folder, its place, its SHA-256 (hex)."""

    name: str
    path: Path
    sha256: str


@dataclass(frozen=True)
class OwnKernel:
    """A kernel of ``kernels/`` with what a study adds: patches in their order, and C files with an algorithm each."""

    base: str = DEFAULT_KERNEL
    patches: tuple[Piece, ...] = ()
    sources: tuple[Piece, ...] = ()

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All that the study adds."""
        return (*self.patches, *self.sources)

    @property
    def name(self) -> str:
        """What runs pin that no digest is known for: ``base``, with a digest of what is added to it, if anything is.

        Other content is another name, and another place of the same file is not.
        """
        if not self.pieces:
            return self.base
        digest = hashlib.sha256()
        for piece in self.pieces:
            digest.update(f"{piece.path.name}\0{piece.sha256}\0".encode())
        return f"{self.base}{OWN}{digest.hexdigest()[:16]}"


OWN = "+"
"""What only the names of kernels have that a study adds something to."""


def require_kernel(name: str) -> None:
    """Raise StudyError, with the names there are, unless ``name`` is one of them."""
    if name not in KERNELS:
        near = difflib.get_close_matches(name, KERNELS, n=1)
        raise StudyError(
            f"unknown kernel {name!r}; allowed: {', '.join(KERNELS)}",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )
