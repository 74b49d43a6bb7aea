# SPDX-License-Identifier: Apache-2.0
"""``evidence``: values of runs in the repository, added from results or executed for it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from longfat.cli.console import Output, say
from longfat.cli.fill import Wanted, fill_studies, fill_study, ground_of, open_for, seconds_of
from longfat.cli.options import Budget, Jobs, NewBaseline, Profile, Repetitions, Results, Stack, Studies, Study
from longfat.cli.outcome import expect, refuse
from longfat.cli.report import require_results
from longfat.cli.rows import add_results, baseline_for, merge_folders, write_findings, write_page
from longfat.cli.study import find_study, ids, job_count, known_baselines
from longfat.evidence.baselines import Combination
from longfat.evidence.collect import build_valid, combination_of, require_repeatable, selections_of_claim
from longfat.evidence.sensitivity import conditions
from longfat.evidence.stored_dataset import Ground
from longfat.execute.results import open_results
from longfat.plan.lockfile import read_lock
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
    (one,) = _named("setting", [unknown], folder.header.unknowns, "UNKNOWN")
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


HELP = "Keep the values of runs in the repository, from which everyone can check the verdicts (docs/evidence.md)."
FAILED = "some runs failed; `./just show RUN` prints the reasons"


def fill(
    out: Output,
    studies: Studies = None,
    repetitions: Repetitions = None,
    profile: Profile = "quick",
    stack: Stack = None,
    budget: Budget = None,
    jobs: Jobs = None,
    new_baseline: NewBaseline = False,
) -> bool:
    """Execute the runs of a profile that the evidence lacks, up to a stated number of repetitions, and add them."""
    if not studies:
        raise StudyError("no study is named", where="STUDY")
    wanted = Wanted(repetitions, seconds_of(budget), profile, stack, jobs=jobs)
    complete = fill_studies(studies, wanted, out, new_baseline=new_baseline)
    out.result(studies=studies, complete=complete)
    return expect(complete, FAILED)


def add(
    out: Output, study: Study, results: Results = None, jobs: Jobs = None, new_baseline: NewBaseline = False
) -> None:
    """Add the runs of a results folder to the study's evidence."""
    folder = find_study(study)
    with open_results(require_results(folder, results)) as opened:
        build_valid(opened.path, folder)
        baseline = baseline_for(combination_of(read_lock(opened.lock)), jobs, out, new_baseline=new_baseline)
        gained = add_results(opened.path, folder, baseline.name, out)
    write_page(folder)
    write_findings(out)
    out.result(study=folder.name, baseline=baseline.name, gained=gained)


def merge(
    out: Output,
    folders: Annotated[list[Path] | None, typer.Argument(help="checkouts, or studies' folders with evidence")] = None,
) -> None:
    """Merge the evidence of other folders, and write all of it in canonical order, with its pages."""
    out.result(gained=merge_folders(folders or (), out))


def identify(
    out: Output,
    study: Study,
    unknown: Annotated[
        str | None, typer.Argument(help="name of an unknown of the study (default: all, from the evidence alone)")
    ] = None,
    claims: Annotated[str, typer.Option(help="comma-separated ids of the claims whose runs are executed")] = "",
    values: Annotated[str, typer.Option(help="comma-separated values to execute")] = "",
    repetitions: Repetitions = None,
    budget: Budget = None,
    profile: Profile = "quick",
    stack: Stack = None,
    jobs: Jobs = None,
) -> bool:
    """Test claims at values of a setting that the paper does not state, and add the runs to the evidence."""
    if unknown is None:
        unused = {"--claims": claims, "--values": values, "--repetitions": repetitions, "--budget": budget}
        refuse({**unused, "--stack": stack, "--jobs": jobs}, "no run is executed without the name of an unknown")
        print_conditions(study, out)
        return True
    wanted = Wanted(repetitions, seconds_of(budget), profile, stack, jobs=jobs)
    return expect(identify_unknown(study, unknown, ids(claims), ids(values), wanted, out), FAILED)


COMMANDS = (fill, add, merge, identify)
