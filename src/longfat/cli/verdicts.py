# SPDX-License-Identifier: Apache-2.0
"""``verdicts``: the verdicts from the committed evidence alone. Runs and writes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.text import Text

from longfat.cli.console import COLOURS, WARNING, Output, say
from longfat.cli.options import EveryClaim, Stack, Studies
from longfat.cli.study import every_study, find_study, known_baselines, require_stack
from longfat.data.study_folder import StudyFolder
from longfat.evidence.criteria import YOUNGER
from longfat.evidence.judged import Evidenced, evidence_of, without_runs
from longfat.evidence.store import EVIDENCE
from longfat.relations.counting import CATEGORIES, Counts, apart, shares
from longfat.relations.headlines import JudgedHeadline
from longfat.relations.outcomes import WORDS
from longfat.report.findings import GLYPHS, headline_counts, headline_rows, sentence
from longfat.report.forest import by_section
from longfat.system.errors import StudyError, all_of

BAR = 48  # columns of a study's bar


def verdicts(out: Output, studies: Studies = None, stack: Stack = None, every: EveryClaim = False) -> None:
    """Print the verdicts by the committed evidence: the claims of named studies, or a line for each study."""
    _, *named = all_of(partial(require_stack, stack), *(partial(find_study, name) for name in studies or ()))
    committed = studies_with_evidence()
    shown = [study for study in every_study() if study in committed or not study.name.startswith("_")]
    folders: list[StudyFolder] = named or shown
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
    for one in having if studies or every else ():
        print_evidence(one, out, claims=True)
    if having and not (studies or every):
        _print_overview(having, out)
    wanted = f" of stack {stack}" if stack else ""
    for folder in folders:
        if folder.name in found and found[folder.name] is None:
            say(out, f"{folder.name}: no evidence{wanted} is committed yet")
            if folder.headlines and known and (studies or every):
                print_headlines(without_runs(folder, known[-1].name).headlines, out)
    total = {name: {word: sum(one.counts[name][word] for one in having) for word in WORDS} for name in CATEGORIES}
    if len(folders) > 1:
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
        _print_claims(one, console)
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
        say(
            console, f"  also: {runs} runs with stack profile {stack}: ./just verdicts {one.study.name} --stack {stack}"
        )


def _print_claims(one: Evidenced, console: Console) -> None:
    """Print the verdict on each claim, by section of the paper."""
    say(console, f"{one.study.name}: claim, kind, verdict, profile, reason")
    width = max((len(claim.id) for claim in one.claims), default=0)
    judged = {item.verdict.claim: item for item in one.judged}
    for section, verdicts in by_section(item.verdict for item in one.judged).items():
        say(console, section, "bold")
        for verdict in verdicts:
            item = judged[verdict.claim]
            line = Text(f"{verdict.claim:<{width}}  {verdict.category:<12}  ")
            line.append(f"{verdict.words:<34}", COLOURS[verdict.verdict])
            line.append(f"  {item.profile or '':<6}  {item.reason}")
            line.rstrip()
            console.print(line, soft_wrap=True, highlight=False)


def _print_overview(having: Sequence[Evidenced], console: Console) -> None:
    """Print, for each study, a bar of its testable claims, its counts, and its headlines."""
    names = max(len(one.study.name) for one in having)
    say(console, f"{'study':<{names}}  {'testable claims that only runs can decide':<{BAR}}  conclusions of the paper")
    for one in having:
        row = {word: number for word, number in one.counts["measured"].items() if number and word != "not testable"}
        line, total, done, end = Text(f"{one.study.name:<{names}}  "), sum(row.values()), 0, 0
        for word, number in row.items():
            done, start, end = done + number, end, round(BAR * (done + number) / total)
            line.append(f"{GLYPHS[word]} {number}"[: end - start].ljust(end - start), f"black on {COLOURS[word]}")
        line.append(f"  {headline_counts(one.headlines)}")
        line.rstrip()
        console.print(line, soft_wrap=True, highlight=False)
    say(console, "claim by claim: ./just verdicts STUDY, or --all")


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
