# SPDX-License-Identifier: Apache-2.0
"""The base of all models of a manifest and of the files next to it. Owns the meaning of closed, and nothing else."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Closed(BaseModel):
    """A mapping that takes no other keys than its own, and cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
