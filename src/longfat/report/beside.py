# SPDX-License-Identifier: Apache-2.0
"""A study's verdicts under two stacks, or of a kernel and of a simulator, side by side.

Owns how they are compared and how that is worded. Must not judge: both sides are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from longfat.plan.model import Plan
from longfat.report.reference import OtherStack

MODERN = "modern"  # the one stack that is no era's
HOLDS = ("reproduced", "agrees")


@dataclass(frozen=True)
class Beside:
    """The comparison for the report; ``verdicts`` has each claim's word on the other side, "" for none."""

    column: str
    stack: str
    heading: str
    summary: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    verdicts: Mapping[str, str]


def beside(plan: Plan, own: Mapping[str, str], other: OtherStack) -> Beside:
    """Compare the plan's verdicts with others', the era's stack named first; of one stack it is two backends."""
    verdicts = {claim: other.verdicts.get(claim, "") for claim in own}
    judged = [claim for claim in own if verdicts[claim]]
    same = [claim for claim in judged if own[claim] == verdicts[claim]]
    here = tuple(claim for claim in judged if own[claim] in HOLDS and verdicts[claim] not in HOLDS)
    there = tuple(claim for claim in judged if verdicts[claim] in HOLDS and own[claim] not in HOLDS)
    rest = tuple(claim for claim in judged if claim not in {*same, *here, *there})
    backends = plan.stack == other.stack
    kind, own_name, other_name = ("stack", plan.stack, other.stack)
    if backends:
        kind, own_name, other_name = ("backend", plan.pins.get("backend", "none"), other.backend)
    only = [(own_name, here), (other_name, there)]
    only.sort(key=lambda item: item[0] == MODERN)
    heading = f"{kind.capitalize()} {own_name} beside {kind} {other_name}"
    if MODERN in (plan.stack, other.stack) and not backends:
        heading = "Today's stack beside the era's"
    groups = [(f"{len(claims)} only under {name}", claims) for name, claims in only]
    groups += [(f"{len(rest)} under neither, with different verdicts", rest)] if rest else []
    whose = "the same profile" if other.profile == plan.profile else f"profile {other.profile}"
    summary = (
        f"The last column is the verdict of the reference under {kind} {other_name} ({whose}). Of {len(judged)} claims"
        f" that were judged under both {kind}s {len(same)} have the same verdict. Reproduced are:"
    )
    return Beside(f"Other {kind}", other_name, heading, summary, tuple(groups), verdicts)
