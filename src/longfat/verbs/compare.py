# SPDX-License-Identifier: Apache-2.0
"""The verb ``compare``: the verdicts of two results folders, or of two stacks by the evidence, claim by claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from longfat.errors import StudyError
from longfat.evidence.epochs import FOLDER, read_epochs
from longfat.evidence.judged import evidence_of
from longfat.evidence.store import EVIDENCE
from longfat.plan.lockfile import read_lock
from longfat.relations.judge import VERDICTS, Verdict, read_verdicts
from longfat.seals import check_seal
from longfat.studies import StudyFolder
from longfat.verbs.conclude import COLOURS, measured
from longfat.verbs.places import repository_root
from longfat.verbs.say import print_json, say
from longfat.verbs.study import find_study

FORMAT = 1
NOWHERE = "not there"
LOCK = "lock.json"


@dataclass(frozen=True)
class Side:
    """The verdicts of one side by claim, what it is called, and its study."""

    name: str
    study: str
    verdicts: Mapping[str, Verdict]


def compare(one: str, other: str, console: Console, *, every: bool, as_json: bool) -> bool:
    """Print the claims whose verdicts differ, or ``every`` one; whether none differs.

    Raises StudyError where there are no verdicts, or the sides are of two studies, and RecordError where a file is not
    as it was made, from the lock on.
    """
    places = place_of(one), place_of(other)  # what is wrong is told before anything is judged
    studies = [place.verdicts_of for place in places]
    if studies[0] != studies[1]:
        message = f"{one} is of the study {studies[0]!r}, and {other} of {studies[1]!r}"
        raise StudyError(message, hint="only claims of one study can be compared")
    sides = side_of(places[0]), side_of(places[1])
    claims = list(dict.fromkeys([*sides[0].verdicts, *sides[1].verdicts]))
    differing = [claim for claim in claims if _word(sides[0], claim) != _word(sides[1], claim)]
    if as_json:
        print_json(_data(sides, claims))
    else:
        _print(sides, claims if every else differing, console)
        say(
            console,
            f"{len(claims)} claims: {len(claims) - len(differing)} have the same verdict, {len(differing)} differ",
        )
    return not differing


@dataclass(frozen=True)
class Place:
    """Where the verdicts of a side are: in a results folder, or else in the evidence of a study and a stack."""

    name: str
    results: Path | None
    study: StudyFolder | None = None
    stack: str | None = None

    @property
    def verdicts_of(self) -> str:
        """The study that they are of."""
        return self.study.header.study if self.study else read_lock(self.results_ / LOCK).study

    @property
    def results_(self) -> Path:
        """The results folder of a place that has one."""
        assert self.results is not None
        return self.results


def place_of(text: str) -> Place:
    """A results folder, or ``STUDY`` or ``STUDY:STACK`` for what the evidence says. Raises StudyError on all else."""
    folder = Path(text)
    if (folder / LOCK).is_file():
        if not (folder / VERDICTS).is_file():
            hint = "`longfat analyse STUDY --results` judges them"
            raise StudyError("the results are not judged yet", where=text, hint=hint)
        return Place(text, folder)
    name, _, stack = text.partition(":")
    try:
        study = find_study(name)
    except StudyError as error:
        hint = "give results folders, or STUDY:STACK for what the evidence says"
        raise StudyError(f"{text!r} is neither results nor a study", hint=error.hint or hint) from error
    stack = stack or study.header.stack
    kept = sorted({path.name for path in (study.path / EVIDENCE).glob("*/*") if path.is_dir()})
    if stack not in kept:
        hint = f"there is evidence of {', '.join(kept)}" if kept else "give a results folder"
        raise StudyError(f"no evidence of stack {stack!r} is committed", where=text, hint=hint)
    return Place(f"{study.name}:{stack}", None, study, stack)


def side_of(place: Place) -> Side:
    """The verdicts of a place. Raises RigError, RecordError or StudyError when they cannot be read."""
    if place.study is None:
        check_seal(place.results_, "dataset")
        verdicts = {verdict.claim: verdict for verdict in read_verdicts(place.results_)}
        return Side(place.name, place.verdicts_of, verdicts)
    found = evidence_of(place.study, read_epochs(repository_root() / FOLDER), stack=place.stack)
    judged = found.judged if found else ()
    return Side(place.name, place.verdicts_of, {item.verdict.claim: item.verdict for item in judged})


def _word(side: Side, claim: str) -> str:
    return side.verdicts[claim].verdict if claim in side.verdicts else NOWHERE


def _data(sides: tuple[Side, Side], claims: list[str]) -> dict[str, Any]:
    rows = []
    for claim in claims:
        words = [_word(side, claim) for side in sides]
        values = [measured(side.verdicts[claim]) if claim in side.verdicts else "" for side in sides]
        rows.append({"claim": claim, "verdicts": words, "measured": values, "same": words[0] == words[1]})
    return {"format": FORMAT, "study": sides[0].study, "sides": [side.name for side in sides], "claims": rows}


def _print(sides: tuple[Side, Side], claims: list[str], console: Console) -> None:
    table = Table("claim", *(side.name for side in sides), title=f"{sides[0].study}, claim by claim")
    for claim in claims:
        table.add_row(claim, *(_cell(side, claim) for side in sides))
    if claims:
        console.print(table)


def _cell(side: Side, claim: str) -> Text:
    """The verdict, and below it what was measured."""
    word = _word(side, claim)
    cell = Text(word.replace("_", " "), style=COLOURS.get(word, "default"))
    if claim in side.verdicts and (number := measured(side.verdicts[claim])):
        cell.append(f"\n{number}", style="default")
    return cell
