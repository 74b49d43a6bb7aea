# SPDX-License-Identifier: Apache-2.0
"""The base of all models of a study's files."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Closed(BaseModel):
    """An immutable mapping without unknown keys; ``examples`` are shown in the reference."""

    examples: ClassVar[tuple[str, ...]] = ()

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
