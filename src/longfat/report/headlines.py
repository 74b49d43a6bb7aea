# SPDX-License-Identifier: Apache-2.0
"""Headlines as rows of text, the same in README.md, VERDICTS.md, docs/findings.md, the report and the console."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from longfat.relations.headlines import HEADLINE_WORDS, JudgedHeadline

HEAD = ("the paper concludes", "paper", "here", "verdict", "claims behind it")
NOTHING = "no evidence"
MOST = 3  # claims of one verdict that a row names


def headline_rows(headlines: Iterable[JudgedHeadline]) -> Iterator[tuple[str, ...]]:
    """Yield the row of each headline: its statement, the paper's numbers, the numbers here, verdict, claims."""
    for one in headlines:
        yield one.headline.statement, one.headline.paper, one.here or NOTHING, one.word, "; ".join(_behind(one))


def headline_counts(headlines: Iterable[JudgedHeadline]) -> str:
    """Format the number of headlines by verdict."""
    found = [one.word for one in headlines]
    return ", ".join(f"{found.count(word)} {word}" for word in HEADLINE_WORDS if word in found)


def _behind(one: JudgedHeadline) -> Iterator[str]:
    """Yield the claims of each verdict."""
    for word in dict.fromkeys(one.claims.values()):
        names = [name for name, own in one.claims.items() if own == word]
        more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
        yield f"{word}: {', '.join(names[:MOST])}{more}"
