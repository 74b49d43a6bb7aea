# SPDX-License-Identifier: Apache-2.0
"""The verb ``verdicts``: what all claims come to by the committed evidence alone. Runs and writes nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console

from longfat.evidence.epochs import FOLDER, read_epochs
from longfat.evidence.judged import Evidenced, Judged, evidence_of
from longfat.evidence.store import EVIDENCE
from longfat.relations.counting import CATEGORIES, VERDICT_WORDS, Counts, VerdictWord, apart, tally
from longfat.studies import StudyFolder
from longfat.verbs.study import every_study, find_study, repository_root

FORMAT = 1


def verdicts(names: Sequence[str], epoch: str | None, console: Console, *, as_json: bool) -> bool:
    """Print every claim's verdict by the evidence; of all studies that have some where none is named."""
    folders = [find_study(name) for name in names] or studies_with_evidence()
    epochs = read_epochs(repository_root() / FOLDER)
    found = [(folder, evidence_of(folder, epochs, epoch=epoch)) for folder in folders]
    told = [(one, one.verdicts()) for _, one in found if one is not None]
    if as_json:
        console.print_json(json.dumps(_data(told), ensure_ascii=True), highlight=False)
        return True
    for folder, one in found:
        if one is None:
            wanted = f" of epoch {epoch}" if epoch else ""
            console.print(f"{folder.name}: no evidence{wanted} is committed yet", highlight=False)
    for one, judged in told:
        print_evidence(one, judged, console, claims=True)
    if len(told) != 1:
        total = _told(summed(_counts(judged) for _, judged in told)) if told else "no evidence is committed yet"
        _say(console, f"all studies: {total}")
    return True


def studies_with_evidence() -> list[StudyFolder]:
    """The studies under experiments/ that have evidence."""
    return [study for study in every_study() if (study.path / EVIDENCE).is_dir()]


def print_evidence(one: Evidenced, judged: Sequence[Judged], console: Console, *, claims: bool) -> None:
    """Print what evidence there is, what of it does not count, and the counts of verdicts; with ``claims`` each."""
    if claims:
        _say(console, f"{one.study.name}: claim, kind, verdict, profile, needed n, reason")
        width = max((len(claim.id) for claim in one.claims), default=0)
        for item in judged:
            number = needed_n(item)
            shown = "" if number is None else str(number)
            word = item.verdict.verdict.replace("_", " ")
            words = f"{item.verdict.claim:<{width}}  {item.verdict.category:<12}  {word:<14}"
            _say(console, f"{words}  {item.profile or '':<5}  {shown:>5}  {item.verdict.reason or ''}".rstrip())
    head = f"{one.study.name}, epoch {one.epoch}, stack {one.stack}: {one.runs} runs"
    _say(console, f"{head}; {_told(_counts(judged))}")
    for exclusion in one.exclusions:
        _say(console, f"  left out: {exclusion}")


def needed_n(judged: Judged) -> int | None:
    """Repetitions that would decide an open claim: the most that one of its open comparisons needs."""
    open_ = [item.needed for item in judged.verdict.evidence if item.outcome == "undecided"]
    return max((number for number in open_ if number is not None), default=None)


def _counts(judged: Iterable[Judged]) -> Counts:
    return tally(item.verdict.counted for item in judged)


def _told(counts: Counts) -> str:
    """The words of measured claims, and what is counted apart from them."""
    measured = [f"{number} {word.replace('_', ' ')}" for word, number in counts["measured"].items() if number]
    return "; apart: ".join([", ".join(measured) or "nothing measured", *apart(counts)])


def _plain(counts: Counts) -> dict[str, dict[str, int]]:
    return {
        name: {word: number for word, number in row.items() if number}
        for name, row in counts.items()
        if any(row.values())
    }


def _data(told: Sequence[tuple[Evidenced, Sequence[Judged]]]) -> dict[str, Any]:
    studies = [
        {
            "study": one.study.name,
            "epoch": one.epoch,
            "stack": one.stack,
            "runs": one.runs,
            "left_out": list(one.exclusions),
            "counts": _plain(_counts(judged)),
            "claims": [
                {
                    "id": item.verdict.claim,
                    "kind": item.verdict.category,
                    "verdict": item.verdict.verdict,
                    "reason": item.verdict.reason,
                    "needed_n": needed_n(item),
                    "profile": item.profile,
                }
                for item in judged
            ],
        }
        for one, judged in told
    ]
    return {"format": FORMAT, "studies": studies, "counts": _plain(summed(_counts(judged) for _, judged in told))}


def summed(every: Iterable[Counts]) -> Counts:
    """The counts of several studies together."""
    total: dict[str, Counter[VerdictWord]] = {}
    for counts in every:
        for name, row in counts.items():
            total.setdefault(name, Counter()).update(row)
    return {name: {word: total.get(name, Counter())[word] for word in VERDICT_WORDS} for name in CATEGORIES}


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, markup=False, highlight=False)
