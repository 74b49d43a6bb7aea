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
from longfat.evidence.sensitivity import conditions
from longfat.evidence.stored_dataset import Ground
from longfat.relations.claims import Claim
from longfat.spec.runspec import Scalar
from longfat.study.schema.names import require
from longfat.study.unknowns import Unknown
from longfat.system.errors import StudyError

Named = TypeVar("Named")


def identify_unknown(
    name: str, unknown: str, claims: Sequence[str], at: Sequence[str], wanted: Wanted, out: Output
) -> bool:
    """Execute the runs that the claims need at each value of an unknown, and print the outcomes by value.

    Neither the values nor the number of repetitions depend on a result. Returns whether every run succeeded. Raises
    StudyError for an unknown name or value.
    """
    begun = time.monotonic()
    folder = find_study(name)
    folder.check()
    (one,) = _named("unknown", [unknown], folder.header.unknowns, "UNKNOWN")
    chosen = _named("claim", claims, {claim.id: claim for claim in folder.claims}, "--claims")
    if not claims or not at:
        raise StudyError("no claims or no values are named", where="--claims, --values")
    values = [_value(one, text) for text in at]
    require_repeatable(wanted.backend)
    backend = open_for(folder, wanted, out)
    baseline = baseline_for(Combination.of(backend.pins()), job_count(wanted.jobs), out)
    complete = True
    for value in values:
        here = folder.assuming({unknown: value})
        only = scenarios_of(chosen, ground_of(here, baseline, wanted))
        complete &= fill_study(here, wanted, backend, baseline, out, begun=begun, only=only)
    write_page(folder)
    write_findings(out)
    print_conditions(name, out, unknown)
    return complete


def print_conditions(name: str, out: Output, only: str | None = None) -> None:
    """Print from the committed evidence which claims depend on each unknown of a study, or on one."""
    rows = []
    for one in conditions(find_study(name), known_baselines()):
        if only not in (None, one.name):
            continue
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
    """Return the scenarios that the claims need."""
    study, grounds = ground.planned.study, ground.grounds
    selections = (one for claim in claims for one in selections_of_claim(claim, study, grounds.values_of))
    return {run.scenario for one in selections for run in one.chosen(grounds.dataset)}


def _named(kind: str, names: Sequence[str], known: Mapping[str, Named], where: str) -> list[Named]:
    """Return the items with these names. Raises StudyError for an unknown name."""
    for name in names:
        require(kind, name, known, where)
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
