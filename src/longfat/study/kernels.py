# SPDX-License-Identifier: Apache-2.0
"""A kernel of ``kernels/`` with patches from the study's folder, or with the source of a git repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, PlainValidator, ValidationInfo, WithJsonSchema, model_validator

from longfat.study import catalogued as c
from longfat.study.catalog.kernels import DEFAULT_KERNEL, OwnKernel, Piece, Tree
from longfat.study.schema import fields as f
from longfat.study.schema.closed import Closed
from longfat.study.schema.fields import fault
from longfat.study.schema.names import shown
from longfat.study.traffic.own import own_file


def _read(given: object, info: ValidationInfo) -> Piece:
    if not isinstance(given, str) or not given.strip():
        raise fault(f"{shown(given)} is not the name of a file")
    return own_file((info.context or {})["folder"], given)


Patch = Annotated[Piece, PlainValidator(_read), WithJsonSchema({"type": "string", "pattern": r"\S"})]


def _folder(given: object, info: ValidationInfo) -> Path:
    if not isinstance(given, str) or not given.strip():
        raise fault(f"{shown(given)} is not the path of a folder")
    folder: Path = (info.context or {})["folder"]
    return folder / Path(given).expanduser()


Folder = Annotated[Path, PlainValidator(_folder), WithJsonSchema({"type": "string", "pattern": r"\S"})]
COMMIT = re.compile(r"[0-9a-f]{40}")


class Kernel(Closed):
    """A kernel with patches of the study, or with the source of a git repository on this machine."""

    base: c.BaseKernelName = Field(
        default=DEFAULT_KERNEL, description=f"kernel that is patched, a name of `kernels/` (default {DEFAULT_KERNEL})"
    )
    patches: tuple[Patch, ...] = Field(
        default=(),
        description="files of the study's folder, as `git format-patch` makes them; they are applied in this order, "
        "after the patches of `base`",
    )
    tree: Folder | None = Field(
        default=None,
        description="git repository of kernel source, absolute or relative to the study's folder; replaces the source "
        "of `base`, whose patches and configuration remain",
    )
    commit: Annotated[str, f.matching(COMMIT, "a commit; allowed: its 40 hex digits")] | None = Field(
        default=None, description="commit of `tree` that is built, by its 40 hex digits"
    )

    @model_validator(mode="after")
    def _changed(self) -> Self:
        if (self.tree is None) != (self.commit is None):
            raise fault("tree and commit belong together", "`git -C TREE rev-parse HEAD` prints a commit")
        if not self.patches and self.tree is None:
            raise fault("nothing changes the base; needed: patches, or tree and commit")
        return self

    @property
    def own(self) -> OwnKernel:
        """The kernel to build."""
        tree = Tree(self.tree, self.commit) if self.tree and self.commit else None
        return OwnKernel(self.base, self.patches, tree=tree)
