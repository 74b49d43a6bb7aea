# SPDX-License-Identifier: Apache-2.0
"""The verb ``identify``: for which values of what a paper does not state its claims hold, found by runs."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.backends.registry import open_backend
from longfat.errors import StudyError
from longfat.evidence.epochs import FOLDER, Combination, Epoch, read_epochs
from longfat.evidence.judged import evidence_of
from longfat.evidence.next_step import Chooser
from longfat.evidence.regions import HOLDS, At, next_value, regions, values_in, where_all_hold
from longfat.evidence.store import epochs_with_evidence, read_rows
from longfat.manifest.names import unknown as unknown_name
from longfat.manifest.unknowns import Unknown
from longfat.relations.claims import Claim
from longfat.relations.evaluate import Evidence
from longfat.relations.judge import Verdict
from longfat.runspec import Scalar
from longfat.studies import StudyFolder
from longfat.verbs.decide import Wanted, check_names, ground_of, run_step
from longfat.verbs.evidence import epoch_for, write_page
from longfat.verbs.places import repository_root
from longfat.verbs.say import say
from longfat.verbs.study import find_study, job_count

MOST_STEPS = 3  # of runs at one value: what is open then is left open there


def identify(name: str, unknown: str, wanted: Wanted, console: Console) -> bool:
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
    _conclude(unknown, one, wanted.claims, tried, console)
    return True


def known(name: str, console: Console) -> bool:
    """Print from the committed evidence alone what each unknown of a study decides."""
    folder = find_study(name)
    epochs = read_epochs(repository_root() / FOLDER)
    with_evidence = epochs_with_evidence(folder.path)
    for unknown, one in folder.header.unknowns.items():
        say(console, f"{unknown}: {one.what}; {one.default} is assumed, {one.plausible} are plausible: {one.source}")
        tried: list[At] = []
        told: dict[str, list[tuple[Evidence, ...]]] = {}
        for value in values_in(_assumed(folder, with_evidence[-1]), unknown, one) if with_evidence else ():
            found = evidence_of(folder.assuming({unknown: value}), epochs)
            verdicts = [judged.verdict for judged in found.judged if judged.profile] if found else []
            tried.append(At(value, {verdict.claim: verdict.verdict for verdict in verdicts}))
            for verdict in verdicts:
                told.setdefault(verdict.claim, []).append(verdict.evidence)
        if len(tried) < 2:
            say(console, "  no evidence of another value")
            continue
        # A claim that says the same at every value, to the last digit, does not depend on it.
        depends = [
            claim for claim, each in told.items() if len(each) == len(tried) and any(one != each[0] for one in each)
        ]
        for claim in depends:
            say(console, f"  {claim}: {', '.join(map(str, regions(claim, tried, one)))}")
        if not depends:
            say(console, "  no claim that was measured at every value depends on it")
    return True


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


def _assumed(folder: StudyFolder, epoch: str) -> Iterator[Mapping[str, Scalar]]:
    for rows in read_rows(folder.path, folder.header.study, epoch).values():
        yield from (row.assuming for row in rows.values())


def _measured(verdict: Verdict) -> str:
    """What was measured in each comparison, and what is allowed."""
    parts = [
        f"{item.mean:.5g}, allowed {item.limit} {item.unit}".rstrip()
        for item in verdict.evidence
        if item.mean is not None
    ]
    return "; ".join(parts) or str(verdict.reason)
