# SPDX-License-Identifier: Apache-2.0
"""The verdicts of a study under today's stack and under the stack of the paper's era, by the committed evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from longfat.evidence.judged import Evidenced

MODERN = "modern"
"""The stack of the kernel without changes."""
HOLDS = ("reproduced", "agrees")
DECIDED = (*HOLDS, "not_reproduced")


@dataclass(frozen=True)
class Comparison:
    """The claims that hold under one of two stacks only; ``words`` has each claim's verdict under the other stack."""

    stack: str
    summary: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    words: Mapping[str, str]


def compare_stacks(own: Evidenced, other: Evidenced) -> Comparison:
    """Compare the verdicts that both stacks decide; the era's stack comes first in the groups."""
    words = {item.verdict.claim: item.verdict.verdict for item in other.judged}
    judged = [
        item.verdict for item in own.judged if item.verdict.verdict in DECIDED and words[item.verdict.claim] in DECIDED
    ]
    here = tuple(one.claim for one in judged if one.verdict in HOLDS and words[one.claim] not in HOLDS)
    there = tuple(one.claim for one in judged if one.verdict not in HOLDS and words[one.claim] in HOLDS)
    only = sorted([(own.stack, here), (other.stack, there)], key=lambda item: item[0] == MODERN)
    return Comparison(
        stack=other.stack,
        summary=f"Of {len(judged)} claims that the evidence decides under both stacks, "
        f"{len(judged) - len(here) - len(there)} have the same verdict. Reproduced are:",
        groups=tuple((f"{len(claims)} only under {stack}", claims) for stack, claims in only),
        words=words,
    )
