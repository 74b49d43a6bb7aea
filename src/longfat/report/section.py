# SPDX-License-Identifier: Apache-2.0
"""Results in a study's README.md: a summary and numbers from the committed evidence, never typed.

Renews the part between two marks, and each number of the text that has an expression of relations behind it in a
comment: ``955<!-- goodput[txqueuelen, scalable, txqueuelen=100] -->``. Owns the form of both. Whenever evidence is
added or merged, both are written again. Tables of claims are in VERDICTS.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from longfat.evidence.judged import Evidenced
from longfat.evidence.page import PAGE, cell
from longfat.relations.bind import RelationError
from longfat.relations.counting import CATEGORIES, VERDICT_WORDS, Counts, apart
from longfat.report.comparison import MODERN as TODAY
from longfat.report.findings import NAMES
from longfat.report.readme import README, read_readme
from longfat.system.errors import StudyError
from longfat.system.files import write_whole

BEGIN, END = "<!-- from the evidence, by ./just evidence merge -->", "<!-- end of what is from the evidence -->"
_WORD = re.compile(r"[\w-]+")
_NAMING = re.compile(r"(\w+(?:-\w+)+)|\(([^()]*)\)")
UNKNOWN = "?"
_NUMBER = re.compile(r"(?P<number>[^\s(*|]+)<!-- (?P<expression>\S[^\n]*?\]) -->")


def write_section(one: Evidenced, today: Evidenced | None) -> None:
    """Renew the README of a study; ``today`` is its evidence of today's stack. Raises StudyError as ``renewed``."""
    path = one.folder.path / README
    if path.exists() and (text := path.read_text(encoding="utf-8")) != (new := renewed(text, one, today)):
        write_whole(path, new)


def renewed(text: str, one: Evidenced, today: Evidenced | None) -> str:
    """Return the README with the numbers of the evidence. Raises StudyError for a faulty expression."""
    if BEGIN in text and END in text:
        text = between(text, _section(one, today))
    return _NUMBER.sub(lambda found: f"{_value(found, one)}<!-- {found['expression']} -->", text)


def _value(found: re.Match[str], one: Evidenced) -> str:
    """Return the value of an expression, with the number of decimals in the text."""
    try:
        number = one.value(found["expression"])
    except RelationError as error:
        where = f"{one.folder.name}/{README}"
        raise StudyError(f"{found['expression']!r}: {error.message}", where=where, hint=error.hint) from error
    decimals = found["number"].partition(".")[2]
    if number is None:
        return f"{UNKNOWN}.{UNKNOWN * len(decimals)}" if decimals else UNKNOWN
    return f"{number:,.{len(decimals)}f}"


def _section(one: Evidenced, today: Evidenced | None) -> Iterator[str]:
    yield ""
    yield f"{sentence(one.counts)} [{PAGE}]({PAGE}) has each with its interval ({one.runs} runs of stack {one.stack})."
    if further := apart(one.counts):
        yield "Counted separately: " + "; ".join(further) + "."
    if one.stack != TODAY:
        yield from ("", _today(one, today))
    yield ""


def sentence(counts: Counts) -> str:
    """Format the numbers of verdicts on measured claims as a sentence."""
    row = {word: number for word, number in counts["measured"].items() if number and word != "not_testable"}
    parts = [f"{number} {'is' if number == 1 else 'are'} {NAMES[word]}" for word, number in row.items()]
    joined = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + "".join(parts[-1:])
    return f"Of {sum(row.values())} claims that only runs can decide, {joined}."


def cause_experiments(one: Evidenced) -> Iterator[tuple[str, str]]:
    """Yield each claim with the experiments that its cause in the README names: the runs that show it."""
    known = {swept.id for swept in one.study.experiments}
    readme = read_readme(one.folder.path, (claim.id for claim in one.claims))
    for claim in one.claims:
        words = chain.from_iterable(experiment_words(cause.text) for cause in readme.of(claim.id))
        yield claim.id, ", ".join(dict.fromkeys(word for word in words if word in known))


def experiment_words(text: str) -> list[str]:
    """Return the words that may name an experiment: an English word, such as parallel, only in parentheses."""
    return [one or word for one, inside in _NAMING.findall(text) for word in ([one] if one else _WORD.findall(inside))]


def _today(one: Evidenced, today: Evidenced | None) -> str:
    if today is None:
        command = f"./just evidence fill {one.folder.name} --stack {TODAY}"
        return f"**Today:** there is no evidence of stack {TODAY} yet; `{command}` adds it."
    return f"**Today**, with stack {TODAY} ({today.runs} runs): {sentence(today.counts)}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell(text) for text in cells)} |"


def write_overview(path: Path, every: Sequence[Evidenced]) -> None:
    """Renew the table of all studies in a page with the marks, if the page exists."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if BEGIN in text and END in text and text != (new := between(text, overview(every))):
        write_whole(path, new)


def between(text: str, lines: Iterable[str]) -> str:
    """Return a text with other lines between the marks."""
    before, rest = text.split(BEGIN, 1)
    return before + "\n".join([BEGIN, *lines, END]) + rest.split(END, 1)[1]


def overview(every: Sequence[Evidenced]) -> Iterator[str]:
    """Yield the lines of a table of studies with evidence, as Markdown."""
    yield ""
    columns = ("study", "claims", "reproduced", "not reproduced", "undecided", "not measured", "separate")
    yield from (_row(*columns), "|---|---|---|---|---|---|---|")
    for one in every:
        row = one.counts["measured"]
        testable = sum(row[word] for word in VERDICT_WORDS if word != "not_testable")
        others = sum(sum(one.counts[name].values()) for name in CATEGORIES if name != "measured")
        others_of_measured = (row[word] for word in ("not_reproduced", "inconclusive", "not_measured"))
        numbers = (testable, row["reproduced"] + row["agrees"], *others_of_measured)
        yield _row(f"[{one.folder.name}](../experiments/{one.folder.name}/{README})", *map(str, numbers), str(others))
    yield ""
