# SPDX-License-Identifier: Apache-2.0
"""Gates of traffic that is asked for: a server's connections, and a program at the receiver that reports.

Must not know the kinds; each says what it is called in messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from longfat.gates import Evidence, Gate


def was_reported(kind: str, what: str, named: str = "name") -> Gate:
    """Each is in achieved.json, and in the kind's table by what ``named`` says."""

    def gate(evidence: Evidence) -> Iterator[str]:
        seen = {item[kind] for item in evidence.achieved.get(kind, ())}
        told = {report[kind] for report in evidence.told.get(kind, ())}
        for one in getattr(evidence.spec, kind):
            if one.name not in seen or getattr(one, named) not in told:
                yield f"{what} {one.name} was not reported"

    return gate


def algorithm_holds(kind: str, what: str) -> Gate:
    """The connections of each server used the declared algorithm and no other."""

    def gate(evidence: Evidence) -> Iterator[str]:
        found = {item[kind]: item["ccas"] for item in evidence.achieved.get(kind, ())}
        for one in getattr(evidence.spec, kind):
            if one.name in found and found[one.name] != [one.cca]:
                seen = ", ".join(found[one.name]) or "not seen"
                yield f"algorithm of {what} {one.name} is {seen}, declared {one.cca}"

    return gate


def something_came(kind: str, what: str, count: str) -> Gate:
    """At least one of what the report counts as ``count`` was complete, and nothing failed."""

    def gate(evidence: Evidence) -> Iterator[str]:
        for report in evidence.told.get(kind, ()):
            if not report[count]:
                yield f"nothing of {what} {report[kind]} was complete"
            if errors := report.get("errors"):
                kinds = ", ".join(f"{number} {error}" for error, number in sorted(errors.items()))
                yield f"{what} {report[kind]} failed ({kinds}), allowed 0"

    return gate


def gates_of(kind: str, what: str, count: str, named: str = "name") -> tuple[Gate, ...]:
    """All of them for a kind."""
    return was_reported(kind, what, named), algorithm_holds(kind, what), something_came(kind, what, count)


def errors_together(report: Any) -> Any:
    """A report's row of its table, with errors of all kinds in one number."""
    return {**report, "errors": sum(report["errors"].values())}
