# SPDX-License-Identifier: Apache-2.0
"""``compare``: compare the verdicts of two results folders, or of two stacks by the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from longfat.cli.console import COLOURS, Output, say
from longfat.cli.options import Every
from longfat.cli.report import measured
from longfat.cli.study import find_study, known_baselines
from longfat.evidence.judged import evidence_of
from longfat.evidence.store import EVIDENCE, baselines_with_evidence
from longfat.plan.lockfile import LOCK, read_lock
from longfat.relations.judge import VERDICTS, Verdict, read_verdicts
from longfat.system.checksums import verify_checksums
from longfat.system.errors import StudyError

ABSENT = "not there"


Side = tuple[str, str, Mapping[str, Verdict]]
"""The name of a side, its study, and its verdicts by claim."""


def compare(
    out: Output,
    one: Annotated[str, typer.Argument(metavar="A", help="results folder, or STUDY:STACK for the evidence")],
    other: Annotated[str, typer.Argument(metavar="B", help="results folder, or STUDY:STACK for the evidence")],
    every: Every = False,
) -> None:
    """Compare the verdicts of two results folders, or of two stacks of a study, claim by claim."""
    (first, study, left), (second, study_of_other, right) = sides = side_of(one), side_of(other)
    if study != study_of_other:
        message = f"{one} is of the study {study!r}, and {other} of {study_of_other!r}"
        raise StudyError(message, hint="only claims of one study can be compared")
    rows: list[dict[str, Any]] = []
    for claim in dict.fromkeys([*left, *right]):
        words = [verdicts[claim].verdict if claim in verdicts else ABSENT for _, _, verdicts in sides]
        numbers = [measured(verdicts[claim]) if claim in verdicts else "" for _, _, verdicts in sides]
        rows.append({"claim": claim, "verdicts": words, "measured": numbers, "same": words[0] == words[1]})
    table = Table("claim", first, second, title=f"{study}, claim by claim")
    for row in rows:
        if every or not row["same"]:
            table.add_row(row["claim"], *map(_cell, row["verdicts"], row["measured"]))
    if table.row_count:
        out.print(table)
    same = sum(row["same"] for row in rows)
    say(out, f"{len(rows)} claims: {same} have the same verdict, {len(rows) - same} differ")
    out.result(study=study, sides=[first, second], claims=rows)


def side_of(text: str) -> Side:
    """Read the verdicts of a results folder, or of the evidence of ``STUDY`` or ``STUDY:STACK``.

    Raises StudyError without verdicts, RecordError if a file was changed since it was made.
    """
    folder = Path(text)
    if (folder / LOCK).is_file():
        if not (folder / VERDICTS).is_file():
            raise StudyError("the results are not judged yet", where=text, hint="`./just report STUDY` judges them")
        study = read_lock(folder / LOCK).study
        verify_checksums(folder, "dataset")
        return text, study, {verdict.claim: verdict for verdict in read_verdicts(folder)}
    return _side_of_evidence(text)


def _side_of_evidence(text: str) -> Side:
    name, _, stack = text.partition(":")
    try:
        study = find_study(name)
    except StudyError as error:
        hint = "give results folders, or STUDY:STACK for the evidence"
        raise StudyError(f"{text!r} is neither results nor a study", hint=hint) from error
    stack = stack or study.header.stack
    stacks = sorted({path.name for path in (study.path / EVIDENCE).glob("*/*") if path.is_dir()})
    if stack not in stacks:
        hint = f"there is evidence of {', '.join(stacks)}" if stacks else "give a results folder"
        raise StudyError(f"no evidence with stack profile {stack!r} is committed", where=text, hint=hint)
    found = evidence_of(study, known_baselines(), stack=stack)
    if found is None:
        newest = baselines_with_evidence(study.path)[-1]
        raise StudyError(f"no evidence with stack profile {stack!r} is in the newest baseline, {newest}", where=text)
    return f"{study.name}:{stack}", study.header.study, {item.verdict.claim: item.verdict for item in found.judged}


def _cell(word: str, number: str) -> Text:
    """Return a verdict with the measured value on the next line."""
    cell = Text(word, style=COLOURS.get(word, "default"))
    return cell.append(f"\n{number}", style="default") if number else cell
