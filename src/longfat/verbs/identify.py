# SPDX-License-Identifier: Apache-2.0
"""The verb ``identify``: for which values of what a paper does not state its claims hold, found by runs."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.backends.registry import open_backend
from longfat.errors import StudyError
from longfat.evidence.conditions import conditions
from longfat.evidence.epochs import FOLDER, Combination, Epoch, read_epochs
from longfat.evidence.next_step import Chooser
from longfat.evidence.regions import HOLDS, At, next_value, regions, where_all_hold
from longfat.manifest.names import unknown as unknown_name
from longfat.manifest.unknowns import Unknown
from longfat.relations.claims import Claim
from longfat.relations.judge import Verdict
from longfat.runspec import Scalar
from longfat.studies import StudyFolder
from longfat.verbs.decide import Wanted, check_names, ground_of, run_step
from longfat.verbs.evidence import epoch_for, write_findings, write_page
from longfat.verbs.places import repository_root
from longfat.verbs.say import print_json, say
from longfat.verbs.study import find_study, job_count

FORMAT = 1
MOST_STEPS = 3  # of runs at one value: what is open then is left open there


def identify(name: str, unknown: str, wanted: Wanted, console: Console, *, as_json: bool = False) -> bool:
    """Find by runs where the claims of ``wanted`` hold, until that is known well enough or the budget is spent.

    Whether no run failed on the way. Raises StudyError for an unknown or claims that there are not.
    """
    begun = time.monotonic()
    folder = find_study(name)
    folder.check()
    one, claims = _unknown(unknown, folder.header.unknowns), folder.claims
    if not wanted.claims:
        raise StudyError("no claims are named", where="--on", hint="give those that are to identify the value")
    check_names(wanted.claims, claims)
    jobs = job_count(wanted.jobs)
    backend = open_backend(wanted.backend, {}, say=console.print)
    epoch = epoch_for(Combination.of(backend.pins()), jobs, console)
    tried: list[At] = []
    while (value := next_value(wanted.claims, tried, one)) is not None:
        left = None if wanted.budget is None else wanted.budget - (time.monotonic() - begun)
        if left is not None and left <= 0:
            say(console, f"the budget is spent; next would be {unknown} = {value}")
            break
        here = folder.assuming({unknown: value})
        chooser, complete = _decided(
            here, dataclasses.replace(wanted, budget=left), claims, backend, epoch, jobs, console
        )
        if not complete:
            return False
        tried.append(_show(unknown, value, chooser, wanted.claims, console))
    write_page(folder)
    write_findings(console)
    _conclude(unknown, one, wanted.claims, tried, console)
    if as_json:
        outcomes = {claim: [(at.value, at.outcome(claim)) for at in tried] for claim in wanted.claims}
        print_json(_data(name, [{"unknown": unknown, "assumed": one.default, "claims": outcomes}]))
    return True


def known(name: str, console: Console, *, as_json: bool = False) -> bool:
    """Print from the committed evidence alone what each unknown of a study decides."""
    folder = find_study(name)
    rows = []
    for one in conditions(folder, read_epochs(repository_root() / FOLDER)):
        unknown = one.unknown
        say(
            console,
            f"{one.name}: {unknown.what}; {unknown.default} is assumed, {unknown.plausible} are plausible: "
            f"{unknown.source}",
        )
        for claim, found in one.claims.items():
            say(console, f"  {claim}: {', '.join(map(str, found))}")
        if len(one.tried) < 2:
            say(console, "  no evidence of another value")
        elif not one.claims:
            say(console, "  no claim that was measured at every value depends on it")
        claims = {claim: [dataclasses.asdict(region) for region in found] for claim, found in one.claims.items()}
        rows.append({"unknown": one.name, "assumed": unknown.default, "tried": list(one.tried), "claims": claims})
    if as_json:
        print_json(_data(name, rows))
    return True


def _data(study: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"format": FORMAT, "study": study, "unknowns": rows}


def _decided(
    folder: StudyFolder,
    wanted: Wanted,
    claims: Sequence[Claim],
    backend: Backend,
    epoch: Epoch,
    jobs: int,
    console: Console,
) -> tuple[Chooser, bool]:
    """The claims on the evidence of one value, after the steps that decide them most cheaply; whether no run failed."""
    for _ in range(MOST_STEPS):
        chooser = Chooser(ground_of(folder, epoch, wanted), claims, wanted.claims)
        step = chooser.step(settle=False)
        if step is None:
            return chooser, True
        if not run_step(folder, wanted, step, backend, epoch, jobs, console):
            return chooser, False
    return Chooser(ground_of(folder, epoch, wanted), claims, wanted.claims), True


def _show(unknown: str, value: Scalar, chooser: Chooser, claims: Sequence[str], console: Console) -> At:
    at = At(value, {name: chooser.verdicts[name].verdict for name in claims})
    for name in claims:
        say(console, f"{unknown} = {value}: {name} {at.outcome(name)}: {_measured(chooser.verdicts[name])}")
    return at


def _conclude(unknown: str, one: Unknown, claims: Sequence[str], tried: Sequence[At], console: Console) -> None:
    for claim in claims:
        found = regions(claim, tried, one)
        if all(region.outcome != HOLDS for region in found):
            say(console, f"{claim} holds at no value of {unknown} that was tried")
        else:
            say(console, f"{claim} {', '.join(map(str, found))}")
    values = where_all_hold(claims, tried, one)
    say(console, f"all hold at {unknown} = {', '.join(map(str, values)) or 'no value'}")


def _unknown(name: str, unknowns: Mapping[str, Unknown]) -> Unknown:
    if name not in unknowns:
        message, hint = unknown_name("unknown", name, unknowns)
        raise StudyError(message, hint=hint)
    return unknowns[name]


def _measured(verdict: Verdict) -> str:
    """What was measured in each comparison, and what is allowed."""
    parts = [
        f"{item.mean:.5g}, allowed {item.limit} {item.unit}".rstrip()
        for item in verdict.evidence
        if item.mean is not None
    ]
    return "; ".join(parts) or str(verdict.reason)
