# SPDX-License-Identifier: Apache-2.0
"""A kernel of ``kernels/`` with patches from the study's folder."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PlainValidator, ValidationInfo, WithJsonSchema

from longfat.study import catalogued as c
from longfat.study.catalog.kernels import DEFAULT_KERNEL, OwnKernel, Piece
from longfat.study.schema.closed import Closed
from longfat.study.schema.fields import fault
from longfat.study.schema.names import shown
from longfat.study.traffic.own import own_file


def _read(given: object, info: ValidationInfo) -> Piece:
    if not isinstance(given, str) or not given.strip():
        raise fault(f"{shown(given)} is not the name of a file")
    return own_file((info.context or {})["folder"], given)


Patch = Annotated[Piece, PlainValidator(_read), WithJsonSchema({"type": "string", "pattern": r"\S"})]


class Kernel(Closed):
    """A kernel with patches of the study."""

    base: c.BaseKernelName = Field(
        default=DEFAULT_KERNEL, description=f"kernel that is patched, a name of `kernels/` (default {DEFAULT_KERNEL})"
    )
    patches: tuple[Patch, ...] = Field(
        min_length=1,
        description="files of the study's folder, as `git format-patch` makes them; they are applied in this order, "
        "after the patches of `base`",
    )

    @property
    def own(self) -> OwnKernel:
        """The kernel to build."""
        return OwnKernel(self.base, self.patches)
