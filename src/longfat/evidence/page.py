# SPDX-License-Identifier: Apache-2.0
"""VERDICTS.md of a study: every claim's verdict by the committed evidence, generated when evidence changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from longfat.evidence.judged import Evidenced, Judged
from longfat.relations.counting import apart
from longfat.relations.evaluate import Evidence
from longfat.system.files import write_whole

PAGE = "VERDICTS.md"
RESOLUTION = 1e-9  # in any unit: smaller differences come from the storage of numbers
_ORDER = ("reproduced", "agrees", "not_reproduced", "inconclusive", "not_measured", "not_testable")


def write_verdicts(one: Evidenced) -> Path:
    """Write the page into the study's folder, unless it is unchanged, and return its path."""
    path = one.folder.path / PAGE
    text = verdicts_page(one)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_whole(path, text)
    return path


def verdicts_page(one: Evidenced) -> str:
    """Return the page as Markdown."""
    counts = one.counts
    measured = [f"{number} {_word(word)}" for word, number in counts["measured"].items() if number]
    lines = [
        f"# Verdicts of {one.folder.name}",
        "",
        "Generated from the committed evidence by `./just evidence merge`; do not edit.",
        f"It has {one.runs} runs of stack {one.stack} in baseline {one.baseline}.",
        "",
        f"**Measured claims: {', '.join(measured) or 'none'}.**",
    ]
    if others := apart(counts):
        lines += ["Counted separately:", "", *(f"- {line}" for line in others)]
    for word in _ORDER:
        judged = [item for item in one.judged if item.verdict.verdict == word]
        if judged:
            lines += ["", f"## {_word(word).capitalize()}", "", *_table(judged)]
    return "\n".join(lines) + "\n"


def _table(judged: list[Judged]) -> Iterator[str]:
    yield "| claim | artifact | statement | measured, and what is allowed | n | kind |"
    yield "|---|---|---|---|---|---|"
    for item in judged:
        verdict = item.verdict
        artifacts = ", ".join(one for one in (verdict.artifact, *verdict.also) if one)
        cells = (f"`{verdict.claim}`", artifacts, verdict.statement, measured_text(item), item.n, verdict.category)
        yield f"| {' | '.join(cell(text) for text in cells)} |"


def measured_text(item: Judged) -> str:
    """Return the deciding comparison, or the reason why it is absent."""
    evidence = item.verdict.evidence
    deciding = item.verdict.deciding
    if item.verdict.verdict in ("not_measured", "not_testable") or deciding is None:
        return item.reason
    more = f", and {len(evidence) - 1} more" if len(evidence) > 1 else ""
    return f"{_number(deciding)}{more}"


def _number(evidence: Evidence) -> str:
    if evidence.mean is None:
        return evidence.reason or "no data"
    effect = "no effect: " if evidence.no_effect and evidence.outcome == "fails" else ""
    interval = ""
    if evidence.low is not None and evidence.high is not None and evidence.high - evidence.low > RESOLUTION:
        interval = f" ({evidence.low:.3g} to {evidence.high:.3g})"
    return f"{effect}{evidence.mean:.4g}{interval}, allowed {evidence.limit}"


def _word(word: str) -> str:
    return word.replace("_", " ")


def cell(text: str) -> str:
    """Return a text as a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())
