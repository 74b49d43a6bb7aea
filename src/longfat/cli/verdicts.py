# SPDX-License-Identifier: Apache-2.0
"""``verdicts``: the verdicts by the committed evidence alone. Runs and writes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from longfat.cli.console import WARNING, Output, say
from longfat.cli.options import Stack, Studies
from longfat.cli.study import every_study, find_study, known_baselines
from longfat.data.study_folder import StudyFolder
from longfat.evidence.criteria import YOUNGER
from longfat.evidence.judged import Evidenced, evidence_of, without_runs
from longfat.evidence.store import EVIDENCE
from longfat.relations.counting import CATEGORIES, Counts, apart, shares
from longfat.relations.headlines import JudgedHeadline
from longfat.relations.outcomes import WORDS
from longfat.report.findings import sentence
from longfat.report.headlines import headline_counts, headline_rows
from longfat.system.errors import StudyError


def verdicts(out: Output, studies: Studies = None, stack: Stack = None) -> None:
    """Print every claim's verdict by the committed evidence, of all studies or of those named."""
    committed = studies_with_evidence()
    every = [study for study in every_study() if study in committed or not study.name.startswith("_")]
    folders = [find_study(name) for name in studies or ()] or every
    known = known_baselines()
    found = {}
    for folder in folders:
        try:
            found[folder.name] = evidence_of(folder, known, stack=stack)
        except StudyError as error:
            if studies:
                raise
            say(out, f"{folder.name} is left out: {error}", WARNING)
    having = [one for one in found.values() if one is not None]
    for one in having:
        print_evidence(one, out, claims=True)
    wanted = f" of stack {stack}" if stack else ""
    for folder in folders:
        if folder.name in found and found[folder.name] is None:
            say(out, f"{folder.name}: no evidence{wanted} is committed yet")
            if folder.headlines and known:
                print_headlines(without_runs(folder, known[-1].name).headlines, out)
    total = {name: {word: sum(one.counts[name][word] for one in having) for word in WORDS} for name in CATEGORIES}
    if len(having) != 1:
        say(out, f"all studies: {_sentence(total) if having else 'no evidence is committed yet'}")
        for which, share in shares(total).items():
            if share.testable:
                say(out, f"  claims that {which}: {share}")
    out.result(
        studies=[_data(one) for one in having],
        counts=without_zeros(total),
        shares={which: dataclasses.asdict(share) for which, share in shares(total).items()},
    )


def studies_with_evidence() -> list[StudyFolder]:
    """Return the studies under experiments/ that have evidence."""
    return [study for study in every_study() if (study.path / EVIDENCE).is_dir()]


def print_headlines(headlines: Sequence[JudgedHeadline], console: Console) -> None:
    """Print the verdict on each headline, with the paper's numbers and the numbers here."""
    for statement, paper, here, word, behind in headline_rows(headlines):
        say(console, f"{word:<17}  {statement}\n{'':<19}paper: {paper}; here: {here}\n{'':<19}{behind}")


def print_evidence(one: Evidenced, console: Console, *, claims: bool) -> None:
    """Print the headlines of a study and the counts of its verdicts; with ``claims`` also each verdict."""
    if one.headlines:
        say(console, f"{one.study.name}: conclusions of the paper: {headline_counts(one.headlines)}")
        print_headlines(one.headlines, console)
    if claims:
        say(console, f"{one.study.name}: claim, kind, verdict, profile, reason")
        width = max((len(claim.id) for claim in one.claims), default=0)
        for item in one.judged:
            words = f"{item.verdict.claim:<{width}}  {item.verdict.category:<12}  {item.verdict.words:<34}"
            say(console, f"{words}  {item.profile or '':<6}  {item.reason}".rstrip())
    head = f"{one.study.name}, baseline {one.baseline}, stack {one.stack}: {one.runs} runs"
    say(console, f"{head}. {_sentence(one.counts)}")
    for exclusion in one.exclusions:
        say(console, f"  left out: {exclusion}")
    for line in one.remarks:
        say(console, f"  {line}")
    if one.younger:
        say(console, f"  {YOUNGER}:", WARNING)
    for line in one.younger:
        say(console, f"    {line}")
    for stack, runs in sorted(one.others.items()):
        say(console, f"  also: {runs} runs of stack {stack} (./just verdicts {one.study.name} --stack {stack})")


def _sentence(counts: Counts) -> str:
    """Return the counts of measured claims in words, then the counts of the others."""
    return " Counted separately: ".join([sentence(counts), *filter(None, ["; ".join(apart(counts))])])


def without_zeros(counts: Counts) -> dict[str, dict[str, int]]:
    """Return the counts that are not zero."""
    rows = {name: {str(word): number for word, number in row.items() if number} for name, row in counts.items()}
    return {name: row for name, row in rows.items() if row}


def _data(one: Evidenced) -> dict[str, Any]:
    claims = [
        {
            "id": item.verdict.claim,
            "kind": item.verdict.category,
            "verdict": item.verdict.verdict,
            "why": item.verdict.why,
            "reason": item.verdict.reason,
            "profile": item.profile,
        }
        for item in one.judged
    ]
    return {
        "study": one.study.name,
        "baseline": one.baseline,
        "stack": one.stack,
        "runs": one.runs,
        "left_out": list(one.exclusions),
        "remarks": list(one.remarks),
        "criteria_changed": list(one.younger),
        "headlines": [
            {"id": each.headline.id, "verdict": each.word, "here": each.here, "claims": dict(each.claims)}
            for each in one.headlines
        ],
        "counts": without_zeros(one.counts),
        "claims": claims,
    }
