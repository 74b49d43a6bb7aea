# SPDX-License-Identifier: Apache-2.0
"""Words that texts of the project avoid, each with the word to use, and the places in which they are looked for.

The glossary's column "do not say" has some of the words, in quotation marks; the substitutions below are the others.
Markdown is searched without code and without generated parts, Python in comments, docstrings and messages.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs/glossary.md"

CHECKED_PAGES = ("*.md", "docs/*.md", "experiments/*/README.md", "images/*.md", "kernels/*.md")
CHECKED_PACKAGES: tuple[str, ...] = ("",)
"""Folders and modules below src/longfat whose English was edited; "" is all of it."""

_GENERATED_PART = re.compile(r"<!-- from the evidence.*?<!-- end of|<!-- Generated:.*\Z", re.DOTALL)
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)", re.MULTILINE | re.DOTALL)

SUBSTITUTIONS = {
    r'^(?-i:"""(?:What|Of|That|Those|One of)\b|# (?:What|Of|That|Those)\b)': "a verb or a noun first",
    r"\banew\b": "again",
    r"\bonce more\b": "again",
    r"\breckon\w*": "compute",
    r"\bbesides?\b": "next to, also, competing with",
    r"\bsave for\b|\bbut for\b": "except",
    r"\bin place of\b|\bin the place of\b|\bin lieu of\b": "instead of",
    r"\bfor want of\b|\bin want of\b": "lack",
    r"\bequal to the byte\b|\bthe same to the byte\b|\balike to the byte\b": "byte-identical",
    r"\b(?:tha|tho)(?:t|se) of\b": "the noun again",
    r"\bthe (?:former|latter)'s\b": "the noun again",
    r"\bof (?:its|their|our|your|one's|his) own\b(?! [a-z])": "its own X",
    r"\bone's own\b": "your own",
    r"(?<!there )\bis no(?! longer| more| larger| less| later)\b": "no X, unknown X",
    r"\b(?:data|file|page|row|table|report|manifest|lock)s? tells?\b": "contain, report, list",
    r"\b(?:is|are|was|were) told\b": "report, pass",
    r"\bat hand\b": "available",
    r"\bso much as\b": "even",
    r"\bstands? (?:for|in for)\b(?= what)": "replace",
    r"\b(?:hold|holds|held|holding) \w+(?: \w+)? against\b": "evaluate against, compare with",
    r"\bheld against\b": "evaluated against",
    r"\bmay not be taken for\b": "must not be",
    r"\bthe way back\b|\bway back\b": "reverse path",
    r"\bproducts? of rate and (?:delay|round)": "BDP",
    r"\bqueues? that decides? by delay\b": "AQM",
    r"\bthe late (?:response|completion) time\b": "99th-percentile",
    r"\bgoodput read from acknowledg": "acknowledged rate",
    r"\bclaims? (?:that )?(?:is|are) open\b|\bopen claims?\b": "undecided",
    r"\bcounted apart\b|\bapart:": "counted separately",
    r"\bnot_reproduced\b|\bnot_measured\b|\bnot_testable\b": "not reproduced, not measured, not testable",
    r"\binconclusive\b": "undecided",
}


def rules() -> dict[re.Pattern[str], str]:
    """Return every avoided word as a pattern, with the word to use."""
    found = {re.compile(pattern, re.IGNORECASE): word for pattern, word in SUBSTITUTIONS.items()}
    for row in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        for word in re.findall(r'"([^"]+)"', cells[2]) if len(cells) == 3 else ():
            found[re.compile(rf"(?<![\w/]){re.escape(word)}s?\b(?!\.)", re.IGNORECASE)] = cells[0]
    return found


def texts() -> Iterator[tuple[str, int, str]]:
    """Yield the place and line of every text that is checked, and the text."""
    for path in sorted({path for pattern in CHECKED_PAGES for path in ROOT.glob(pattern)}):
        name = path.relative_to(ROOT).as_posix()
        if path != GLOSSARY:
            text = _GENERATED_PART.sub(_blank, path.read_text(encoding="utf-8"))
            text = _CODE.sub(_blank, text)
            yield from ((name, number, line) for number, line in enumerate(text.splitlines(), start=1))
    for package in CHECKED_PACKAGES:
        place = ROOT / "src/longfat" / package
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
            yield from _python(path)


def _blank(found: re.Match[str]) -> str:
    """Replace by as many lines without text."""
    return "\n" * found[0].count("\n")


def _python(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield comments, docstrings and messages of a module."""
    name = path.relative_to(ROOT).as_posix()
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        # Evidence stores the texts of NoValue: they are fixed.
        if token.type in kinds and " " in token.string and "NoValue(" not in token.line:
            for offset, line in enumerate(token.string.splitlines()):
                yield name, token.start[0] + offset, re.sub(r"``[^`]*``", "", line)
