# SPDX-License-Identifier: Apache-2.0
"""Gates and rows of the kinds in which a program at the receiver requests data from a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from longfat.spec.gates import Evidence, Gate


def was_reported(kind: str, words: str) -> Gate:
    """Each entry is in achieved.json and in the kind's table. ``words`` name it in messages: "requests {} were"."""

    def gate(evidence: Evidence) -> Iterator[str]:
        seen = {item[kind] for item in evidence.achieved.get(kind, ())}
        reported = {report[kind] for report in evidence.program_reports.get(kind, ())}
        for one in getattr(evidence.spec, kind):
            if one.name not in seen & reported:
                yield f"{words.format(one.name)} not reported"

    return gate


def algorithm_holds(kind: str, words: str) -> Gate:
    """The connections of each server used the declared algorithm only. ``words`` name them: "the server of {}"."""

    def gate(evidence: Evidence) -> Iterator[str]:
        found = {item[kind]: item["ccas"] for item in evidence.achieved.get(kind, ())}
        for one in getattr(evidence.spec, kind):
            if one.name in found and found[one.name] != [one.cca]:
                seen = ", ".join(found[one.name]) or "not seen"
                yield f"algorithm of {words.format(one.name)} is {seen}, declared {one.cca}"

    return gate


def total_errors(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a report as a row of its table, with the errors of all kinds added up."""
    return {**report, "errors": sum(report["errors"].values())}


def errors_text(errors: Mapping[str, int]) -> str:
    """Return counts of errors as a message lists them."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(errors.items()))
