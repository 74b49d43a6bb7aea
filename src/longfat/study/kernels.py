# SPDX-License-Identifier: Apache-2.0
"""A kernel of ``kernels/`` with patches from the study's folder."""

from __future__ import annotations

from pydantic import Field, PrivateAttr, ValidationError, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from longfat.study import catalogued as c
from longfat.study.catalog.kernels import DEFAULT_KERNEL, OwnKernel, Piece
from longfat.study.schema import fields as f
from longfat.study.schema.closed import Closed
from longfat.study.traffic.own import own_file


class Kernel(Closed):
    """A kernel with patches of the study."""

    base: c.BaseKernelName = Field(
        default=DEFAULT_KERNEL, description=f"kernel that is patched, a name of `kernels/` (default {DEFAULT_KERNEL})"
    )
    patches: tuple[f.Text, ...] = Field(
        min_length=1,
        description="files of the study's folder, as `git format-patch` makes them; they are applied in this order, "
        "after the patches of `base`",
    )
    _pieces: tuple[Piece, ...] = PrivateAttr(default=())

    @property
    def own(self) -> OwnKernel:
        """The kernel to build."""
        return OwnKernel(self.base, self._pieces)

    @model_validator(mode="after")
    def _read_patches(self, info: ValidationInfo) -> Kernel:
        pieces, faults = [], []
        for index, name in enumerate(self.patches):
            try:
                pieces.append(own_file((info.context or {})["folder"], name))
            except PydanticCustomError as error:
                faults.append(InitErrorDetails(type=error, loc=("patches", index), input=name))
        if faults:
            raise ValidationError.from_exception_data("Kernel", faults)
        self._pieces = tuple(pieces)
        return self
