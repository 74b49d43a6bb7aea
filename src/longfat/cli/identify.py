# SPDX-License-Identifier: Apache-2.0
"""``evidence identify``: outcomes of claims at values of a setting that the paper does not state."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from longfat.cli.console import Output, say
from longfat.cli.fill import Wanted, fill_study, ground_of, open_for
from longfat.cli.rows import baseline_for, write_findings, write_page
from longfat.cli.study import find_study, job_count, known_baselines
from longfat.evidence.baselines import Combination
from longfat.evidence.collect import require_repeatable
from longfat.evidence.required_values import selections_of_claim
from longfat.evidence.sensitivity import HOLDS, At, conditions, first_values, regions, where_all_hold
from longfat.evidence.stored_dataset import Ground
from longfat.relations.claims import Claim
from longfat.relations.judge import decide
from longfat.report.numbers import compared
from longfat.spec.runspec import Scalar
from longfat.study.schema.names import unknown as unknown_name
from longfat.study.unknowns import Unknown
from longfat.system.errors import StudyError

Named = TypeVar("Named")


def identify_unknown(
    name: str, unknown: str, claims: Sequence[str], at: Sequence[str], wanted: Wanted, out: Output
) -> bool:
    """Execute at each value of an unknown the runs that the claims read, and print the outcomes.

    The values are those in ``at``, else the default and values over the whole range: neither they nor the number of
    repetitions depend on a result. Returns whether every run succeeded. Raises StudyError for an unknown name or value.
    """
    begun = time.monotonic()
    folder = find_study(name)
    folder.check()
    (one,) = _named("unknown", [unknown], folder.header.unknowns, "UNKNOWN")
    if not claims:
        raise StudyError("no claims are named", where="--claims", hint="name the claims that identify the value")
    chosen = _named("claim", claims, {claim.id: claim for claim in folder.claims}, "--claims")
    values = [_value(one, text) for text in at] or first_values(one)
    require_repeatable(wanted.backend)
    backend = open_for(folder, wanted, out)
    baseline = baseline_for(Combination.of(backend.pins()), job_count(wanted.jobs), out)
    tried: list[At] = []
    complete = True
    for value in values:
        here = folder.assuming({unknown: value})
        only = scenarios_of(chosen, ground_of(here, baseline, wanted))
        complete &= fill_study(here, wanted, backend, baseline, out, begun=begun, only=only)
        grounds = ground_of(here, baseline, wanted).grounds
        verdicts = [decide(claim, grounds, here.papers) for claim in chosen]
        tried.append(At(value, {verdict.claim: verdict.verdict for verdict in verdicts}))
        for verdict in verdicts:
            numbers = "; ".join(compared(item) for item in verdict.evidence if item.mean is not None)
            outcome = tried[-1].outcome(verdict.claim)
            say(out, f"{unknown} = {value}: {verdict.claim} {outcome}: {numbers or verdict.reason}")
    write_page(folder)
    write_findings(out)
    for claim in claims:
        found = regions(claim, tried, one)
        held = any(region.outcome in HOLDS for region in found)
        say(
            out,
            f"{claim} {', '.join(map(str, found))}"
            if held
            else f"{claim} is reproduced at no tried value of {unknown}",
        )
    good = where_all_hold(claims, tried, one)
    say(out, f"all are reproduced at {unknown} = {', '.join(map(str, good)) or 'no value'}")
    outcomes = {claim: [(at.value, at.outcome(claim)) for at in tried] for claim in claims}
    out.result(study=name, unknowns=[{"unknown": unknown, "assumed": one.default, "claims": outcomes}])
    return complete


def print_conditions(name: str, out: Output) -> None:
    """Print from the committed evidence alone which claims depend on each unknown of a study."""
    rows = []
    for one in conditions(find_study(name), known_baselines()):
        unknown = one.unknown
        assumed = f"{unknown.default} is assumed, {unknown.plausible} are plausible: {unknown.source}"
        say(out, f"{one.name}: {unknown.what}; {assumed}")
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
    study, grounds = ground.planned.study, ground.grounds
    selections = (one for claim in claims for one in selections_of_claim(claim, study, grounds.values_of))
    return {run.scenario for one in selections for run in one.chosen(grounds.dataset)}


def _named(kind: str, names: Sequence[str], known: Mapping[str, Named], where: str) -> list[Named]:
    """Return the items with these names. Raises StudyError for an unknown name."""
    for name in names:
        if name not in known:
            message, hint = unknown_name(kind, name, known)
            raise StudyError(message, where=where, hint=hint)
    return [known[name] for name in names]


def _value(unknown: Unknown, text: str) -> Scalar:
    """Return a value of the command line, as a number if it is one. Raises StudyError if it is not plausible."""
    value: Scalar = text
    for number in (float, int):
        with suppress(ValueError):
            value = number(text)
    if not unknown.allows(value):
        raise StudyError(f"{value!r} is not plausible; allowed: {unknown.plausible}", where="--values")
    return value
