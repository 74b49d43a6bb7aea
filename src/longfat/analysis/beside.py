# SPDX-License-Identifier: Apache-2.0
"""A study's verdicts under two stacks, side by side.

Owns how they are compared and how that is worded. Must not judge: both sides are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from longfat.analysis.reference import OtherStack
from longfat.plan.model import Plan

MODERN = "modern"  # the one stack that is no era's
HOLDS = "reproduced"


@dataclass(frozen=True)
class Beside:
    """The comparison for the report; ``verdicts`` has each claim's word under the other stack, "" for none."""

    stack: str
    heading: str
    summary: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    verdicts: Mapping[str, str]


def beside(plan: Plan, own: Mapping[str, str], other: OtherStack) -> Beside:
    """Compare the verdicts of the plan's stack with those of another, the era's stack named first."""
    verdicts = {claim: other.verdicts.get(claim, "") for claim in own}
    judged = [claim for claim in own if verdicts[claim]]
    same = [claim for claim in judged if own[claim] == verdicts[claim]]
    here = tuple(claim for claim in judged if own[claim] == HOLDS != verdicts[claim])
    there = tuple(claim for claim in judged if verdicts[claim] == HOLDS != own[claim])
    rest = tuple(claim for claim in judged if claim not in {*same, *here, *there})
    only = [(plan.stack, here), (other.stack, there)]
    only.sort(key=lambda item: item[0] == MODERN)
    heading = f"Stack {plan.stack} beside stack {other.stack}"
    if MODERN in (plan.stack, other.stack):
        heading = "Today's stack beside the era's"
    groups = [(f"{len(claims)} only under {stack}", claims) for stack, claims in only]
    groups += [(f"{len(rest)} under neither, with different verdicts", rest)] if rest else []
    whose = "the same profile" if other.profile == plan.profile else f"profile {other.profile}"
    summary = (
        f"The last column is the verdict of the reference under stack {other.stack} ({whose}). Of {len(judged)} claims"
        f" that were judged under both stacks {len(same)} have the same verdict. Reproduced are:"
    )
    return Beside(other.stack, heading, summary, tuple(groups), verdicts)
