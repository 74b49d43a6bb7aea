# SPDX-License-Identifier: Apache-2.0
"""The models of a study's profiles; ``longfat.study.profiles`` applies them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal

from pydantic import Field

from longfat.study.schema import fields as f


class Thinning(f.Closed):
    """The reduction of an experiment by a profile, which never adds a run or lengthens one."""

    repetitions: f.Count | None = Field(default=None, description="greatest number of repetitions")
    duration: f.Length | None = Field(
        default=None, description="longest duration of traffic, and of runs without longer traffic"
    )
    starts: f.Share | None = Field(
        default=None, description="flows and web users start after this fraction of their `start` (default 100 %)"
    )
    keep: dict[f.FactorName, tuple[f.FactorValue, ...]] = Field(default={}, description="factor values to keep")
    rest: Literal["first"] | None = Field(
        default=None,
        description="keep only the first value of every factor that `keep` does not name: of the points that agree in "
        "the named factors, the first",
    )


class Profile(Thinning):
    """A smaller version of the study; entries for experiments take precedence over the general one.

    A name with ``*`` selects every experiment whose id it matches. Of several matching entries a later one takes
    precedence, and the entry with the exact id over all.
    """

    leave_out: tuple[str, ...] = Field(
        default=(), description="experiments that are not run at all, by id or by names such as `sensitivity-*`"
    )
    experiments: dict[str, Thinning] = Field(
        default={},
        description="entries for experiments, by id or by names such as `sensitivity-*`: a later entry takes "
        "precedence over an earlier one, and an entry with the id over all",
    )

    def leaves_out(self, experiment: str) -> bool:
        """Return whether an experiment is not run at all."""
        return any(fnmatchcase(experiment, name) for name in self.leave_out)

    def entries(self, experiment: str) -> tuple[Thinning, ...]:
        """Return the entries for an experiment in ascending precedence, the general entry first."""
        names = sorted((name for name in self.experiments if fnmatchcase(experiment, name)), key=experiment.__eq__)
        return (self, *(self.experiments[name] for name in names))


class Profiles(f.Closed):
    """The thinned versions; `paper` is always the manifest as written."""

    smoke: Profile = Field(default=Profile(), description="at most two minutes")
    quick: Profile = Field(default=Profile(), description="the default")
    steady: Profile = Field(default=Profile(), description="as long as the claims need, and no longer")
