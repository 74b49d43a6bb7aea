# SPDX-License-Identifier: Apache-2.0
"""Markdown pages from the committed evidence: VERDICTS.md, numbers in README.md, and docs/findings.md.

In README.md and docs/findings.md it updates the part between two marks, and each number that is followed by an
expression of relations in a comment: ``955<!-- goodput[txqueuelen, scalable, txqueuelen=100] -->``. In docs/findings.md
the study is the one to which the item of a list links first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from longfat.data.study_folder import NOTES, README
from longfat.evidence.criteria import YOUNGER
from longfat.evidence.judged import Evidenced, Judged
from longfat.relations.bind import RelationError
from longfat.relations.claims import Change
from longfat.relations.counting import CATEGORIES, apart
from longfat.relations.headlines import RULE
from longfat.relations.outcomes import WORDS
from longfat.report.findings import HEAD, MODERN, headline_counts, headline_rows, sentence
from longfat.report.numbers import allowed, found, interval
from longfat.report.page import cell
from longfat.system.errors import StudyError
from longfat.system.files import write_whole

PAGE = "VERDICTS.md"
FINDINGS = "docs/findings.md"
BEGIN, END = "<!-- from the evidence, by ./just evidence merge -->", "<!-- end of what is from the evidence -->"
UNKNOWN = "?"
_ITEM = re.compile(r"^- \[[^]]*\]\(\.\./experiments/([^/)]+)/.*?(?=^- |^$|\Z)", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"(?P<number>[^\s(*|]+)<!-- (?P<expression>\S[^\n]*?\]) -->")


def write_study_pages(one: Evidenced, modern: Evidenced | None) -> None:
    """Write VERDICTS.md, or remove it if there is no run, and update README.md and notes.md of a study.

    ``modern`` is its evidence of the modern stack. Raises StudyError for a faulty expression in a page.
    """
    if one.runs:
        (one.folder.path / PAGE).touch()
        _renew(one.folder.path / PAGE, lambda _: verdicts_page(one))
    else:
        (one.folder.path / PAGE).unlink(missing_ok=True)
    _renew(one.folder.path / README, lambda text: renewed(text, one, modern))
    _renew(one.folder.path / NOTES, lambda text: renewed(text, one, modern, NOTES))


def write_overviews(root: Path, every: Sequence[Evidenced]) -> None:
    """Renew the tables of all studies in the repository's README.md and docs/findings.md, if these exist."""
    _renew(root / README, lambda text: between(text, studies_table(every)))
    _renew(root / FINDINGS, lambda text: findings_page(text, every))


def findings_page(text: str, every: Sequence[Evidenced]) -> str:
    """Return docs/findings.md with the numbers of the evidence. Raises StudyError for a faulty expression."""
    studies = {one.folder.name: one for one in every}
    text = between(text, overview(every))
    return _ITEM.sub(
        lambda item: _numbers(item[0], studies[item[1]], FINDINGS) if item[1] in studies else item[0], text
    )


def _renew(path: Path, new: Callable[[str], str]) -> None:
    """Update an existing file if its text differs."""
    text = path.read_text(encoding="utf-8") if path.exists() else None
    if text is not None and text != (made := new(text)):
        write_whole(path, made)


def table(head: Sequence[str], rows: Iterable[Iterable[str]], numbers: int = 0) -> Iterator[str]:
    """Yield the lines of a table, whose last columns may be ``numbers``."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * (len(head) - numbers)}{'---:|' * numbers}"
    for row in rows:
        yield f"| {' | '.join(map(cell, row))} |"


def verdicts_page(one: Evidenced) -> str:
    """Return the text of VERDICTS.md."""
    others = one.folder.simulated
    lines = [
        f"# Verdicts of {one.folder.name}",
        "",
        "Generated from the committed evidence by `./just evidence merge`; do not edit.",
        f"It has {one.runs} runs with stack profile `{one.stack}` in baseline {one.baseline}.",
        *(
            f"The column `{name}` has the verdicts of runs that are not evidence ([ns2.json](ns2.json))."
            for name in others
        ),
        "",
        *_headlines(one, RULE),
        f"**{sentence(one.counts)}**",
    ]
    if separate := _separate(one):
        lines += ["Counted separately:", "", *(f"- {line}" for line in separate)]
    head = ("claim", "statement", "paper", "here", "limits", "n, profile", "why", "kind", *others)
    for word in WORDS:
        kept = [item for item in one.judged if item.verdict.verdict == word]
        if rows := [(*_claim(item), *(of.get(item.verdict.claim, "") for of in others.values())) for item in kept]:
            lines += ["", f"## {word.capitalize()}", "", *table(head, rows)]
    return "\n".join([*lines, *_changes(one), *_criteria(one)]) + "\n"


def _separate(one: Evidenced) -> list[str]:
    """Return a phrase for each kind of claims that stands apart, and one for those that do not count at all."""
    rest = len(one.judged) - sum(sum(row.values()) for row in one.counts.values())
    verbs = "repeats or excludes" if rest == 1 else "repeat or exclude"
    return [*apart(one.counts), *([f"{rest} not counted, which {verbs} another claim"] if rest else [])]


def _criteria(one: Evidenced) -> Iterator[str]:
    """Yield the numbers of repetitions, the days of the criteria, and the unlisted changes since."""
    yield from ("", "## Repetitions and criteria", "", *(f"- {line}" for line in one.remarks))
    if one.younger:
        yield from ("", f"{YOUNGER}:", "", *(f"- {line}" for line in one.younger))


def _changes(one: Evidenced) -> Iterator[str]:
    """Yield the table of criteria that were changed after the first run of their claims."""
    groups: dict[Change, list[str]] = {}
    for claim in one.claims:
        for change in claim.changes:
            groups.setdefault(change, []).append(f"`{claim.id}`")
    if groups:
        yield from ("", "## Criteria that changed after the first run", "")
        head = (
            "claims",
            "date",
            "former criterion",
            "criterion",
            "reason",
            "verdict before and after, on the same runs",
        )
        yield from table(head, (row(change, claims) for change, claims in groups.items()))


def row(change: Change, claims: Iterable[str]) -> tuple[str, ...]:
    """Return the cells of a changed criterion."""
    return ", ".join(claims), change.date, change.old, change.new, change.reason, f"{change.was}; {change.became}"


def _claim(item: Judged) -> tuple[str, ...]:
    verdict = item.verdict
    artifacts = ", ".join(one for one in (verdict.artifact, *verdict.also) if one)
    paper = f"{verdict.paper} ({artifacts})" if artifacts else verdict.paper
    here, limits = _measured(item)
    runs = f"{item.n} {item.profile}" if item.n else ""
    return f"`{verdict.claim}`", verdict.statement, paper, here, limits, runs, verdict.explained, verdict.category


def _measured(item: Judged) -> tuple[str, str]:
    """Return value and limit of the comparison that decides, or the reason why there is no value."""
    one = item.verdict.deciding
    if one is None or one.mean is None:
        return item.reason, one.limit if one else ""
    among = len(item.verdict.evidence)
    which = f"; decides among {among} comparisons" if among > 1 else ""
    within = interval(one)
    return f"{found(one)}{f' ({within})' if within else ''}{which}", allowed(one)


def _headlines(one: Evidenced, *rule: str) -> list[str]:
    """Return the lines of the table of headlines, with sentences below; none for a study without headlines."""
    head = (*HEAD[:3], f"[{HEAD[3]}](../../docs/claims.md#headlines)", *HEAD[4:])
    return [*table(head, headline_rows(one.headlines)), "", *rule, *([""] if rule else [])] if one.headlines else []


def renewed(text: str, one: Evidenced, modern: Evidenced | None, page: str = README) -> str:
    """Return the text of a page with the numbers of the evidence. Raises StudyError for a faulty expression."""
    return _numbers(between(text, _section(one, modern)), one, page)


def _numbers(text: str, one: Evidenced, page: str) -> str:
    return _NUMBER.sub(lambda found: f"{_value(found, one, page)}<!-- {found['expression']} -->", text)


def between(text: str, lines: Iterable[str]) -> str:
    """Return a text with the lines between the marks replaced, if it has marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return "\n".join([f"{before}{begin}", "", *lines, "", f"{end}{after}"]) if end else text


def _value(found: re.Match[str], one: Evidenced, page: str) -> str:
    """Return the value of an expression, with the number of decimals in the text."""
    try:
        number = one.value(found["expression"])
    except RelationError as error:
        where = f"{one.folder.name}/{page}"
        raise StudyError(f"{found['expression']!r}: {error.message}", where=where, hint=error.hint) from error
    decimals = found["number"].partition(".")[2]
    if number is None:
        return f"{UNKNOWN}.{UNKNOWN * len(decimals)}" if decimals else UNKNOWN
    return f"{number:,.{len(decimals)}f}"


def _section(one: Evidenced, modern: Evidenced | None) -> Iterator[str]:
    yield from _headlines(one)
    if not one.runs:
        yield f"**No run of this baseline is committed yet**; `./just evidence fill {one.folder.name}` adds them."
        return
    differing = f" In {one.differing} of those not reproduced the scenario is not the paper's." if one.differing else ""
    early = (
        f" {one.early} decided claims have fewer repetitions than the stated {one.study.header.stated_repetitions}."
        if one.early
        else ""
    )
    yield f"**How sure.** {sentence(one.counts)}{differing}{early}"
    yield f"[{PAGE}]({PAGE}) has each with its deciding interval ({one.runs} runs with stack profile `{one.stack}`)."
    if one.decided_by:
        coverage = {ground.profile: ground.coverage for ground in one.grounds}
        numbers = (f"`{profile}` {number} ({coverage[profile]})" for profile, number in one.decided_by.items())
        yield f"Deciding profiles: {', '.join(numbers)}."
    if further := _separate(one):
        yield "[Counted separately](../../docs/verdicts.md#kinds-of-claims): " + "; ".join(further) + "."
    if one.stack != MODERN and modern is not None:
        yield ""
        yield f"**With today's settings** (stack profile `{MODERN}`, {modern.runs} runs): {sentence(modern.counts)}"


def studies_table(every: Sequence[Evidenced]) -> Iterator[str]:
    """Yield the table of the studies with headlines: question and verdicts."""
    rows = []
    for one in every:
        if one.folder.headlines:
            name = f"[{one.folder.name}](experiments/{one.folder.name}/{README})"
            rows.append((name, one.folder.headlines.question, headline_counts(one.headlines)))
    yield from table(("study", "question", "conclusions of the paper"), rows)


def overview(every: Sequence[Evidenced]) -> Iterator[str]:
    """Yield the table of all headlines, and the table of the counts of claims."""
    rows = []
    for one in every:
        name = f"[{one.folder.name}](../experiments/{one.folder.name}/{README})"
        rows += [(name, row[0], row[3]) for row in headline_rows(one.headlines)]
    yield from table(("study", HEAD[0], HEAD[3]), rows)
    yield ""
    counted: list[tuple[str, ...]] = []
    for one in (one for one in every if one.runs):
        row = one.counts["measured"]
        testable = sum(row[word] for word in WORDS if word != "not testable")
        others = sum(sum(one.counts[name].values()) for name in CATEGORIES if name != "measured")
        numbers = (testable, row["reproduced"], row["not reproduced"], row["undecided"], row["compatible"], others)
        counted.append((one.folder.name, *map(str, numbers)))
    yield from table(
        ("study", "claims", "reproduced", "not reproduced", "undecided", "compatible", "separate"), counted
    )
