# SPDX-License-Identifier: Apache-2.0
"""The verb ``verdicts``: what all claims come to by the committed evidence alone. Runs and writes nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from longfat.evidence.epochs import FOLDER, read_epochs
from longfat.evidence.judged import Evidenced, Judged, evidence_of
from longfat.evidence.projection import NEVER, needed
from longfat.evidence.store import EVIDENCE
from longfat.relations.bind import terms_of
from longfat.relations.claims import Claim
from longfat.verbs.study import MANIFEST, find_study, repository_root, study_name

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
            console.print(f"{study_name(folder)}: no evidence{wanted} is committed yet", highlight=False)
    for one, judged in told:
        print_evidence(one, judged, console, claims=True)
    if len(told) != 1:
        total = _counts(item for _, judged in told for item in judged)
        console.print(f"all studies: {_text(total) or 'no evidence is committed yet'}", highlight=False)
    return True


def studies_with_evidence() -> list[Path]:
    """The folders under experiments/ that have evidence."""
    home = repository_root() / "experiments"
    return sorted(path.parent for path in home.glob(f"*/{MANIFEST}") if (path.parent / EVIDENCE).is_dir())


def print_evidence(one: Evidenced, judged: Sequence[Judged], console: Console, *, claims: bool) -> None:
    """Print what evidence there is, what of it does not count, and the counts of verdicts; with ``claims`` each."""
    if claims:
        _say(console, f"{one.study.name}: claim, kind, verdict, profile, needed n, reason")
        width = max((len(claim.id) for claim in one.claims), default=0)
        for claim, item in zip(one.claims, judged, strict=True):
            number = needed_n(item)
            shown = "" if number is None else "never" if number >= NEVER else str(number)
            word = item.verdict.verdict.replace("_", " ")
            line = f"{claim.id:<{width}}  {kind(claim):<12}  {word:<14}  {item.profile or '':<5}  {shown:>5}"
            _say(console, f"{line}  {item.verdict.reason or ''}".rstrip())
    head = f"{one.study.name}, epoch {one.epoch}, stack {one.stack}: {one.runs} runs"
    _say(console, f"{head}; {_text(_counts(judged))}")
    for exclusion in one.exclusions:
        _say(console, f"  left out: {exclusion}")


def kind(claim: Claim) -> str:
    """What a claim rests on: the engine's word where it has one, else whether anything is measured."""
    own = getattr(claim, "kind", None)
    if own is not None:
        return str(own)
    if claim.not_testable is not None:
        return "not testable"
    return "measured" if any(True for one in claim.relations for _ in terms_of(one.claim)) else "computed"


def needed_n(judged: Judged) -> int | None:
    """Repetitions that would decide an open claim: the most that one of its open comparisons needs."""
    open_ = [item for item in judged.verdict.evidence if item.outcome == "undecided"]
    numbers = [number for item in open_ if (number := needed(item)) is not None]
    return max(numbers, default=None)


def _counts(judged: Iterable[Judged]) -> Counter[str]:
    return Counter(item.verdict.verdict for item in judged)


def _text(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in sorted(counts.items()))


def _data(told: Sequence[tuple[Evidenced, Sequence[Judged]]]) -> dict[str, Any]:
    studies = [
        {
            "study": one.study.name,
            "epoch": one.epoch,
            "stack": one.stack,
            "runs": one.runs,
            "left_out": list(one.exclusions),
            "counts": dict(sorted(_counts(judged).items())),
            "claims": [
                {
                    "id": item.verdict.claim,
                    "kind": kind(claim),
                    "verdict": item.verdict.verdict,
                    "reason": item.verdict.reason,
                    "needed_n": needed_n(item),
                    "profile": item.profile,
                }
                for claim, item in zip(one.claims, judged, strict=True)
            ],
        }
        for one, judged in told
    ]
    total = _counts(item for _, judged in told for item in judged)
    return {"format": FORMAT, "studies": studies, "counts": dict(sorted(total.items()))}


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, markup=False, highlight=False)
