# SPDX-License-Identifier: Apache-2.0
"""``evidence identify``: outcomes of claims at values of a setting that the paper does not state."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from rich.console import Console

from longfat.cli.console import Output, say
from longfat.cli.fill import Wanted, fill_study, ground_of, open_for
from longfat.cli.paths import repository_root
from longfat.cli.rows import baseline_for, write_findings, write_page
from longfat.cli.study import find_study, job_count
from longfat.data.study_folder import StudyFolder
from longfat.evidence.baselines import FOLDER, Combination, read_baselines
from longfat.evidence.collect import require_repeatable
from longfat.evidence.required_values import selections_of_claim
from longfat.evidence.sensitivity import HOLDS, At, conditions, first_values, regions, where_all_hold
from longfat.evidence.stored_dataset import Ground
from longfat.relations.claims import Claim
from longfat.relations.judge import Verdict, decide
from longfat.spec.runspec import Scalar
from longfat.study.schema.names import unknown as unknown_name
from longfat.study.unknowns import Unknown
from longfat.system.errors import StudyError

Named = TypeVar("Named")


def identify_unknown(
    name: str, unknown: str, claims: Sequence[str], at: Sequence[str], wanted: Wanted, out: Output
) -> bool:
    """Execute at each value of an unknown the runs that the claims read, and print the outcomes.

    The values are those ``at``, or else the default and values over the whole range: neither they nor the number of
    repetitions depend on a result. Returns whether every run succeeded. Raises StudyError for an unknown name or value.
    """
    begun = time.monotonic()
    folder = find_study(name)
    folder.check()
    (one,) = _named("unknown", [unknown], folder.header.unknowns, "UNKNOWN")
    if not claims:
        raise StudyError("no claims are named", where="--claims", hint="name the claims that identify the value")
    chosen = _named("claim", claims, {claim.id: claim for claim in folder.claims}, "--claims")
    values = _values(one, at) or first_values(one)
    require_repeatable(wanted.backend)
    backend = open_for(folder, wanted, out)
    baseline = baseline_for(Combination.of(backend.pins()), job_count(wanted.jobs), out)
    tried: list[At] = []
    complete = True
    for value in values:
        here = folder.assuming({unknown: value})
        only = scenarios_of(chosen, ground_of(here, baseline, wanted))
        complete &= fill_study(here, wanted, backend, baseline, out, begun=begun, only=only)
        tried.append(
            _print_outcomes(f"{unknown} = {value}", value, chosen, here, ground_of(here, baseline, wanted), out)
        )
    write_page(folder)
    write_findings(out)
    _conclude(unknown, one, claims, tried, out)
    outcomes = {claim: [(at.value, at.outcome(claim)) for at in tried] for claim in claims}
    out.result(study=name, unknowns=[{"unknown": unknown, "assumed": one.default, "claims": outcomes}])
    return complete


def print_conditions(name: str, out: Output) -> None:
    """Print from the committed evidence alone which claims depend on each unknown of a study."""
    folder = find_study(name)
    rows = []
    for one in conditions(folder, read_baselines(repository_root() / FOLDER)):
        unknown = one.unknown
        say(
            out,
            f"{one.name}: {unknown.what}; {unknown.default} is assumed, {unknown.plausible} are plausible: "
            f"{unknown.source}",
        )
        for claim, found in one.claims.items():
            say(out, f"  {claim}: {', '.join(map(str, found))}")
        if len(one.tried) < 2:
            say(out, "  no evidence of another value")
        elif not one.claims:
            say(out, "  no claim that was measured at every value depends on it")
        claims = {claim: [dataclasses.asdict(region) for region in found] for claim, found in one.claims.items()}
        rows.append({"unknown": one.name, "assumed": unknown.default, "tried": list(one.tried), "claims": claims})
    out.result(study=name, unknowns=rows)


def scenarios_of(claims: Collection[Claim], ground: Ground) -> set[str]:
    """Return the scenarios that the claims read."""
    selections = (
        one for claim in claims for one in selections_of_claim(claim, ground.planned.study, ground.grounds.values_of)
    )
    return {run.scenario for one in selections for run in one.chosen(ground.grounds.dataset)}


def _print_outcomes(
    head: str, value: Scalar, claims: Sequence[Claim], folder: StudyFolder, ground: Ground, console: Console
) -> At:
    """Print the outcome of each claim at a value."""
    verdicts = {claim.id: decide(claim, ground.grounds, folder.papers) for claim in claims}
    at = At(value, {name: verdict.verdict for name, verdict in verdicts.items()})
    for name, verdict in verdicts.items():
        say(console, f"{head}: {name} {at.outcome(name)}: {_measured(verdict)}")
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


def _named(kind: str, names: Sequence[str], known: Mapping[str, Named], where: str) -> list[Named]:
    """Return the items with these names. Raises StudyError for an unknown name."""
    for name in names:
        if name not in known:
            message, hint = unknown_name(kind, name, known)
            raise StudyError(message, where=where, hint=hint)
    return [known[name] for name in names]


def _values(unknown: Unknown, given: Sequence[str]) -> list[Scalar]:
    """Return the values of a command line, numbers as numbers. Raises StudyError for one that is not plausible."""
    values: list[Scalar] = [_scalar(text) for text in given]
    for value in values:
        if not unknown.allows(value):
            raise StudyError(f"{value!r} is not plausible; allowed: {unknown.plausible}", where="--values")
    return values


def _scalar(text: str) -> Scalar:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _measured(verdict: Verdict) -> str:
    """Return the measured and the allowed value of each comparison."""
    parts = [
        f"{item.mean:.5g}, allowed {item.limit} {item.unit}".rstrip()
        for item in verdict.evidence
        if item.mean is not None
    ]
    return "; ".join(parts) or str(verdict.reason)
