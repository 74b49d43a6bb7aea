# SPDX-License-Identifier: Apache-2.0
"""The words for outcomes in data, code, reports and pages, and the reasons behind them (docs/verdicts.md)."""

from __future__ import annotations

from typing import Literal

Word = Literal["reproduced", "compatible", "not reproduced", "undecided", "not testable"]
WORDS: tuple[Word, ...] = ("reproduced", "compatible", "not reproduced", "undecided", "not testable")
"""All words in the order of tables. ``compatible`` has its own column and is never added to ``reproduced``."""

Why = Literal[
    "same sign, smaller",
    "no difference",
    "reversed",
    "outside the limits",
    "too few runs",
    "runs missing",
    "scenario differs",
]


def phrase(word: str, why: str | None) -> str:
    """Format an outcome with its reason: "not reproduced: reversed"."""
    return f"{word}: {why}" if why else word
