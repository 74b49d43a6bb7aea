# SPDX-License-Identifier: Apache-2.0
"""The verbs after ``run``: ``dataset``, ``analyse``, ``report``, ``reference``, ``reports`` over
all studies, and ``reproduce``, which is all but these two.

Owns their order and what is printed at the end. Must not compute anything.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from longfat.backends.registry import traits_of
from longfat.data.opened import draw_all
from longfat.dataset.build import DatasetSummary
from longfat.errors import RigError
from longfat.events import EventSink
from longfat.evidence.conditions import conditions
from longfat.evidence.epochs import FOLDER, read_epochs
from longfat.evidence.judged import Evidenced, evidence_of
from longfat.evidence.valid import build_valid
from longfat.execute.results import Results, open_results
from longfat.manifest.models import Header
from longfat.plan.lockfile import read_lock, require_study
from longfat.relations.claims import claim_nouns, counted_claims
from longfat.relations.counting import apart, tally
from longfat.relations.evaluate import Evidence
from longfat.relations.judge import Origin, Verdict, judge, read_origin
from longfat.report.front import write_front
from longfat.report.notebook import EXECUTED, run_notebook
from longfat.report.reference import ReferenceMatch, compare, write_reference
from longfat.report.report import write_report
from longfat.studies import StudyFolder
from longfat.verbs.listening import listen, stage
from longfat.verbs.on import run_on
from longfat.verbs.pace import pace_of
from longfat.verbs.places import repository_root
from longfat.verbs.run import Machine, results_path, run_study
from longfat.verbs.say import open_page, print_json, say, say_place
from longfat.verbs.study import Choices, every_study, find_study
from longfat.verbs.verdicts import print_evidence
from longfat.verbs.verify import compare_results, tell, verify

ANY_KERNEL = ("pair",)
"""The experiments of the study `_crosscheck` that need no delay element and no algorithm but Reno and CUBIC."""

FORMAT = 1


@dataclass(frozen=True)
class Show:
    """How the end of a command is told: the page opened in a browser, ``every`` verdict, as JSON as well."""

    opened: bool = False
    every: bool = True
    as_json: bool = False


EVERYTHING = Show()

COLOURS = {
    "reproduced": "green",
    "agrees": "green",
    "not_reproduced": "red",
    "inconclusive": "yellow",
    "not_measured": "bright_black",
    "not_testable": "bright_black",
}


def dataset(name: str, given: Path | None, console: Console, show: Show = EVERYTHING) -> bool:
    """Build the dataset from what is recorded; whether every run is valid."""
    folder = find_study(name)
    with open_results(results_path(folder, given)) as results, listen(results, console) as events:
        _require_own(results, folder)
        counts = tidy(results.path, folder, events)
    if show.as_json:
        print_json({"format": FORMAT, "study": folder.name, "runs": dataclasses.asdict(counts)})
    return counts.valid


def analyse(name: str, given: Path | None, console: Console, show: Show = EVERYTHING) -> bool:
    """Judge the claims and draw the figures from the dataset."""
    folder = find_study(name)
    with open_results(results_path(folder, given)) as results, listen(results, console) as events:
        _require_own(results, folder)
        verdicts, failure = _analyse(results.path, folder, events)
        origin = read_origin(results.path)
    print_verdicts(verdicts, folder.header, console, every=show.every)
    print_origin(origin, console)
    if show.as_json:
        print_json(data_of(folder, verdicts, origin))
    if failure:
        raise failure
    return True


def report(name: str, given: Path | None, console: Console, show: Show = EVERYTHING) -> bool:
    """Write ``report.html`` from verdicts and figures, and say where it is."""
    folder = find_study(name)
    with open_results(results_path(folder, given)) as results:
        _require_own(results, folder)
        path = _write_report(results, folder)
    _print_pages(path, console, folder, opened=show.opened)
    if show.as_json:
        print_json({"format": FORMAT, "study": folder.name, "report": str(path)})
    return True


def reports(console: Console, show: Show = EVERYTHING) -> bool:
    """Write the front page of all reports, and say where it is."""
    path = _print_pages(None, console, opened=show.opened)
    if show.as_json:
        print_json({"format": FORMAT, "reports": str(path)})
    return True


def reproduce(
    name: str | StudyFolder,
    choices: Choices,
    machine: Machine,
    console: Console,
    show: Show = EVERYTHING,
) -> bool:
    """Run, tidy, judge, draw and report; return whether every run is valid and agrees with the evidence."""
    folder = find_study(name)
    folder.check()  # a fault in claims or figures is found before hours of runs
    _print_evidence(folder, console, choices.stack)
    given = results_path(folder, machine.results, machine.backend)
    if machine.on:
        run_on(folder, choices, machine, given, console)
    else:
        with open_results(given) as results, listen(results, console) as events:
            run_study(folder, choices, machine, results, events)
    return conclude(folder, given, console, show)[0]


def conclude(folder: StudyFolder, given: Path, console: Console, show: Show = EVERYTHING) -> tuple[bool, list[Verdict]]:
    """Tidy, judge, draw and report what was run under a lock: whether every run is valid, and the verdicts."""
    with open_results(given) as results, listen(results, console) as events:
        valid = tidy(results.path, folder, events).valid
        verdicts, failure = _analyse(results.path, folder, events)
        stage(events, "writing the report")
        path = _write_report(results, folder)
        match = compare(results.path, folder)
        origin = read_origin(results.path)
        check = compare_results(results.path, folder)
    print_verdicts(verdicts, folder.header, console, every=show.every)
    print_origin(origin, console)
    print_match(match, console)
    if check.compared:
        same = check.compared - len(check.mismatches)
        say(console, f"evidence: {same} of {check.compared} runs are in it and identical to the byte")
    tell(check.mismatches, console)
    _print_pages(path, console, folder, opened=show.opened)
    if show.as_json:
        compared = {"compared": check.compared, "differing": [one.name for one in check.mismatches]}
        told = {"valid": valid, "report": str(path), "reference": match.status, "evidence": compared}
        print_json(data_of(folder, verdicts, origin) | told)
    if failure:
        raise failure
    return valid and not check.mismatches, verdicts


def reproduce_sample(name: str | StudyFolder, sample: str, seed: int, jobs: int | None, console: Console) -> bool:
    """Show the verdicts by the evidence and run a sample of it again; whether all of that is identical."""
    folder = find_study(name)
    _print_evidence(folder, console)
    return verify(name, sample, seed, jobs, console)


def _write_report(results: Results, folder: StudyFolder) -> Path:
    """The report, with what the committed evidence says."""
    epochs = read_epochs(repository_root() / FOLDER)
    evidence = evidence_of(folder, epochs, stack=read_lock(results.lock).stack)
    return write_report(results.path, folder, evidence, tuple(conditions(folder, epochs)))


def _evidence(folder: StudyFolder, stack: str | None = None) -> Evidenced | None:
    """All evidence of a study that is committed, of its own stack or of another, if there is some."""
    return evidence_of(folder, read_epochs(repository_root() / FOLDER), stack=stack)


def _print_evidence(folder: StudyFolder, console: Console, stack: str | None = None) -> None:
    """What the committed evidence says already, if there is some."""
    one = _evidence(folder, stack)
    if one is not None:
        say(console, "by the evidence that is committed:")
        print_evidence(one, console, claims=False)


def smoke(machine: Machine, console: Console, show: Show = EVERYTHING) -> bool:
    """Reproduce the smoke study; without the project's kernel what any can do. Whether every run is valid."""
    if traits_of(machine.backend).kernel != "own":
        return reproduce("_crosscheck", Choices("smoke", only=ANY_KERNEL), machine, console, show=show)
    return reproduce("_smoke", Choices(), machine, console, show=show)


def reference(name: str, given: Path | None, console: Console, show: Show = EVERYTHING) -> bool:
    """Make dataset and verdicts the reference that later results are compared with."""
    folder = find_study(name)
    with open_results(results_path(folder, given)) as results:
        _require_own(results, folder)
        path = write_reference(results.path, folder, pace_of(results.path))
    say_place(console, "reference", path)
    if show.as_json:
        print_json({"format": FORMAT, "study": folder.name, "reference": str(path)})
    return True


def data_of(folder: StudyFolder, verdicts: list[Verdict], origin: Origin) -> dict[str, Any]:
    """Verdicts as plain data."""
    counts = {
        name: {word: n for word, n in row.items() if n} for name, row in tally(v.counted for v in verdicts).items()
    }
    changes = list(origin.changes)
    rows = [dataclasses.asdict(verdict) for verdict in verdicts]
    return {"format": FORMAT, "study": folder.study.name, "counts": counts, "claims_changed": changes, "verdicts": rows}


def print_verdicts(verdicts: list[Verdict], header: Header, console: Console, *, every: bool = True) -> None:
    """Print a table of the claims and a line that counts their verdicts, or that there are none.

    Without ``every`` those that are reproduced, or agree, and those without a measurement are counted only.
    """
    noun = claim_nouns(header)[0]
    if not verdicts:
        say(console, f"the study states no {noun}")
        return
    columns = [Column(noun, overflow="fold"), Column("verdict"), Column("measured")]
    if header.paper:
        columns.insert(2, Column("paper"))
    chosen = [verdict for verdict in verdicts if every or verdict.verdict in ("not_reproduced", "inconclusive")]
    table = Table(*columns, title="verdicts" if every else "verdicts that are not as stated (all: --all)")
    for verdict in chosen:
        word = Text(verdict.verdict.replace("_", " "), style=COLOURS[verdict.verdict])
        stated = [Text(verdict.paper)] if header.paper else []
        table.add_row(Text(verdict.claim), word, *stated, Text(measured(verdict)))
    if chosen:
        console.print(table)
    counts = tally(verdict.counted for verdict in verdicts)
    words = counts["measured"]
    summary = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in words.items())
    say(console, f"{counted_claims(sum(words.values()), header)}: {summary}")
    for line in apart(counts):
        say(console, f"  apart: {line}")


def print_origin(origin: Origin, console: Console) -> None:
    """Say what has changed of the claims since the results folder first saw them; nothing where nothing has."""
    if origin.changes:
        say(console, f"warning: {origin.sentence}:", "bold red")
    for line in origin.changes:
        say(console, f"  {line}")


def print_match(match: ReferenceMatch, console: Console) -> None:
    """Say whether dataset and verdicts are those of the committed reference."""
    say(console, f"reference: {match.status.replace('_', ' ')}")
    for line in match.lines:
        say(console, f"  {line}")


def _print_pages(
    report: Path | None, console: Console, study: StudyFolder | None = None, *, opened: bool = False
) -> Path | None:
    """Say where a report is, and open it; the front page is renewed where it belongs among those of the others.

    Without a report it is the front page that is opened, and whose path it gives.
    """
    home = repository_root() / "results"
    if report is not None:
        say_place(console, "report", report)
    if report is None or report.parent.resolve().parent == home.resolve():
        epochs = read_epochs(repository_root() / FOLDER)
        front = write_front(home, [study if study == one else one for one in every_study()], epochs)
        say_place(console, "all studies", front)
        report = report or front
    if opened and report is not None:
        open_page(console, report)
    return report


def _require_own(results: Results, folder: StudyFolder) -> None:
    """Raise StudyError where the results are those of another study."""
    require_study(results.lock, folder.header.study)


def tidy(results: Path, folder: StudyFolder, events: EventSink) -> DatasetSummary:
    """Build the dataset, with the gates and the metrics' bounds applied."""
    stage(events, "building the dataset")
    counts = build_valid(results, folder)
    stage(
        events,
        f"{counts.ok} runs valid, {counts.invalid} invalid, {counts.failed} failed, {counts.missing} missing",
    )
    return counts


def _analyse(results: Path, folder: StudyFolder, events: EventSink) -> tuple[list[Verdict], RigError | None]:
    """Judge and draw; a notebook that fails is returned as an error, and the figures are drawn without it."""
    stage(events, "judging the claims")
    verdicts = judge(results, folder.study, folder.claims, folder.judged_by)
    stage(events, "drawing the figures")
    notebook = repository_root() / "analysis" / "notebooks" / f"{folder.name}.ipynb"
    failure = None
    if notebook.exists():
        try:
            run_notebook(notebook, results, folder.path)
            return verdicts, None
        except RigError as error:
            (results / EXECUTED).unlink(missing_ok=True)
            failure = error
    draw_all(results, folder)
    return verdicts, failure


def measured(verdict: Verdict) -> str:
    """The number that decided, or why there is none."""
    return _number(verdict.deciding) if verdict.deciding else verdict.reason or ""


def _number(evidence: Evidence) -> str:
    if evidence.mean is None:
        return evidence.reason or "no data"
    text = f"{evidence.mean:.5g} {evidence.unit}".strip()
    return f"{text} (n={evidence.n})" if evidence.n else text
