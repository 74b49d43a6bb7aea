# SPDX-License-Identifier: Apache-2.0
"""The verbs ``evidence add`` and ``evidence merge``: rows into the repository, from results and from other folders."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from longfat.backends.registry import open_backend
from longfat.catalog.stacks import STACKS
from longfat.errors import RigError, StudyError
from longfat.evidence.collect import collect, combination_of
from longfat.evidence.epochs import (
    FOLDER,
    Combination,
    Epoch,
    begin,
    epoch_of,
    read_epochs,
    united,
    write_epoch,
)
from longfat.evidence.judged import evidence_of
from longfat.evidence.page import write_verdicts
from longfat.evidence.store import EVIDENCE, Rows, read_rows, together, write_rows
from longfat.evidence.valid import build_valid
from longfat.execute.results import open_results
from longfat.plan.lockfile import read_lock
from longfat.report.section import TODAY, write_overview, write_section
from longfat.studies import StudyFolder
from longfat.verbs.kernel_check import combinations, measure
from longfat.verbs.places import repository_root
from longfat.verbs.run import results_path
from longfat.verbs.say import WARNING, print_json, say
from longfat.verbs.study import every_study, find_study, kernel_settings

FORMAT = 1
FINDINGS = "docs/findings.md"


def add(
    name: str,
    given: Path | None,
    jobs: int | None,
    console: Console,
    *,
    new_epoch: bool = False,
    as_json: bool = False,
) -> bool:
    """Add what a results folder has to the evidence of its study."""
    folder = find_study(name)
    with open_results(results_path(folder, given)) as results:
        build_valid(results.path, folder)
        epoch = epoch_for(combination_of(read_lock(results.lock)), jobs, console, new_epoch=new_epoch)
        gained = add_results(results.path, folder, epoch.name, console)
    write_page(folder)
    write_findings(console)
    if as_json:
        print_json({"format": FORMAT, "study": folder.name, "epoch": epoch.name, "gained": gained})
    return True


def write_page(folder: StudyFolder) -> None:
    """Write the study's VERDICTS.md and its part of README.md anew, from its evidence as it is now."""
    epochs = read_epochs(repository_root() / FOLDER)
    found = evidence_of(folder, epochs)
    if found is not None:
        write_verdicts(found)
        write_section(found, evidence_of(folder, epochs, stack=TODAY) if found.stack != TODAY else None)


def write_findings(console: Console) -> None:
    """Write the table over all studies in docs/findings.md again, if there is such a page; name those with faults."""
    page = repository_root() / FINDINGS
    if not page.exists():
        return
    epochs = read_epochs(repository_root() / FOLDER)
    found = []
    for study in every_study():
        try:
            if study.header.paper and study.name[0] != "_" and (one := evidence_of(study, epochs)):
                found.append(one)
        except StudyError as error:
            say(console, f"{study.name} is left out of {FINDINGS}: {error}", WARNING)
    write_overview(page, found)


def add_results(results: Path, folder: StudyFolder, epoch: str, console: Console) -> int:
    """Add the rows of results with their dataset, and say what was left out; how many runs the evidence has gained."""
    new = collect(results, folder, epoch)
    before = read_rows(folder.path, folder.study.name, epoch)
    after = together(before, new.rows)
    write_rows(folder.path, folder.study.name, after)
    gained = _count(after) - _count(before)
    known = _count(new.rows) - gained
    say(console, f"evidence of {folder.name}, epoch {epoch}: {gained} runs added, {known} were there")
    for line in new.left_out:
        say(console, f"  left out: {line}")
    return gained


def epoch_for(combination: Combination, jobs: int | None, console: Console, *, new_epoch: bool = False) -> Epoch:
    """The epoch that a combination belongs to; one that none lists joins the newest if its canaries behave alike.

    Raises StudyError or RigError where that cannot be told, or where they do not.
    """
    home = repository_root() / FOLDER
    epochs = read_epochs(home)
    known = epoch_of(combination, epochs)
    if known is not None and not new_epoch:
        return known
    backend = open_backend(combination.backend, kernel_settings(combination.backend, *STACKS), say=console.print)
    here = combinations(backend)
    if combination not in here:
        message = f"the results were made with {combination.text()}, which no epoch lists"
        hint = f"add them where they were made: this machine has {' and '.join(one.text() for one in here)}"
        raise StudyError(message, hint=hint)
    digests = measure(backend, jobs, console)
    if failed := [canary for canary, digest in digests.items() if not digest]:
        raise RigError(f"canaries failed, so that nothing is known of {combination.text()}: {', '.join(failed)}")
    now = datetime.datetime.now(datetime.UTC)
    if new_epoch or not epochs:
        epoch = begin(here, digests, f"{now:%Y-%m-%dT%H%M}")
        say(console, f"a new epoch: {epoch.name}")
    else:
        verdict = epochs[-1].compare(digests)
        if verdict.differing:
            message = f"{combination.text()} does not behave as epoch {epochs[-1].name}: of its canaries {verdict}"
            raise RigError(message, hint="find out why, or begin a new epoch with --new-epoch; the old ones stay")
        epoch = epochs[-1].with_members(here, now.date().isoformat(), "canaries")
        say(console, f"epoch {epoch.name} also has {combination.text()}: {verdict}")
    write_epoch(epoch, home)
    return epoch


def _count(rows: Rows) -> int:
    return sum(map(len, rows.values()))


def merge(given: Sequence[Path], console: Console, *, as_json: bool = False) -> bool:
    """Take in the evidence of other checkouts, or of single studies' folders, and write all in canonical order."""
    home = repository_root()
    for other in given:
        if not other.is_dir() or not ((other / "experiments").is_dir() or (other / EVIDENCE).is_dir()):
            hint = "give a checkout of the repository, or the folder of a study with evidence/ in it"
            raise StudyError(f"no evidence in {other}", hint=hint)
    epochs = {epoch.name: epoch for epoch in read_epochs(home / FOLDER)}
    for other in given:
        for epoch in read_epochs(other / FOLDER):
            epochs[epoch.name] = united(epochs[epoch.name], epoch) if epoch.name in epochs else epoch
    merged = []
    for folder in every_study():
        study = folder.header.study
        rows = read_rows(folder.path, study)
        before = _count(rows)
        for other in given:
            theirs = other / "experiments" / folder.name if (other / "experiments").is_dir() else other
            if (theirs / EVIDENCE).is_dir() and StudyFolder(theirs).header.study == study:
                rows = together(rows, read_rows(theirs, study))
        merged.append((folder, study, rows, _count(rows) - before))
    # Nothing is written before all of it is known to agree.
    for epoch in epochs.values():
        write_epoch(epoch, home / FOLDER)
    for folder, study, rows, gained in merged:
        if rows:
            files = len(write_rows(folder.path, study, rows))
            say(console, f"{folder.name}: {gained} runs gained, {files} files written")
            write_page(folder)
    write_findings(console)
    if as_json:
        print_json({"format": FORMAT, "gained": {folder.name: gained for folder, _, rows, gained in merged if rows}})
    return True
