# SPDX-License-Identifier: Apache-2.0
"""The closed models of a study's profiles: what of it a smaller version leaves out or shortens.

Owns their shape; ``longfat.manifest.profiles`` applies them.
"""

from __future__ import annotations

from pydantic import Field

from longfat.manifest import fields as f
from longfat.manifest.closed import Closed


class Thinning(Closed):
    """How a profile thins an experiment; it never adds a run or lengthens one."""

    repetitions: f.Count | None = Field(default=None, description="at most so many repetitions")
    duration: f.Length | None = Field(
        default=None, description="no flow sends, and no web user asks, for longer than this"
    )
    starts: f.Share | None = Field(
        default=None, description="flows and web users start after this part of their `start` (default 100 %)"
    )
    keep: dict[f.FactorName, tuple[f.FactorValue, ...]] = Field(default={}, description="factor values that remain")


class Profile(Thinning):
    """A smaller version of the study; an experiment's own entry goes before the general one."""

    leave_out: tuple[str, ...] = Field(default=(), description="ids of experiments that are not run at all")
    experiments: dict[str, Thinning] = Field(default={}, description="entries for single experiments, by id")


class Profiles(Closed):
    """The thinned versions; `paper` always is the manifest as written."""

    smoke: Profile = Field(default=Profile(), description="at most two minutes")
    quick: Profile = Field(default=Profile(), description="the default")
