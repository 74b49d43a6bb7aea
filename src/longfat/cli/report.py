# SPDX-License-Identifier: Apache-2.0
"""``report``: all results, rebuilt from the records of runs.

Owns the order of the steps dataset, verdicts, figures and report, and what is printed at the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten, wrap

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.cli.console import COLOURS, Output, listen, say, say_place, stage
from longfat.cli.options import Every, MaybeStudy, Papers, Results
from longfat.cli.outcome import expect, refuse
from longfat.cli.paths import repository_root
from longfat.cli.run import results_path
from longfat.cli.sample import compare_results, print_mismatches
from longfat.cli.study import Choices, every_study, find_study, known_baselines, resolve
from longfat.data.opened import draw_all
from longfat.data.study_folder import MANIFEST, StudyFolder
from longfat.dataset.build import DatasetSummary
from longfat.dataset.load import load_dataset
from longfat.evidence.collect import build_valid
from longfat.evidence.judged import Evidenced, evidence_of
from longfat.evidence.sensitivity import conditions
from longfat.execute.results import Results as ResultsFolder
from longfat.execute.results import open_results
from longfat.plan.lockfile import LOCK, read_lock, require_study, write_lock
from longfat.relations.claims import claim_nouns, counted_claims
from longfat.relations.counting import apart, tally
from longfat.relations.judge import Verdict, judge, read_origin
from longfat.report.findings import MODERN, sentence
from longfat.report.front import write_front
from longfat.report.numbers import allowed
from longfat.report.numbers import measured as comparison
from longfat.report.report import write_report
from longfat.study.models import Header
from longfat.system.errors import StudyError
from longfat.system.events import EventSink

RUNS = "dataset/runs.parquet"
WIDTH, WIDTH_OF_ID = 110, 26  # columns of the table in a file, and of an id, which breaks at its hyphens
TWO_LINES = 60  # letters of a statement or reason in two lines of the table; the report has the whole text
UNPLANNED = "the lock has no"  # reason of a claim whose runs `--only` left out
DOUBTFUL = ("not reproduced", "undecided")


@dataclass(frozen=True)
class Conclusion:
    """The outcome of the steps after the runs. ``good`` is false if a run is invalid or differs from the evidence."""

    good: bool
    verdicts: Sequence[Verdict]


def report(
    out: Output, study: MaybeStudy = None, results: Results = None, every: Every = False, paper_figures: Papers = False
) -> bool:
    """Rebuild dataset, verdicts, figures and report of a study from its records; without a study the front page."""
    if study is None:
        refuse(
            {"--results": results, "--all": every, "--paper-figures": paper_figures},
            "without a study the front page of all is written",
        )
        page = write_front(repository_root() / "results", every_study(), known_baselines())
        say_place(out, "all studies", page)
        out.result(front=str(page))
        return True
    folder = find_study(study)
    return conclude(folder, require_results(folder, results), out, every=every, papers=paper_figures).good


def require_results(folder: StudyFolder, given: Path | None) -> Path:
    """Return the results folder of a study. Raises StudyError unless it has a lock of this study."""
    place = results_path(folder, given)
    lock = place / LOCK
    if not lock.is_file():
        message, where = ("no results", lock) if place.is_dir() else ("no such results folder", place)
        raise StudyError(message, where=str(where), hint=f"`./just run {folder.name}` makes them")
    require_study(lock, folder.header.study)
    return place


def conclude(folder: StudyFolder, place: Path, out: Output, *, every: bool = False, papers: bool = False) -> Conclusion:
    """Take all steps after the runs, print the outcome, and give it as the command's result."""
    with open_results(place) as results, listen(results, out) as events:
        valid = _dataset(results, folder, events)
        stage(events, "judging the claims")
        verdicts = judge(results.path, folder.study, folder.claims, folder.judged_by)
        stage(events, "drawing the figures")
        draw_all(results.path, folder, papers=papers)
        stage(events, "writing the report")
        evidence, page = _write_report(results.path, folder)
        origin = read_origin(results.path)
        compared, mismatches = compare_results(results.path, folder)
    if read_lock(place / LOCK).manifest_sha256 not in ("", folder.digest(MANIFEST)):
        say(
            out,
            f"warning: {MANIFEST} has changed since these runs; `./just run {folder.name}` makes new ones",
            "bold red",
        )
    print_verdicts(verdicts, folder.header, out, every=every, source="by these runs alone, " if evidence else "")
    if evidence:
        say(out, f"by all evidence, as in the report: {sentence(evidence.counts)}")
    if origin.changes:
        say(out, "\n  ".join([f"warning: {origin.sentence}:", *origin.changes]), "bold red")
    if compared:
        say(out, f"evidence: {compared - len(mismatches)} of {compared} runs are in it and byte-identical")
    print_mismatches(mismatches, out)
    say_place(out, "report", page)
    counts = tally(verdict.counted for verdict in verdicts)
    out.result(
        study=folder.study.name,
        valid=valid,
        counts={name: {word: n for word, n in row.items() if n} for name, row in counts.items()},
        claims_changed=list(origin.changes),
        verdicts=[dataclasses.asdict(verdict) for verdict in verdicts],
        evidence={"compared": compared, "differing": [one.name for one in mismatches]},
        report=str(page),
    )
    expect(valid, "some runs failed, are invalid or missing; the report and exclusions.csv name them and the reasons")
    return Conclusion(valid and not mismatches, verdicts)


def _dataset(results: ResultsFolder, folder: StudyFolder, events: EventSink) -> bool:
    """Build the dataset, unless the raw records were removed; return whether every run is valid."""
    if not any(results.raw.iterdir()) and (results.path / RUNS).exists():
        stage(events, "there are no raw records: the dataset stays as it is")
        return all(run.status == "ok" for run in load_dataset(results.path).runs)
    return build_tables(results.path, folder, events).valid


def build_tables(results: Path, folder: StudyFolder, events: EventSink) -> DatasetSummary:
    """Build the dataset, with the gates and the metrics' bounds applied."""
    stage(events, "building the dataset")
    counts = build_valid(results, folder, events)
    stage(events, f"{counts.ok} runs valid, {counts.invalid} invalid, {counts.failed} failed, {counts.missing} missing")
    return counts


def write_from_evidence(place: Path, folder: StudyFolder, stack: str) -> Path:
    """Write the report of the committed evidence of a stack, without any run, into a new folder; return the page."""
    with open_results(place) as results:
        write_lock(resolve(folder, Choices(stack=stack), {"backend": DEFAULT_BACKEND}), results.lock)
        build_valid(results.path, folder)
        judge(results.path, folder.study, folder.claims, folder.judged_by)
        return _write_report(results.path, folder)[1]


def _write_report(results: Path, folder: StudyFolder) -> tuple[Evidenced | None, Path]:
    """Write the report; return the committed evidence, by which it has its verdicts, and the page."""
    baselines = known_baselines()
    stack = read_lock(results / LOCK).stack
    evidence = evidence_of(folder, baselines, stack=stack)
    others = [name for name in (MODERN, folder.study.header.stack) if name != stack]
    other = evidence_of(folder, baselines, stack=others[0]) if others else None
    return evidence, write_report(results, folder, evidence, tuple(conditions(folder, baselines)), other)


def print_verdicts(
    verdicts: Sequence[Verdict], header: Header, console: Console, *, every: bool = True, source: str = ""
) -> None:
    """Print a table of the claims and a line with the counts of their verdicts, after their ``source``.

    Without ``every`` the table has only claims that are not reproduced or undecided.
    """
    noun = claim_nouns(header)[0]
    if not verdicts:
        say(console, f"the study states no {noun}")
        return
    rows = [one for one in verdicts if every or (one.verdict in DOUBTFUL and not measured(one).startswith(UNPLANNED))]
    names = [wrap(verdict.claim, WIDTH_OF_ID) for verdict in rows]
    broad = max((len(line) for lines in names for line in lines), default=None)
    columns = [Column(noun, overflow="fold", min_width=broad), Column("verdict"), Column("measured, allowed")]
    if header.paper:
        columns.insert(2, Column("paper"))
    some = f"verdicts that need attention (all: `./just report {header.study} --all`)"
    table = Table(*columns, title="verdicts" if every else some)
    for verdict, name in zip(rows, names, strict=True):
        word = Text(verdict.verdict, style=COLOURS[verdict.verdict])
        word.append(f"\n{verdict.why}" if verdict.why else "", style="default")
        texts = [verdict.paper, measured(verdict)] if header.paper else [measured(verdict)]
        numbers = verdict.deciding is not None and verdict.deciding.mean is not None
        if not every:
            short = [shorten(text, TWO_LINES, placeholder=" ...") for text in texts]
            texts = [*short[:-1], texts[-1] if numbers else short[-1]]
        table.add_row(Text("\n".join(name)), word, *map(Text, texts))
    if rows:
        if not console.is_terminal:
            console.width = max(console.width, WIDTH)
        console.print(table)
    counts = tally(verdict.counted for verdict in verdicts)
    words = counts["measured"]
    summary = ", ".join(f"{count} {word}" for word, count in words.items())
    say(console, f"{source}{counted_claims(sum(words.values()), header)}: {summary}")
    for line in apart(counts):
        say(console, f"  counted separately: {line}")


def measured(verdict: Verdict) -> str:
    """Return the deciding number of a verdict with its limits, or the reason why it has none."""
    one = verdict.deciding
    return (
        (f"{comparison(one)}, allowed {allowed(one)}" if one.mean is not None else comparison(one))
        if one
        else verdict.reason or ""
    )
