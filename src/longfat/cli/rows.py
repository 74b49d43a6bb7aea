# SPDX-License-Identifier: Apache-2.0
"""Addition of evidence from results, with its baseline and the pages generated from it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from longfat.backends.registry import open_backend
from longfat.cli.console import WARNING, say
from longfat.cli.kernel_check import combinations, measure
from longfat.cli.paths import repository_root
from longfat.cli.study import every_study, kernel_settings, known_baselines
from longfat.data.study_folder import HEADLINES, StudyFolder
from longfat.evidence import baselines
from longfat.evidence.baselines import FOLDER, Baseline, Combination, baseline_of, begin, read_baselines, write_baseline
from longfat.evidence.collect import collect
from longfat.evidence.criteria import Records, merge_criteria, read_criteria, with_present, write_criteria
from longfat.evidence.judged import Evidenced, evidence_of, without_runs
from longfat.evidence.store import EVIDENCE, Rows, merge_rows, read_rows, write_rows
from longfat.report.findings import MODERN
from longfat.report.markdown import FINDINGS, write_overviews, write_study_pages
from longfat.study.catalog.stacks import STACKS
from longfat.system.errors import RigError, StudyError
from longfat.system.locks import hold


def add_results(results: Path, folder: StudyFolder, baseline: str, console: Console) -> int:
    """Add the rows of results, print the reasons for runs left out, and return the number of new runs.

    Waits while another process changes the study's evidence.
    """
    new, left_out = collect(results, folder, baseline)
    with hold(folder.path, folder=True):
        every = read_rows(folder.path, folder.study.name)
        before = {place: of for place, of in every.items() if place.baseline == baseline}
        after = merge_rows(before, new)
        gained = count(after) - count(before)
        if gained:  # first, so that an interrupt leaves no row without its criteria
            record_criteria(folder, read_criteria(folder.path), every)
        write_rows(folder.path, folder.study.name, after)
    known = count(new) - gained
    say(console, f"evidence of {folder.name}, baseline {baseline}: {gained} runs added, {known} were there")
    for line in left_out:
        say(console, f"  left out: {line}")
    return gained


def record_criteria(folder: StudyFolder, records: Records, before: Rows) -> None:
    """Add the present criterion of each claim to ``records``; ``before`` is the evidence before the addition."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    write_criteria(folder.path, with_present(records, folder.claims, folder.study, before, today))


def count(rows: Rows) -> int:
    """Return the number of rows."""
    return sum(map(len, rows.values()))


def baseline_for(
    combination: Combination, jobs: int | None, console: Console, *, new_baseline: bool = False
) -> Baseline:
    """Return the baseline of a combination; an unknown one joins the newest if the kernel regression check passes.

    Raises StudyError if this machine has another combination, RigError if the check fails.
    """
    home = repository_root() / FOLDER
    known = known_baselines()
    found = baseline_of(combination, known)
    if found is not None and not new_baseline:
        return found
    backend = open_backend(combination.backend, kernel_settings(combination.backend, *STACKS), say=console.print)
    here = combinations(backend)
    if combination not in here:
        message = f"the results were made with {combination.text()}, which no baseline lists"
        hint = f"add them where they were made: this machine has {' and '.join(one.text() for one in here)}"
        raise StudyError(message, hint=hint)
    digests = measure(backend, jobs, console)
    if failed := [name for name, digest in digests.items() if not digest]:
        raise RigError(f"runs of the kernel regression check failed with {combination.text()}: {', '.join(failed)}")
    now = datetime.datetime.now(datetime.UTC)
    if new_baseline or not known:
        baseline = begin(here, digests, f"{now:%Y-%m-%dT%H%M}")
        say(console, f"a new baseline: {baseline.name}")
    else:
        newest = known[-1]
        verdict = newest.compare(digests)
        if verdict.differing:
            message = f"{combination.text()} does not behave as baseline {newest.name}: {verdict}"
            hint = "find the cause, or begin a new baseline with --new-baseline"
            raise RigError(message, hint=hint)
        baseline = newest.with_members(here, now.date().isoformat(), "canaries")
        say(console, f"baseline {baseline.name} also has {combination.text()}: {verdict}")
    write_baseline(baseline, home)
    return baseline


def write_page(folder: StudyFolder) -> None:
    """Write the pages of a study from its evidence: VERDICTS.md, and parts of README.md and notes.md."""
    known = known_baselines()
    found = evidence_of(folder, known)
    if found is None and known and folder.headlines:
        found = without_runs(folder, known[-1].name)
    if found:
        write_study_pages(found, evidence_of(folder, known, stack=MODERN) if found.stack != MODERN else None)


def write_findings(console: Console) -> None:
    """Write the tables of all studies in README.md and docs/findings.md; print the studies with faults."""
    write_overviews(repository_root(), evidenced_papers(console))


def evidenced_papers(console: Console) -> list[Evidenced]:
    """Return all studies of a paper with evidence or headlines; print the studies with faults."""
    known = known_baselines()
    found = []
    for study in every_study():
        try:
            if not study.header.paper or study.name[0] == "_":
                continue
            if one := evidence_of(study, known):
                found.append(one)
            elif study.headlines and known:
                found.append(without_runs(study, known[-1].name))
        except StudyError as error:
            say(console, f"{study.name} is left out of {FINDINGS}: {error}", WARNING)
    return found


def merge_folders(folders: Sequence[Path], console: Console) -> dict[str, int]:
    """Merge the evidence of other checkouts or studies' folders; return the number of new runs by study.

    Waits while another process changes evidence. After the comparison, all of it is written in canonical order. Raises
    StudyError for a contradiction, and at the end for studies whose pages cannot be written.
    """
    for other in folders:
        if not (other / "experiments").is_dir() and not (other / EVIDENCE).is_dir():
            hint = "give a checkout of the repository, or the folder of a study with evidence/ in it"
            raise StudyError(f"no evidence in {other}", hint=hint)
    with ExitStack() as held:
        for folder in every_study():
            held.enter_context(hold(folder.path, folder=True))  # in the order of names, so that no two wait for ever
        return _merge(folders, console)


def _name_unknown(folders: Sequence[Path], console: Console) -> None:
    """Print the studies with evidence in other folders that are not here."""
    here = {folder.name for folder in every_study()}
    for other in folders:
        inner = other / "experiments"
        for path in sorted(inner.glob(f"*/{EVIDENCE}")) if inner.is_dir() else [other / EVIDENCE]:
            if path.parent.name not in here and StudyFolder(path.parent).header.study not in here:
                say(console, f"left out: {path.parent}: there is no such study here", WARNING)


def _merge(folders: Sequence[Path], console: Console) -> dict[str, int]:
    home = repository_root()
    merged = {one.name: one for one in known_baselines()}
    for one in (one for other in folders for one in read_baselines(other / FOLDER)):
        merged[one.name] = baselines.merge(merged[one.name], one) if one.name in merged else one
    found = []
    _name_unknown(folders, console)
    for folder in every_study():
        if not folder.has(EVIDENCE) and not any((other / "experiments" / folder.name).is_dir() for other in folders):
            continue  # perhaps a draft that cannot be read yet
        rows = before = read_rows(folder.path, folder.header.study)
        records = read_criteria(folder.path)
        for other in folders:
            theirs = other / "experiments" / folder.name if (other / "experiments").is_dir() else other
            if (theirs / EVIDENCE).is_dir() and StudyFolder(theirs).header.study == folder.header.study:
                new = read_rows(theirs, folder.header.study)
                if lacking := sorted({place.baseline for place in new} - merged.keys()):
                    hint = "merge the checkout with its kernels/epochs, instead of the study's folder"
                    raise StudyError(f"no folder has the baseline {', '.join(lacking)}", where=str(theirs), hint=hint)
                rows = merge_rows(rows, new)
                records = merge_criteria(records, read_criteria(theirs))
        if rows:
            found.append((folder, rows, count(rows) - count(before), records))
    for one in merged.values():
        write_baseline(one, home / FOLDER)
    for folder, rows, gained, _ in found:
        files = len(write_rows(folder.path, folder.header.study, rows))
        say(console, f"{folder.name}: {gained} runs gained, {files} files written")
    faults = []
    recorded = {folder.name: (records, rows, gained) for folder, rows, gained, records in found}
    for folder in every_study():
        try:
            if folder.name in recorded:
                records, rows, gained = recorded[folder.name]
                if gained or not records:  # criteria without a record date from the merge
                    record_criteria(folder, records, rows)
                else:
                    write_criteria(folder.path, records)
            if folder.has(EVIDENCE) or folder.has(HEADLINES):
                write_page(folder)
        except StudyError as error:
            faults.append(f"{folder.name} has no new pages: {error}")
    write_findings(console)
    if faults:
        raise StudyError("\n".join(faults))
    return {folder.name: gained for folder, _, gained, _ in found}
