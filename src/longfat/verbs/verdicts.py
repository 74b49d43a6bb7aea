# SPDX-License-Identifier: Apache-2.0
"""The verb ``verdicts``: what all claims come to by the committed evidence alone. Runs and writes nothing."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console

from longfat.evidence.costs import Lack, time_of
from longfat.evidence.epochs import FOLDER, read_epochs
from longfat.evidence.judged import Evidenced, evidence_of
from longfat.evidence.store import EVIDENCE
from longfat.relations.counting import CATEGORIES, VERDICT_WORDS, Counts, VerdictWord, apart, shares
from longfat.studies import StudyFolder
from longfat.verbs.places import repository_root
from longfat.verbs.say import print_json, say
from longfat.verbs.study import every_study, find_study

FORMAT = 1


def verdicts(
    names: Sequence[str], epoch: str | None, console: Console, *, as_json: bool, stack: str | None = None
) -> bool:
    """Print every claim's verdict by the evidence, of all studies where none is named.

    It is that of each study's newest epoch and own stack, or of those named; a study that has none is named.
    """
    folders = [find_study(name) for name in names] or _studies()
    epochs = read_epochs(repository_root() / FOLDER)
    found = [(folder, evidence_of(folder, epochs, epoch=epoch, stack=stack)) for folder in folders]
    told = [one for _, one in found if one is not None]
    if as_json:
        print_json(_data(told))
        return True
    for one in told:
        print_evidence(one, console, claims=True)
    for folder, known in found:
        if known is None:
            wanted = "".join(f" of {name} {value}" for name, value in (("epoch", epoch), ("stack", stack)) if value)
            console.print(f"{folder.name}: no evidence{wanted} is committed yet", highlight=False)
    if len(told) != 1:
        together = summed(one.counts for one in told)
        say(console, f"all studies: {_told(together) if told else 'no evidence is committed yet'}")
        for which, share in shares(together).items():
            if share.testable:
                say(console, f"  claims that {which}: {share}")
        lacks = [lack for one in told for lack in one.lacks]
        if lacks:
            runs, seconds = sum(lack.runs for lack in lacks), sum(lack.seconds for lack in lacks)
            say(console, f"for claims that are not measured they lack {runs} runs, about {time_of(seconds)}")
    return True


def studies_with_evidence() -> list[StudyFolder]:
    """The studies under experiments/ that have evidence."""
    return [study for study in every_study() if (study.path / EVIDENCE).is_dir()]


def _studies() -> list[StudyFolder]:
    """All studies, but for those that test the testbed and have no evidence."""
    having = studies_with_evidence()
    return [study for study in every_study() if study in having or not study.name.startswith("_")]


def print_evidence(one: Evidenced, console: Console, *, claims: bool) -> None:
    """Print what evidence there is, what of it does not count, and the counts of verdicts; with ``claims`` each."""
    if claims:
        say(console, f"{one.study.name}: claim, kind, verdict, profile, reason")
        width = max((len(claim.id) for claim in one.claims), default=0)
        for item in one.judged:
            word = item.verdict.verdict.replace("_", " ")
            words = f"{item.verdict.claim:<{width}}  {item.verdict.category:<12}  {word:<14}"
            say(console, f"{words}  {item.profile or '':<6}  {item.reason}".rstrip())
    head = f"{one.study.name}, epoch {one.epoch}, stack {one.stack}: {one.runs} runs"
    say(console, f"{head}; {_told(one.counts)}")
    for lack in one.lacks:
        say(console, f"  for claims that are not measured it {lack}")
    for exclusion in one.exclusions:
        say(console, f"  left out: {exclusion}")
    for stack, runs in sorted(one.besides.items()):
        say(console, f"  besides: {runs} runs of stack {stack} (./just verdicts {one.study.name} --stack {stack})")


def _told(counts: Counts) -> str:
    """The words of measured claims, and what is counted apart from them."""
    measured = [f"{number} {word.replace('_', ' ')}" for word, number in counts["measured"].items() if number]
    return "; apart: ".join([", ".join(measured) or "nothing measured", *apart(counts)])


def plain(counts: Counts) -> dict[str, dict[str, int]]:
    """Counts without zeros."""
    return {
        name: {word: number for word, number in row.items() if number}
        for name, row in counts.items()
        if any(row.values())
    }


def _data(told: Sequence[Evidenced]) -> dict[str, Any]:
    studies = [
        {
            "study": one.study.name,
            "epoch": one.epoch,
            "stack": one.stack,
            "runs": one.runs,
            "left_out": list(one.exclusions),
            "lacks": [_lack(lack) for lack in one.lacks],
            "counts": plain(one.counts),
            "claims": [
                {
                    "id": item.verdict.claim,
                    "kind": item.verdict.category,
                    "verdict": item.verdict.verdict,
                    "reason": item.verdict.reason,
                    "lacks": _lack(item.lack),
                    "profile": item.profile,
                }
                for item in one.judged
            ],
        }
        for one in told
    ]
    together = summed(one.counts for one in told)
    of = {which: dataclasses.asdict(share) for which, share in shares(together).items()}
    return {"format": FORMAT, "studies": studies, "counts": plain(together), "shares": of}


def _lack(lack: Lack | None) -> dict[str, Any] | None:
    """Return the runs that would measure claims, as plain data."""
    if lack is None:
        return None
    return {"profile": lack.profile, "runs": lack.runs, "cpu_minutes": round(lack.seconds / 60, 1)}


def summed(every: Iterable[Counts]) -> Counts:
    """The counts of several studies together."""
    total: dict[str, Counter[VerdictWord]] = {}
    for counts in every:
        for name, row in counts.items():
            total.setdefault(name, Counter()).update(row)
    return {name: {word: total.get(name, Counter())[word] for word in VERDICT_WORDS} for name in CATEGORIES}
