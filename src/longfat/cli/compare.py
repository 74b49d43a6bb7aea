# SPDX-License-Identifier: Apache-2.0
"""``compare``: the verdicts of two results folders, or of two stacks by the evidence, claim by claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from longfat.cli.console import Output, say
from longfat.cli.options import Every
from longfat.cli.paths import repository_root
from longfat.cli.report import COLOURS, measured
from longfat.cli.study import find_study
from longfat.evidence.baselines import FOLDER, read_baselines
from longfat.evidence.judged import evidence_of
from longfat.evidence.store import EVIDENCE
from longfat.plan.lockfile import LOCK, read_lock
from longfat.relations.judge import VERDICTS, Verdict, read_verdicts
from longfat.system.checksums import verify_checksums
from longfat.system.errors import StudyError

ABSENT = "not there"


@dataclass(frozen=True)
class Side:
    """The verdicts of one side by claim, its name, and its study."""

    name: str
    study: str
    verdicts: Mapping[str, Verdict]

    def word(self, claim: str) -> str:
        """Return the verdict on a claim in a word."""
        return self.verdicts[claim].verdict if claim in self.verdicts else ABSENT

    def number(self, claim: str) -> str:
        """Return the measured value behind the verdict on a claim."""
        return measured(self.verdicts[claim]) if claim in self.verdicts else ""


def compare(
    out: Output,
    one: Annotated[str, typer.Argument(metavar="A", help="results folder, or STUDY:STACK for the evidence")],
    other: Annotated[str, typer.Argument(metavar="B", help="results folder, or STUDY:STACK for the evidence")],
    every: Every = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="end with status 4 if a verdict differs")] = False,
) -> bool:
    """Compare the verdicts of two results folders, or of two stacks of a study, claim by claim."""
    sides = side_of(one), side_of(other)
    if sides[0].study != sides[1].study:
        message = f"{one} is of the study {sides[0].study!r}, and {other} of {sides[1].study!r}"
        raise StudyError(message, hint="only claims of one study can be compared")
    claims = list(dict.fromkeys([*sides[0].verdicts, *sides[1].verdicts]))
    differing = [claim for claim in claims if sides[0].word(claim) != sides[1].word(claim)]
    _print(sides, claims if every else differing, out)
    say(out, f"{len(claims)} claims: {len(claims) - len(differing)} have the same verdict, {len(differing)} differ")
    rows = [
        {
            "claim": claim,
            "verdicts": [side.word(claim) for side in sides],
            "measured": [side.number(claim) for side in sides],
            "same": claim not in differing,
        }
        for claim in claims
    ]
    out.result(study=sides[0].study, sides=[side.name for side in sides], claims=rows)
    return not (differing and exit_code)


def side_of(text: str) -> Side:
    """Read the verdicts of a results folder, or of the evidence of ``STUDY`` or ``STUDY:STACK``.

    Raises StudyError without verdicts, RecordError if a file was changed since it was made.
    """
    folder = Path(text)
    if (folder / LOCK).is_file():
        if not (folder / VERDICTS).is_file():
            raise StudyError("the results are not judged yet", where=text, hint="`longfat report STUDY` judges them")
        study = read_lock(folder / LOCK).study
        verify_checksums(folder, "dataset")
        return Side(text, study, {verdict.claim: verdict for verdict in read_verdicts(folder)})
    return _side_of_evidence(text)


def _side_of_evidence(text: str) -> Side:
    name, _, stack = text.partition(":")
    try:
        study = find_study(name)
    except StudyError as error:
        hint = "give results folders, or STUDY:STACK for the evidence"
        raise StudyError(f"{text!r} is neither results nor a study", hint=error.hint or hint) from error
    stack = stack or study.header.stack
    stacks = sorted({path.name for path in (study.path / EVIDENCE).glob("*/*") if path.is_dir()})
    if stack not in stacks:
        hint = f"there is evidence of {', '.join(stacks)}" if stacks else "give a results folder"
        raise StudyError(f"no evidence of stack {stack!r} is committed", where=text, hint=hint)
    found = evidence_of(study, read_baselines(repository_root() / FOLDER), stack=stack)
    judged = found.judged if found else ()
    return Side(f"{study.name}:{stack}", study.header.study, {item.verdict.claim: item.verdict for item in judged})


def _print(sides: Sequence[Side], claims: Sequence[str], console: Console) -> None:
    table = Table("claim", *(side.name for side in sides), title=f"{sides[0].study}, claim by claim")
    for claim in claims:
        table.add_row(claim, *(_cell(side, claim) for side in sides))
    if claims:
        console.print(table)


def _cell(side: Side, claim: str) -> Text:
    """Return the verdict, and below it the measured value."""
    word = side.word(claim)
    cell = Text(word.replace("_", " "), style=COLOURS.get(word, "default"))
    if number := side.number(claim):
        cell.append(f"\n{number}", style="default")
    return cell
