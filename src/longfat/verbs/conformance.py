# SPDX-License-Identifier: Apache-2.0
"""The verb ``conformance``: the study `_laws` reproduced, and how many of its laws the kernel meets."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from longfat.relations.judge import Verdict, read_verdicts
from longfat.verbs.conclude import EVERYTHING, Show, reproduce
from longfat.verbs.run import Machine, results_path
from longfat.verbs.say import say
from longfat.verbs.study import Choices, find_study

STUDY = "_laws"


def conformance(machine: Machine, console: Console, show: Show = EVERYTHING) -> bool:
    """Whether every run is valid, and every law is met or deviates as its claim states."""
    valid = reproduce(STUDY, Choices(), machine, console, show=show)
    verdicts = read_verdicts(results_path(find_study(STUDY), machine.results, machine.backend))
    unmet = [verdict for verdict in verdicts if not (met(verdict) or verdict.deviation)]
    for verdict in unmet:
        say(console, f"{verdict.claim}: {verdict.reason}")
    say(console, counted(verdicts))
    return valid and not unmet


def met(verdict: Verdict) -> bool:
    """Whether the kernel does what the law says."""
    return verdict.verdict == "reproduced"


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many laws are met, deviate as stated, or neither."""
    of_law, as_stated = sum(map(met, verdicts)), sum(verdict.deviation is not None for verdict in verdicts)
    other = len(verdicts) - of_law - as_stated
    return f"{len(verdicts)} laws: {of_law} met, {as_stated} deviate as stated, {other} neither"
