# SPDX-License-Identifier: Apache-2.0
"""The quoted parts of a study's README.md and notes.md: the question, and causes of verdicts.

The question is the text between the first heading and the first table or further heading, without a paper's citation.
A cause is a row of the table of what differs, unless its state is "open", or a paragraph or an item that names a claim
in backticks. If a text has the name in bold, or in a parenthesis behind bold words, texts that only mention it do not
count. Sections about another stack, parameters or deviations give no cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from markdown_it import MarkdownIt

from longfat.data.study_folder import NOTES, README, StudyFolder

_ELSEWHERE = re.compile(r"today|parameter|deviate|kinds of claims|how the claims", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_HEADING = re.compile(r"#+ +(.*)")
_ITEM = re.compile(r"^(?:- |\d+\. )")
_FIRST_ITEM = re.compile(r"^(?:- |1\. )")  # CommonMark: a later number belongs to the paragraph
_NAMED = re.compile(r"`([a-z0-9*?-]+)`")
_HEAD = re.compile(r"\*\*(.+?)\*\*( \([^)]*\))?")
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
_BAR = re.compile(r"(?<!\\)\|")
_COLUMNS = ["group", "claims", "cause", "evidence", "state"]  # first words of the heads of the table of what differs
MOST = 2  # paragraphs that only mention a claim


@dataclass(frozen=True)
class Cause:
    """A paragraph or a table's row about claims, as HTML, with a unique ``key``."""

    key: str
    text: str
    claims: tuple[str, ...]


@dataclass(frozen=True)
class Readme:
    """The quoted parts of a README, as HTML."""

    question: str = ""
    causes: Sequence[Cause] = ()

    def of(self, claim: str) -> tuple[Cause, ...]:
        """Return the causes of a claim."""
        return tuple(cause for cause in self.causes if claim in cause.claims)


def quoted(folder: StudyFolder, claims: Iterable[str]) -> Readme:
    """Return the quoted parts of a study's README and of its notes. Raises StudyError if they cannot be read."""
    return read_readme(folder.text_of(README), claims, folder.text_of(NOTES), cited=folder.header.paper is not None)


def read_readme(text: str, claims: Iterable[str], notes: str = "", *, cited: bool = True) -> Readme:
    """Return the quoted parts of a study's README, whose first paragraph may be a citation, and of its notes."""
    blocks = list(_blocks(_COMMENT.sub("", text)))
    intro = [text for heading, text in blocks if heading is None][cited:]
    blocks += _blocks(_COMMENT.sub("", notes))
    reasons = [text for heading, text in blocks if heading is not None and not _ELSEWHERE.search(heading)]
    return Readme(_html(intro), tuple(_causes(reasons, tuple(claims))))


def _blocks(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield paragraphs, items and rows of what differs, with their heading; None before the second heading."""
    heading, seen = None, 0
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip().splitlines()
        while lines and (match := _HEADING.match(lines[0])):
            seen += 1
            heading = match[1] if seen > 1 else None
            lines.pop(0)
        if lines and lines[0].startswith(("|", "```", "![")):
            heading = heading or ""  # a table ends the text above all headings
            for row in _rows(lines):
                yield heading, row
            lines = []
        if not lines:
            continue
        item: list[str] = []
        begins = _ITEM if _ITEM.match(lines[0]) else _FIRST_ITEM
        for line in lines:
            if begins.match(line) and item:
                yield heading, "\n".join(item)
                item = []
            item.append(line)
        yield heading, "\n".join(item)


def _rows(lines: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the table of what differs whose state is not "open", each as a sentence."""
    table = [[cell.strip() for cell in _BAR.split(line.strip().strip("|"))] for line in lines]
    if [(_LINK.sub(r"\1", cell).split() or [""])[0] for cell in table[0]] == _COLUMNS:
        for group, claims, cause, evidence, state in (row for row in table[2:] if len(row) == len(_COLUMNS)):
            if state != "open":
                yield f"**{group} ({claims}):** {cause} ({evidence}; {state})."


def _causes(blocks: Sequence[str], claims: tuple[str, ...]) -> Iterator[Cause]:
    of: Mapping[int, list[str]] = {number: [] for number in range(len(blocks))}
    for claim in claims:
        first = [number for number, text in enumerate(blocks) if _names(_heads(text), claim)]
        other = [number for number, text in enumerate(blocks) if _names(text, claim)]
        for number in first or other[:MOST]:
            of[number].append(claim)
    for number, names in of.items():
        if names:
            yield Cause(f"cause-{number}", _html([_ITEM.sub("", blocks[number], count=1)]), tuple(names))


def _heads(text: str) -> str:
    """Return the text in bold letters, each with the parenthesis behind it."""
    return " ".join("".join(found) for found in _HEAD.findall(" ".join(text.split())))


def _names(text: str, claim: str) -> bool:
    return any(fnmatchcase(claim, name) for name in _NAMED.findall(text) if name.strip("*?"))


def _html(blocks: Iterable[str]) -> str:
    """Render Markdown without relative links, which are relative to the README.

    Each block becomes one line, so that a number at the beginning of a line does not begin a list.
    """
    markdown = MarkdownIt("commonmark", {"html": False}).disable("image")  # a page loads no other file
    lines = "\n\n".join(" ".join(block.split()) for block in blocks)
    return str(markdown.render(_LINK.sub(r"\1", lines))).strip()
